/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of runs and channels for groups and workers. Supervisor. */
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/group-jobs.h"
#include "daemon/supervisor/runs/placement.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/runs/work.h"
#include "daemon/supervisor/runs/worker-channels.h"
#include "daemon/supervisor/runs/worker-runs.h"

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

static int dispatch(Worker *w, const Message *m) {
        return is_about_channels(m) ? worker_channels_dispatch(w, m) : worker_runs_dispatch(w, m);
}

static unsigned n_runnable(const Worker *w) {
        return worker_runs_n_runnable(w) + worker_channels_n_runnable(w);
}

static void lose(Worker *w, bool was_told) {
        worker_runs_lose(w, was_told);
        worker_lose_channels(w);
}

const WorkEvents work_events = {
        .send_jobs = group_jobs_send,
        .recall_jobs = group_jobs_recall,
        .n_overdue = group_jobs_n_overdue,
        .place_channels = placement_run,
        .fail = fail,
        .dispatch = dispatch,
        .n_runnable = n_runnable,
        .has_busy_channels = worker_has_busy_channels,
        .used_usec = worker_channels_used_usec,
        .end_channels = worker_end_channels,
        .lose = lose,
        .break_pipes = worker_runs_break_pipes,
};
