/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads bound record batches row by row, as parameters of libsqlipc. Values of any Arrow type that SQLite has a place for:
 *
 *      integers, booleans            INTEGER; a uint64 past INT64_MAX is an error
 *      floating-point numbers        REAL
 *      text, large and view types    TEXT
 *      binary types                  BLOB
 *      dates, times, timestamps      TEXT, as SQLite's own date functions write it: "2026-03-01 12:30:00.250"; with "+00:00"
 * at the end if the type has a time zone, because the values are UTC then dictionaries                  the value that the
 * index refers to
 *
 * Pure, except that it calls the functions of the stream. ADBC driver.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_BOUND_ROWS_H
#define SQLIPC_CLIENT_LIB_ADBC_BOUND_ROWS_H

#include <stdbool.h>

#include "client-lib/adbc/adbc-abi.h"
#include "client-lib/sqlipc.h"

typedef struct BoundRows BoundRows;

/* Takes the stream, and marks it as released, also if it fails. `by_name`: parameters get the names of their columns.
 * Errors: those of the stream; ADBC_STATUS_NOT_IMPLEMENTED for a type of Arrow that has no place. */
AdbcStatusCode bound_rows_new(struct ArrowArrayStream *stream, bool by_name, BoundRows **ret_rows, struct AdbcError *error);
BoundRows *bound_rows_free(BoundRows *rows);
void bound_rows_freep(BoundRows **rows);

/* Returns the number of columns, the name of one, and the type by which SQLite declares it ("" for the null type). */
size_t bound_rows_n_columns(const BoundRows *rows);
const char *bound_rows_name(const BoundRows *rows, size_t column);
const char *bound_rows_declaration(const BoundRows *rows, size_t column);

/* Goes to the next row: `*ret_values` has a value for each column, valid until the next call, or is NULL at the end. */
AdbcStatusCode bound_rows_next(BoundRows *rows, const sqlipc_parameter **ret_values, struct AdbcError *error);

/* Makes the rows end with the first batch that has any; the batch stays there. Then gives the data back, to be bound again:
 * frees the rows, and makes a stream of that batch and of those that were not read. Returns 0; or -ENOMEM. */
void bound_rows_stay(BoundRows *rows);
int bound_rows_give_back(BoundRows *rows, struct ArrowArrayStream *ret_stream);

#endif
