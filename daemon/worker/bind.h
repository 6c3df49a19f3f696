/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. A job's parameters -> a compiled statement's.
 */
#ifndef BIND_H
#define BIND_H

#include <stdbool.h>

#include "sql-error.h"

typedef struct sqlite3_stmt sqlite3_stmt;

/* Binds all of the job's parameters to `stmt`, which borrows the bytes: the job must live until its bindings are cleared.
 * Each parameter gets exactly one value: ParameterCount, UnknownParameter otherwise. */
bool bind_parameters(sqlite3 *db, sqlite3_stmt *stmt, const Job *job, SqlError *error);

#endif
