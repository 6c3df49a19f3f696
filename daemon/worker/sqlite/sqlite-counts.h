/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. last_insert_rowid(), changes() and total_changes() of clients (ClientCounts), whose statements share a
 * connection. From sqlite_counts_enter() to sqlite_counts_leave() they are those of one client.
 *
 * 1. The rowid can be set. Of total_changes() the connection knows the difference since enter().
 * 2. SQLite sets changes() when a statement that changes rows has ended, saves it before a trigger program, sets it after
 *    each statement of the program, and restores it. Only SQLite knows all that, so the number of the client must be in its
 *    place before a statement that asks for it is stepped. SQLite has no function that sets it. Therefore a statement of
 *    our own changes as many rows of a virtual table that has none.
 * 3. Above COUNTED_MAX that would take too long. Then SQLite gets a smaller number, and changes() returns the client's
 *    if it meets that. If it may be a real one, changes() fails.
 * 4. The authorizer is not asked about DEFAULT and CHECK. So before any other statement that changes rows, SQLite has
 *    some number above 0, by the same rule.
 * 5. A pin has one client, so after its first statement the numbers are SQLite's own. Before it, rows of a TEMP table are
 *    counted, in place of those of the virtual table, whose change would need the lock of the file.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_COUNTS_H
#define SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_COUNTS_H

#include "daemon/worker/core/engine.h"
#include "daemon/worker/sqlite/access.h"

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

typedef struct SqliteCounts {
        sqlite3 *file, *db;   /* borrowed: as in SqliteConnection */
        Access *access;       /* borrowed */
        bool writes;          /* the connection was opened to write */
        bool is_pin;          /* it belongs to one client, set by the caller: see 5 */
        ClientCounts client;  /* as they were at enter() */
        int64_t total_before; /* sqlite3_total_changes64(), before the client's statements */
        int64_t before;       /* sqlite3_changes64(), the same */
        bool own;             /* sqlite3_changes64() is the client's, inside triggers, too */
        bool changing;        /* a statement that may change rows is stepped */
        sqlite3_stmt *count;  /* owned: changes rows of the virtual table; NULL: not compiled yet */
} SqliteCounts;

/* Replaces the functions on a connection that has just been opened. All but the first argument are borrowed. Returns an
 * SQLite result code. */
int sqlite_counts_install(SqliteCounts *k, sqlite3 *file, sqlite3 *db, Access *access, bool writes);

/* Finalizes the statement. */
void sqlite_counts_done(SqliteCounts *k);

/* The next statements are those of a client with these numbers. */
void sqlite_counts_enter(SqliteCounts *k, const ClientCounts *counts);

/* Returns the numbers of that client now. Its statements must be reset. */
ClientCounts sqlite_counts_leave(const SqliteCounts *k);

/* access_step() of a statement of the client; the flags are those of CompiledStatement. Returns an SQLite result code. */
int sqlite_counts_step(SqliteCounts *k, sqlite3_stmt *stmt, bool changes_rows, bool asks_changes);

#endif
