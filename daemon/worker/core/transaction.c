/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See transaction.h. From top to bottom: the end, locks, the beginning, the turn to write, statements, loads,
 * the commit, the task, messages.
 */
#include "daemon/worker/core/transaction.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker/core/commit-notes.h"
#include "daemon/worker/core/connection-share.h"
#include "daemon/worker/core/job-time.h"
#include "daemon/worker/core/load.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/report.h"
#include "daemon/worker/core/supervisor-job.h"

#define RETRY_USEC (10 * USEC_PER_MSEC) /* after a lock was met */
#define ASK_USEC (50 * USEC_PER_MSEC)   /* between two checks for writers of other programs */
#define ASK_LOG_USEC USEC_PER_SEC       /* the same if only the log grows meanwhile */
#define TURN_USEC (200 * USEC_PER_MSEC) /* a snapshot waits at least so long for its turn to write */
#define SAVEPOINTS_SIZE_MAX ((size_t) 64 * 1024)

typedef enum TransactionState {
        TRANSACTION_WAITS,
        TRANSACTION_OPEN,
        TRANSACTION_COMMITS,
        TRANSACTION_ENDS,
        TRANSACTION_OVER,
} TransactionState;

struct Transaction {
        Task task;
        JobWriter jobs;             /* what jobs see of it */
        TransactionSet *set;        /* borrowed */
        Transaction *next;          /* in the set */
        Begin begin;
        TransactionState state;
        WriterClaim claim;          /* if it writes */
        WriteBatch batch;           /* if it writes: the transaction, and the statement that runs */
        EngineConnection *snapshot; /* if it reads */
        uint64_t sequence;          /* if it reads: of changes, before the snapshot began */
        bool has_read;              /* a statement has read the snapshot, so its program may depend on that */
        Job *upgrader;              /* borrowed, the first of the queue: it writes, and waits until the transaction may begin
                                     * to write; NULL: none does */
        uint64_t upgrade_until_usec; /* until when it waits, if there is a snapshot */
        char *savepoints;           /* owned: statements about savepoints, each with a NUL, which the connection that writes
                                     * must run, too */
        size_t savepoints_size;
        Job *borrower;              /* borrowed: has the connection of the snapshot; NULL: none has */
        JobList queue;              /* jobs that wait */
        Job *load;                  /* borrowed: the load under way; NULL: none is */
        bool is_of_load;            /* it was made for the load, and has no number. The load reports for both */
        uint64_t begun_usec, used_usec; /* since when it waits to begin; when a statement last ended, or rows came */
        uint64_t busy_until_usec;   /* until when other programs may keep it from beginning; 0: none has yet */
        uint64_t lock_until_usec;   /* until when it may wait for the lock that is in its way; 0: none is known */
        uint64_t retry_usec;        /* it met a lock: the next attempt; 0: now */
        uint64_t commit_until_usec; /* until when the commit is tried again; 0: not tried yet */
        uint64_t asked_usec, writer_usec; /* when it last checked for writers; since when one waits, 0: none */
        SqlError error;             /* why it ends */
        bool wrote;                 /* it is committed */
        bool keeps_open;            /* COMMITS: if the engine refuses that, it is open again */
        bool waits;                 /* the engine begins or commits it: it can end only after that */
        bool is_saved;              /* a savepoint is open, for a load in the transaction of a client */
        Transaction *pin;           /* borrowed: the pin on which it is, or for which it waits; NULL: it is on connections of
                                     * the pool, or has given all back. The pin ends after all of these */
        Transaction *guest;         /* of a pin, borrowed: the one of these that has it; NULL: none */
        bool outdated;              /* what it has read is no longer true, so no pin can go on with it */
        Job *single;                /* borrowed: the job of a pin for which it was made; NULL: none, or it is over */
        bool is_of_single;          /* it was made for one */
        bool only_temp;             /* it was made for a job that changes only TEMP tables, and needs no turn to write */
};

static JobContext *context_of(const Transaction *t) {
        return t->set->context;
}

static const Engine *engine_of(const Transaction *t) {
        return context_of(t)->engine;
}

static void report(Transaction *t, const Message *m) {
        int r = report_send(context_of(t)->control_fd, m);

        if (r < 0)
                context_of(t)->report_error = r;
}

/* ---- the end ---- */

static bool is_pin(const Transaction *t) {
        return t->begin.is_pin;
}

/* True if its client knows nothing of it: it was made for one job. */
static bool is_of_job(const Transaction *t) {
        return t->is_of_load || t->is_of_single;
}

/* The jobs go on, and end with an error of their own that says why. */
static void fail_job(Transaction *t, Job *job) {
        if (job->error.error == ERROR_NONE && is_of_job(t))
                sql_error_copy(&job->error, &t->error);
        else if (job->error.error == ERROR_NONE)
                (void) sql_error_set(&job->error, is_pin(t) ? ERROR_PIN_LOST : ERROR_TRANSACTION_ENDED,
                                     "the %s has ended: %s", is_pin(t) ? "connection with your TEMP tables" : "transaction",
                                     sql_error_as_failure(&t->error).message);
}

/* Its rows run no more. */
static void leave_load(Transaction *t) {
        if (!t->load->load->statement)
                return;
        load_stop(t->load);
        job_leave(t->load, t->batch.connection);
}

/* Stops the load under way, and takes back its rows unless they are committed with the transaction. */
static void stop_load(Transaction *t) {
        leave_load(t);
        t->load = NULL;
        t->used_usec = now_usec();
        if (t->is_of_load)
                return;
        if (t->is_saved) {
                t->is_saved = false;
                if (engine_of(t)->is_in_transaction(t->batch.connection))
                        engine_of(t)->undo(t->batch.connection);
                t->batch.rolled_back = !engine_of(t)->is_in_transaction(t->batch.connection);
        }
        if (t->pin && !t->begin.writes)
                t->batch.connection = NULL; /* see run_next() */
}

/* The rows of a load that is taken back do not count. Its client may send those before the one that failed again. */
static void forget_counts(Job *job) {
        job->counts = job->counts_before;
}

/* The transaction has ended, and with it the load under way. */
static void end_load(Transaction *t) {
        Job *job = t->load;

        if (!t->is_of_load)
                fail_job(t, job);
        else if (job->error.error == ERROR_NONE && t->error.error != ERROR_NONE)
                sql_error_copy(&job->error, &t->error);
        job->counters.wrote = t->wrote;
        job->sequence = t->batch.sequence;
        stop_load(t);
        if (!t->wrote && t->is_of_load)
                forget_counts(job);
        write_batch_release(job);
}

/* The transaction of the job of a pin has ended: committed, or not. */
static void end_single(Transaction *t) {
        Job *job = t->single;

        t->single = NULL;
        if (job->error.error == ERROR_NONE && t->error.error != ERROR_NONE)
                sql_error_copy(&job->error, &t->error);
        job->counters.wrote = t->wrote && job->error.error == ERROR_NONE;
        job->sequence = t->batch.sequence;
        if (!t->wrote) {
                if (!job->write.changes && job->counters.n_changes > 0) { /* see the writer */
                        job->counts.n_total -= job->counters.n_changes;
                        job->counts.n_changes = 0;
                }
                job_rewind(job);
        }
        write_batch_release(job);
}

static void fail_borrower(Transaction *t) {
        if (!t->borrower)
                return;
        fail_job(t, t->borrower);
        job_wake(t->borrower);
        if (t->borrower->state == JOB_RETRY)
                (void) job_set_state(t->borrower, JOB_READY);
}

