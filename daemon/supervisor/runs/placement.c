/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Chooses the worker for a channel. Supervisor. */
#include <errno.h>

#include "daemon/configuration/configuration.h"
#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/placement.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/runs/worker-channels.h"
#include "daemon/supervisor/runs/worker-runs.h"
#include "daemon/supervisor/workers/worker.h"

#define WRITES_USEC UINT64_C(1000000) /* a worker that wrote within this time is expected to write again */
#define APART_USEC UINT64_C(5000000) /* after the death of a worker, its user's channels become no guests for so long */
#define HEAP_PER_CHANNEL (UINT64_C(1) << 20) /* of HeapMax=: a worker has fewer guests than would fill it */
#define CHANNELS_TOGETHER 8u /* of a server: a worker sends the requests of so many channels together */
#define LASTING_USEC UINT64_C(100000) /* the first run of a server's worker includes its login */

static bool is_server(const Worker *w) {
        return database_config_is_server(w->group->database->config);
}

/* True if a run keeps other channels waiting. */
static bool is_occupied(const Worker *w) {
        uint64_t now = clock_usec();

        if (worker_n_runnable(w) == 0)
                return false;
        if (!is_server(w))
                return true;
        for (GList *i = w->runs.head; i; i = i->next) {
                const Run *run = i->data;

                if (run_is_runnable(run) && now - run->asked_usec >= LASTING_USEC)
                        return true;
        }
        for (GList *i = w->channels.head; i; i = i->next) {
                const Channel *c = i->data;

                if (channel_is_runnable(c) && c->run.usec + now - c->run.noted_usec >= LASTING_USEC)
                        return true;
        }
        return false;
}

/* A worker for a server mostly waits, so channels are spread only when there are many of them. */
static bool is_full(const Worker *w) {
        return !is_server(w) || w->channels.length >= CHANNELS_TOGETHER;
}

static bool has_better_number(const Worker *a, const Worker *b) {
        if (is_full(a) && is_full(b))
                return a->channels.length < b->channels.length;
        return is_full(a) != is_full(b) ? is_full(b) : a->channels.length > b->channels.length;
}

static bool is_better(const Worker *a, const Worker *b) {
        bool a_runs = is_occupied(a), b_runs = is_occupied(b);
        bool a_current = a->settings == WORKER_CURRENT, b_current = b->settings == WORKER_CURRENT;

        if (a_current != b_current)
                return a_current;
        return a_runs != b_runs ? b_runs : has_better_number(a, b);
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

static bool is_whole(const DatabaseConfig *d) {
        return !d->expose || !d->expose[0];
}

bool placement_allows_guests(const Group *g) {
        const DatabaseConfig *d = g->database->config;

        return !g->writes && is_whole(d) && !database_config_is_server(d);
}

static bool is_apart(const User *u) {
        return u->lost_usec > 0 && clock_usec() < u->lost_usec + APART_USEC;
}

static unsigned n_channels_of(const Worker *w, const Session *s) {
        unsigned n = 0;

        for (GList *i = w->channels.head; i; i = i->next)
                n += ((const Channel *) i->data)->session == s;
        return n;
}

/* Returns a worker of the same user that may serve a channel of `s` to the group's database; NULL: there is none. Of one
 * client's channels usually one is in use at a time. So they are best in one worker, which need not be woken up each
 * time. */
static Worker *find_host(const Group *g, const Session *s) {
        uint64_t n_max = quota_limits(g->user, g->database).heap_max / HEAP_PER_CHANNEL;
        unsigned n_found = 0;
        Worker *found = NULL;

        if (!placement_allows_guests(g) || is_apart(g->user))
                return NULL;
        for (GList *i = g->user->groups.head; i; i = i->next) {
                const Group *host = i->data;
                Worker *w = host != g && placement_allows_guests(host) ? pick(host, NULL) : NULL;
                unsigned n;

                if (!w || w->settings != WORKER_CURRENT || worker_n_runnable(w) > 0 || w->channels.length >= n_max ||
                    !worker_has_limits_of(w, g))
                        continue;
                n = n_channels_of(w, s);
                if (found && (n < n_found || (n == n_found && !is_better(w, found))))
                        continue;
                found = w;
                n_found = n;
        }
        return found;
}

static bool wants_sibling(const Group *g, const Worker *best) {
        return !best || best->settings != WORKER_CURRENT || is_occupied(best) ||
               (best->channels.length > 0 && is_full(best) && group_n_workers(g) < g->context->n_cpus);
}

/* True if another worker would take a place from other work, or would have no CPU of its own. */
static bool prefers_host(const Group *g, WorkerBound bound) {
        return bound != WORKER_BOUND_NONE || g->user->n_workers >= g->context->n_cpus;
}

/* Returns the worker for one more channel; NULL: there is none yet. */
static Worker *find(Group *g, const Channel *c) {
        Worker *writer = find_writer(g), *best;

        if (writer && !c->reads)
                return writer;
        best = pick(g, writer);
        if (!wants_sibling(g, best))
                return best;
        WorkerBound bound = group_worker_bound(g);
        if (bound == WORKER_BOUND_CONNECTIONS)
                (void) group_ask_for_connection(g, NULL);
        /* no worker of another group is ended for a sibling that this group can do without */
        if ((best || writer) && (g->context->stopping || bound != WORKER_BOUND_NONE))
                return best ?: writer;
        if (prefers_host(g, bound) && (best = find_host(g, c->session)))
                return best;
        group_spawn(g);
        return pick(g, writer) ?: writer;
}

/* Returns the worker that has time for a channel without a request; NULL: there is none, or another one must be started. */
static Worker *find_ready(const Group *g, const Session *s) {
        Worker *best = pick(g, NULL);

        if (best)
                return !g->writes && !wants_sibling(g, best) ? best : NULL;
        return prefers_host(g, group_worker_bound(g)) ? find_host(g, s) : NULL;
}

void placement_hurry(Channel *c) {
        Worker *w = find_ready(c->group, c->session);

        if (w && channel_hand_over(c, w) == -EAGAIN)
                worker_is_stuck_now(w);
}

void placement_run(Group *g) {
        Worker *w;

        while (g->channels.head && (w = find(g, g->channels.head->data)))
                if (channel_hand_over(g->channels.head->data, w) == -EAGAIN)
                        worker_is_stuck_now(w);
}
