/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The calls that compile and run SQL at once: Query and OpenRows. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_QUERY_CALL_H
#define SQLIPC_CLIENT_LIB_QUERY_CALL_H

#include "client-lib/cursor.h"

/* Creates a call to METHOD (Query or OpenRows) on the database of the cursor's run, and ensures an open bus for it: SQL,
 * parameters (padded with NULL to `n_positional_min` positional ones) and options. */
int query_call_new(sqlipc_cursor *c, sd_bus_message **ret, const char *method, const char *sql, const Parameter *parameters,
                   size_t n_parameters, size_t n_positional_min);

/* Creates the same call as `sent`, a call to Query, but without the option `describe`. */
int query_call_without_describe(const sqlipc_cursor *c, sd_bus_message *sent, sd_bus_message **ret);

/* Creates the call again that the query keeps (cursor.h). */
int query_call_copy(const sqlipc_cursor *c, sd_bus_message **ret);

/* Sends the call `m`: the run of the cursor begins. A query keeps it. `on_reply` gets the cursor. Negative: nothing is in
 * progress. */
int query_call_send(sqlipc_cursor *c, sd_bus_message *m, call_handler on_reply, sqlipc_transport transport);

/* Creates a call to Prepare with the SQL of the cursor's run. -ENODATA: it was not kept. */
int query_call_prepare(const sqlipc_cursor *c, sd_bus_message **ret);

/* Gives back the run in a late reply to Query or OpenRows. */
void query_call_undo(sd_bus_message *reply, const char *path);

#endif
