/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See write-batch.h. From top to bottom: the rows of a statement, a statement, the statements of a job, the
 * transaction, lists of jobs.
 */
#include "daemon/worker/core/write-batch.h"

#include <errno.h>
#include <string.h>

#include "daemon/protocol/statement-list.h"
#include "daemon/worker/core/commit-notes.h"
#include "daemon/worker/core/compile-limit.h"
#include "daemon/worker/core/job-fill.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/report.h"

/* ---- COMMITTING ---- */

static bool announce(WriteBatch *b, const Job *first, SqlError *error) {
        uint8_t numbers[WRITE_BATCH_N_MAX * sizeof(uint64_t)];
        size_t size = 0;
        int r;

        for (const Job *job = first; job; job = job->write.next, size += sizeof(uint64_t))
                store_le64(numbers + size, job->task->number);
        r = report_send(b->context->control_fd, &(Message) {
                .kind = MESSAGE_COMMITTING,
                .committing = { .numbers = { .data = (const char *) numbers, .size = size } },
        });
        if (r < 0) {
                b->context->report_error = r;
                return sql_error_set(error, ERROR_SHUTTING_DOWN, "the service is stopping: nothing was written");
        }
        b->announced_usec = now_usec();
        return b->announced = true;
}

/* ---- the rows of a statement ---- */

/* True if the next page may be kept in memory. */
static bool has_memory(const Job *job, size_t size) {
        return job->write.spool.size + size <= WRITE_BATCH_SPOOL_MAX &&
               job->context->spooled + size <= WRITE_BATCH_SPOOLS_MAX;
}

static bool explain_spool(Job *job, int r) {
        if (r == -ENOMEM)
                return sql_error_set(&job->error, ERROR_OUT_OF_MEMORY, "out of memory");
        if (r == -E2BIG)
                return sql_error_set(&job->error, ERROR_LIMITS_EXCEEDED,
                                     "the rows of a statement that writes, or is in a transaction that does, wait in "
                                     "temporary files, and fill more of them than TempSizeMax= allows: ask for less, write "
                                     "less at a time, or read the results of other statements first");
        if (r == -ENOSPC || r == -EDQUOT)
                return sql_error_set(&job->error, ERROR_NO_SPACE,
                                     "the disk that temporary files go to is full: free some of it, or ask for less");
        return sql_error_set(&job->error, ERROR_INPUT_OUTPUT,
                             "the rows wait in a temporary file, which cannot be made or written: %s", strerror(-r));
}

/* Moves the page to the spool. */
static bool spool_page(Job *job) {
        PageEncoder *e = &job->encoder;
        JobContext *context = job->context;
        RowSpool *spool = &job->write.spool;
        size_t before = spool->size, size = page_encoder_finish(e);
        uint64_t file_before = spool->file_size;
        int r;

        if (!job_check_result_size(job))
                return false;
        r = row_spool_add(spool, job->page, size, e->tail, e->tail_size, has_memory(job, size),
                          context->setup->temp_size_max);
        context->spooled += spool->size - before;
        context->spooled_files += spool->file_size - file_before;
        if (r < 0)
                return explain_spool(job, r);
        page_encoder_clear(e);
        return true;
}

/* Steps to the end. Without many rows they stay in the page, and the end of the job follows them there. */
static bool collect_rows(Job *job) {
        for (;;)
                switch (job_fill(job)) {
                case JOB_FILL_FULL:
                        if (!spool_page(job))
                                return false;
                        break;
                case JOB_FILL_DONE:
                        if (job->write.spool.left > 0 && !page_encoder_is_empty(&job->encoder))
                                return spool_page(job);
                        return job_check_result_size(job);
                case JOB_FILL_BUSY: /* without a lock the statement attaches a database (Engine.wants) */
                        if (job->error.extended_code != 0)
                                job_engine(job)->give_up(&job->error);
                        return false;
                case JOB_FILL_AWAITS: /* not while it is QUEUED */
                case JOB_FILL_FAILED:
                        return false;
                }
}

