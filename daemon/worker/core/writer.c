/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See writer.h. From top to bottom: the lease, jobs that do not succeed, a batch, the turn, the queue.
 */
#include "daemon/worker/core/writer.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "daemon/worker/core/commit-notes.h"
#include "daemon/worker/core/connection-share.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/report.h"

/* ---- the lease ---- */

static void report(GroupWriter *w, MessageKind kind) {
        int r = report_send(w->batch.context->control_fd, &(Message) { .kind = kind });

        if (r < 0)
                w->batch.context->report_error = r;
}

static void want_lease(GroupWriter *w) {
        w->lease = WRITER_LEASE_WANTED;
        w->taken = false;
        report(w, MESSAGE_LEASE_WANTED);
}

/* True if something waits for the lease. */
static bool waits(const GroupWriter *w) {
        return w->queue.first || w->claims;
}

/* When a lease that was asked for goes back. */
static uint64_t return_usec(const GroupWriter *w) {
        return waits(w) ? w->leased_usec + LEASE_TURN_USEC : 0;
}

static void return_lease(GroupWriter *w, uint64_t now) {
        if (w->lease != WRITER_LEASE_ASKED || w->batch.connection || w->claimed || now < return_usec(w))
                return;
        w->lease = WRITER_LEASE_NONE;
        commit_notes_tell(w->batch.context, false);
        report(w, MESSAGE_LEASE_RETURNED);
        if (waits(w))
                want_lease(w);
}

/* Other workers may have clients that wait for a lock only for a while, or not at all. */
static void tell_kept(GroupWriter *w) {
        if (w->lease != WRITER_LEASE_ASKED || w->kept || (!w->batch.connection && !w->claimed))
                return;
        w->kept = true;
        report(w, MESSAGE_LEASE_KEPT);
}

int writer_on_lease(GroupWriter *w, bool watched) {
        if (w->lease != WRITER_LEASE_WANTED)
                return -EBADMSG;
        commit_notes_set_watched(w->batch.context, watched);
        w->lease = WRITER_LEASE_HELD;
        w->kept = false;
        w->leased_usec = w->since_usec = now_usec();
        w->retry_usec = 0;
        return 0;
}

int writer_on_lease_taken(GroupWriter *w) {
        if (w->lease != WRITER_LEASE_WANTED)
                return -EBADMSG;
        w->taken = true;
        return 0;
}

/* The message may have crossed LEASE_RETURNED. It is answered all the same: the supervisor counts the answers. */
void writer_on_watch(GroupWriter *w, bool watched) {
        commit_notes_set_watched(w->batch.context, watched);
        commit_notes_tell(w->batch.context, true);
}

/* The message may have crossed LEASE_RETURNED. */
void writer_on_lease_asked(GroupWriter *w) {
        if (w->lease != WRITER_LEASE_HELD)
                return;
        w->lease = WRITER_LEASE_ASKED;
        if (!w->queue.first)
                w->since_usec = now_usec();
        tell_kept(w);
}

/* ---- jobs that do not succeed ---- */

/* In SQLite a statement whose commit fails has changed nothing, but its triggers stay counted. */
static void fail(Job *job, const SqlError *error) {
        sql_error_copy(&job->error, error);
        if (!job->write.changes && job->counters.n_changes > 0) {
                job->counts.n_total -= job->counters.n_changes;
                job->counts.n_changes = 0;
        }
        job_rewind(job);
        write_batch_release(job);
}

static void fail_all(JobList *list, const SqlError *error) {
        Job *job;

        while ((job = job_list_take(list)))
                fail(job, error);
}

/* The transaction is rolled back: its jobs go to the front of the queue. They will be a batch of their own, or each of them
 * alone. */
static void run_again(GroupWriter *w, bool alone) {
        for (Job *job = w->batch.jobs.first; job; job = job->write.next) {
                job_rewind(job);
                job->counts = job->counts_before;
                sql_error_done(&job->error); /* of one that failed, and kept rows */
                job->write.ends_batch = alone || !job->write.next;
        }
        job_list_prepend_all(&w->queue, &w->batch.jobs);
}

/* Sets the time of the next attempt, at the latest `until`. */
static void retry_after(GroupWriter *w, uint64_t pause, uint64_t now, uint64_t until) {
        w->retry_pause_usec = pause;
        w->retry_usec = earlier(now + pause, until);
}

static void retry(GroupWriter *w, uint64_t now, uint64_t until) {
        retry_after(w, retry_pause(w->retry_pause_usec), now, until);
}

