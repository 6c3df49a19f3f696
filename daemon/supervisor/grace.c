/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tells a worker that is stuck from one that got no CPU. Supervisor. */
#include "daemon/supervisor/grace.h"
#include "daemon/supervisor/worker.h"

#define ENOUGH_USEC UINT64_C(250000) /* CPU time in which any worker looks at its orders */
#define N_SPARED_MAX 4

void grace_begin(Grace *g, const Worker *w, uint64_t usec) {
        *g = (Grace) { .cpu_usec = worker_cpu_usec(w) + (usec / 4 < ENOUGH_USEC ? usec / 4 : ENOUGH_USEC) };
}

bool grace_is_starved(const Grace *g, const Worker *w) {
        return worker_cpu_usec(w) < g->cpu_usec;
}

bool grace_goes_on(Grace *g, const Worker *w) {
        return grace_is_starved(g, w) && g->n_spared++ < N_SPARED_MAX;
}
