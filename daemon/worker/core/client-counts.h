/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The counts of the clients of this worker's user, in memory that all workers of the user share. A client that
 * has read the end of a run may send the next one another way, to another worker: that one finds the counts here.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_CLIENT_COUNTS_H
#define SQLIPC_DAEMON_WORKER_CORE_CLIENT_COUNTS_H

#include "daemon/protocol/protocol.h"

/* Maps the memory for the rest of the process. -errno: a worker without it would give wrong counts, so it must not run. */
int client_counts_open(int fd);

/* The counts at the place, or 0. */
ClientCounts client_counts_load(const CountsPlace *place);

/* Does nothing if another client has the slot by now. */
void client_counts_store(const CountsPlace *place, const ClientCounts *counts);

#endif