/* Another program writes, or the engine pauses. Jobs that have waited for it for too long end. */
static void on_busy(GroupWriter *w, SqlError *error, uint64_t now) {
        JobContext *context = w->batch.context;
        bool locked = engine_met_lock(context->engine, error);
        JobList all = w->queue, late = {}, impatient = {};
        uint64_t until = UINT64_MAX;
        Job *job;

        w->queue = (JobList) {};
        while ((job = job_list_take(&all))) {
                uint64_t busy = connection_share_busy_until(context, job->write.busy_until_usec, now);
                uint64_t lock = locked ? job_lock_until(job, now) : UINT64_MAX;

                job->write.busy_until_usec = busy;
                if (busy > now && lock > now)
                        until = earlier(until, earlier(busy, lock));
                job_list_append(busy <= now ? &late : lock <= now ? &impatient : &w->queue, job);
        }
        if (late.first)
                context->engine->give_up(error);
        fail_all(&late, error);
        if (impatient.first)
                engine_set_locked(context->engine, error, ENGINE_LOCKED);
        fail_all(&impatient, error);
        if (!w->queue.first) { /* the next job tries at once */
                w->retry_usec = w->retry_pause_usec = 0;
                return;
        }
        retry_after(w, engine_begin_pause(context->engine, context->pool, w->retry_pause_usec), now, until);
}

/* ---- a batch ---- */

static void end_batch(GroupWriter *w) {
        write_batch_end(&w->batch);
        w->batch.context->commit_waits = false;
        w->retry_usec = w->retry_pause_usec = w->commit_until_usec = 0;
}

/* The commit met a lock, and the transaction goes on. True: it is tried again. */
static bool commit_later(GroupWriter *w) {
        uint64_t now = now_usec();

        if (w->commit_until_usec == 0) {
                w->commit_until_usec = now + w->batch.context->setup->busy_usec;
                w->retry_pause_usec = 0;
        }
        if (now >= w->commit_until_usec)
                return false;
        w->batch.context->commit_waits = true;
        retry(w, now, w->commit_until_usec);
        return true;
}

static void commit(GroupWriter *w) {
        const Engine *engine = w->batch.context->engine;
        SqlError error = SQL_ERROR_INIT;
        uint64_t began = now_usec();

        if (!write_batch_commit(&w->batch, &error)) {
                bool busy = error.error == ERROR_BUSY && engine->is_in_transaction(w->batch.connection);
                bool later = busy && commit_later(w), unknown = error.error == ERROR_OUTCOME_UNKNOWN;

                if (busy && !later)
                        engine->give_up(&error);
                if (!busy && !unknown && w->batch.jobs.n > 1)
                        run_again(w, true);
                else if (!later)
                        fail_all(&w->batch.jobs, &error);
                sql_error_done(&error);
                if (later)
                        return;
        } else
                gathering_on_commit(&w->gathering, w->batch.n_run + w->queue.n, WRITE_BATCH_N_MAX, now_usec() - began);
        end_batch(w);
}

/* Commits, unless the transaction was lost or is not needed. */
static void finish_batch(GroupWriter *w) {
        if (w->batch.rolled_back || w->batch.left) {
                run_again(w, false);
                end_batch(w);
        } else if (!w->batch.jobs.first)
                end_batch(w);
        else
                commit(w);
}

static bool goes_on(const WriteBatch *b) {
        return !b->rolled_back && !b->left && !write_batch_is_full(b);
}

/* When the job may run. One that runs alone has a pause of its own after it has met a lock. */
static uint64_t ready_usec(const Job *job) {
        return job->write.runs_alone ? job->wait.retry_usec : 0;
}

/* When a job may run; UINT64_MAX: there is none. */
static uint64_t first_ready_usec(const GroupWriter *w) {
        uint64_t next = UINT64_MAX;

        for (const Job *job = w->queue.first; job && next > 0; job = job->write.next)
                next = earlier(next, ready_usec(job));
        return next;
}

/* When the next one may begin. */
static uint64_t next_batch_usec(const GroupWriter *w) {
        uint64_t next = first_ready_usec(w);

        return next < w->retry_usec ? w->retry_usec : next;
}

/* The first job that may run. There is one. */
static Job *first_ready(const GroupWriter *w, uint64_t now) {
        Job *job = w->queue.first;

        while (ready_usec(job) > now)
                job = job->write.next;
        return job;
}

/* Takes the next job of the batch out of the queue. Those with the other setting of foreign keys wait for the batch after
 * it, even if they came first. One that runs alone ends the batch before it. NULL: there is none. */
