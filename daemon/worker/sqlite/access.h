/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Restricts what SQL may do: SQLite's authorizer for reading, and limits. The authorizer keeps statements from
 * doing anything except reading. It does not separate tables from each other (see I11 in docs/ARCHITECTURE.md).
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_ACCESS_H
#define SQLIPC_DAEMON_WORKER_SQLITE_ACCESS_H

#include <stdbool.h>

#include "daemon/worker/core/engine.h"

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

/* The tables that the authorizer was asked about. */
typedef struct AccessTables {
        EngineTables read, written;
        bool failed;             /* there was no memory for a name */
} AccessTables;

/* The authorizer's state since access_forget(): SQLite's requests, and the last refusal, for the error's sentence. */
typedef struct Access {
        bool asked;              /* SQLite asked for at least one permission */
        bool reads_journal_mode; /* the only request was for "PRAGMA journal_mode" without a value */
        bool ours;               /* only the worker's own SQL runs here: transactions are allowed; set by the caller */
        AccessTables *tables;    /* borrowed: the authorizer adds to it; NULL: nothing asks for them */
        char refused[256];       /* empty: nothing was refused */
} Access;

/* Installs authorizer, limits and safe settings on a new connection. `access` must outlive it. Returns an SQLite result
 * code. */
int access_install(sqlite3 *db, const Setup *setup, Access *access);

/* Must be called before a client's statement is compiled. */
void access_forget(Access *access);

/* True if the statement writes nothing. It must be the only statement that was compiled since access_forget(). SQLite
 * counts every "PRAGMA journal_mode" as writing, although without a value it only reads. */
bool access_only_reads(const Access *access, sqlite3_stmt *stmt);

/* access_narrow() sets the limits of `setup` while a client's statement is compiled; access_widen() restores SQLite's own.
 * SQLite applies the limits to everything that it parses, so with small limits in force all the time, a database whose
 * schema exceeds one (a long CREATE VIEW) could not be read at all. Therefore the schema must have been read before
 * access_narrow(). SQLITE_LIMIT_SQL_LENGTH is not set; engine_check_sql_size() measures the client's SQL instead. */
void access_narrow(sqlite3 *db, const Setup *setup);
void access_widen(sqlite3 *db);

#endif
