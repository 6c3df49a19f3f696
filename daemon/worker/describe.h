/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Describes a compiled statement: for the STARTED message, the COLUMNS frame and the STATEMENT frame.
 */
#ifndef SQLIPC_DAEMON_WORKER_DESCRIBE_H
#define SQLIPC_DAEMON_WORKER_DESCRIBE_H

#include <stdbool.h>

#include "daemon/worker/sql-error.h"

typedef struct sqlite3_stmt sqlite3_stmt;

/* Fills in columns and parameters of `started`. They borrow from `stmt`; the arrays are one allocation at started->columns,
 * which the caller frees. LimitsExceeded if the names alone take more than SQLIPC_COLUMNS_SIZE_MAX. */
bool describe_statement(sqlite3_stmt *stmt, Started *started, SqlError *error);

/* Makes the payload of a COLUMNS frame (sqlipc-page.h), which the caller frees. */
bool describe_columns(sqlite3_stmt *stmt, uint32_t page_size, uint8_t **ret_payload, size_t *ret_size, SqlError *error);

/* Sets the page size in such a payload. */
void columns_set_page_size(uint8_t *payload, uint32_t page_size);

/* Makes the payload of a STATEMENT frame (sqlipc-channel.h), which the caller frees. LimitsExceeded as above. */
bool describe_prepared(sqlite3_stmt *stmt, uint8_t **ret_payload, size_t *ret_size, SqlError *error);

#endif
