/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Binds a job's parameters to a compiled statement.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_BIND_H
#define SQLIPC_DAEMON_WORKER_SQLITE_BIND_H

#include <stdbool.h>

#include "daemon/worker/core/sql-error.h"

typedef struct PageDecoder PageDecoder;
typedef struct PageValue PageValue;
typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

/* Binds all parameters of the job to `stmt`, which borrows the bytes: the job must live until the bindings are cleared.
 * Each parameter must get exactly one value; otherwise the error is ParameterCount or UnknownParameter. OutOfMemory. */
bool bind_parameters(sqlite3 *db, sqlite3_stmt *stmt, const JobSpec *job, SqlError *error);

/* Finds the value of each parameter by the same rules, and binds nothing: for an engine that sends them elsewhere. A
 * parameter that may stay unbound is NULL. `ret_values` has a place for each; the bytes are the job's. */
bool bind_find(sqlite3_stmt *stmt, const JobSpec *job, PageValue *ret_values, SqlError *error);

/* Binds the `n` values of the row under page_decoder_next() to the first parameters. `stmt` borrows the bytes until it is
 * stepped to its end. Returns an SQLite result code. */
int bind_row(sqlite3_stmt *stmt, const PageDecoder *row, unsigned n);

#endif