static Job *take_next(GroupWriter *w, uint64_t now) {
        Job *job = w->queue.first;

        while (job && (job_enforces(job) != w->batch.enforces || ready_usec(job) > now))
                job = job->write.next;
        if (!job || (job->write.runs_alone && w->batch.n_run > 0))
                return NULL;
        (void) job_list_remove(&w->queue, job);
        return job;
}

/* A job that the batch did not keep runs next, as the last one of a batch. */
static void put_back(GroupWriter *w, Job *job) {
        JobList one = {};

        job->write.ends_batch = true;
        job_list_append(&one, job);
        job_list_prepend_all(&w->queue, &one);
}

/* A job that runs alone has met a lock, which readers may hold for long. Others go before its next attempt. */
static void run_alone_later(GroupWriter *w, Job *job) {
        const Engine *engine = w->batch.context->engine;
        uint64_t now = now_usec(), busy, lock;

        busy = job->write.busy_until_usec = connection_share_busy_until(w->batch.context, job->write.busy_until_usec, now);
        lock = job_lock_until(job, now);
        if (now >= lock && now < busy)
                engine_set_locked(engine, &job->error, ENGINE_LOCKED);
        if (now >= lock || now >= busy) {
                write_batch_release(job);
                return;
        }
        sql_error_done(&job->error);
        job->wait.retry_pause_usec = retry_pause(job->wait.retry_pause_usec);
        job->wait.retry_usec = earlier(now + job->wait.retry_pause_usec, earlier(busy, lock));
        job_list_append(&w->queue, job);
}

/* A server's engine may have to connect first. False without an error: it was interrupted. */
static bool begin(GroupWriter *w, uint64_t now, SqlError *error) {
        bool ok;

        w->begins = true;
        w->batch.context->wait_until_usec = job_list_deadline(&w->queue);
        ok = write_batch_begin(&w->batch, job_enforces(first_ready(w, now)), error);
        w->batch.context->wait_until_usec = 0;
        w->begins = false;
        return ok;
}

static void run_batch(GroupWriter *w, uint64_t now) {
        SqlError error = SQL_ERROR_INIT;
        Job *job, *later = NULL;
        bool ends = false, gives_way;

        w->batch_is_next = false;
        gathering_end(&w->gathering, w->queue.n);
        if (!begin(w, now, &error)) {
                if (error.error == ERROR_BUSY)
                        on_busy(w, &error, now);
                else if (error.error != ERROR_NONE) /* otherwise a job had to end */
                        fail_all(&w->queue, &error);
                sql_error_done(&error);
                return;
        }
        /* A CANCEL that was sent while another program had the lock comes before the statements. */
        w->batch.context->hear(w->batch.context->progress_data);
        while (!ends && (job = take_next(w, now))) {
                ends = job->write.ends_batch || job->write.runs_alone;
                if (!job->write.runs_alone || job->wait.retry_usec == 0)
                        job->write.busy_until_usec = job->wait.lock_until_usec = 0;
                if (!write_batch_run(&w->batch, job)) {
                        if (job->write.runs_alone && job->error.error != ERROR_NONE)
                                later = job;
                        else
                                put_back(w, job);
                        ends = true;
                }
                ends = ends || !goes_on(&w->batch);
        }
        gives_way = w->batch.yields && !w->batch.jobs.first;
        finish_batch(w);
        if (later)
                run_alone_later(w, later);
        if (gives_way) /* tasks that can continue have their turns first */
                retry(w, now_usec(), UINT64_MAX);
}

/* ---- the turn ---- */

uint64_t writer_next_usec(const GroupWriter *w) {
        uint64_t next = next_batch_usec(w);

        if (w->batch.connection)
                return w->batch.left ? 0 : w->retry_usec;
        if (w->lease < WRITER_LEASE_HELD || w->claimed)
                return UINT64_MAX;
        return w->lease == WRITER_LEASE_ASKED ? earlier(next, return_usec(w)) : next;
}

void writer_on_progress(GroupWriter *w, uint64_t now) {
        return_lease(w, now);
        tell_kept(w);
}

/* If another worker or a transaction waits, its clients would wait, too. A job that was taken back and runs again waits for
 * no others, because none may join it. */
bool writer_gathers(GroupWriter *w, uint64_t now) {
        return !w->batch.connection && w->lease == WRITER_LEASE_HELD && !w->claims && w->retry_usec == 0 &&
               !w->batch.context->leaving && !(w->queue.first && w->queue.first->write.ends_batch) &&
               gathering_waits(&w->gathering, w->queue.n, now);
}

