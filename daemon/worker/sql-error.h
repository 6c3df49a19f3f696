/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. SQLite's failure, or our own refusal, in the terms of the one error table. A function of the worker that can
 * fail on account of SQL or of the database returns false and fills an SqlError; -errno is kept for what is our own trouble.
 */
#ifndef SQL_ERROR_H
#define SQL_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"
#include "sqlipc-errors.h"

typedef struct sqlite3 sqlite3;

typedef struct SqlError {
        ErrorNumber error;      /* ERROR_NONE: none */
        int32_t extended_code;  /* SQLite's, 0: ours */
        int32_t sql_offset;     /* bytes into the SQL of the job, -1: none */
        char *message;          /* owned; NULL only where memory was out */
} SqlError;

#define SQL_ERROR_INIT ((SqlError) { .sql_offset = -1 })

/* Frees what is owned and is SQL_ERROR_INIT again. */
void sql_error_done(SqlError *e);

/* Ours: `error` with a sentence. Replaces what was there. Always returns false, so that callers can return it. */
bool sql_error_set(SqlError *e, ErrorNumber error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* SQLite's: copies code, message and offset while `db` still owns them. `rc` is what the failed call returned; `offset_base`
 * is where the SQL that was handed to SQLite starts within the job's. SQLITE_INTERRUPT leaves an error that is there
 * already. Always returns false. */
bool sql_error_take(SqlError *e, sqlite3 *db, int rc, size_t offset_base);

/* Borrowed view for messages and frames; never without a message where there is an error. */
Failure sql_error_as_failure(const SqlError *e);

#endif
