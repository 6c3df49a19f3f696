/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tells a worker that is stuck from one that got no CPU. Supervisor. */
#include "daemon/supervisor/base/cpu-time.h"
#include "daemon/supervisor/workers/grace.h"

#define ENOUGH_USEC UINT64_C(250000) /* CPU time in which any worker looks at its orders */
#define N_SPARED_MAX 4

void grace_begin(Grace *g, pid_t worker, uint64_t usec) {
        *g = (Grace) { .cpu_usec = cpu_time_usec(worker) + (usec / 4 < ENOUGH_USEC ? usec / 4 : ENOUGH_USEC) };
}

bool grace_is_starved(const Grace *g, pid_t worker) {
        return cpu_time_usec(worker) < g->cpu_usec;
}

bool grace_goes_on(Grace *g, pid_t worker) {
        return grace_is_starved(g, worker) && g->n_spared++ < N_SPARED_MAX;
}