static void fail_jobs(Transaction *t) {
        Job *job;

        t->upgrader = NULL;
        if (t->single)
                end_single(t);
        if (t->load)
                end_load(t);
        while ((job = job_list_take(&t->queue))) {
                fail_job(t, job);
                write_batch_release(job);
        }
        fail_borrower(t);
}

static void give_back(Transaction *t) {
        write_batch_end(&t->batch);
        writer_unclaim(t->set->writer, &t->claim);
        if (t->snapshot && is_pin(t))
                engine_of(t)->unpin(t->snapshot);
        else if (t->snapshot)
                engine_of(t)->disconnect(context_of(t)->pool, t->snapshot);
        t->snapshot = NULL;
        if (t->pin && t->pin->guest == t)
                t->pin->guest = NULL;
        t->pin = NULL;
        if (t->commit_until_usec > 0)
                context_of(t)->commit_waits = false;
}

static void break_off(Transaction *t, const char *why) {
        if (t->error.error == ERROR_NONE)
                (void) sql_error_set(&t->error, ERROR_TRANSACTION_ENDED, "%s", why);
        t->claim.ends = true;
}

/* True if no transaction is on the pin, or waits for it. */
static bool is_alone(const Transaction *pin) {
        const Transaction *t = pin->set->first;

        while (t && t->pin != pin)
                t = t->next;
        return !t;
}

/* Its pin has ended. If the client knows of no transaction, it learns only that. A statement that computes is
 * interrupted. */
static void leave_pin(Transaction *t) {
        bool is_known = !is_of_job(t) && t->state > TRANSACTION_WAITS;

        if (t->error.error == ERROR_NONE)
                (void) sql_error_set(&t->error, is_known ? ERROR_TRANSACTION_ENDED : ERROR_PIN_LOST,
                                     "the connection with your TEMP tables has ended: %s",
                                     sql_error_as_failure(&t->pin->error).message);
        if (t->batch.running)
                fail_job(t, t->batch.running);
        fail_borrower(t);
}

static void break_off_guests(const Transaction *pin) {
        for (Transaction *t = pin->set->first; t; t = t->next)
                if (t->pin == pin)
                        leave_pin(t);
}

/* Not while its batch runs a statement. A job that has its connection is interrupted, and ends first. */
static void end(Transaction *t) {
        t->state = TRANSACTION_ENDS;
        fail_jobs(t);
        if (is_pin(t))
                break_off_guests(t);
        if (t->borrower || !is_alone(t))
                return;
        give_back(t);
        t->state = TRANSACTION_OVER;
        if (is_of_job(t))
                return;
        report(t, &(Message) {
                .kind = MESSAGE_ENDED,
                .ended = {
                        .number = t->begin.number,
                        .failure = sql_error_as_failure(&t->error),
                        .usec = now_usec() - t->begun_usec,
                        .drained = true,
                        .wrote = t->wrote,
                        .sequence = t->begin.writes ? t->batch.sequence : t->sequence,
                },
        });
}

/* ---- locks ---- */

/* False: another transaction has its pin, or statements that came before do. */
static bool has_place(const Transaction *t) {
        return !t->pin || t->pin->guest == t;
}

/* True if a load must read its first row before the transaction begins. */
static bool needs_rows(const Transaction *t) {
        return t->is_of_load && !load_has_rows(t->load->load);
}

/* A lock is in the way. True: the transaction has waited long enough for it. */
static bool has_waited(Transaction *t, uint64_t now) {
        if (t->lock_until_usec == 0)
                t->lock_until_usec = t->begin.lock_wait_usec < UINT64_MAX - now ? now + t->begin.lock_wait_usec : UINT64_MAX;
        return now >= t->lock_until_usec;
}

static void forget_lock(Transaction *t) {
        t->retry_usec = t->busy_until_usec = t->lock_until_usec = 0;
}

/* When the wait for its turn to write ends; 1: it must be checked now, because a transaction is in the way; UINT64_MAX: this
 * is not known, or it does not wait. */
static uint64_t turn_until(const Transaction *t) {
        bool waits = t->upgrader || (t->state == TRANSACTION_WAITS && t->begin.writes && has_place(t) && !t->only_temp &&
                                     (!t->is_of_load || (t->load && !needs_rows(t))));

        if (!waits || t->begin.lock_wait_usec == UINT64_MAX)
                return UINT64_MAX;
        if (t->lock_until_usec > 0)
                return t->lock_until_usec;
        return writer_is_taken(t->set->writer, &t->claim) ? 1 : UINT64_MAX;
}

/* After ERROR_BUSY of the engine. True: the transaction waits no longer, and the error is the one for its client. */
static bool gives_up(Transaction *t, SqlError *error, uint64_t now) {
        bool locked = engine_met_lock(engine_of(t), error);

        t->busy_until_usec = connection_share_busy_until(context_of(t), t->busy_until_usec, now);
        if (now >= t->busy_until_usec)
                engine_of(t)->give_up(error);
        else if (locked && has_waited(t, now))
                engine_set_locked(engine_of(t), error, ENGINE_LOCKED);
        else
                return false;
        return true;
}

static void retry_at(Transaction *t, uint64_t usec) {
        t->retry_usec = t->lock_until_usec > 0 ? earlier(usec, t->lock_until_usec) : usec;
}

/* Ends a wait for the turn to write that has lasted long enough. */
static void check_turn(Transaction *t, uint64_t now) {
        SqlError *error = t->upgrader ? &t->upgrader->error : &t->error;

        if (turn_until(t) <= now && has_waited(t, now) && error->error == ERROR_NONE)
                engine_set_locked(engine_of(t), error, ENGINE_LOCKED);
}

/* ---- the beginning ---- */

/* A pin keeps its connection. */
static void drop_snapshot(Transaction *t) {
        if (t->pin)
                return;
        engine_of(t)->disconnect(context_of(t)->pool, t->snapshot);
        t->snapshot = NULL;
}

static bool take_snapshot(Transaction *t, SqlError *error) {
        t->sequence = commit_notes_now(context_of(t));
        if (!engine_of(t)->connect(context_of(t)->pool, "", 0, NULL, &t->snapshot, error))
                return false;
        if (engine_of(t)->snapshot(t->snapshot, error))
                return true;
        drop_snapshot(t);
        return false;
}

/* A server's transaction that reads is not one session. */
static bool has_savepoints_of_readers(const Transaction *t) {
        return engine_of(t)->allow_savepoints && !engine_of(t)->state_is_remote;
}

/* Room for the statement of a job, which is about a savepoint. False: no memory. */
static bool reserve_savepoint(Transaction *t, const Job *job) {
        char *copy = realloc(t->savepoints, t->savepoints_size + job->spec->sql_size + 1);

        if (copy)
                t->savepoints = copy;
        return copy;
}

static void remember_savepoint(Transaction *t, const Job *job) {
        size_t size = job->spec->sql_size + 1;

        memcpy(t->savepoints + t->savepoints_size, job->spec->sql, size);
        t->savepoints_size += size;
}

