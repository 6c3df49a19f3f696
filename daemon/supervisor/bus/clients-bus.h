/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Manager.ListClients: what each client holds now and has done so far. Supervisor.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BUS_CLIENTS_BUS_H
#define SQLIPC_DAEMON_SUPERVISOR_BUS_CLIENTS_BUS_H

#include "daemon/supervisor/calls/reply.h"

typedef struct Context Context;
typedef struct Peer Peer;

/* Appends a(sa{sv}): the clients of the peer's uid; all clients if the peer is root. */
int clients_bus_append(Reply *reply, Context *context, const Peer *peer);

#endif
