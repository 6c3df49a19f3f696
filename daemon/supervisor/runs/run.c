/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One job for a worker. Supervisor. */
#include <errno.h>
#include <string.h>

#include "daemon/supervisor/access/policy.h"
#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/calls/waiting-call.h"
#include "daemon/supervisor/runs/group-jobs.h"
#include "daemon/supervisor/runs/run-drain.h"
#include "daemon/supervisor/runs/run-log.h"
#include "daemon/supervisor/runs/run-outcome.h"
#include "daemon/supervisor/runs/run-timer.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/runs/worker-channels.h"
#include "daemon/supervisor/runs/worker-runs.h"
#include "daemon/supervisor/workers/group.h"
#include "daemon/supervisor/workers/worker.h"

#define RETELL_USEC UINT64_C(50000)  /* until a CANCEL that could not be sent is tried again */
#define CANCELS_UNSENT_MAX 20
#define COMPILE_MARGIN_USEC UINT64_C(100000)

/* ---- Creation and end ---- */

/* Frees the data that only a worker needs which has not started the run yet. */
static void drop_job(Run *run) {
        user_release(run->user, run->held_size);
        run->held_size = 0;
        g_clear_pointer(&run->sql, g_bytes_unref);
        parameters_done(&run->parameters);
        statement_list_done(&run->list);
        user_release_file(run->user, run->file.size);
        argument_file_done(&run->file);
}

static void disarm(Run *run) {
        run->due_usec = UINT64_MAX;
}

void run_count(Run *run, int change) {
        bool takes_turns = run_takes_turns(run);

        if (run_is_execution(run))
                quota_count_run(run->user, run->database, change);
        if (run->kind != RUN_TRANSACTION)
                return;
        if (run->is_pin) {
                quota_count_pin(run->user, change);
                run->group->n_pins += (uint64_t) change;
                return;
        }
        run->group->n_writers -= takes_turns && change < 0;
        quota_count_transaction(run->user, takes_turns, run->group->n_writers, change);
        run->group->n_writers += takes_turns && change > 0;
}

/* Removes the run from the worker's side: queue, socket, process. */
static void detach(Run *run) {
        if (run->worker)
                worker_runs_remove(run->worker, run);
        else if (run_is_queued(run))
                group_jobs_remove(run->group, run);
        run->worker = NULL;
        disarm(run);
}

/* The last statement of its transaction is over, as far as it is known. */
static void note_use(const Run *run) {
        Run *t = run_place(run);

        if (t)
                t->used_usec = clock_usec();
}

void run_free(Run *run) {
        Statement *statement = run->statement;

        detach(run);
        drop_job(run);
        run_drain_done(run);
        run->reader = row_reader_free(run->reader);
        if (run->session)
                g_queue_unlink(&run->session->runs, &run->session_link);
        g_hash_table_remove(run->context->runs, &run->number);
        run_count(run, -1);
        note_use(run);
        (void) sd_bus_message_unref(run->call);
        refusal_done(&run->end);
        g_free(run->excerpt);
        g_free(run->time_zone);
        g_clear_pointer(&run->attached, g_ptr_array_unref);
        (void) pipe_unref(run->pipe);
        (void) database_unref(run->database);
        run->group = group_unref(run->group);
        (void) user_unref(run->user);
        g_free(run);
        if (statement)
                statement_run_is_over(statement);
}

/* ---- Time ---- */

static void arm(Run *run, uint64_t usec) {
        run->spared = false;
        run->due_usec = usec;
        run_timer_arm(run->context->run_timer, usec);
}

/* The run has ended and its reader is slow: waits as long as a statement may be idle, or as long as a transaction may be
 * parked if the client has left. */
static void arm_idle(Run *run) {
        const Limits l = quota_limits(run->user, run->database);
        uint64_t idle_usec = run->session ? l.statement_idle_usec : l.park_timeout_usec;

        if (idle_usec == UINT64_MAX)
                disarm(run);
        else
                arm(run, clock_usec() + idle_usec);
}

/* The worker was told to end the run, and has a second. */
static void arm_end(Run *run) {
        grace_begin(&run->grace, run->worker->process.pid, GRACE_USEC);
        run->end_ping = worker_ping(run->worker);
        arm(run, clock_usec() + GRACE_USEC);
}

/* A CANCEL that could not be sent, usually for lack of memory, is sent again later. To kill the worker instead would cost
 * the other runs on it. */
static void tell_end(Run *run, ErrorNumber error, const char *sentence) {
        if (worker_cancel(run->worker, run->number, error, sentence) >= 0 || run->n_cancels_unsent == CANCELS_UNSENT_MAX) {
                run->n_cancels_unsent = 0;
                arm_end(run);
        } else {
                run->n_cancels_unsent++;
                arm(run, clock_usec() + RETELL_USEC);
        }
}

