/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Appends columns and rows as D-Bus values. Supervisor; no descriptors, no state. All functions count the bytes that they
 * append (reply.h).
 *
 * org.sqlipc1.Database.xml describes the types: x, d, s, ay, and a{sv} for NULL ({}) and for TEXT that a D-Bus string cannot
 * hold.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_CALLS_ROWS_H
#define SQLIPC_DAEMON_SUPERVISOR_CALLS_ROWS_H

#include "daemon/protocol/protocol.h"
#include "daemon/supervisor/calls/reply.h"
#include "dbus-interfaces/wire/page-decoder.h"

/* Each appends a(ssa{sv}): from a worker's description of a compiled statement, and from the COLUMNS of a run. */
int rows_append_columns_of_statement(Reply *reply, const Started *started);
int rows_append_columns_of_run(Reply *reply, const PageDecoder *d);

/* Appends the entry "parameters" (as) to the a{sv} `info` of a reply, which is open. */
int rows_append_parameters(Reply *reply, const Started *started);

/* Returns an upper bound of the bytes that the decoder's current row (PAGE_ROW) takes in a reply. */
size_t rows_row_size(const PageDecoder *d);

/* Appends the row as one `av`. `size` is the result of rows_row_size(). */
int rows_append_row(Reply *reply, const PageDecoder *d, size_t size);

#endif
