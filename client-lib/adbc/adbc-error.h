/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The errors of ADBC: a status, a sentence, a SQLSTATE, and details by key. ADBC driver.
 *
 * Each function that can fail returns an AdbcStatusCode and has an `error`, which may be NULL. adbc_error_set() fills it,
 * once, when the failure is noticed; the functions above pass the status on. A caller of version 1.0 gets SQLite's extended
 * code as the vendor code; a caller of 1.1 gets details:
 *
 *      sqlipc.error                          the name of the service's error, such as "org.sqlipc1.Error.Sql"
 *      sqlite.code, sqlite.extended_code     SQLite's result codes, in decimal
 *      sqlipc.sql_offset                     the offset in bytes of the error in the SQL
 *      sqlipc.row, sqlipc.column             the value that does not fit: the row from 1, and the name of the column
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_ADBC_ERROR_H
#define SQLIPC_CLIENT_LIB_ADBC_ADBC_ERROR_H

#include "client-lib/adbc/adbc-abi.h"
#include "client-lib/sqlipc.h"

/* Releases what `error` holds, and fills it with a status, a SQLSTATE (five characters) and a message. Returns `status`. */
AdbcStatusCode adbc_error_set(struct AdbcError *error, AdbcStatusCode status, const char *sqlstate, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* Adds a detail to an error that was filled before; `value` is a string. Without memory, the detail is left out. */
void adbc_error_add(struct AdbcError *error, const char *key, const char *value);
void adbc_error_add_number(struct AdbcError *error, const char *key, int64_t value);

/* For -ENOMEM. */
AdbcStatusCode adbc_error_memory(struct AdbcError *error);

/* For the negative errno `r` of a call of libsqlipc: details come from the object that failed. */
AdbcStatusCode adbc_error_connection(struct AdbcError *error, const sqlipc_connection *connection, int r);
AdbcStatusCode adbc_error_statement(struct AdbcError *error, const sqlipc_statement *statement, int r);
AdbcStatusCode adbc_error_cursor(struct AdbcError *error, const sqlipc_cursor *cursor, int r);

/* Turns an error into that of a write whose outcome is unknown, or that took effect although it fails: the status is IO, the
 * SQLSTATE 08007, and the message keeps what it said, and adds the `fact`, a sentence. */
AdbcStatusCode adbc_error_outcome(struct AdbcError *error, const char *fact);

/* The errno (positive) that a stream returns for a status. */
int adbc_error_errno(AdbcStatusCode status);

/* Functions of the driver's table. */
int adbc_error_detail_count(const struct AdbcError *error);
struct AdbcErrorDetail adbc_error_detail(const struct AdbcError *error, int index);

#endif
