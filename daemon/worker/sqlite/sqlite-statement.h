/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. A compiled statement, with the data that is kept beside it for its next run. It lives in a slot of its
 * connection's cache (statement-cache.h).
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_STATEMENT_H
#define SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_STATEMENT_H

#include "daemon/worker/sqlite/row-layout.h"
#include "daemon/worker/sqlite/sqlite-connection.h"

typedef struct SqliteStatement {
        SqliteConnection *connection; /* borrowed */
        sqlite3_stmt *stmt;   /* NULL: the slot is free */
        char *sql;            /* owned, sql_size bytes; NULL: the statement is not kept after its run */
        size_t sql_size;
        uint64_t id;          /* never used before in this worker */
        uint64_t used;        /* larger is later */
        uint8_t *columns;     /* owned: the COLUMNS payload of the last compile; NULL: not made yet */
        size_t columns_size;
        RowLayout layout;     /* of its rows; SQLite may compile it again */
        bool writes;          /* see CompiledStatement */
        bool only_temp;
        bool is_savepoint;
        bool runs_alone;
        bool of_dump;
        bool does_nothing;
        bool attaches;
        bool changes_rows;
        bool asks_changes;
        ForeignKeys foreign_keys;
        bool outdated;        /* SQLite has compiled it again, so it may write other tables */
        EngineWritten written; /* owned; if it writes: what it may change */
} SqliteStatement;

/* Finalizes the statement, which frees the slot. A free slot is allowed. */
void sqlite_statement_clear(SqliteStatement *s);

/* Resets the statement, and keeps it for the next run of the same SQL, or finalizes it. */
void sqlite_statement_release(SqliteStatement *s);

/* Provides the COLUMNS payload of a statement that was stepped, made again only if the statement was recompiled. Borrowed
 * until sqlite_statement_release(). */
bool sqlite_statement_columns(SqliteStatement *s, uint32_t page_size, const uint8_t **ret_payload, size_t *ret_size,
                              SqlError *error);

/* Finds the tables that the statement reads and writes: compiles its SQL again, and notes what the authorizer is asked. */
bool sqlite_statement_tables(SqliteStatement *s, EngineTables *ret_read, EngineTables *ret_written, SqlError *error);

/* True if a constraint or trigger of the statement can fail with FAIL, or if that is not known. SQLite does not tell by
 * which conflict resolution a statement has failed; with any other it has kept nothing. */
bool sqlite_statement_may_keep_rows(const SqliteStatement *s);

/* Adds what the statement, which was stepped, may have changed. */
void sqlite_statement_written(SqliteStatement *s, EngineWritten *written);

#endif
