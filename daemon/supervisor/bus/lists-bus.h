/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Manager.ListStatements, ListRuns, ListTransactions, ListChannels: what the peer's uid holds; for root, what all uids hold.
 * Supervisor.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BUS_LISTS_BUS_H
#define SQLIPC_DAEMON_SUPERVISOR_BUS_LISTS_BUS_H

#include <stdbool.h>

#include "daemon/supervisor/calls/reply.h"

typedef struct Context Context;
typedef struct Peer Peer;

/* Each appends a(tosa{sv}). Sets `*ret_truncated`, which must be false before, if there are more entries than the list may
 * have. */
int lists_bus_append_statements(Reply *reply, Context *context, const Peer *peer, bool *ret_truncated);
int lists_bus_append_runs(Reply *reply, Context *context, const Peer *peer, bool *ret_truncated);
int lists_bus_append_transactions(Reply *reply, Context *context, const Peer *peer, bool *ret_truncated);
int lists_bus_append_channels(Reply *reply, Context *context, const Peer *peer, bool *ret_truncated);
int lists_bus_append_watches(Reply *reply, Context *context, const Peer *peer, bool *ret_truncated);

#endif