static void tell_cancel(Run *run) {
        tell_end(run, run->end.error, run->end.message);
}

/* True if the worker may not have read the CANCEL because it compiles SQL of another run or channel, which nothing can
 * interrupt. To kill it would cost that one, and all others on the worker. The compile ends first, by its own limit. */
static bool may_be_held_up(const Run *run) {
        const Worker *w = run->worker;
        bool has_others = worker_n_runnable(w) > run_is_runnable(run) || w->channels.head;

        return has_others && !worker_has_answered(w, run->end_ping) &&
               !worker_is_deaf(w, quota_limits(run->user, run->database).prepare_timeout_usec + 2 * GRACE_USEC);
}

/* The second of arm_end() has passed. */
static void kill_worker(Run *run, WorkerEndReason why) {
        if (may_be_held_up(run) || grace_goes_on(&run->grace, run->worker->process.pid))
                arm(run, clock_usec() + GRACE_USEC);
        else
                (void) worker_end(run->worker, why);
}

/* Breaks the pipe, so that the reader finds end-of-file in place of rows. */
static void let_go(Run *run) {
        if (run->pipe->write_fd < 0 && run->n_cancels_unsent == 0) {
                kill_worker(run, WORKER_END_KEEPS_PIPE);
                return;
        }
        pipe_break(run->pipe);
        tell_end(run, ERROR_PIPE_CLOSED, "The rest of the result was not read in time, or an administrator ended the run.");
}

/* The deadline of compiling: PrepareTimeoutSec=. The worker reports Busy after BusyTimeoutSec=, which has the same default.
 * Busy says more, so the deadline is put off if both are close. */
static uint64_t compile_until(const Run *run) {
        const Limits l = quota_limits(run->user, run->database);
        uint64_t prepare = l.prepare_timeout_usec, busy = l.busy_timeout_usec;
        bool close_by = prepare < busy + COMPILE_MARGIN_USEC && busy <= prepare;

        return clock_usec() + (close_by ? busy + COMPILE_MARGIN_USEC : prepare);
}

/* The worker's CPU time tells slow SQL from a worker that got no CPU. A server compiles for itself. */
static const char *why_not_compiled(const Run *run) {
        if (database_config_is_server(run->database->config))
                return "The database's server did not answer while the SQL should have been compiled (PrepareTimeoutSec=). "
                       "Try again. If that does not help, its administrator can tell what it waits for.";
        return grace_is_starved(&run->grace, run->worker->process.pid)
                       ? "Your worker process hardly ran while it should have compiled the SQL (PrepareTimeoutSec=): it is "
                         "stopped, or waits for a lock, a disk or a CPU. Try again."
                       : "The SQL takes too long to compile (PrepareTimeoutSec=): make it simpler.";
}

static const char *why_not_begun(const Run *run) {
        return run->kind == RUN_TRANSACTION ? "TransactionTimeoutSec= passed before a worker was free."
               : run->kind == RUN_LOAD
                       ? "The load's time (TransactionTimeoutSec= or timeout-usec) passed before a worker was free."
                       : "The query's time (RunTimeoutSec= or timeout-usec) passed before a worker was free.";
}

static void cancel(Run *run, ErrorNumber error, const char *sentence);
static void lose(Run *run);

/* The worker has the same deadline, so it usually ends the run first. */
static void on_deadline(Run *run) {
        if (run->n_cancels_unsent > 0)
                tell_cancel(run);
        else if (run->end.error == ERROR_NONE && run->kind == RUN_TRANSACTION)
                cancel(run, ERROR_TRANSACTION_ENDED, "The transaction took longer than TransactionTimeoutSec= allows.");
        else if (run->end.error == ERROR_NONE && run->kind == RUN_LOAD)
                cancel(run, ERROR_TIMED_OUT, "The load took longer than TransactionTimeoutSec= or timeout-usec allows.");
        else if (run->end.error == ERROR_NONE)
                cancel(run, ERROR_TIMED_OUT, "The query ran past its time limit (RunTimeoutSec= or timeout-usec).");
        else
                kill_worker(run, WORKER_END_KEEPS_RUN);
}

static void on_compile_timeout(Run *run) {
        if (run->n_cancels_unsent > 0)
                tell_cancel(run);
        else if (run->end.error != ERROR_NONE)
                kill_worker(run, WORKER_END_KEEPS_JOB);
        else if (grace_goes_on(&run->grace, run->worker->process.pid))
                arm(run, clock_usec() + GRACE_USEC);
        else
                cancel(run, ERROR_TIMED_OUT, why_not_compiled(run));
}

/* True if it may be long after TAKEN that the worker reports anything. Statements of a transaction wait for each other. */
static bool starts_late(const Run *run) {
        return run->kind == RUN_EXECUTE || run->kind == RUN_TRANSACTION || run_has_place(run);
}

