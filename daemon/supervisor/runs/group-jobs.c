/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The jobs that wait for the workers of a group. Supervisor. */
#include <errno.h>
#include <string.h>

#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/runs/group-jobs.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/runs/worker-channels.h"
#include "daemon/supervisor/runs/worker-runs.h"
#include "daemon/supervisor/workers/worker.h"

static MessageKind message_kind(const Run *run) {
        return run->kind == RUN_PREPARE   ? MESSAGE_PREPARE
               : run->finds_tables        ? MESSAGE_TABLES
               : run->kind == RUN_EXECUTE ? MESSAGE_EXECUTE
               : run->kind == RUN_LOAD    ? MESSAGE_LOAD
                                          : MESSAGE_RUN;
}

static Message begin_message(const Run *run) {
        return (Message) {
                .kind = MESSAGE_BEGIN,
                .begin = {
                        .number = run->number,
                        .writes = run->writes && !run->deferred,
                        .deferred = run->writes && run->deferred,
                        .deadline_usec = run->deadline_usec,
                        .idle_usec = run->idle_usec,
                        .lock_wait_usec = run->lock_wait_usec,
                        .foreign_keys = run->foreign_keys,
                        .is_pin = run->is_pin,
                        .transaction = run->transaction,
                        .pin = run->pin,
                },
        };
}

static Message statement_message(const Run *run) {
        size_t size;
        const char *sql = g_bytes_get_data(run->sql, &size);

        return (Message) {
                .kind = message_kind(run),
                .job = {
                        .number = run->number,
                        .sql = sql ?: "", /* GBytes returns NULL for empty SQL, and NULL would mean that there is no SQL */
                        .sql_size = size,
                        .names = run->names,
                        .counts = run->counts,
                        .transaction = run->transaction,
                        .pin = run->pin,
                        .foreign_keys = run->foreign_keys,
                        .time_zone = run->time_zone,
                        .lock_wait_usec = run->lock_wait_usec,
                        .describe = run->describe,
                        .page_size = run->page_size,
                        .deadline_usec = run->deadline_usec,
                        .idle_usec = run->idle_usec,
                        .row_size_max = run->row_size_max,
                        .result_rows_max = run->result_rows_max,
                        .result_size_max = run->result_size_max,
                        .n_positional = run->parameters.n_positional,
                        .n_named = run->parameters.n_named,
                        .parameters = run->parameters.row,
                        .parameters_size = run->parameters.row_size,
                        .in_file = run->file.fd >= 0,
                        .parameters_size_max = run->parameters_size_max,
                },
        };
}

static Message batch_message(const Run *run) {
        return (Message) {
                .kind = MESSAGE_EXECUTE_BATCH,
                .job = {
                        .number = run->number,
                        .counts = run->counts,
                        .transaction = run->transaction,
                        .pin = run->pin,
                        .foreign_keys = run->foreign_keys,
                        .time_zone = run->time_zone,
                        .lock_wait_usec = run->lock_wait_usec,
                        .deadline_usec = run->deadline_usec,
                        .n_statements = run->list.n,
                        .statements = run->list.bytes,
                        .statements_size = run->list.size,
                        .in_file = run->file.fd >= 0,
                        .parameters_size_max = run->parameters_size_max,
                },
        };
}

static Message job_message(const Run *run) {
        return run->kind == RUN_TRANSACTION ? begin_message(run)
               : run->is_batch              ? batch_message(run)
                                            : statement_message(run);
}

static void move_to_sent(Group *g, Run *run) {
        g_queue_unlink(&g->waiting, &run->group_link);
        g_queue_push_tail_link(&g->sent, &run->group_link);
        run_on_sent(run);
}

/* A statement of a transaction or pin goes to the worker that has it, and does not wait for room in its socket: it would
 * delay the jobs after it. */