/* ---- a statement ---- */

/* A job of a transaction has not started before: what it reads may have been made in the transaction. */
static bool tell_start(Job *job) {
        job->started = job->started || job->owner->started(job);
        return job->started;
}

/* Ends the savepoint of the statement, which has done nothing yet. */
static bool leave_savepoint(WriteBatch *b, SqlError *error) {
        b->is_saved = !b->context->engine->keep(b->connection, error);
        return !b->is_saved;
}

static bool compile(WriteBatch *b, Job *job, const JobSpec *spec) {
        const Engine *engine = b->context->engine;

        if (!engine->compile(b->connection, spec->sql, spec->sql_size, spec->describe && !job->started, job->hint,
                             &job->statement, &job->error)) {
                if (job->error.error == ERROR_BUSY)
                        engine->give_up(&job->error);
                return false;
        }
        job->write.reads = !job_statement_writes(job);
        if (job->hint)
                job->hint->writes = !job->write.reads && !job->write.runs_alone;
        return true;
}

/* A list is one savepoint, so it cannot have savepoints of the client. Its statements were not checked before. */
static bool may_be_listed(const WriteBatch *b, Job *job) {
        if (b->context->engine->is_savepoint(job->statement))
                return sql_error_set(&job->error, ERROR_NOT_ALLOWED,
                                     "SAVEPOINT, RELEASE and ROLLBACK TO are not allowed in a batch: it is one savepoint");
        if (b->context->engine->attaches && b->context->engine->attaches(job->statement)) /* it could not be taken back */
                return sql_error_set(&job->error, ERROR_NOT_ALLOWED, "ATTACH and DETACH are not allowed in a batch");
        return !job_statement_reads(job) || sql_error_set(&job->error, ERROR_NOT_ALLOWED, JOB_HAS_ROWS);
}

static bool run_compiled(WriteBatch *b, Job *job, const JobSpec *spec) {
        const Engine *engine = b->context->engine;

        if (job->write.changes && !may_be_listed(b, job))
                return false;
        if (engine->is_savepoint(job->statement) && !leave_savepoint(b, &job->error))
                return false;
        return engine->bind(job->statement, spec, &job->error) && tell_start(job) && collect_rows(job);
}

/* The changes exist, also if the job was told to end in its last moment, or its answer cannot be made. */
static void settle_alone(Job *job, bool ok) {
        if (ok) {
                sql_error_done(&job->error);
                return;
        }
        sql_error_prefix(&job->error, "this was written, but its answer is lost: ");
        job->error.error = ERROR_OUTCOME_UNKNOWN;
}

/* SQL and parameters are those of `spec`. */
static bool run_statement(WriteBatch *b, Job *job, const JobSpec *spec) {
        const Engine *engine = b->context->engine;
        bool ok, exists;

        if (!compile(b, job, spec))
                return false;
        ok = run_compiled(b, job, spec);
        exists = job->write.runs_alone && job->rows_ended;
        job->write.keeps_rows = !ok && !exists && !job->write.changes && engine->keeps_rows &&
                                engine->is_in_transaction(b->connection) &&
                                engine->keeps_rows(job->statement, &job->error);
        if (ok || exists || job->write.keeps_rows) {
                engine->changes(job->statement, &job->counters.n_changes, &job->counters.last_rowid);
                if (!job->write.reads)
                        engine->written(job->statement, &b->written);
                engine->counters(job->statement, &job->counters);
        }
        engine->release(job->statement);
        job->statement = NULL;
        if (exists)
                settle_alone(job, ok);
        return exists || (ok && job->error.error == ERROR_NONE); /* it may have been cancelled in its last moment */
}

/* ---- the statements of a job ---- */

/* Between two statements of a list, which may be so short that none of them calls the progress handler. */
static bool goes_on(const JobContext *context) {
        return context->progress(context->progress_data) == 0;
}