/* QueueTimeoutSec= is for a queue that does not move. */
static void on_queue_timeout(Run *run) {
        uint64_t now = clock_usec(), queue_usec = quota_limits(run->user, run->database).queue_timeout_usec;
        uint64_t moved_usec = group_moved_usec(run->group);

        if (now >= run->deadline_usec)
                cancel(run, ERROR_TIMED_OUT, why_not_begun(run));
        else if (now < moved_usec + queue_usec)
                arm(run, MIN(moved_usec + queue_usec, run->deadline_usec));
        else
                cancel(run, ERROR_BUSY, run->group->engine_failure ?: quota_why_no_worker(group_worker_bound(run->group)));
}

void run_on_timeout(Run *run) {
        switch (run->state) {
        case RUN_WAITING:
        case RUN_SENT: on_queue_timeout(run); return;
        case RUN_MISSING: lose(run); return;
        case RUN_TAKEN:
                if (starts_late(run))
                        on_deadline(run);
                else
                        on_compile_timeout(run);
                return;
        case RUN_STARTED:
        case RUN_PARKED: on_deadline(run); return;
        case RUN_ENDED: let_go(run); return;
        case RUN_DRAINING:
                run_drain_drop(run, ERROR_READER_TOO_SLOW,
                               "The rest of the result was not read for long (StatementIdleSec=).");
                return;
        case RUN_OVER: run_free(run); return;
        case RUN_NEW:
        case RUN_STATE_MAX: return;
        }
}

/* ---- Answers ---- */

static void answer_failure(Run *run, const Failure *failure) {
        if (run->call) {
                int r = bus_error_reply(run->call, failure, run->error_details);
                if (r < 0)
                        log_debug("An error could not be sent: %s", strerror(-r));
        }
        run->call = sd_bus_message_unref(run->call);
        if (run->reader)
                row_reader_fail(g_steal_pointer(&run->reader), failure);
}

/* A PREPARE that failed leaves no statement. */
static void drop_unprepared_statement(Run *run) {
        Statement *s = run->statement;

        if (run->kind != RUN_PREPARE || !s)
                return;
        run->statement = NULL;
        s->run = NULL;
        (void) statement_free(s);
}

/* Wait can still ask for the result of a load. */
static bool keeps_result(const Run *run) {
        return run->kind == RUN_LOAD && !run->call && run->session && run->state >= RUN_STARTED;
}

static void fail(Run *run, const Failure *failure) {
        if (run->answers_at_once && !run->call && run->state < RUN_STARTED &&
            !run_outcome_write(run->pipe->write_fd, run->number, failure))
                pipe_break(run->pipe); /* otherwise the reader would wait for ever */
        if (run->kind == RUN_TRANSACTION && run->state >= RUN_STARTED && run->session)
                session_note_ended(run->session, run->number, failure->message);
        answer_failure(run, failure);
        drop_unprepared_statement(run);
        run_free(run);
}

static void fail_with_end(Run *run) {
        Failure failure = refusal_as_failure(&run->end);

        fail(run, &failure);
}

/* Adds the run to the totals, once, however it ended. */
static void count_result(const Run *run) {
        Context *context = run->context;
        Session *s = run->session;

        context->total_runs++;
        context->total_rows += run->n_rows;
        context->total_bytes += run->n_bytes;
        if (!s)
                return;
        s->total_runs++;
        s->total_rows += run->n_rows;
        s->total_bytes += run->n_bytes;
}

/* True if the statement writes, as far as that is known: it is not compiled before STARTED. Nothing of a transaction is
 * written before its client commits it. */
static bool may_write(const Run *run) {
        if (run->kind == RUN_TRANSACTION)
                return run->writes && run->commits;
        return run->writes ||
               (run->state < RUN_STARTED && run->kind != RUN_PREPARE && !run->finds_tables && run->group->writes);
}

static RunOutcome outcome_of(const Run *run) {
        const Worker *w = run->worker;

        return (RunOutcome) {
                .writes = run->writes,
                .may_write = may_write(run),
                .committing = run->committing,
                .ended = run->state >= RUN_ENDED,
                .unheard = run->state == RUN_MISSING || (w && (w->distrusted || !worker_is_closed(w))),
        };
}

static void lose(Run *run) {
        const RunOutcome outcome = outcome_of(run);

        run_outcome_lose(&outcome, &run->end);
        if (run->pipe && !run->pipe->is_inward)
                run_outcome_tell_reader(&outcome, run->pipe->write_fd, run->number, &run->end);
        if (run_is_under_way(run))
                count_result(run);
        if (run->statement && run->kind == RUN_FETCH)
                statement_on_worker_lost(run->statement);
        if (run->pipe && !run->pipe->is_inward) /* that of a load is retired now, and counts until its client closes it */
                pipe_break(run->pipe);
        if (keeps_result(run) || (run->session && run->reader && !run->call && !run->reader->call))
                run_is_over(run); /* no call is waiting: the next NextRows will find the broken pipe */
        else
                fail_with_end(run);
}

