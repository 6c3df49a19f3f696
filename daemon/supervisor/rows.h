/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Columns and rows as D-Bus values. Supervisor; no descriptors, no state.
 *
 * org.sqlipc1.Database.xml says how: x, d, s, ay, and a{sv} for NULL ({}) and for TEXT that no D-Bus string can carry.
 */
#ifndef SQLIPC_ROWS_H
#define SQLIPC_ROWS_H

#include <systemd/sd-bus.h>

#include "page-decoder.h"
#include "protocol.h"

/* a(ssa{sv}): from what a worker said of a compiled statement, and from a run's own COLUMNS. */
int rows_append_columns_of_statement(sd_bus_message *m, const Started *started);
int rows_append_columns_of_run(sd_bus_message *m, const PageDecoder *d);

/* An entry {sv} "parameters" (as) of info. */
int rows_append_parameters(sd_bus_message *m, const Started *started);

/* The row under PAGE_ROW as one `av`. */
int rows_append_row(sd_bus_message *m, const PageDecoder *d);

/* Bytes that it takes at most. */
size_t rows_row_size(const PageDecoder *d);

#endif
