/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shows that the loops of the library advance: each turn must read or write something, or wait. Library. Pure.
 *
 * A descriptor that stays ready because no code reads it would otherwise keep a processor busy for ever, and the program
 * would hang. The library counts the turns in a row that did neither. After TURNS_IDLE_MAX of them the call fails
 * with -ELOOP; builds for tests (-Dinvariants=true) abort, after fewer.
 */
#ifndef SQLIPC_CLIENT_LIB_TURNS_H
#define SQLIPC_CLIENT_LIB_TURNS_H

#include <stdint.h>

#include "config.h"

/* sd-bus does not tell of a part of a message that it has read or written, so some turns only seem to do nothing. */
#define TURNS_IDLE_MAX (SQLIPC_INVARIANTS ? 100u : 10000u)

typedef struct Turns {
        uint64_t n_steps;      /* reads, writes, messages, and wake-ups that others asked for */
        uint64_t n_steps_seen; /* at the last turn */
        unsigned n_idle;       /* turns in a row without a step */
} Turns;

/* Something was read or written. */
static inline void turns_step(Turns *t) {
        t->n_steps++;
}

/* The loop has to wait, or has waited: nothing was ready. */
static inline void turns_wait(Turns *t) {
        t->n_idle = 0;
}

/* A loop turns once more, because something is or may be ready. 0; -ELOOP: too many turns led to nothing. */
int turns_next(Turns *t);

#endif
