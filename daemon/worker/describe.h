/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. What a compiled statement looks like: for the STARTED message, and for the COLUMNS frame.
 */
#ifndef DESCRIBE_H
#define DESCRIBE_H

#include <stdbool.h>

#include "sql-error.h"

typedef struct sqlite3_stmt sqlite3_stmt;

/* Fills columns and parameters of `started`; they borrow from `stmt`, the arrays are one allocation at started->columns that
 * the caller frees. LimitsExceeded where the names alone pass SQLIPC_COLUMNS_SIZE_MAX. */
bool describe_statement(sqlite3_stmt *stmt, Started *started, SqlError *error);

/* The payload of a COLUMNS frame (sqlipc-page.h), which the caller frees. */
bool describe_columns(sqlite3_stmt *stmt, uint32_t page_size, uint8_t **ret_payload, size_t *ret_size, SqlError *error);

/* Makes such a payload one of another page size. */
void columns_set_page_size(uint8_t *payload, uint32_t page_size);

/* The payload of a STATEMENT frame (sqlipc-channel.h), which the caller frees. LimitsExceeded as above. */
bool describe_prepared(sqlite3_stmt *stmt, uint8_t **ret_payload, size_t *ret_size, SqlError *error);

#endif
