/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See gathering.h. Pure.
 */
#include "daemon/worker/core/gathering.h"

void gathering_on_commit(Gathering *g, size_t n, size_t n_max, uint64_t usec) {
        g->n_expected = n < n_max ? n : n_max;
        g->limit_usec = usec / 2 < GATHERING_USEC_MAX ? usec / 2 : GATHERING_USEC_MAX;
}

bool gathering_waits(Gathering *g, size_t n, uint64_t now) {
        if (n >= g->n_expected || g->n_to_skip > 0)
                return false;
        if (g->until_usec == 0) {
                g->until_usec = now + g->limit_usec;
                g->n_first = n;
        }
        return now < g->until_usec;
}

void gathering_end(Gathering *g, size_t n) {
        if (g->until_usec == 0) {
                g->n_to_skip -= g->n_to_skip > 0;
                return;
        }
        g->until_usec = 0;
        if (n > g->n_first)
                g->n_vain = 0;
        else if (g->n_vain < GATHERING_VAIN_MAX)
                g->n_vain++;
        g->n_to_skip = (1u << g->n_vain) - 1;
}
