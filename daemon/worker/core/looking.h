/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Decides if the worker polls for the next request for a moment, before it sleeps until one comes. Pure.
 *
 * To be woken on another CPU costs more than a point query. So after an answer to a client that is the only one, the worker
 * polls for LOOKING_USEC, in which a client that slept can wake up and ask again; it yields the CPU between two polls. It
 * does not if several clients are active, because then some process always has better use for the CPU. If requests come
 * later than that, the worker polls less and less often. So a client that pauses between its queries costs next to nothing,
 * and an idle one nothing. For measurements see
 * docs/performance.md, by `sqlipc-bench waiting`. The library does the same for answers (client-lib/channel-read.c).
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_LOOKING_H
#define SQLIPC_DAEMON_WORKER_CORE_LOOKING_H

#include <stdbool.h>
#include <stdint.h>

#define LOOKING_USEC 100u
#define LOOKING_TURNS_MIN 4u  /* this many turns of one client in a row: it is the only one */
#define LOOKING_VAIN_MAX 6u   /* after this many polls without a result, the worker polls after one turn of 64 */

typedef struct Looking {
        uint64_t client;      /* whose channel had the last turn; 0: it was not a channel */
        unsigned n_turns;     /* turns of this client's channels in a row */
        unsigned n_vain;      /* polls without a result, in a row */
        unsigned n_to_skip;   /* turns that are not followed by a poll */
} Looking;

/* Something had a turn: a channel of this client, or (0) anything else. */
void looking_on_turn(Looking *l, uint64_t client);

/* Nothing is left to do. True: the worker must poll and then call looking_on_looked(). */
bool looking_begins(Looking *l);

/* The poll is over. `found`: it brought an event. */
void looking_on_looked(Looking *l, bool found);

#endif
