/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The runs of a worker. Supervisor. */
#include <errno.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/runs/statement.h"
#include "daemon/supervisor/runs/worker-channels.h"
#include "daemon/supervisor/runs/worker-runs.h"
#include "daemon/supervisor/workers/connections.h"

void worker_runs_add(Worker *w, Run *run) {
        if (worker_n_runnable(w) == 0)
                w->busy_usec = clock_usec();
        g_queue_push_tail_link(&w->runs, &run->worker_link);
        worker_priority_watch(w->context->priorities);
}

void worker_runs_remove(Worker *w, Run *run) {
        g_queue_unlink(&w->runs, &run->worker_link);
        worker_on_work_over(w);
        connections_on_work_over(w->group);
}

unsigned worker_runs_n_runnable(const Worker *w) {
        unsigned n = 0;

        for (GList *i = w->runs.head; i; i = i->next)
                n += run_is_runnable(i->data);
        return n;
}

static bool is_of_writer(const Run *run) {
        const Run *transaction = g_hash_table_lookup(run->context->runs, &run->transaction);

        return transaction && run_takes_turns(transaction);
}

unsigned worker_runs_n_parallel(const Worker *w) {
        unsigned n = 0;

        for (GList *i = w->runs.head; i; i = i->next) {
                const Run *run = i->data;

                n += run_is_runnable(run) && !run->writes && !is_of_writer(run);
        }
        return n;
}

void worker_runs_lose(Worker *w, bool was_told) {
        while (w->runs.tail) { /* those put back keep their order */
                Run *run = w->runs.tail->data;

                /* EXIT crossed the job on its way: the worker has not begun it, or (EXECUTE) has written nothing. */
                if (was_told && !w->distrusted && run->state == RUN_TAKEN && run->end.error == ERROR_NONE &&
                    !run->committing)
                        run_put_back(run);
                else
                        run_end(run, RUN_END_WORKER_LOST, ERROR_NONE, NULL);
        }
}

void worker_runs_break_pipes(const Worker *w, bool ended_well) {
        for (GList *i = w->group->user->pipes.head, *next; i; i = next) {
                Pipe *p = i->data;

                next = i->next;
                if (p->ended_by != w)
                        continue;
                p->ended_by = NULL;
                if (ended_well || (p->ended_at != w->n_said && !w->distrusted))
                        continue;
                if (p->n_ref == 0)
                        pipe_free(p);
                else {
                        Statement *s = statement_of_pipe(w->context, p);

                        if (s)
                                statement_on_worker_lost(s);
                        pipe_break(p);
                }
        }
}

int worker_runs_dispatch(Worker *w, const Message *m) {
        uint64_t number = worker_message_number(m);
        Run *run = g_hash_table_lookup(w->context->runs, &number);

        if (!run || run->group != w->group)
                return -EBADMSG;
        if (m->kind == MESSAGE_TAKEN) {
                if (run->state != RUN_SENT && run->state != RUN_MISSING)
                        return -EBADMSG;
                worker_on_sign_of_life(w);
                return run_on_taken(run, w);
        }
        if (run->worker != w)
                return -EBADMSG;
        if (m->kind != MESSAGE_PROGRESS) /* PROGRESS is also sent from inside a step */
                worker_is_not_stuck(w);
        switch (m->kind) {
        case MESSAGE_STARTED: return run_on_started(run, &m->started);
        case MESSAGE_PARKED: return run_on_parked(run, m->parked.parked);
        case MESSAGE_FILLING: return run_on_filling(run);
        case MESSAGE_ENDED: return run_on_ended(run, &m->ended);
        case MESSAGE_COMMIT_REFUSED: return run_on_commit_refused(run, &m->ended.failure);
        case MESSAGE_PROGRESS: return run_on_progress(run, &m->progress);
        case MESSAGE_DRAINED: return run_on_drained(run, &m->drained);
        case MESSAGE_ATTACH_WANTED: return run_on_attach_wanted(run, m->attach.name);
        default: return -EBADMSG;
        }
}