/* The statements about savepoints so far have succeeded, and have changed nothing. */
static bool repeat_savepoints(Transaction *t, EngineConnection *connection, SqlError *error) {
        const Engine *engine = engine_of(t);
        const JobSpec none = {};
        size_t size;

        engine->allow_savepoints(connection);
        for (size_t at = 0; at < t->savepoints_size; at += size) {
                const char *sql = t->savepoints + at;
                EngineStatement *statement;
                RowSink sink = {};
                bool ok;

                size = strlen(sql) + 1;
                if (!engine->compile(connection, sql, size - 1, false, NULL, &statement, error))
                        return false;
                ok = engine->bind(statement, &none, error) && engine->step(statement, &sink, error) == ENGINE_DONE;
                engine->release(statement);
                if (!ok)
                        return false;
        }
        return true;
}

static bool enforces(const Transaction *t) {
        return engine_enforces(context_of(t)->setup, t->begin.foreign_keys);
}

/* Those of loads have no number. */
static Transaction *find(const TransactionSet *set, uint64_t number) {
        Transaction *t = number > 0 ? set->first : NULL;

        while (t && t->begin.number != number)
                t = t->next;
        return t;
}

/* True if its connection reads a state of the file, and must go on to do so. */
static bool reads_file(const Transaction *t, const EngineConnection *connection) {
        return engine_of(t)->keeps_writers_out(connection) || engine_of(t)->keeps_log(connection);
}

/* Begins a transaction on the new pin that goes on with that of `t`, which has changed nothing. Its reads must still be
 * true. */
static bool move_to_pin(Transaction *t, EngineConnection *pin, SqlError *error) {
        const Engine *engine = engine_of(t);

        if (t->savepoints_size >= SAVEPOINTS_SIZE_MAX)
                return sql_error_set(error, ERROR_LIMITS_EXCEEDED,
                                     "this transaction has had too many savepoints to get TEMP tables: end it, and begin "
                                     "another one");
        if (!engine->begin_pin(pin, PIN_BEGIN_TEMP, enforces(t), !t->begin.deferred, error))
                return false;
        if (t->snapshot) {
                engine->hold(pin);
                if (!context_of(t)->setup->immutable && !reads_file(t, pin))
                        return sql_error_set(error, ERROR_BUSY, "the database is locked: try again later");
                t->outdated = !engine->is_current(t->snapshot, error);
                if (t->outdated)
                        return false;
        }
        if (!repeat_savepoints(t, pin, error))
                return false;
        if (t->snapshot)
                drop_snapshot(t);
        engine->let_go(pin); /* BEGIN keeps what was read */
        t->snapshot = pin;
        return true;
}

/* Makes a pin for the transaction that will go on there: of the connection that it has, if it writes. */
static bool pin_transaction(Transaction *t, Transaction *inner) {
        const Engine *engine = engine_of(t);

        if (!engine->pin(context_of(t)->pool, inner->batch.connection ? &inner->batch.connection : &t->snapshot, &t->error))
                return false;
        if (inner->batch.connection)
                t->snapshot = inner->batch.connection;
        else if (!move_to_pin(inner, t->snapshot, &t->error)) {
                engine->unpin(t->snapshot);
                t->snapshot = NULL;
                t->outdated = inner->outdated;
                return false;
        }
        inner->pin = t;
        inner->jobs.pin = t->begin.number;
        t->guest = inner;
        return true;
}

static bool open_pin(Transaction *t) {
        Transaction *inner = find(t->set, t->begin.transaction);

        if (!engine_of(t)->pin)
                return sql_error_set(&t->error, ERROR_NOT_ALLOWED, "this database has no TEMP tables");
        if (t->begin.transaction == 0)
                return engine_of(t)->pin(context_of(t)->pool, &t->snapshot, &t->error);
        if (!inner || inner->state != TRANSACTION_OPEN || inner->error.error != ERROR_NONE || inner->pin || is_pin(inner))
                return sql_error_set(&t->error, ERROR_TRANSACTION_ENDED, "the transaction has ended, or has a pin");
        return pin_transaction(t, inner);
}

/* A transaction that was made for a job runs that as one that writes does. */
static bool begin_on_pin(Transaction *t) {
        EngineConnection *pin = t->pin->snapshot;
        PinBegin how = t->begin.writes && !t->only_temp ? PIN_BEGIN_WRITE : PIN_BEGIN_TEMP;

        if (t->pin->state != TRANSACTION_OPEN)
                return sql_error_set(&t->error, ERROR_PIN_LOST, "the connection with your TEMP tables has ended");
        if (!engine_of(t)->check_pin(context_of(t)->pool, pin, &t->error)) {
                if (t->error.error == ERROR_PIN_LOST)
                        sql_error_copy(&t->pin->error, &t->error);
                return false;
        }
        if (t->begin.writes)
                return write_batch_begin_pin(&t->batch, pin, how, enforces(t), t->only_temp, &t->error);
        t->sequence = commit_notes_now(context_of(t));
        if (!engine_of(t)->begin_pin(pin, how, enforces(t), !t->begin.deferred, &t->error))
                return false;
        t->snapshot = pin;
        return true;
}

/* A load was checked before. */
static bool try_to_begin(Transaction *t) {
        if (is_pin(t))
                return open_pin(t);
        if ((t->begin.writes || t->begin.deferred) && !t->is_of_load && !t->only_temp &&
            !engine_check_foreign_keys(engine_of(t), context_of(t)->setup, t->begin.foreign_keys, &t->error))
                return false;
        if (t->pin)
                return begin_on_pin(t);
        if (t->begin.writes) {
                if (!t->is_of_load && !engine_of(t)->allow_savepoints)
                        return sql_error_set(&t->error, ERROR_NOT_ALLOWED,
                                             "transactions are not possible on this database: send statements that belong "
                                             "together as one batch");
                if (!write_batch_begin(&t->batch, enforces(t), &t->error))
                        return false;
                if (engine_of(t)->allow_savepoints)
                        engine_of(t)->allow_savepoints(t->batch.connection);
                return true;
        }
        if (t->begin.deferred)
                return true;
        if (!take_snapshot(t, &t->error))
                return false;
        if (has_savepoints_of_readers(t))
                engine_of(t)->allow_savepoints(t->snapshot);
        return true;
}

static uint64_t deadline_of(const Transaction *t) {
        return t->is_of_load ? t->load->deadline_usec : t->begin.deadline_usec;
}

/* The engine may wait for a server, and is interrupted if the transaction must end. */
static void begin_to_wait(Transaction *t) {
        t->waits = true;
        context_of(t)->wait_until_usec = deadline_of(t);
}

static void end_wait(Transaction *t) {
        context_of(t)->wait_until_usec = 0;
        t->waits = false;
}

static bool begin_waiting(Transaction *t) {
        bool ok;

        begin_to_wait(t);
        if (t->is_of_load)
                t->load->write.begins = true;
        ok = try_to_begin(t);
        if (t->is_of_load)
                t->load->write.begins = false;
        end_wait(t);
        return ok;
}

static uint64_t begin_pause(const Transaction *t) {
        const JobContext *context = context_of(t);

        if (!t->begin.writes && !t->upgrader)
                return RETRY_USEC;
        return earlier(RETRY_USEC, engine_begin_pause(context->engine, context->pool, RETRY_USEC));
}

