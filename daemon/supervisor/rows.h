/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Columns and rows as D-Bus values. Supervisor; no descriptors, no state. All of them count what they append (reply.h).
 *
 * org.sqlipc1.Database.xml says how: x, d, s, ay, and a{sv} for NULL ({}) and for TEXT that no D-Bus string can carry.
 */
#ifndef SQLIPC_ROWS_H
#define SQLIPC_ROWS_H

#include "page-decoder.h"
#include "protocol.h"
#include "reply.h"

/* a(ssa{sv}): from what a worker said of a compiled statement, and from a run's own COLUMNS. */
int rows_append_columns_of_statement(Reply *reply, const Started *started);
int rows_append_columns_of_run(Reply *reply, const PageDecoder *d);

/* An entry {sv} "parameters" (as) of info. */
int rows_append_parameters(Reply *reply, const Started *started);

/* Bytes that the row under PAGE_ROW takes at most. */
size_t rows_row_size(const PageDecoder *d);

/* The row as one `av`; `size` is what rows_row_size() said. */
int rows_append_row(Reply *reply, const PageDecoder *d, size_t size);

#endif