void writer_turn(GroupWriter *w) {
        uint64_t now = now_usec();

        if (w->batch.connection && (w->batch.left || w->retry_usec <= now))
                finish_batch(w);
        else if (!w->batch.connection && !w->claimed && w->lease >= WRITER_LEASE_HELD && next_batch_usec(w) <= now)
                run_batch(w, now);
        w->since_usec = now_usec();
        return_lease(w, w->since_usec);
        tell_kept(w);
}

/* ---- transactions ---- */

static bool take_claim(GroupWriter *w, WriterClaim *claim) {
        WriterClaim **link = &w->claims;

        while (*link && *link != claim)
                link = &(*link)->next;
        if (!*link)
                return false;
        *link = claim->next;
        return true;
}

void writer_claim(GroupWriter *w, WriterClaim *claim) {
        WriterClaim **link = &w->claims;

        while (*link)
                link = &(*link)->next;
        *claim = (WriterClaim) {};
        *link = claim;
        if (w->lease == WRITER_LEASE_NONE)
                want_lease(w);
}

void writer_unclaim(GroupWriter *w, WriterClaim *claim) {
        if (take_claim(w, claim) || w->claimed != claim)
                return;
        w->claimed = NULL;
        w->batch_is_next = true;
        w->since_usec = now_usec();
        return_lease(w, w->since_usec); /* before its client learns the end: the next one may wait for no lock */
}

/* The turn of this worker is over: another one waits for the lease. */
static bool must_return(const GroupWriter *w) {
        return w->lease == WRITER_LEASE_ASKED && now_usec() >= return_usec(w);
}

bool writer_may_begin(const GroupWriter *w, const WriterClaim *claim) {
        return w->lease >= WRITER_LEASE_HELD && w->claims == claim && !w->claimed && !w->batch.connection &&
               !(w->batch_is_next && first_ready_usec(w) <= now_usec()) && !must_return(w);
}

void writer_grant(GroupWriter *w, WriterClaim *claim) {
        (void) take_claim(w, claim);
        w->claimed = claim;
        tell_kept(w);
}

bool writer_is_taken(const GroupWriter *w, const WriterClaim *claim) {
        return (w->claimed && w->claimed != claim && !w->claimed->ends) || w->batch.connection ||
               (w->lease == WRITER_LEASE_WANTED && w->taken);
}

bool writer_has_transaction(const GroupWriter *w) {
        return w->claimed;
}

bool writer_others_wait(const GroupWriter *w) {
        return w->lease == WRITER_LEASE_ASKED || waits(w);
}

/* ---- the queue ---- */

static GroupWriter *writer_of(const JobWriter *jobs) {
        return (GroupWriter *) (void *) ((const char *) jobs - offsetof(GroupWriter, jobs));
}

/* The transaction of a batch is not in the way of its own jobs. */
static bool is_taken(const JobWriter *jobs, const Job *job) {
        const GroupWriter *w = writer_of(jobs);

        if (!writer_is_taken(w, NULL))
                return false;
        for (const Job *own = w->batch.jobs.first; own; own = own->write.next)
                if (own == job)
                        return false;
        return true;
}

static bool waits_for_readers(const JobWriter *jobs) {
        const GroupWriter *w = writer_of(jobs);
        bool may_run = w->lease >= WRITER_LEASE_HELD && !w->claimed && w->retry_usec == 0;

        for (const Job *job = may_run ? w->queue.first : NULL; job; job = job->write.next)
                if (ready_usec(job) > 0)
                        return true;
        return false;
}

static bool add(JobWriter *jobs, Job *job) {
        GroupWriter *w = writer_of(jobs);

        if (!w->queue.first)
                w->since_usec = now_usec();
        job_list_append(&w->queue, job);
        if (w->lease == WRITER_LEASE_NONE)
                want_lease(w);
        return true;
}

static void forget(JobWriter *jobs, Job *job) {
        GroupWriter *w = writer_of(jobs);

        if (job_list_remove(&w->queue, job)) {
                if (w->begins && !w->queue.first) /* no job waits for the server any more */
                        w->batch.context->wait_until_usec = 1;
                return;
        }
        if (!job_list_remove(&w->batch.jobs, job))
                return;
        w->batch.left = true;
        job_rewind(job);
}

void writer_init(GroupWriter *w, JobContext *context, TaskQueue *tasks) {
        *w = (GroupWriter) {
                .jobs = { .add = add, .forget = forget, .is_taken = is_taken,
                          .waits_for_readers = waits_for_readers },
                .batch = { .context = context, .current = &tasks->current },
        };
        context->writer = &w->jobs;
}

void writer_done(GroupWriter *w) {
        assert(!w->queue.first && !w->batch.jobs.first);
        if (w->batch.connection)
                end_batch(w);
}