static void open_it(Transaction *t) {
        bool ok = begin_waiting(t);
        uint64_t now = now_usec();

        if (t->is_of_load && t->load->error.error != ERROR_NONE) { /* cancelled meanwhile */
                end(t);
                return;
        }
        if (!ok && t->error.error == ERROR_NONE) /* interrupted: its time is over */
                return;
        if (!ok) {
                if (t->error.error != ERROR_BUSY || t->outdated || gives_up(t, &t->error, now))
                        end(t);
                else {
                        sql_error_done(&t->error);
                        retry_at(t, now + begin_pause(t));
                }
                return;
        }
        if (t->begin.writes && !t->only_temp)
                writer_grant(t->set->writer, &t->claim);
        t->state = TRANSACTION_OPEN;
        t->used_usec = now;
        forget_lock(t);
        if (is_pin(t)) /* only its beginning has a deadline */
                t->begin.deadline_usec = UINT64_MAX;
        if (is_of_job(t))
                return;
        report(t, &(Message) {
                .kind = MESSAGE_STARTED,
                .started = { .number = t->begin.number, .read_only = !t->begin.writes && !t->begin.deferred },
        });
}

/* The pin is free. Only the transaction that has it claims the writer: statements of the pin that came before wait for their
 * turn to write, too, and must not wait for this one. */
static void take_pin(Transaction *t) {
        t->pin->guest = t;
        if (t->begin.writes)
                writer_claim(t->set->writer, &t->claim);
}

/* ---- the turn to write ---- */

/* The upgrade has failed, and with it only the statement: the transaction goes on as before. */
static void fail_upgrade(Transaction *t, const SqlError *error) {
        Job *job = job_list_take(&t->queue);

        t->upgrader = NULL;
        forget_lock(t);
        t->used_usec = now_usec();
        writer_unclaim(t->set->writer, &t->claim);
        if (job->error.error == ERROR_NONE)
                sql_error_copy(&job->error, error);
        write_batch_release(job);
}

static bool set_blocked(const Transaction *t, SqlError *error) {
        engine_set_locked(engine_of(t), error,
                          "the database is locked: another transaction is writing, and this one, which has read, cannot "
                          "begin to write now. Roll it back and repeat it");
        return false;
}

/* True if the transaction may go on waiting for its turn. Without a snapshot it keeps no other program waiting. As in
 * SQLite, it does not wait for a transaction that waits for it, nor for one that will make its snapshot old; and it ends its
 * wait before that one is ended for its sake. */
static bool may_wait(Transaction *t, uint64_t now, SqlError *error) {
        const Engine *engine = engine_of(t);

        if (!t->snapshot)
                return true;
        if (!engine->is_current(t->snapshot, error))
                return false;
        if (t->pin && !reads_file(t, t->snapshot))
                return true;
        if (writer_has_transaction(t->set->writer))
                return set_blocked(t, error);
        if (engine->keeps_writers_out(t->snapshot) &&
            (job_context_waits_for_readers(context_of(t)) || engine->writer_waits(t->snapshot)))
                return set_blocked(t, error);
        return now < t->upgrade_until_usec || set_blocked(t, error);
}

/* Another program is writing, or is about to. */
static void upgrade_later(Transaction *t, SqlError *error) {
        uint64_t now = now_usec();

        if (!gives_up(t, error, now) && may_wait(t, now, error)) {
                retry_at(t, now + begin_pause(t));
                return;
        }
        fail_upgrade(t, error);
}

/* Nothing else can commit now. */
static bool take_over(Transaction *t, SqlError *error) {
        return (!t->snapshot || engine_of(t)->is_current(t->snapshot, error)) &&
               repeat_savepoints(t, t->batch.connection, error);
}

static void write_from_now_on(Transaction *t) {
        if (t->snapshot)
                drop_snapshot(t);
        t->snapshot = NULL;
        writer_grant(t->set->writer, &t->claim);
        t->begin.writes = true;
        t->upgrader = NULL;
        forget_lock(t);
        t->used_usec = now_usec();
}

/* Begins to write, if the file is as it was when the transaction has read it. Meanwhile the job may end. */
static void upgrade(Transaction *t) {
        SqlError error = SQL_ERROR_INIT;
        bool begun = false, ok;

        if (t->upgrader->error.error != ERROR_NONE) {
                fail_upgrade(t, &error);
                return;
        }
        begin_to_wait(t);
        begun = t->pin ? write_batch_begin_pin(&t->batch, t->snapshot, PIN_BEGIN_UPGRADE, enforces(t), false, &error)
                       : write_batch_begin(&t->batch, enforces(t), &error);
        ok = begun && (t->pin || take_over(t, &error));
        end_wait(t);
        if (ok && t->upgrader)
                write_from_now_on(t);
        else {
                write_batch_end(&t->batch);
                if (t->upgrader && !begun && error.error == ERROR_BUSY)
                        upgrade_later(t, &error);
                else if (t->upgrader && error.error != ERROR_NONE) /* otherwise it was interrupted, and must end */
                        fail_upgrade(t, &error);
                if (t->pin && !engine_of(t)->is_in_transaction(t->snapshot))
                        break_off(t, "it could not begin to write, and was rolled back");
        }
        sql_error_done(&error);
}

static bool can_upgrade(const Transaction *t) {
        return t->upgrader->error.error != ERROR_NONE ||
               (t->retry_usec == 0 && writer_may_begin(t->set->writer, &t->claim));
}

/* `job` is the first of the queue. */
static void wait_to_write(Transaction *t, Job *job) {
        uint64_t patience = earlier(context_of(t)->setup->busy_usec, t->begin.idle_usec / 2);

        t->upgrader = job;
        t->busy_until_usec = t->asked_usec = t->lock_until_usec = 0;
        t->upgrade_until_usec = now_usec() + (patience > TURN_USEC ? patience : TURN_USEC);
        writer_claim(t->set->writer, &t->claim);
}

/* A savepoint neither reads nor writes. It is made on the connection that reads, and later on the one that writes, too. */
static void run_savepoint(Transaction *t, Job *job) {
        if (!reserve_savepoint(t, job)) {
                (void) sql_error_set(&job->error, ERROR_OUT_OF_MEMORY, "out of memory");
                write_batch_release(job);
                return;
        }
        t->batch.connection = t->snapshot;
        (void) write_batch_run(&t->batch, job);
        t->batch.connection = NULL;
        engine_written_done(&t->batch.written);
        t->used_usec = now_usec();
        if (!t->has_read)
                drop_snapshot(t);
        if (!job_list_remove(&t->batch.jobs, job))
                return;
        remember_savepoint(t, job);
        job->counters.wrote = true;
        job->sequence = t->sequence;
        write_batch_release(job);
}

/* ---- statements ---- */

static void lend(Transaction *t, Job *job) {
        if (engine_of(t)->set_client)
                engine_of(t)->set_client(t->snapshot, is_pin(t) ? job->spec->foreign_keys : t->begin.foreign_keys,
                                         !is_pin(t) || job_keeps_settings(job), !is_pin(t) || t->guest);
        t->borrower = job;
        job->connection = t->snapshot;
        job->sequence = t->sequence;
        job->lender = &t->jobs;
        job->write.writes = false;
        (void) job_set_state(job, JOB_READY);
}

/* The failure of `job` may have rolled back the transaction. Later statements report that failure, too. */
static void check_rolled_back(Transaction *t, const Job *job) {
        if (t->batch.rolled_back && t->error.error == ERROR_NONE)
                (void) sql_error_set(&t->error, ERROR_TRANSACTION_ENDED,
                                     "a statement failed, which has rolled back the transaction: %s",
                                     job->error.error != ERROR_NONE ? sql_error_as_failure(&job->error).message
                                                                    : "it was interrupted");
}

/* It is not known before if the statement reads or writes. Until one has read, each gets a snapshot of its own. Meanwhile
 * the job may end. */