/* ---- From submission to start ---- */

static void log_job(const Run *run) {
        size_t size;
        const char *sql;

        if (!run->sql)
                return;
        sql = g_bytes_get_data(run->sql, &size);
        log_full(LOG_DEBUG, database_name(run->database), run->session->name, "%s %" PRIu64 ": %.*s",
                 run->kind == RUN_PREPARE ? "Statement" : "Run", run->number, (int) (size < 1000 ? size : 1000), sql ?: "");
}

void run_submit(Run *run) {
        uint64_t queue_usec = quota_limits(run->user, run->database).queue_timeout_usec;

        log_job(run);
        if (run->pipe) {
                run->pipe->ended_by = NULL; /* a client that asks for another run has read the end of the last */
                pipe_grow_for_run(run->pipe);
        }
        arm(run, run->asked_usec + MIN(queue_usec, run->deadline_usec - run->asked_usec));
        group_jobs_submit(run->group, run);
}

void run_on_queued(Run *run) {
        run_life_move(&run->state, RUN_WAITING);
}

void run_on_sent(Run *run) {
        run_life_move(&run->state, RUN_SENT);
        run->sent_usec = clock_usec();
}

void run_on_missing(Run *run) {
        if (run->state == RUN_MISSING)
                return;
        run_life_move(&run->state, RUN_MISSING);
        arm(run, clock_usec() + GRACE_USEC);
}

void run_put_back(Run *run) {
        worker_runs_remove(run->worker, run);
        run->worker = NULL;
        arm(run, clock_usec() + quota_limits(run->user, run->database).queue_timeout_usec);
        group_jobs_put_back(run->group, run);
}

int run_on_taken(Run *run, Worker *w) {
        group_jobs_remove(run->group, run);
        run_life_move(&run->state, RUN_TAKEN);
        run->worker = w;
        worker_runs_add(w, run);
        if (run->end.error != ERROR_NONE)
                tell_cancel(run);
        else if (starts_late(run)) /* nothing is reported meanwhile */
                arm(run, run->deadline_usec);
        else {
                uint64_t until = compile_until(run);

                grace_begin(&run->grace, w->process.pid, until - clock_usec());
                arm(run, until);
        }
        group_on_job_taken(run->group);
        return 0;
}

static void refuse_started(Run *run, const Failure *failure) {
        answer_failure(run, failure);
        drop_unprepared_statement(run);
        if (run->pipe)
                pipe_close_read_fd(run->pipe);
}

/* The run was told to end, but the worker started it before it read that. The method fails all the same, since the client
 * does not have the pipe. There are two exceptions. The client of a Fetch has the pipe, and reads the ERROR there. A run
 * that writes may be committed all the same, so its client gets the pipe, and reads there how it ended. */
static void refuse_late(Run *run) {
        Failure failure = refusal_as_failure(&run->end);

        if (run->kind != RUN_FETCH && !may_write(run))
                refuse_started(run, &failure);
}

static void leave_session(Run *run) {
        if (run->session)
                g_queue_unlink(&run->session->runs, &run->session_link);
        run->session = NULL;
}

static const char cannot_reply[] = "The service could not reply: it is unknown whether the statement took effect.";

/* The reply cannot be sent: answers with an error, so that the client does not wait, and ends the run, so that the worker
 * does not wait for a reader that has no pipe. The client of a Fetch has it, and learns the reason even without a bus. */
static void refuse_without_reply(Run *run, int r) {
        ErrorNumber error = ERROR_INTERNAL;
        const char *sentence = "The service could not reply.";

        switch (-r) {
        case EMFILE:
        case ENFILE:
                error = ERROR_LIMITS_EXCEEDED;
                sentence = "The service has no descriptor left for your pipe; try again later.";
                break;
        case EMSGSIZE:
                error = ERROR_LIMITS_EXCEEDED;
                sentence = "The names of the columns do not fit a reply: name fewer columns, or shorter.";
                break;
        case ENOTCONN:
        case ECONNRESET:
                error = ERROR_SHUTTING_DOWN;
                sentence = "The service has lost its connection to the bus, and stops.";
                break;
        case ENOMEM: error = ERROR_OUT_OF_MEMORY; break;
        default: break;
        }
        log_warning_limited("A reply could not be sent: %s", strerror(-r));
        cancel(run, error, sentence);
        Failure failure = refusal_as_failure(&run->end);
        /* without END of its client a load writes nothing, and a transaction that no client can name is never committed */
        if (may_write(run) && run->kind != RUN_LOAD && run->kind != RUN_TRANSACTION) {
                failure.error = ERROR_OUTCOME_UNKNOWN;
                failure.message = cannot_reply;
        }
        refuse_started(run, &failure);
        if (run->kind == RUN_LOAD) /* its client does not know the number, so its result is not kept for Wait */
                leave_session(run);
}