static int send_to_place(Run *run) {
        const Run *t = run_place(run);

        if (!t || t->state != RUN_STARTED || t->end.error != ERROR_NONE)
                return -ENOTCONN;
        Message m = job_message(run);
        int r = message_send_with(t->worker->control_fd, &m, run->pipe ? run->pipe->write_fd : -1, run->file.fd);
        if (r >= 0)
                return run_on_taken(run, t->worker);
        if (r == -EPIPE || r == -ECONNRESET) /* the worker is dead, which is noticed soon */
                return -ENOTCONN;
        return r == -EAGAIN ? -EBUSY : r;
}

/* `runs`: of a worker, or those that are in the socket or were just taken from it. */
static bool any_takes_turns(const GQueue *runs) {
        for (GList *i = runs->head; i; i = i->next)
                if (run_takes_turns(i->data))
                        return true;
        return false;
}

/* Returns the worker for a transaction that takes turns to write. It is the one that has such transactions, so that all
 * begin in the order in which they came, and without messages about the lease in between; or the one that has the lease.
 * But a worker that computes something else would keep them waiting, and one with channels may do so. NULL: any worker. */
static Worker *find_writer(const Group *g) {
        Worker *found = NULL;

        for (GList *i = g->workers.head; i; i = i->next) {
                Worker *w = i->data;

                if (!worker_stays(w) || w->settings != WORKER_CURRENT || worker_is_stuck(w) ||
                    worker_runs_n_parallel(w) + worker_channels_n_runnable(w) > 0)
                        continue;
                if (any_takes_turns(&w->runs))
                        return w;
                found = w->lease && !w->channels.head ? w : found;
        }
        return found;
}

Worker *group_jobs_find_pinned(const Group *g) {
        for (GList *i = g->workers.head; i; i = i->next) {
                Worker *w = i->data;

                for (GList *k = worker_stays(w) && w->settings == WORKER_CURRENT ? w->runs.head : NULL; k; k = k->next)
                        if (((const Run *) k->data)->is_pin && !worker_is_stuck(w))
                                return w;
        }
        return NULL;
}

/* The worker that should get the run. NULL: any. A transaction does not go past others that are in the socket. */
static Worker *find_worker(const Group *g, const Run *run) {
        if (run_has_place(run))
                return NULL;
        if (run_takes_turns(run))
                return any_takes_turns(&g->sent) ? NULL : find_writer(g);
        return run->is_pin ? group_jobs_find_pinned(g) : NULL;
}

/* `writer`: see find_worker(). */
static int send_job(Group *g, Run *run, Worker *writer) {
        if (run_has_place(run))
                return send_to_place(run);
        Message m = job_message(run);
        int pipe_fd = run->pipe ? run->pipe->write_fd : -1;
        Worker *w = writer ?: group_find_idle_worker(g);

        if (w && message_send_with(w->control_fd, &m, pipe_fd, run->file.fd) >= 0) {
                if (worker_takes_job(w))
                        group_on_job_sent(g, w);
                int taken = run_on_taken(run, w);

                run_answer_at_once(run);
                return taken;
        }
        int r = message_send_with(g->job_fd, &m, pipe_fd, run->file.fd);
        if (r >= 0)
                move_to_sent(g, run);
        return r;
}

/* A large job needs descriptors and memory of its own. */
static ErrorNumber error_of_send(const Run *run, int r) {
        ErrorNumber lost = run->transaction > 0 ? ERROR_TRANSACTION_ENDED : ERROR_PIN_LOST;

        return r == -ENOMEM                                  ? ERROR_OUT_OF_MEMORY
               : r == -ENOTCONN                              ? lost
               : r == -EBUSY                                 ? ERROR_BUSY
               : r == -E2BIG || r == -EMFILE || r == -ENFILE ? ERROR_LIMITS_EXCEEDED
                                                             : ERROR_INTERNAL;
}

/* The first of the transactions that take turns to write is in the socket: the others are for the worker that takes it,
 * which begins them in their order. */
static bool keeps_writers(const Group *g) {
        for (GList *i = g->workers.head; i; i = i->next)
                if (any_takes_turns(&((const Worker *) i->data)->runs))
                        return false;
        return any_takes_turns(&g->sent);
}