static bool has_snapshot(Transaction *t) {
        SqlError error = SQL_ERROR_INIT;
        uint64_t now = now_usec();
        Job *job;
        bool ok = t->snapshot;

        if (ok)
                return true;
        begin_to_wait(t);
        ok = take_snapshot(t, &error);
        if (ok && !repeat_savepoints(t, t->snapshot, &error)) {
                drop_snapshot(t);
                ok = false;
        }
        end_wait(t);
        if (ok)
                forget_lock(t);
        else if (error.error == ERROR_BUSY && !gives_up(t, &error, now))
                retry_at(t, now + RETRY_USEC);
        else if (error.error != ERROR_NONE && (job = job_list_take(&t->queue))) {
                forget_lock(t);
                sql_error_copy(&job->error, &error);
                write_batch_release(job);
        }
        sql_error_done(&error);
        return ok;
}

/* The job met a lock, and was taken back. True: it waits for another attempt. */
static bool run_later(Transaction *t, Job *job) {
        uint64_t now = now_usec();

        if (job->error.error != ERROR_BUSY || gives_up(t, &job->error, now))
                return false;
        sql_error_done(&job->error);
        job->write.is_over = false;
        (void) job_set_state(job, JOB_QUEUED);
        retry_at(t, now + RETRY_USEC);
        return true;
}

static void put_back(Transaction *t, Job *job) {
        JobList first = {};

        job_list_append(&first, job);
        job_list_prepend_all(&t->queue, &first);
}

/* The failure of a job may be that another program has a lock, or that ATTACH wants a database. */
static bool is_worth_another_try(const Transaction *t, const Job *job) {
        return !t->batch.rolled_back &&
               (engine_met_lock(engine_of(t), &job->error) || job_wanted_database(job, t->batch.connection));
}

/* Runs a statement that changes only TEMP tables, in a transaction that does not write. */
static void run_temp(Transaction *t, Job *job) {
        t->batch.connection = t->snapshot;
        (void) write_batch_run(&t->batch, job);
        t->batch.connection = NULL;
        engine_written_done(&t->batch.written);
        t->used_usec = now_usec();
        if (job_list_remove(&t->batch.jobs, job)) {
                forget_lock(t);
                job->counters.wrote = job->error.error == ERROR_NONE;
                job->sequence = t->sequence;
                write_batch_release(job);
        } else if (!t->batch.rolled_back && run_later(t, job)) {
                put_back(t, job);
                return;
        }
        check_rolled_back(t, job);
}

/* Makes a transaction for the job of a pin. */
static bool add_to_pin(Transaction *pin, Job *job);

/* Statements of a pin that read have its connection; any other gets a transaction of its own there. */
static void run_on_pin(Transaction *t) {
        Job *job = job_list_take(&t->queue);

        if (!t->guest && !engine_of(t)->check_pin(context_of(t)->pool, t->snapshot, &job->error)) {
                if (job->error.error == ERROR_PIN_LOST)
                        sql_error_copy(&t->error, &job->error);
                write_batch_release(job);
                return;
        }
        t->sequence = commit_notes_now(context_of(t));
        if (!job->write.changes)
                lend(t, job);
        else if (!add_to_pin(t, job))
                write_batch_release(job);
}

/* The job for which the transaction was made. */
static void run_single(Transaction *t) {
        Job *job = t->single;

        (void) write_batch_run(&t->batch, job);
        if (job_list_remove(&t->batch.jobs, job)) {
                forget_lock(t);
                t->state = TRANSACTION_COMMITS;
                return;
        }
        if (t->only_temp && !t->batch.rolled_back && run_later(t, job))
                return;
        t->single = NULL;
        end(t);
}

static void run_next(Transaction *t) {
        bool may_begin_to_write = t->begin.deferred && !t->begin.writes;
        Job *job = t->queue.first;

        if (is_pin(t)) {
                run_on_pin(t);
                return;
        }
        if (may_begin_to_write && (job->write.changes || (job->load && !t->pin))) { /* these write */
                wait_to_write(t, job);
                return;
        }
        if (may_begin_to_write && !has_snapshot(t))
                return;
        job = job_list_take(&t->queue);
        if (!job) {
                if (!t->has_read)
                        drop_snapshot(t);
                return;
        }
        if (may_begin_to_write && job->write.is_savepoint) {
                run_savepoint(t, job);
                return;
        }
        if (t->pin && !t->begin.writes && job->load && !job->write.only_temp) {
                lend(t, job); /* it is only compiled there, and comes back */
                return;
        }
        if (t->pin && !t->begin.writes && job->load) {
                t->batch.connection = t->snapshot;
                t->load = job;
                return;
        }
        if (t->pin && !t->begin.writes && (job->write.only_temp || job->write.changes)) {
                run_temp(t, job);
                return;
        }
        if (!t->begin.writes || job->load) {
                if (t->begin.writes)
                        t->load = job;
                else
                        lend(t, job);
                return;
        }
        (void) write_batch_run(&t->batch, job);
        t->used_usec = now_usec();
        if (job_list_remove(&t->batch.jobs, job)) {
                job->counters.wrote = !job->write.reads && job->error.error == ERROR_NONE;
                job->sequence = t->batch.sequence;
                write_batch_release(job);
        } else if (t->pin && is_worth_another_try(t, job)) {
                job_ask_for_database(job, t->batch.connection, t->jobs.pin);
                if (run_later(t, job)) {
                        put_back(t, job);
                        return;
                }
        }
        check_rolled_back(t, job);
}

/* ---- loads ---- */

/* True if a load is under way whose rows have not all come. */
static bool is_loading(const Transaction *t) {
        return t->load && (!t->is_of_load || t->state <= TRANSACTION_OPEN);
}

/* A load that belongs to no transaction needs no savepoint. */
static bool begin_load(Transaction *t) {
        EngineConnection *connection = t->batch.connection;

        if (t->load->load->statement)
                return true;
        job_enter(t->load, connection, NULL);
        if (!t->is_of_load && !engine_of(t)->save(connection, &t->load->error))
                return false;
        t->is_saved = !t->is_of_load;
        return load_begin(t->load, connection);
}

/* All rows were run. */
static void finish_load(Transaction *t) {
        Job *job = t->load;

        if (job->load->statement)
                engine_of(t)->written(job->load->statement, &t->batch.written);
        leave_load(t);
        if (t->is_of_load) {
                t->state = TRANSACTION_COMMITS;
                return;
        }
        job->counters.wrote = engine_of(t)->keep(t->batch.connection, &job->error);
        t->is_saved = !job->counters.wrote;
        job->sequence = t->batch.sequence;
        stop_load(t);
        write_batch_release(job);
        check_rolled_back(t, job);
}

/* The load has failed, and has its error. One that belongs to no transaction ends with it. */
static void fail_load(Transaction *t) {
        Job *job = t->load;

        if (t->is_of_load) {
                end(t);
                return;
        }
        stop_load(t);
        if (!t->batch.rolled_back)
                forget_counts(job);
        write_batch_release(job);
        check_rolled_back(t, job);
}

/* Reads, or runs the rows that were read. The load is the current task, and can be interrupted. */
static bool go_on(Transaction *t) {
        Job *job = t->load;
        bool ok;

        t->batch.running = job;
        *t->batch.current = job->task;
        ok = t->state == TRANSACTION_WAITS || begin_load(t);
        if (ok)
                ok = load_has_rows(job->load) ? load_run(job) : load_read(job);
        *t->batch.current = NULL;
        t->batch.running = NULL;
        return ok;
}