static void answer_started(Run *run, const Started *started) {
        int r = run->on_started(run, started);

        if (r < 0)
                refuse_without_reply(run, r);
        run->call = sd_bus_message_unref(run->call);
}

void run_answer_at_once(Run *run) {
        if (run->answers_at_once && run->call && !run->group->writes && run->end.error == ERROR_NONE)
                answer_started(run, &(Started) { .number = run->number, .read_only = true });
}

/* The transaction of which the pin was made is on it from now on. */
static void move_to_pin(const Run *pin) {
        Run *t = g_hash_table_lookup(pin->context->runs, &pin->transaction);

        if (t)
                t->pin = pin->number;
}

int run_on_started(Run *run, const Started *started) {
        if (run_is_under_way(run)) /* it was started again after SQLITE_BUSY */
                return 0;
        if (run->state != RUN_TAKEN || run->kind == RUN_EXECUTE || (run->describe && !started->described))
                return -EBADMSG;
        run_life_move(&run->state, RUN_STARTED);
        run->used_usec = clock_usec();
        if (run->kind != RUN_TRANSACTION)
                run->writes = run->kind != RUN_PREPARE && run->group->writes && !started->read_only;
        if (run->is_pin)
                move_to_pin(run);
        drop_job(run);
        if (run->end.error != ERROR_NONE)
                refuse_late(run);
        if (run->call)
                answer_started(run, started);
        if (run->kind == RUN_PREPARE) {
                if (run->statement)
                        statement_on_prepared(run->statement);
                run_free(run);
                return 0;
        }
        if (run->end.error == ERROR_NONE && run->is_pin)
                disarm(run);
        else if (run->end.error == ERROR_NONE)
                arm(run, run->deadline_usec);
        return 0;
}

static void free_attached(void *database) {
        (void) database_unref(database);
}

static void note_attached(Run *pin, Database *d) {
        if (!pin->attached)
                pin->attached = g_ptr_array_new_with_free_func(free_attached);
        if (!g_ptr_array_find(pin->attached, d, NULL))
                g_ptr_array_add(pin->attached, database_ref(d));
}

int run_on_attach_wanted(Run *run, const char *name) {
        Peer *p = run->session ? g_hash_table_lookup(run->context->peers, run->session->name) : NULL;
        Message answer = { .kind = MESSAGE_ATTACH, .attach = { .number = run->number, .name = name } };
        g_auto(Refusal) refusal = REFUSAL_INIT;
        Database *d;

        if (!run->is_pin || !run_is_under_way(run))
                return -EBADMSG;
        if (!p || run->end.error != ERROR_NONE)
                return 0;
        d = policy_find_to_attach(run->context, p, name, &refusal);
        if (d) {
                answer.attach.path = d->config->path;
                answer.attach.immutable = d->config->immutable;
                note_attached(run, d);
        } else if (refusal.error != ERROR_NONE) {
                answer.attach.error = refusal.error;
                answer.attach.message = refusal.message;
        } else
                return 0;
        (void) message_send(run->worker->control_fd, &answer, -1);
        return 0;
}

int run_on_parked(Run *run, bool parked) {
        if ((!run_is_under_way(run) && run->state != RUN_ENDED) || !run->pipe)
                return -EBADMSG;
        if (run->state == (parked ? RUN_STARTED : RUN_PARKED)) { /* an ended run may wait for its reader, too */
                uint64_t now = clock_usec();

                run_life_move(&run->state, parked ? RUN_PARKED : RUN_STARTED);
                run->parked_usec += parked ? 0 : now - run->parked_since_usec;
                run->parked_since_usec = now;
        }
        if (run->state == RUN_PARKED && !run->reader && pipe_check(run->pipe))
                run->context->events->pipe_grown(run->context, run->pipe);
        else if (!parked)
                group_staff(run->group);
        return 0;
}

int run_on_filling(Run *run) {
        if (!run_is_under_way(run) || !run->pipe)
                return run->state == RUN_ENDED ? 0 : -EBADMSG;
        if (run->kind != RUN_ROWS) /* pages of rows for D-Bus are small */
                pipe_grow_for_filling(run->pipe);
        return 0;
}

/* ---- The end of a run ---- */

void run_is_over(Run *run) {
        Statement *s = run->statement;

        if (run->pipe && run->worker) {
                run->pipe->ended_by = run->worker;
                run->pipe->ended_at = run->worker->n_said;
        }
        detach(run);
        run->group = group_unref(run->group);
        run->statement = NULL;
        if ((run->reader && run->session) || keeps_result(run)) {
                run_life_move(&run->state, RUN_OVER);
                if (run->kind == RUN_LOAD)
                        run->pipe = pipe_unref(run->pipe);
                arm_idle(run);
        } else
                run_free(run);
        if (s)
                statement_run_is_over(s);
}

