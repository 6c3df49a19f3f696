/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Chooses the worker for a channel. Supervisor. */
#include <errno.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/placement.h"
#include "daemon/supervisor/runs/worker-channels.h"
#include "daemon/supervisor/runs/worker-runs.h"
#include "daemon/supervisor/workers/worker.h"

#define WRITES_USEC UINT64_C(1000000) /* a worker that wrote within this time is expected to write again */

static bool is_better(const Worker *a, const Worker *b) {
        bool a_runs = worker_n_runnable(a) > 0, b_runs = worker_n_runnable(b) > 0;

        bool a_current = a->settings == WORKER_CURRENT, b_current = b->settings == WORKER_CURRENT;

        if (a_current != b_current)
                return a_current;
        return a_runs != b_runs ? b_runs : a->channels.length < b->channels.length;
}

/* `besides`: not this one; NULL: any. */
static Worker *pick(const Group *g, const Worker *besides) {
        Worker *found = NULL;

        for (GList *i = g->workers.head; i; i = i->next) {
                Worker *w = i->data;

                if (w != besides && worker_stays(w) && !worker_is_stuck(w) && (!found || is_better(w, found)))
                        found = w;
        }
        return found;
}

/* Returns the worker that writes, unless a query occupies it, too. Its other channels are no obstacle: they wait for the
 * same commit. A channel that was thought to read may just have written in another one, so most channels decide. NULL: there
 * is none. */
static Worker *find_writer(const Group *g) {
        uint64_t now = clock_usec();
        Worker *found = NULL;

        for (GList *i = g->workers.head; i; i = i->next) {
                Worker *w = i->data;

                if (now < w->wrote_usec + WRITES_USEC && w->settings == WORKER_CURRENT && worker_stays(w) &&
                    !worker_is_stuck(w) && worker_runs_n_parallel(w) == 0 &&
                    (!found || w->channels.length > found->channels.length))
                        found = w;
        }
        return found;
}

static bool wants_sibling(const Group *g, const Worker *best) {
        return !best || best->settings != WORKER_CURRENT || worker_n_runnable(best) > 0 ||
               (best->channels.length > 0 && group_n_workers(g) < g->context->n_cpus);
}

/* Returns the worker for one more channel; NULL: there is none yet. */
static Worker *find(Group *g, const Channel *c) {
        Worker *writer = find_writer(g), *best;

        if (writer && !c->reads)
                return writer;
        best = pick(g, writer);
        if (!wants_sibling(g, best))
                return best;
        WorkerBound bound = quota_worker_bound(g->user, g->database, group_n_on_database(g));
        /* no worker of another group is ended for a sibling that this group can do without */
        if ((best || writer) && (g->context->stopping || bound != WORKER_BOUND_NONE))
                return best ?: writer;
        group_spawn(g);
        return pick(g, writer) ?: writer;
}

void placement_run(Group *g) {
        Worker *w;

        while (g->channels.head && (w = find(g, g->channels.head->data)))
                if (channel_hand_over(g->channels.head->data, w) == -EAGAIN)
                        worker_is_stuck_now(w);
}