/* A turn of the load. It claims the writer when its first row is there. */
static void run_load(Transaction *t) {
        const Load *l = t->load->load;

        if (!go_on(t))
                fail_load(t);
        else if (t->state == TRANSACTION_WAITS && load_has_rows(l)) {
                t->begun_usec = now_usec();
                if (!t->only_temp)
                        writer_claim(t->set->writer, &t->claim);
        } else if (t->state != TRANSACTION_WAITS && load_has_ended(l))
                finish_load(t);
        else if (!l->waits)
                t->used_usec = now_usec();
}

/* ---- the commit ---- */

static bool announce(Transaction *t) {
        uint8_t number[sizeof(uint64_t)];

        if (t->batch.announced)
                return true;
        store_le64(number, t->is_of_load ? t->load->task->number : t->single ? t->single->task->number : t->begin.number);
        report(t, &(Message) {
                .kind = MESSAGE_COMMITTING,
                .committing = { .numbers = { .data = (const char *) number, .size = sizeof number } },
        });
        if (context_of(t)->report_error < 0)
                return sql_error_set(&t->error, ERROR_SHUTTING_DOWN, "the service is stopping: nothing was written");
        return t->batch.announced = true;
}

/* Readers are in the way. True: the commit is tried again. */
static bool commit_later(Transaction *t) {
        uint64_t now = now_usec();

        if (t->commit_until_usec == 0)
                t->commit_until_usec = now + context_of(t)->setup->busy_usec;
        if (now >= t->commit_until_usec)
                return false;
        context_of(t)->commit_waits = true;
        t->retry_usec = now + RETRY_USEC;
        sql_error_done(&t->error);
        return true;
}

/* An engine may know only now how many rows a load has changed. */
static void count_outcome(Transaction *t) {
        EngineStatement *statement = engine_of(t)->outcome ? engine_of(t)->outcome(t->batch.connection) : NULL;
        int64_t last_rowid;

        if (!statement)
                return;
        engine_of(t)->changes(statement, &t->load->counters.n_changes, &last_rowid);
        engine_of(t)->release(statement);
}

/* The transaction does not end before its outcome is known. */
static bool commit_waiting(Transaction *t) {
        JobContext *context = context_of(t);
        bool ok;

        t->waits = true;
        if (t->is_of_load)
                t->load->write.commits = true;
        context->wait_until_usec = write_batch_commit_until(deadline_of(t));
        ok = commit_notes_commit(context, t->batch.connection, &t->batch.written, &t->batch.sequence, &t->error);
        context->wait_until_usec = 0;
        if (t->is_of_load)
                t->load->write.commits = false;
        t->waits = false;
        return ok;
}

/* The engine has refused the commit: it has written nothing, and the client must repair something first. True: the
 * transaction is open again, as if no commit had been announced. */
static bool reopen(Transaction *t) {
        if (!t->keeps_open) {
                t->error.error = ERROR_SQL;
                return false;
        }
        report(t, &(Message) {
                .kind = MESSAGE_COMMIT_REFUSED,
                .ended = { .number = t->begin.number, .failure = sql_error_as_failure(&t->error) },
        });
        sql_error_done(&t->error);
        if (t->commit_until_usec > 0)
                context_of(t)->commit_waits = false;
        t->commit_until_usec = 0;
        t->batch.announced = false;
        t->state = TRANSACTION_OPEN;
        t->used_usec = now_usec();
        return true;
}

static void commit(Transaction *t) {
        if (t->pin && (t->only_temp || !t->begin.writes)) {
                bool ok = engine_of(t)->commit_temp(t->pin->snapshot, &t->error);

                if (!ok && t->error.error == ERROR_COMMIT_REFUSED && reopen(t))
                        return;
                t->wrote = ok && t->only_temp; /* which only its job learns */
        } else if (t->begin.writes && announce(t)) {
                bool busy;

                t->wrote = commit_waiting(t);
                if (t->error.error == ERROR_COMMIT_REFUSED && reopen(t))
                        return;
                busy = t->error.error == ERROR_BUSY && engine_of(t)->is_in_transaction(t->batch.connection);
                if (busy && commit_later(t))
                        return;
                if (busy)
                        engine_of(t)->give_up(&t->error);
                if (t->wrote && t->is_of_load)
                        count_outcome(t);
        }
        end(t);
}

/* ---- the task ---- */

static Transaction *transaction_of(const Task *task) {
        return (Transaction *) (void *) ((char *) task - offsetof(Transaction, task));
}

/* When a transaction that others wait for has been idle for too long. UINT64_MAX: none waits. */
static uint64_t idle_until(const Transaction *t) {
        bool is_idle = t->begin.writes && !t->only_temp && !t->is_of_single &&
                       (t->load ? t->load->load->waits : !t->queue.first) && writer_others_wait(t->set->writer);

        return is_idle ? t->used_usec + t->begin.idle_usec : UINT64_MAX;
}

/* When a snapshot must check if writers wait for it, or the log has grown too large. UINT64_MAX: it is in no way, or its job
 * checks. */
static uint64_t ask_usec(const Transaction *t) {
        const Engine *engine = engine_of(t);

        if (!t->snapshot || t->borrower || is_pin(t))
                return UINT64_MAX;
        if (t->upgrader || engine->keeps_writers_out(t->snapshot))
                return t->asked_usec + ASK_USEC;
        if (engine->keeps_log && engine->keeps_log(t->snapshot))
                return t->asked_usec + earlier(context_of(t)->setup->park_rollback_usec, ASK_LOG_USEC);
        return UINT64_MAX;
}

/* True if statements that came before have the connection of its pin, or of the transaction of which it makes one. */
static bool waits_for_pin(const Transaction *t) {
        const Transaction *other = is_pin(t) ? find(t->set, t->begin.transaction) : t->pin;

        if (!other || other->state >= TRANSACTION_ENDS)
                return false;
        if (other->borrower || (other->guest && other->guest != t))
                return true;
        return is_pin(t) ? other->load || other->upgrader || other->queue.first
                         : other->state < TRANSACTION_OPEN || (other->queue.first && other->guest != t);
}

/* True if the first job of the pin only compiles a statement, and the transaction on the pin is between two statements: the
 * client may wait for the answer before it goes on. */
static bool may_compile_beside(const Transaction *t) {
        const Transaction *guest = t->guest;

        return t->queue.first && t->queue.first->is_prepare && !t->borrower && !guest->borrower && !guest->queue.first &&
               !guest->load && !guest->single && !guest->upgrader && guest->state == TRANSACTION_OPEN;
}

static bool can_go_on(const Transaction *t) {
        if (is_loading(t) && (t->state != TRANSACTION_WAITS || needs_rows(t)))
                return !t->load->load->waits;
        switch (t->state) {
        case TRANSACTION_WAITS:
                return t->retry_usec == 0 && !waits_for_pin(t) &&
                       (!t->begin.writes || t->only_temp || !has_place(t) || writer_may_begin(t->set->writer, &t->claim));
        case TRANSACTION_OPEN:
                if (t->upgrader)
                        return can_upgrade(t);
                if (t->pin && t->pin->borrower)
                        return false;
                if (is_pin(t) && t->guest)
                        return may_compile_beside(t);
                return (t->queue.first || t->single) && !t->borrower && t->retry_usec == 0;
        case TRANSACTION_COMMITS:
                return t->upgrader ? can_upgrade(t) : !t->borrower && t->retry_usec == 0;
        case TRANSACTION_ENDS:
                return !t->borrower && is_alone(t);
        case TRANSACTION_OVER:
                return false;
        }
        return false;
}