static void log_end(const Run *run, const Ended *ended) {
        uint64_t parks_usec = run->state == RUN_PARKED ? clock_usec() - run->parked_since_usec : 0;

        run_log_end(&(RunLogFacts) {
                .fields = {
                        .database = database_name(run->database),
                        .client = run->session ? run->session->name : NULL,
                        .uid = &run->user->uid,
                        .run = run->number,
                        .worker_pid = run->worker ? run->worker->process.pid : 0,
                },
                .is_prepare = run->kind == RUN_PREPARE,
                .waited_usec = run->parked_usec + parks_usec,
                /* a transaction waits for its client */
                .slow_usec = run->kind == RUN_TRANSACTION ? UINT64_MAX : run->context->config->service.slow_query_usec,
        }, ended);
}

int run_on_committing(Run *run) {
        if ((run->state != RUN_TAKEN && !run_is_under_way(run)) || run->kind == RUN_PREPARE)
                return -EBADMSG;
        if (run->kind == RUN_TRANSACTION && !may_write(run))
                return -EBADMSG;
        run->committing = true;
        return 0;
}

/* The reply cannot be sent: answers with an error, so that the client does not wait. */
static void answer_without_reply(Run *run, bool wrote, int r) {
        log_warning_limited("A reply could not be sent: %s", strerror(-r));
        answer_failure(run, &(Failure) {
                .error = wrote ? ERROR_OUTCOME_UNKNOWN : r == -ENOMEM ? ERROR_OUT_OF_MEMORY : ERROR_INTERNAL,
                .sql_offset = -1,
                .message = wrote ? cannot_reply : "The service could not reply; nothing was written.",
        });
}

/* If the run was told to end, and its worker committed it before it read that, the answer is that it is committed. */
static void on_executed(Run *run, const Ended *ended) {
        count_result(run);
        if (run->call) {
                int r = run->on_ended(run, ended);
                if (r < 0)
                        answer_without_reply(run, ended->wrote, r);
        }
        run_free(run);
}

/* The end of a transaction answers Commit or Rollback. Without these, its client learns it from the next call. */
static int on_transaction_ended(Run *run, const Ended *ended) {
        if (ended->failure.error == ERROR_NONE && !run->commits)
                return -EBADMSG;
        if (ended->failure.error == (run->rolls_back ? ERROR_CANCELLED : ERROR_NONE))
                on_executed(run, ended);
        else
                fail(run, &ended->failure);
        return 0;
}

/* The result of a load, whatever it was told to end with, waits for Wait. */
static void keep_result(Run *run, const Ended *ended) {
        const Failure *f = &ended->failure;

        refusal_done(&run->end);
        if (f->error != ERROR_NONE)
                (void) refuse(&run->end, (ErrorNumber) f->error, "%s", f->message);
        run->end.extended_code = f->extended_code;
        run->result = *ended;
        run->result.failure = (Failure) { .sql_offset = -1 };
        count_result(run);
        run_is_over(run);
}

static void on_load_ended(Run *run, const Ended *ended) {
        run->n_rows = ended->n_rows;
        run->n_bytes = ended->n_bytes;
        if (keeps_result(run))
                keep_result(run, ended);
        else if (ended->failure.error == ERROR_NONE)
                on_executed(run, ended);
        else
                fail(run, &ended->failure);
}

/* The worker knows that the client may not write, but not who may. */
static void fail_taken(Run *run, const Failure *failure) {
        g_auto(Refusal) refusal = REFUSAL_INIT;

        if (run->kind != RUN_EXECUTE || failure->error != ERROR_READ_ONLY || run->group->writes) {
                fail(run, failure);
                return;
        }
        (void) policy_refuse_write(run->database, &refusal);
        Failure explained = refusal_as_failure(&refusal);
        fail(run, &explained);
}

/* The worker is the first to read a file, so only it knows how many statements are there. */
static bool are_changes_valid(const Run *run, const Ended *ended) {
        size_t n = ended->changes.size / sizeof(int64_t);

        if (!run->is_batch || ended->failure.error != ERROR_NONE)
                return n == 0;
        return run->list.n > 0 ? n == run->list.n : n > 0 && n <= STATEMENT_LIST_N_MAX;
}

