/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. A database in memory with the server's schema and no rows: its *shadow*. Clients' SQL is compiled on it
 * before it goes to the server, by the modules that compile for a file (sqlite/). So columns, parameters, rights, the tables
 * that a statement reads and writes, and errors with their offsets are the same as for a file, and cost no round trip.
 *
 * The shadow is as new as PRAGMA schema_version was when it was made. A read tells if that has changed. Statements share it;
 * each of them, and the pool, holds a reference, so it can be replaced while statements run.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_SHADOW_SCHEMA_H
#define SQLIPC_DAEMON_WORKER_RQLITE_SHADOW_SCHEMA_H

#include "daemon/worker/sqlite/sqlite-compile.h"
#include "daemon/worker/sqlite/statement-cache.h"

typedef struct ShadowSchema {
        SqliteConnection sqlite; /* without a file: only what a compile needs is set */
        StatementCache cache;    /* for watched_tables_find() */
        int64_t version;         /* PRAGMA schema_version of the server */
        EngineTables missing;    /* tables that could not be made: they need a module or function that SQLite lacks here */
        unsigned n_references;
} ShadowSchema;

/* Creates an empty shadow with one reference. `setup` is borrowed. OutOfMemory. */
bool shadow_schema_new(const Setup *setup, int64_t version, ShadowSchema **ret, SqlError *error);

/* Adds an object by a row of sqlite_schema; `sql` may be NULL. OutOfMemory. */
bool shadow_schema_add(ShadowSchema *s, const char *name, const char *sql, SqlError *error);

ShadowSchema *shadow_schema_ref(ShadowSchema *s);
ShadowSchema *shadow_schema_unref(ShadowSchema *s);

/* Compiles `sql` as sqlite_compile() does. MissingModule: it is about a table that could not be made here. */
bool shadow_schema_compile(ShadowSchema *s, const char *sql, size_t sql_size, CompiledStatement *ret, SqlError *error);

/* True if `columns`, as in "t.a, t.b" of SQLite's message, are the primary key of their table. */
bool shadow_schema_is_primary_key(ShadowSchema *s, const char *columns);

#endif