/* Runs the statements of a list one after the other. All are in the savepoint of the job. */
static bool run_list(WriteBatch *b, Job *job) {
        const uint8_t *at = job->spec->statements, *end = at + job->spec->statements_size;
        JobSpec one = *job->spec;
        int64_t total = 0;

        for (uint32_t i = 0; statement_list_next(&at, end, &one); i++) {
                job->rows_ended = false;
                if (!goes_on(b->context) || !run_statement(b, job, &one)) {
                        sql_error_prefix(&job->error, "statement %u of %u: ", i + 1, one.n_statements);
                        return false;
                }
                store_le64(job->write.changes + i * sizeof(int64_t), (uint64_t) job->counters.n_changes);
                total += job->counters.n_changes;
        }
        job->counters.n_changes = total;
        return true;
}

static bool run_all(WriteBatch *b, Job *job) {
        return job->write.changes ? run_list(b, job) : run_statement(b, job, job->spec);
}

/* The supervisor does not know the client's time limit, and one SQL function may compute for minutes. */
static bool run_within_limit(WriteBatch *b, Job *job) {
        bool ok;

        if (job->has_own_limit)
                compile_limit_run_begin(job->deadline_usec);
        ok = run_all(b, job);
        if (job->has_own_limit)
                compile_limit_run_end();
        return ok;
}

static bool keep(WriteBatch *b, SqlError *error) {
        return !b->is_saved || b->context->engine->keep(b->connection, error);
}

/* Runs the job in a savepoint, unless it is about a savepoint of the client. False with job->error, and nothing of it is
 * kept; true: with job->error the job has failed, and keeps rows. */
static bool run_saved(WriteBatch *b, Job *job) {
        const Engine *engine = b->context->engine;

        if (!engine->save(b->connection, &job->error))
                return false;
        b->is_saved = true;
        job->write.keeps_rows = false;
        if ((run_within_limit(b, job) || job->write.keeps_rows) && keep(b, &job->error))
                return true;
        if (b->is_saved && engine->is_in_transaction(b->connection))
                engine->undo(b->connection);
        return false;
}

/* The rest of the commit calls no progress handler, and is not for the client's limit to end. */
static bool announce_alone(void *userdata) {
        WriteBatch *b = userdata;

        if (b->running->has_own_limit)
                compile_limit_run_end();
        return announce(b, b->running, &b->running->error);
}

/* Runs the job of a statement that commits by itself, as the only one of the batch. */
static bool run_alone(WriteBatch *b, Job *job) {
        job->write.next = NULL;
        b->delays_readers = b->context->engine->keeps_writers_out(b->connection);
        return b->context->engine->leave_transaction(b->connection, announce_alone, b, &job->error) &&
               run_within_limit(b, job);
}

/* The last job of the batch that is of the same client; NULL: none is. */
static const Job *last_of_client(const WriteBatch *b, const Job *job) {
        const Job *last = NULL;

        for (const Job *other = b->jobs.first; other && job->spec->counts.slot > 0; other = other->write.next)
                if (other->spec->counts.slot == job->spec->counts.slot)
                        last = other;
        return last;
}

bool write_batch_run(WriteBatch *b, Job *job) {
        bool ok;

        b->n_run++;
        if (job->owner->reader_left(job)) {
                (void) sql_error_set(&job->error, ERROR_PIPE_CLOSED, "the reader closed the pipe");
                write_batch_release(job);
                return true;
        }
        b->running = job;
        *b->current = job->task;
        job_enter(job, b->connection, last_of_client(b, job));
        ok = job->write.runs_alone ? run_alone(b, job) : run_saved(b, job);
        job_leave(job, b->connection);
        *b->current = NULL;
        b->running = NULL;
        if (ok) {
                job_list_append(&b->jobs, job);
                return true;
        }
        job_rewind(job);
        b->rolled_back = !b->context->engine->is_in_transaction(b->connection);
        if (b->yields)
                sql_error_done(&job->error);
        else if (job->write.runs_alone && engine_met_lock(b->context->engine, &job->error)) /* CANCEL may say BUSY, too */
                return false;
        else
                write_batch_release(job);
        return !b->yields;
}