int run_on_ended(Run *run, const Ended *ended) {
        bool failed = ended->failure.error != ERROR_NONE;

        if (run->state != RUN_TAKEN && !run_is_under_way(run))
                return -EBADMSG;
        if (run->state == RUN_TAKEN && !failed && run->kind != RUN_EXECUTE)
                return -EBADMSG;
        if (!are_changes_valid(run, ended))
                return -EBADMSG;
        if (!run->finds_tables && (ended->tables.size > 0 || ended->names.size > 0))
                return -EBADMSG;
        log_end(run, ended);
        if (run->kind == RUN_TRANSACTION)
                return on_transaction_ended(run, ended);
        if (run->kind == RUN_LOAD) {
                on_load_ended(run, ended);
                return 0;
        }
        if (run->kind != RUN_PREPARE)
                run->group->took_usec = clock_usec() - run->worker->busy_usec;
        if (run->kind == RUN_EXECUTE && !failed) {
                on_executed(run, ended);
                return 0;
        }
        if (run->state == RUN_TAKEN) {
                fail_taken(run, &ended->failure);
                return 0;
        }
        run->n_rows = ended->n_rows;
        run->n_bytes = ended->n_bytes;
        count_result(run);
        arm_idle(run);
        run->writes = run->writes && (ended->wrote || ended->failure.error == ERROR_OUTCOME_UNKNOWN);
        run->committing = false;
        run_life_move(&run->state, RUN_ENDED);
        if (ended->drained)
                run_is_over(run);
        return 0;
}

int run_on_progress(Run *run, const Progress *progress) {
        if (!run_is_under_way(run) && !(run->kind == RUN_EXECUTE && run->state == RUN_TAKEN))
                return -EBADMSG;
        run->n_rows = progress->n_rows;
        run->n_bytes = progress->n_bytes;
        return 0;
}

int run_on_drained(Run *run, const Drained *drained) {
        if (run->state != RUN_ENDED || drained->unread.size > unread_size_max(run->page_size))
                return -EBADMSG;
        if (drained->unread.size == 0) {
                run_is_over(run);
                return 0;
        }
        detach(run);
        run->group = group_unref(run->group);
        run_life_move(&run->state, RUN_DRAINING);
        arm_idle(run);
        run_drain_begin(run, drained->unread);
        return 0;
}

static void cancel(Run *run, ErrorNumber error, const char *sentence) {
        if (run->state >= RUN_ENDED || run->end.error != ERROR_NONE)
                return;
        (void) refuse(&run->end, error, "%s", sentence);
        if (run->state == RUN_SENT || run->state == RUN_MISSING)
                group_jobs_recall(run->group);
        switch (run->state) {
        case RUN_NEW:
        case RUN_WAITING: fail_with_end(run); return;
        case RUN_SENT:
        case RUN_MISSING: return; /* a worker is taking it: a CANCEL answers its TAKEN */
        case RUN_TAKEN:
        case RUN_STARTED:
        case RUN_PARKED: tell_cancel(run); return;
        case RUN_ENDED:
        case RUN_DRAINING:
        case RUN_OVER:
        case RUN_STATE_MAX: return;
        }
}

static int take_call(Run *run, sd_bus_message *call, RunEndedFunc on_ended, Refusal *refusal) {
        int r;

        if (run->call)
                return refuse(refusal, ERROR_BUSY, "Another call is ending this transaction: wait for its answer.");
        if (run->end.error != ERROR_NONE) /* its worker was told so */
                return refuse(refusal, ERROR_TRANSACTION_ENDED, "Transaction %" PRIu64 " has ended: %s", run->number,
                              run->end.message);
        r = waiting_call_new(call, &run->call);
        if (r >= 0)
                run->on_ended = on_ended;
        return r;
}

int run_commit(Run *run, sd_bus_message *call, bool keeps_open, RunEndedFunc on_ended, Refusal *refusal) {
        int r = take_call(run, call, on_ended, refusal);

        if (r < 0)
                return r;
        r = message_send(run->worker->control_fd,
                         &(Message) { .kind = keeps_open ? MESSAGE_TRY_COMMIT : MESSAGE_COMMIT, .number = run->number }, -1);
        run->commits = r >= 0;
        run->keeps_open = keeps_open;
        if (r == -EPIPE || r == -ECONNRESET) /* it was not asked to commit; its end answers the call */
                cancel(run, ERROR_TRANSACTION_ENDED, "The worker of the transaction ended before it was asked to commit.");
        if (r >= 0 || r == -EPIPE || r == -ECONNRESET)
                return 0;
        run->call = sd_bus_message_unref(run->call);
        return r == -EAGAIN ? refuse(refusal, ERROR_BUSY, "The worker has too many messages waiting: try again.") : r;
}

int run_on_commit_refused(Run *run, const Failure *failure) {
        if (!run->commits || failure->error == ERROR_NONE)
                return -EBADMSG;
        run->commits = run->committing = false;
        run->used_usec = clock_usec();
        if (!run->keeps_open)
                cancel(run, ERROR_SQL, failure->message);
        if (run->end.error == ERROR_NONE) /* else it does not stay open: its worker was told, and ENDED is the answer */
                answer_failure(run, failure);
        return 0;
}

