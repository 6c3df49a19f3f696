/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Whether to look for the next request for a moment, before sleeping until it comes. Pure.
 *
 * To be woken on another CPU costs more than a point query. So after an answer on a channel that is the only one in use, the
 * worker looks for LOOKING_USEC, and gives the CPU away between two looks. Where several clients ask, there is always
 * somebody who has something better to do with the CPU. Where requests come later than that, it is tried less and less
 * often, so a client that thinks between its queries costs next to nothing, and an idle one nothing. Measured:
 * docs/performance.md, by `sqlipc-bench waiting`. The library does the same for answers (client-lib/channel.c).
 */
#ifndef LOOKING_H
#define LOOKING_H

#include <stdbool.h>
#include <stdint.h>

#define LOOKING_USEC 30u
#define LOOKING_TURNS_MIN 4u  /* of one channel in a row: it is the only one */
#define LOOKING_VAIN_MAX 6u   /* after so many in vain, it looks at one turn of 64 */

typedef struct Looking {
        uint64_t channel;     /* whose turn was last; 0: no channel's */
        unsigned n_turns;     /* of it, in a row */
        unsigned n_vain;      /* looks in vain, in a row */
        unsigned n_to_skip;   /* turns that go by without one */
} Looking;

/* Something had a turn: the channel of this number, or (0) anything else. */
void looking_on_turn(Looking *l, uint64_t channel);

/* Nothing is left to be done. Whether to look; then looking_on_looked() follows. */
bool looking_begins(Looking *l);

void looking_on_looked(Looking *l, bool found);

#endif