/* True if it waits for statements or rows. */
static bool is_open(const Transaction *t) {
        return t->state == TRANSACTION_OPEN || (t->state == TRANSACTION_COMMITS && is_loading(t));
}

static uint64_t next_usec(const Task *task) {
        const Transaction *t = transaction_of(task);
        uint64_t next = t->begin.deadline_usec;

        if (can_go_on(t) || (t->error.error != ERROR_NONE && t->state < TRANSACTION_ENDS))
                return 0;
        if (t->state >= TRANSACTION_ENDS)
                return UINT64_MAX;
        if (t->retry_usec > 0)
                next = earlier(next, t->retry_usec);
        next = earlier(next, turn_until(t));
        if (t->upgrader)
                return earlier(next, ask_usec(t));
        return is_open(t) ? earlier(next, earlier(idle_until(t), ask_usec(t))) : next;
}

static void turn(Task *task) {
        Transaction *t = transaction_of(task);

        t->set->tasks->current = NULL; /* no job computes now; a statement becomes the current task while it runs */
        if (t->error.error != ERROR_NONE || t->state == TRANSACTION_ENDS)
                end(t);
        else if (is_loading(t) && (t->state != TRANSACTION_WAITS || needs_rows(t)))
                run_load(t);
        else if (!has_place(t))
                take_pin(t);
        else if (t->state == TRANSACTION_WAITS)
                open_it(t);
        else if (t->upgrader)
                upgrade(t);
        else if (t->single && t->state == TRANSACTION_OPEN)
                run_single(t);
        else if (t->queue.first)
                run_next(t);
        else if (t->state == TRANSACTION_COMMITS)
                commit(t);
        /* Before the statement that failed is answered: the supervisor must know why when its client calls again. */
        if (t->batch.rolled_back && t->error.error != ERROR_NONE && t->state < TRANSACTION_ENDS)
                end(t);
}

/* The system does not tell of locks of the same process. */
static void ask_for_writers(Transaction *t, uint64_t now) {
        const JobContext *context = context_of(t);
        bool locks = engine_of(t)->keeps_writers_out(t->snapshot), own = locks && job_context_waits_for_readers(context);
        uint64_t patience = context->setup->park_rollback_usec;

        t->asked_usec = now;
        if (!own && !engine_of(t)->writer_waits(t->snapshot)) {
                t->writer_usec = 0;
                return;
        }
        if (t->writer_usec == 0)
                t->writer_usec = now;
        if (own) /* a commit of this worker must not give up before */
                patience = earlier(patience, context->setup->busy_usec / 2);
        if (now - t->writer_usec >= patience)
                break_off(t, locks ? "a writer has waited for it for ParkTimeoutRollbackSec="
                                   : "it has kept more than WalSizeMax= of the log from being written back for "
                                     "ParkTimeoutRollbackSec=");
}

static bool on_time(Task *task, uint64_t now) {
        Transaction *t = transaction_of(task);

        if (t->state >= TRANSACTION_ENDS)
                return false;
        if (t->retry_usec <= now)
                t->retry_usec = 0;
        check_turn(t, now);
        if (t->begin.deadline_usec <= now)
                break_off(t, "it took longer than TransactionTimeoutSec= allows");
        else if (is_open(t) && idle_until(t) <= now)
                break_off(t, t->load ? "the load had no rows for TransactionIdleSec=, and others wait to write"
                                     : "it had no statement for TransactionIdleSec=, and others wait to write");
        else if (t->upgrader && ask_usec(t) <= now) {
                t->asked_usec = now;
                (void) may_wait(t, now, &t->upgrader->error);
        } else if (t->state == TRANSACTION_OPEN && ask_usec(t) <= now)
                ask_for_writers(t, now);
        return false;
}

static Transaction *transaction_free(Transaction *t) {
        Transaction **link = &t->set->first;

        while (*link != t)
                link = &(*link)->next;
        *link = t->next;
        sql_error_done(&t->error);
        free(t->savepoints);
        free(t);
        return NULL;
}

static int settle(TaskQueue *q, Task *task) {
        Transaction *t = transaction_of(task);

        if (t->state == TRANSACTION_OVER) {
                (void) transaction_free(t);
                return 0;
        }
        task_queue_append(q, task);
        return t->load && t->load->load->waits ? supervisor_job_await_rows(q, t->load->task) : 0;
}

static const TaskType task_type = { .next_usec = next_usec, .turn = turn, .on_time = on_time, .settle = settle };

bool transaction_has_task(const Task *task) {
        return task->type == &task_type;
}

/* ---- jobs ---- */

static Transaction *of_jobs(JobWriter *jobs) {
        return (Transaction *) (void *) ((char *) jobs - offsetof(Transaction, jobs));
}

static void forget(JobWriter *jobs, Job *job) {
        Transaction *t = of_jobs(jobs);

        if (job == t->single) { /* also between two attempts to commit */
                t->single = NULL;
                give_back(t);
                break_off(t, "its statement has ended");
                return;
        }
        if (job != t->load) {
                (void) job_list_remove(&t->queue, job);
                if (job == t->upgrader) {
                        t->upgrader = NULL;
                        t->retry_usec = 0;
                        writer_unclaim(t->set->writer, &t->claim);
                }
                return;
        }
        stop_load(t);
        job_store_counts(job);
        check_rolled_back(t, job);
        if (!t->is_of_load)
                return;
        give_back(t); /* at once: the transaction's own turn may be far away */
        break_off(t, "its load has ended");
}

/* A transaction that reads, and has had this savepoint, may go on on a pin, which must have it, too. */
static void keep_savepoint(Transaction *t, const Job *job) {
        if (t->savepoints_size >= SAVEPOINTS_SIZE_MAX)
                return;
        if (reserve_savepoint(t, job))
                remember_savepoint(t, job);
        else
                break_off(t, "there was no memory for its savepoints");
}

/* The statement is released. After some errors the engine has ended the transaction. */
static void take_back(JobWriter *jobs, Job *job) {
        Transaction *t = of_jobs(jobs);

        t->borrower = NULL;
        t->used_usec = now_usec();
        if (is_pin(t)) { /* of a statement, only its TEMP tables are kept */
                if (t->guest)
                        engine_of(t)->let_go(t->snapshot);
                else
                        engine_of(t)->disconnect(context_of(t)->pool, t->snapshot);
                return;
        }
        if (!engine_of(t)->is_in_transaction(t->snapshot))
                break_off(t, "a statement failed, and the snapshot is lost");
        if (job->write.is_savepoint && job->rows_ended)
                keep_savepoint(t, job);
        t->has_read = t->has_read || job->started;
        if (t->begin.deferred && !t->has_read) /* the statement was only compiled there */
                drop_snapshot(t);
}

/* A statement of a transaction that may begin to write does. Those after it wait for it. */
static bool add_again(JobWriter *jobs, Job *job) {
        Transaction *t = of_jobs(jobs);
        JobList first = {};

        if (is_pin(t))
                return add_to_pin(t, job);
        job_list_append(&first, job);
        job_list_prepend_all(&t->queue, &first);
        if (job->write.only_temp)
                return true;
        if (!job->write.is_savepoint || job->spec->sql_size >= SAVEPOINTS_SIZE_MAX - t->savepoints_size)
                wait_to_write(t, job);
        return true;
}