int run_wait(Run *run, sd_bus_message *call, RunEndedFunc on_ended, Refusal *refusal) {
        int r = run->call ? refuse(refusal, ERROR_BUSY, "Another Wait for this load has no answer yet.")
                          : waiting_call_new(call, &run->call);

        if (r < 0)
                return r;
        run->on_ended = on_ended;
        if (run->state != RUN_OVER)
                return 0;
        if (run->end.error != ERROR_NONE) {
                fail_with_end(run);
                return 0;
        }
        r = on_ended(run, &run->result);
        if (r < 0)
                answer_without_reply(run, run->result.wrote, r);
        run_free(run);
        return 0;
}

int run_rollback(Run *run, sd_bus_message *call, RunEndedFunc on_ended, Refusal *refusal) {
        int r = take_call(run, call, on_ended, refusal);

        if (r < 0) {
                run->keeps_open = false;
                return r;
        }
        run->rolls_back = true;
        cancel(run, ERROR_CANCELLED, "The transaction is rolled back.");
        return 0;
}

static void cancel_for_all(Run *run, ErrorNumber error, const char *sentence) {
        switch (run->state) {
        case RUN_ENDED:
                if (run->pipe->write_fd >= 0)
                        let_go(run);
                return;
        case RUN_DRAINING: run_drain_drop(run, error, sentence); return;
        default: cancel(run, error, sentence); return;
        }
}

/* Answers a method although a worker that has taken the run may report later. If the worker may commit the run before it
 * reads the CANCEL, the method waits for that report. But a RowReader without a session would not be told. */
static void answer_early(Run *run, ErrorNumber error, const char *sentence) {
        bool is_open = run->state >= RUN_SENT && may_write(run);

        if (is_open && run->reader && !run->session)
                answer_failure(run, &(Failure) {
                        .error = ERROR_OUTCOME_UNKNOWN,
                        .sql_offset = -1,
                        .message = "The run was ended while it may have been writing: it is unknown whether the statement "
                                   "took effect.",
                });
        else if (!is_open)
                answer_failure(run, &(Failure) { .error = error, .sql_offset = -1, .message = sentence });
}

/* Removes the run from its session, and answers a waiting method. */
static void abandon(Run *run, ErrorNumber error, const char *sentence) {
        Statement *s = run->statement;

        leave_session(run);
        answer_early(run, error, sentence);
        if (s) {
                s->run = NULL;
                run->statement = NULL;
                if (run->kind == RUN_PREPARE)
                        (void) statement_free(s);
        }
        if (run->state == RUN_OVER || (run->state == RUN_DRAINING && run->reader))
                run_free(run);
        else if (run->state >= RUN_ENDED)
                arm_idle(run);
        else
                cancel(run, error, sentence);
}

static void on_reader_over(void *userdata, RowReaderEnd end) {
        Run *run = userdata;
        Worker *w = run->worker;

        run->reader = NULL;
        if (run->state == RUN_OVER)
                run_free(run);
        else if (end != ROW_READER_ENDED)
                cancel(run, ERROR_CANCELLED, "Its reader has all the rows it wants.");
        if (w && end == ROW_READER_BROKEN)
                (void) worker_end(w, WORKER_END_INVALID_PAGE);
}

static const Refusal *error_for_reader(const void *run) {
        return &((const Run *) run)->end;
}

static bool writes_for_reader(const void *run) {
        return ((const Run *) run)->writes;
}

int run_add_reader(Run *run, bool one_shot) {
        static const RowReaderEvents events = { .over = on_reader_over, .error = error_for_reader,
                                                .writes = writes_for_reader };

        return row_reader_new(&(RowReaderSpec) {
                .event = run->context->event,
                .fd = pipe_take_read_fd(run->pipe),
                .user = run->user,
                .one_shot = one_shot,
                .error_details = run->error_details,
                .events = &events,
                .run = run,
        }, &run->reader);
}

static void revoke_call(Run *run, ErrorNumber error, const char *sentence) {
        answer_early(run, error, sentence);
        cancel(run, error, sentence);
}

void run_end(Run *run, RunEndReason reason, ErrorNumber error, const char *sentence) {
        switch (reason) {
        case RUN_END_CANCELLED: cancel(run, error, sentence); return;
        case RUN_END_BY_ADMINISTRATOR: cancel_for_all(run, error, sentence); return;
        case RUN_END_CLIENT_GONE: abandon(run, error, sentence); return;
        case RUN_END_FAILED: fail(run, &(Failure) { .error = error, .sql_offset = -1, .message = sentence }); return;
        case RUN_END_WORKER_LOST: lose(run); return;
        case RUN_END_REVOKED: revoke_call(run, error, sentence); return;
        }
}