void write_batch_on_progress(WriteBatch *b, bool others_wait, uint64_t now) {
        uint64_t until = b->until_usec;
        Job *job = b->running;

        if (b->context->engine->state_is_remote)
                until += WRITE_BATCH_SERVER_USEC - WRITE_BATCH_USEC;
        if (!job || now < until || job->error.error != ERROR_NONE ||
            !(b->jobs.first || (others_wait && !job->write.gave_way)))
                return;
        b->yields = job->write.gave_way = true;
        (void) sql_error_set(&job->error, ERROR_BUSY, "others wait for the commit");
}

static uint64_t spooled(const JobContext *context) {
        return context->spooled + context->spooled_files;
}

bool write_batch_is_full(const WriteBatch *b) {
        const Engine *engine = b->context->engine;

        return b->n_run >= WRITE_BATCH_N_MAX || spooled(b->context) >= b->spooled_before + WRITE_BATCH_SPOOL_MAX ||
               now_usec() >= b->until_usec || (engine->must_commit && engine->must_commit(b->connection));
}

void write_batch_release(Job *job) {
        job_store_counts(job);
        job->write.is_over = true;
        (void) job_set_state(job, JOB_READY);
}

/* ---- the transaction ---- */

static void set_up(WriteBatch *b, bool enforces) {
        b->n_run = 0;
        b->enforces = enforces;
        b->spooled_before = spooled(b->context);
        b->until_usec = now_usec() + WRITE_BATCH_USEC;
        b->announced = b->rolled_back = b->left = b->yields = false;
        b->sequence = commit_notes_now(b->context);
}

bool write_batch_begin_pin(WriteBatch *b, EngineConnection *pin, PinBegin how, bool enforces, bool only_temp,
                           SqlError *error) {
        set_up(b, enforces);
        if (!b->context->engine->begin_pin(pin, how, enforces, only_temp, error))
                return false;
        b->connection = pin;
        commit_notes_begin(b->context, b->connection);
        return true;
}

bool write_batch_begin(WriteBatch *b, bool enforces, SqlError *error) {
        set_up(b, enforces);
        if (!b->context->engine->begin(b->context->pool, enforces, &b->connection, error))
                return false;
        commit_notes_begin(b->context, b->connection);
        return true;
}

/* The supervisor reports the outcome of its own jobs only; to the client of a channel, the outcome of a request without an
 * answer is unknown in any case. So a batch of channels saves the message, which would wake another process in each commit.
 * From time to time it is sent all the same: it tells the supervisor which worker writes. */
static bool is_announced(const WriteBatch *b) {
        if (b->announced)
                return true;
        for (const Job *job = b->jobs.first; job; job = job->write.next)
                if (!job->owner->collects)
                        return false;
        return b->announced_usec > 0 && now_usec() < b->announced_usec + WRITE_BATCH_ANNOUNCE_USEC;
}

/* The statements of the job were carried out with the commit: now they have rows and changes. If the rows cannot be kept for
 * their reader, they are lost, and the error must not say that nothing was written. */
static bool collect_outcome(WriteBatch *b, Job *job) {
        const Engine *engine = b->context->engine;
        uint32_t n = job->write.changes ? job->spec->n_statements : 1;
        int64_t total = 0;
        bool ok = true;

        for (uint32_t i = 0; i < n; i++) {
                job->statement = engine->outcome(b->connection);
                job->rows_ended = job->sink.n_columns == 0;
                ok = ok && collect_rows(job);
                engine->changes(job->statement, &job->counters.n_changes, &job->counters.last_rowid);
                engine->release(job->statement);
                job->statement = NULL;
                if (job->write.changes)
                        store_le64(job->write.changes + i * sizeof(int64_t), (uint64_t) job->counters.n_changes);
                total += job->counters.n_changes;
        }
        job->counters.n_changes = total;
        return ok;
}