/* ---- messages ---- */

/* Also from inside the step of a job, which is another one, or is interrupted: it must not delay the end. */
static void end_now(Transaction *t) {
        task_queue_take_out(t->set->tasks, &t->task);
        end(t);
        (void) settle(t->set->tasks, &t->task);
}

static int new_transaction(TransactionSet *set, const Begin *begin, Transaction **ret) {
        Transaction *t = malloc(sizeof *t);

        if (!t)
                return -ENOMEM;
        *t = (Transaction) {
                .task = { .type = &task_type, .number = begin->number },
                .jobs = { .add = add_again, .forget = forget, .take_back = take_back },
                .set = set,
                .next = set->first,
                .begin = *begin,
                .batch = { .context = set->context, .current = &set->tasks->current },
                .begun_usec = now_usec(),
                .error = SQL_ERROR_INIT,
        };
        set->first = t;
        task_queue_append(set->tasks, &t->task);
        *ret = t;
        return 0;
}

/* An engine that cannot tell if a snapshot is old has its transactions write from their beginning. If it has none that
 * write, they only read. */
static void adapt(const Engine *engine, Begin *begin) {
        if (!begin->deferred || engine->is_current)
                return;
        begin->deferred = false;
        begin->writes = engine->allow_savepoints;
}

/* True if a transaction of a client is on the pin, or waits for it. */
static bool has_transaction(const Transaction *pin) {
        const Transaction *t = pin->set->first;

        while (t && (t->pin != pin || is_of_job(t)))
                t = t->next;
        return t;
}

/* As SQLite, a pin has one transaction at a time. */
static int find_pin(const TransactionSet *set, uint64_t number, Transaction **ret) {
        Transaction *pin = find(set, number);

        if (!pin || !is_pin(pin) || pin->state >= TRANSACTION_ENDS)
                return -ENOTCONN;
        if (has_transaction(pin))
                return -EBUSY;
        *ret = pin;
        return 0;
}

int transaction_begin(TransactionSet *set, const Begin *begin) {
        Begin adapted = *begin;
        Transaction *t, *pin = NULL;
        int r;

        r = begin->pin > 0 ? find_pin(set, begin->pin, &pin) : 0;
        if (r < 0)
                return r;

        if ((begin->writes || begin->deferred) && !set->context->setup->writes)
                return -EROFS;
        adapt(set->context->engine, &adapted);
        r = new_transaction(set, &adapted, &t);
        if (r < 0)
                return r;
        t->pin = pin;
        t->jobs.upgrades = adapted.deferred || adapted.is_pin;
        t->jobs.is_pin = adapted.is_pin;
        t->jobs.pin = adapted.is_pin ? adapted.number : adapted.pin;
        if (adapted.writes && !pin)
                writer_claim(set->writer, &t->claim);
        return 0;
}

/* The job has the deadline of both. */
static bool add_load(JobWriter *loads, Job *job) {
        TransactionSet *set = (TransactionSet *) (void *) ((char *) loads - offsetof(TransactionSet, loads));
        Begin begin = { .writes = true, .deadline_usec = UINT64_MAX, .idle_usec = job->spec->idle_usec,
                        .lock_wait_usec = job->spec->lock_wait_usec, .foreign_keys = job->spec->foreign_keys };
        Transaction *t;

        if (new_transaction(set, &begin, &t) < 0)
                return sql_error_set(&job->error, ERROR_OUT_OF_MEMORY, "out of memory");
        t->is_of_load = true;
        t->load = job;
        job->write.queue = &t->jobs;
        return true;
}

static bool add_to_pin(Transaction *pin, Job *job) {
        Begin begin = { .writes = true, .deadline_usec = UINT64_MAX, .idle_usec = job->spec->idle_usec,
                        .lock_wait_usec = job->spec->lock_wait_usec, .foreign_keys = job->spec->foreign_keys };
        Transaction *t;

        if (new_transaction(pin->set, &begin, &t) < 0)
                return sql_error_set(&job->error, ERROR_OUT_OF_MEMORY, "out of memory");
        t->pin = pin;
        t->jobs.pin = pin->begin.number;
        pin->guest = t;
        t->only_temp = job->write.only_temp || !context_of(t)->setup->writes;
        t->is_of_load = job->load;
        t->is_of_single = !job->load;
        *(job->load ? &t->load : &t->single) = job;
        job->write.queue = &t->jobs;
        if (t->is_of_single && !t->only_temp)
                writer_claim(t->set->writer, &t->claim);
        return true;
}

void transaction_set_init(TransactionSet *set, JobContext *context, GroupWriter *writer, TaskQueue *tasks) {
        *set = (TransactionSet) { .context = context, .writer = writer, .tasks = tasks, .loads.add = add_load };
}

bool transaction_add(TransactionSet *set, Job *job) {
        Transaction *t = find(set, job->spec->transaction > 0 ? job->spec->transaction : job->spec->pin);

        if (!t || (job->spec->transaction == 0 && !is_pin(t)))
                return false;
        if (t->state != TRANSACTION_OPEN) /* one that is about to end tells the job why */
                return false;
        job->write.writes = true;
        job->write.queue = &t->jobs;
        (void) job_set_state(job, JOB_QUEUED);
        job_list_append(&t->queue, job);
        return true;
}

void transaction_commit(TransactionSet *set, uint64_t number, bool keeps_open) {
        Transaction *t = find(set, number);

        if (!t || t->state != TRANSACTION_OPEN)
                return;
        t->state = TRANSACTION_COMMITS;
        t->keeps_open = keeps_open;
}

void transaction_answer(TransactionSet *set, const Attach *answer) {
        Transaction *pin = find(set, answer->number);
        uint64_t now = now_usec();

        if (!pin || !is_pin(pin) || !pin->snapshot || !engine_of(pin)->answer)
                return;
        engine_of(pin)->answer(pin->snapshot, answer);
        for (Transaction *t = set->first; t; t = t->next) {
                if (t == pin || t->pin == pin)
                        t->retry_usec = t->retry_usec > 0 ? now : 0;
                if ((t == pin || t->pin == pin) && t->borrower && t->borrower->state == JOB_RETRY)
                        t->borrower->wait.retry_usec = now;
        }
}

bool transaction_cancel(TransactionSet *set, const Cancel *cancel) {
        Transaction *t = find(set, cancel->number);

        if (!t)
                return false;
        if (t->waits && t->state == TRANSACTION_COMMITS) {
                t->keeps_open = false; /* it would not be told again */
                write_batch_hurry(set->context, now_usec());
                return true;
        }
        if (t->error.error == ERROR_NONE && t->state < TRANSACTION_ENDS)
                (void) sql_error_set(&t->error, (ErrorNumber) cancel->error, "%s", cancel->message);
        if (t->batch.running)
                fail_job(t, t->batch.running);
        else if (t->guest && t->guest->batch.running)
                break_off_guests(t); /* and it ends with the transaction */
        else if (t->waits)
                set->context->wait_until_usec = 1;
        else
                end_now(t);
        return true;
}

void transaction_set_done(TransactionSet *set) {
        for (Transaction *t = set->first; t; t = t->next)
                if (t->pin)
                        give_back(t);
        while (set->first) {
                Transaction *t = set->first;

                give_back(t);
                (void) transaction_free(t);
        }
}
