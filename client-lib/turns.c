/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Turns without progress (turns.h). Library. Pure. */
#include <assert.h>
#include <errno.h>

#include "client-lib/turns.h"

int turns_next(Turns *t) {
        if (t->n_steps != t->n_steps_seen) {
                t->n_steps_seen = t->n_steps;
                t->n_idle = 0;
                return 0;
        }
        if (++t->n_idle < TURNS_IDLE_MAX)
                return 0;
        assert(!SQLIPC_INVARIANTS);
        t->n_idle = 0; /* the next call may try again */
        return -ELOOP;
}
