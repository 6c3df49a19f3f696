/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. A failure of the engine, or a refusal of ours, in terms of the one error table. A function of the worker
 * that can fail because of the SQL or the database returns false and fills in an SqlError; -errno is used only for failures
 * of the worker itself.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_SQL_ERROR_H
#define SQLIPC_DAEMON_WORKER_CORE_SQL_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/protocol/protocol.h"
#include "dbus-interfaces/sqlipc-errors.h"

typedef struct SqlError {
        ErrorNumber error;      /* ERROR_NONE: none */
        int32_t extended_code;  /* the engine's, 0: the error is not the engine's */
        int32_t sql_offset;     /* in bytes, into the SQL of the job; -1: none */
        char *message;          /* owned; NULL only if there was no memory for it */
} SqlError;

#define SQL_ERROR_INIT ((SqlError) { .sql_offset = -1 })

/* Frees what is owned and resets it to SQL_ERROR_INIT. */
void sql_error_done(SqlError *e);

/* Sets an error of ours: `error` with a sentence. Replaces an earlier error. Always returns false, so that callers can
 * return it. */
bool sql_error_set(SqlError *e, ErrorNumber error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts a text before the sentence of an error. Code and offset stay. */
void sql_error_prefix(SqlError *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Replaces `to` by a copy. */
void sql_error_copy(SqlError *to, const SqlError *from);

/* Returns a borrowed view for messages and frames. If there is an error, it always has a message. */
Failure sql_error_as_failure(const SqlError *e);

#endif
