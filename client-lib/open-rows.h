/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Starts a run whose rows come as D-Bus values: OpenRows, after which source-rows.h asks for the rows. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_OPEN_ROWS_H
#define SQLIPC_CLIENT_LIB_OPEN_ROWS_H

#include "client-lib/cursor.h"

/* Requests a run of `sql` for the cursor. Positional parameters are padded with NULL to `n_positional_min`. Forgets what was
 * in progress in its fetch. Negative: the request could not be sent, and nothing is in progress. */
int open_rows(sqlipc_cursor *cursor, const char *sql, const Parameter *parameters, size_t n_parameters,
              size_t n_positional_min);

/* The same with `m`, a call to OpenRows. */
int open_rows_send(sqlipc_cursor *cursor, sd_bus_message *m);

#endif