static bool follows_writer(const Run *run) {
        return run_takes_turns(run) && !run_has_place(run);
}

/* Returns the first job that may be sent now; NULL: none may. */
static Run *next_to_send(const Group *g) {
        GList *i = g->waiting.head;

        if (i && follows_writer(i->data) && keeps_writers(g))
                while (i && follows_writer(i->data))
                        i = i->next;
        return i ? i->data : NULL;
}

void group_jobs_send(Group *g) {
        g_autoptr(Group) guard G_GNUC_UNUSED = group_ref(g); /* runs that end drop their references */
        bool has_turn = true;
        Run *run;
        int r = 0;

        while (r >= 0 && (run = next_to_send(g))) {
                if (run->pipe && run->pipe->write_fd < 0) { /* its pipe was broken meanwhile */
                        run_end(run, RUN_END_WORKER_LOST, ERROR_NONE, NULL);
                        continue;
                }
                Worker *writer = find_worker(g, run);
                bool is_busy = writer && !worker_takes_job(writer);
                has_turn = run_has_place(run) || is_busy || group_has_turn(g);
                if (!has_turn)
                        break;
                r = send_job(g, run, writer);
                if (r < 0 && r != -EAGAIN) {
                        LogFields fields = { .database = database_name(g->database), .uid = &g->user->uid };
                        log_full_limited(LOG_WARNING, &fields, "A job cannot be sent: %s", strerror(-r));
                        run_end(run, RUN_END_FAILED, error_of_send(run, r), "The job could not be handed to a worker.");
                        r = 0;
                }
        }
        g->holds_jobs = !has_turn;
        (void) sd_event_source_set_enabled(g->writable, r == -EAGAIN ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
        group_staff(g);
}

unsigned group_jobs_n_overdue(const Group *g, uint64_t sent_usec) {
        unsigned n = 0;

        for (GList *i = g->sent.head; i; i = i->next) {
                const Run *run = i->data;
                n += run->state == RUN_SENT && run->sent_usec <= sent_usec;
        }
        return n;
}

void group_jobs_submit(Group *g, Run *run) {
        if (run_has_place(run)) /* it is for one worker, and does not wait for room in the job socket */
                g_queue_push_head_link(&g->waiting, &run->group_link);
        else
                g_queue_push_tail_link(&g->waiting, &run->group_link);
        run_on_queued(run);
        group_jobs_send(g);
}

static void send_soon(Group *g) {
        if (g->waiting.head)
                (void) sd_event_source_set_enabled(g->resend, SD_EVENT_ONESHOT);
}

void group_jobs_remove(Group *g, Run *run) {
        g_queue_unlink(run->state == RUN_WAITING ? &g->waiting : &g->sent, &run->group_link);
        if (run->state != RUN_WAITING && run_takes_turns(run)) /* others may have waited for it */
                send_soon(g);
}

void group_jobs_put_back(Group *g, Run *run) {
        g_queue_push_head_link(&g->waiting, &run->group_link);
        run_on_queued(run);
        send_soon(g);
}

static void take_back(Group *g, uint64_t number) {
        Run *run = g_hash_table_lookup(g->context->runs, &number);

        if (!run || run->group != g || (run->state != RUN_SENT && run->state != RUN_MISSING))
                return;
        g_queue_unlink(&g->sent, &run->group_link);
        run_on_queued(run);
        g_queue_push_tail_link(&g->waiting, &run->group_link);
}

void group_jobs_take_back(Group *g) {
        GQueue later = g->waiting;
        uint64_t number;

        /* Jobs that were sent came before those that wait. */
        g->waiting = (GQueue) G_QUEUE_INIT;
        while (message_withdraw_job(g->workers_fd, &number) > 0)
                take_back(g, number);
        while (later.head)
                g_queue_push_tail_link(&g->waiting, g_queue_pop_head_link(&later));
        send_soon(g);
}

void group_jobs_recall(Group *g) {
        group_jobs_take_back(g);
        for (GList *i = g->sent.head; i; i = i->next)
                run_on_missing(i->data);
}
