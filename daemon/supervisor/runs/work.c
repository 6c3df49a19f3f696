/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of runs and channels for groups and workers. Supervisor. */
#include <errno.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/group-jobs.h"
#include "daemon/supervisor/runs/placement.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/runs/work.h"
#include "daemon/supervisor/runs/worker-channels.h"
#include "daemon/supervisor/runs/worker-runs.h"
#include "daemon/supervisor/workers/connections.h"
#include "daemon/supervisor/workers/lease.h"

static void fail(Group *g, ErrorNumber error, const char *sentence) {
        g_autoptr(Group) guard G_GNUC_UNUSED = group_ref(g); /* runs that end drop their references */

        while (g->sent.head || g->waiting.head) {
                Run *run = (g->sent.head ?: g->waiting.head)->data;
                run_end(run, RUN_END_FAILED, error, sentence);
        }
        while (g->channels.head)
                channel_end(g->channels.head->data, CHANNEL_END_WORKER_LOST);
}

static bool is_about_channels(const Message *m) {
        return m->kind == MESSAGE_CHANNEL_PROGRESS || m->kind == MESSAGE_CHANNEL_RESTED ||
               m->kind == MESSAGE_CHANNEL_CLOSED || m->kind == MESSAGE_PONG;
}

/* One of the numbers of COMMITTING. */
static int on_committing_one(const Worker *w, uint64_t number) {
        Run *run = g_hash_table_lookup(w->context->runs, &number);
        const Channel *c = g_hash_table_lookup(w->context->channels, &number);

        if (run && run->worker == w)
                return run_on_committing(run);
        return c && c->worker == w ? 0 : -EBADMSG;
}

/* Only the holder of the lease writes. The client of a channel does not need to be told: to it, each request that may write
 * and was not answered has an unknown outcome. So a worker that commits for channels only sends this just often enough for
 * the supervisor to know that it writes. */
static int on_committing(Worker *w, const Committing *committing) {
        const char *numbers = committing->numbers.data;

        if (!lease_is_held_by(w))
                return -EBADMSG;
        w->wrote_usec = clock_usec();
        for (size_t at = 0; at < committing->numbers.size; at += sizeof(uint64_t)) {
                int r = on_committing_one(w, load_le64(numbers + at));

                if (r < 0)
                        return r;
        }
        return 0;
}

static int dispatch(Worker *w, const Message *m) {
        if (m->kind == MESSAGE_COMMITTING)
                return on_committing(w, &m->committing);
        if (m->kind == MESSAGE_CONNECTION_WANTED)
                return connections_on_wanted(w);
        if (m->kind == MESSAGE_CONNECTION_RETURNED)
                return connections_on_returned(w);
        return is_about_channels(m) ? worker_channels_dispatch(w, m) : worker_runs_dispatch(w, m);
}

static unsigned n_runnable(const Worker *w) {
        return worker_runs_n_runnable(w) + worker_channels_n_runnable(w);
}

static unsigned n_parallel(const Worker *w) {
        return worker_runs_n_parallel(w) + worker_channels_n_runnable(w);
}

static void lose(Worker *w, bool was_told) {
        worker_runs_lose(w, was_told);
        worker_lose_channels(w);
}

const WorkEvents work_events = {
        .send_jobs = group_jobs_send,
        .take_back_jobs = group_jobs_take_back,
        .recall_jobs = group_jobs_recall,
        .n_overdue = group_jobs_n_overdue,
        .place_channels = placement_run,
        .fail = fail,
        .dispatch = dispatch,
        .n_runnable = n_runnable,
        .n_parallel = n_parallel,
        .has_busy_channels = worker_has_busy_channels,
        .used_usec = worker_channels_used_usec,
        .end_channels = worker_end_channels,
        .lose = lose,
        .break_pipes = worker_runs_break_pipes,
};
