/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bus of a connection: its loss, another one in its place, and the calls on it. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_CONNECTION_BUS_H
#define SQLIPC_CLIENT_LIB_CONNECTION_BUS_H

#include "client-lib/connection.h"

/* How many messages of the bus are processed in one turn. */
#define CONNECTION_BUS_MESSAGES_MAX 256u

/* Ensures a usable bus: opens another one if ours was lost. Statements of the lost bus must then be compiled again. 0;
 * -ENOTCONN: there is no bus; -ECHILD. */
int connection_bus_ensure(sqlipc_connection *c);

/* To be called once, when the connection has its bus: finds out from the address if the bus cannot pass descriptors. */
void connection_bus_look_at_address(sqlipc_connection *c);

/* UNKNOWN only in a blocking call, which must wait until the bus is ready and ask again. */
Descriptors connection_bus_descriptors(sqlipc_connection *c);

/* True if a relay (ssh) ended before the bus answered, and no call has failed because of that yet. */
bool connection_bus_must_tell_loss(sqlipc_connection *c);

/* True if a call could not be sent, with `r`, because the bus was lost, and may be sent once more on another bus. */
bool connection_bus_may_send_again(sqlipc_connection *c, int r);

/* True if the bus connection is still there. */
bool connection_bus_is_open(sqlipc_connection *c);

/* Creates a call to METHOD of the database object `path`. `destination`: NULL for the owner of the service's name, which
 * is started if need be; else only that daemon instance. */
int connection_bus_new_call(sqlipc_connection *c, sd_bus_message **ret, const char *destination, const char *path,
                            const char *method);

/* Processes at most `n_max` messages, so that a peer that floods the bus cannot keep the library here. 1: there were
 * some; -ENOTCONN: a handler closed the connection; another negative errno. */
int connection_bus_dispatch(sqlipc_connection *c, unsigned n_max);

#endif