static void settle(WriteBatch *b, Job *job) {
        if (!b->context->engine->outcome || job->write.reads || collect_outcome(b, job))
                return;
        job_rewind(job);
        sql_error_prefix(&job->error, "this was written, but its rows are lost: ");
        job->error.error = ERROR_OUTCOME_UNKNOWN;
}

uint64_t write_batch_commit_until(uint64_t deadline_usec) {
        uint64_t until = now_usec() + WRITE_BATCH_COMMIT_USEC;

        return deadline_usec < until ? earlier(until, deadline_usec + WRITE_BATCH_HURRY_USEC) : until;
}

void write_batch_hurry(JobContext *context, uint64_t now) {
        context->wait_until_usec = earlier(context->wait_until_usec, now + WRITE_BATCH_HURRY_USEC);
}

uint64_t job_list_deadline(const JobList *list) {
        uint64_t deadline = UINT64_MAX;

        for (const Job *job = list->first; job; job = job->write.next)
                deadline = earlier(deadline, job->deadline_usec);
        return deadline;
}

static bool commit(WriteBatch *b, SqlError *error) {
        bool ok;

        for (Job *job = b->jobs.first; job; job = job->write.next)
                job->write.commits = true;
        b->context->wait_until_usec = write_batch_commit_until(job_list_deadline(&b->jobs));
        ok = commit_notes_commit(b->context, b->connection, &b->written, &b->sequence, error);
        b->context->wait_until_usec = 0;
        for (Job *job = b->jobs.first; job; job = job->write.next)
                job->write.commits = false;
        return ok;
}

/* True if the changes exist already. */
static bool is_alone(const WriteBatch *b) {
        return b->jobs.first && b->jobs.first->write.runs_alone;
}

bool write_batch_commit(WriteBatch *b, SqlError *error) {
        Job *job;

        if (!is_alone(b)) {
                if (!is_announced(b) && !announce(b, b->jobs.first, error))
                        return false;
                b->delays_readers = b->context->engine->keeps_writers_out(b->connection);
        }
        if (!commit(b, error)) {
                if (error->error == ERROR_COMMIT_REFUSED) /* the statements are over, so nothing can be repaired */
                        error->error = ERROR_SQL;
                return false;
        }
        b->context->n_commits += !b->delays_readers;
        while ((job = job_list_take(&b->jobs))) {
                job->counters.wrote = job->error.error == ERROR_NONE;
                job->sequence = b->sequence;
                settle(b, job);
                write_batch_release(job);
        }
        return true;
}

void write_batch_end(WriteBatch *b) {
        const Engine *engine = b->context->engine;

        if (!b->connection)
                return;
        if (engine->is_in_transaction(b->connection))
                engine->rollback(b->connection);
        engine->disconnect(b->context->pool, b->connection);
        b->connection = NULL;
        engine_written_done(&b->written);
}

/* ---- lists of jobs ---- */

void job_list_append(JobList *list, Job *job) {
        job->write.next = NULL;
        *(list->last ? &list->last->write.next : &list->first) = job;
        list->last = job;
        list->n++;
}

Job *job_list_take(JobList *list) {
        Job *job = list->first;

        if (!job)
                return NULL;
        list->first = job->write.next;
        if (!list->first)
                list->last = NULL;
        list->n--;
        return job;
}

void job_list_prepend_all(JobList *list, JobList *front) {
        if (!front->first)
                return;
        front->last->write.next = list->first;
        list->first = front->first;
        if (!list->last)
                list->last = front->last;
        list->n += front->n;
        *front = (JobList) {};
}

bool job_list_remove(JobList *list, Job *job) {
        Job *previous = NULL, *at = list->first;

        while (at && at != job) {
                previous = at;
                at = at->write.next;
        }
        if (!at)
                return false;
        *(previous ? &previous->write.next : &list->first) = job->write.next;
        if (list->last == job)
                list->last = previous;
        list->n--;
        return true;
}
