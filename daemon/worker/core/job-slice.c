/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job-slice.h. From top to bottom: the limit of the result, the start, the page, the turn, and
 * events inside a step.
 */
#include "daemon/worker/core/job-slice.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "daemon/worker/core/change-numbers.h"
#include "daemon/worker/core/commit-notes.h"
#include "daemon/worker/core/connection-share.h"
#include "daemon/worker/core/job-end.h"
#include "daemon/worker/core/job-fill.h"
#include "daemon/worker/core/job-time.h"
#include "daemon/worker/core/load.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/statement-frames.h"

/* ---- the limit of the result ---- */

/* The page is not sent yet, and is dropped. */
static JobState result_too_large(Job *job) {
        uint64_t sent = job->writer.total;

        /* keeps the answers to earlier requests of a channel */
        page_encoder_cut(&job->encoder, job->sink.start_bytes > sent ? (size_t) (job->sink.start_bytes - sent) : 0);
        return job_end(job, ERROR_NONE, NULL);
}

/* ---- the start ---- */

/* Another program is in the way, as job->error says. */
static JobState retry(Job *job) {
        bool locked = engine_met_lock(job_engine(job), &job->error);
        uint64_t now = now_usec(), busy_until, lock_until;

        if (job->owner->reader_left(job))
                return job_end(job, ERROR_PIPE_CLOSED, JOB_READER_LEFT);
        busy_until = job->wait.busy_until_usec =
                connection_share_busy_until(job->context, job->wait.busy_until_usec, now);
        lock_until = locked ? job_lock_until(job, now) : UINT64_MAX;
        if (now >= busy_until && !job_wanted_database(job, job->connection))
                job_engine(job)->give_up(&job->error);
        else if (now >= lock_until)
                engine_set_locked(job_engine(job), &job->error, ENGINE_LOCKED);
        if (now >= busy_until || now >= lock_until)
                return job_end(job, ERROR_NONE, NULL);
        sql_error_done(&job->error);
        if (job->lender)
                job_ask_for_database(job, job->connection, job->lender->pin);
        job->wait.retry_pause_usec = retry_pause(job->wait.retry_pause_usec);
        job->wait.retry_usec = earlier(now + job->wait.retry_pause_usec, earlier(busy_until, lock_until));
        if (job->statement)
                job_engine(job)->reset(job->statement);
        if (job->connection)
                job_engine(job)->let_go(job->connection); /* a job that waits for a lock must hold none */
        return job_set_state(job, JOB_RETRY);
}

bool job_describe(Job *job) {
        EngineDescription d;
        bool ok;

        if (!job_engine(job)->describe(job->statement, &d, &job->error))
                return false;
        ok = statement_frames_statement(&d, job_statement_reads(job), &job->payload.bytes, &job->payload.size,
                                        &job->error);
        free(d.strings);
        if (!ok)
                return false;
        job_give_back(job);
        job->payload.done = 0;
        return job->rows_ended = true;
}

/* A transaction was checked when it began. */
static bool may_write(Job *job) {
        return engine_check_foreign_keys(job_engine(job), job->context->setup, job->spec->foreign_keys, &job->error);
}

/* The statement is compiled. If it writes, the writer will compile it on the connection that writes. A pin is not needed
 * for one that runs alone, and has its own queue. */
static bool begin_to_write(Job *job) {
        job->write.writes = true;
        if (job->write.runs_alone) {
                job->write.queue = job->context->writer;
                job->wait.retry_usec = job->wait.retry_pause_usec = 0; /* of the lock that its compile has met */
        }
        job->keeps = false;
        job_give_back(job);
        job_context_let_go(job->context); /* what is read next must see what is written */
        return job->started = true;
}

static bool refuse_to_write(Job *job) {
        return sql_error_set(&job->error, ERROR_READ_ONLY,
                             "this transaction only reads: begin one with the mode \"write\"");
}

/* The transaction that has lent its connection must begin to write first. Then it runs the statement. */
static bool go_back_to_transaction(Job *job) {
        if (!job->lender->upgrades && !job->write.only_temp)
                return refuse_to_write(job);
        job->write.writes = true;
        job_give_back(job);
        return true;
}

/* In a transaction that only reads, a savepoint is only for the client's own order. */
static bool is_savepoint_of_reader(const Job *job) {
        return job->write.is_savepoint && job->lender && !job->lender->upgrades && !job->write.only_temp;
}

/* The owner hears that the statement has started. */
static bool tell_start(Job *job) {
        const Engine *engine = job_engine(job);
        bool writes = job_statement_writes(job);

        job->write.only_temp = job_statement_only_temp(job);
        job->write.is_savepoint = engine->is_savepoint && engine->is_savepoint(job->statement);
        writes = writes && !is_savepoint_of_reader(job);
        job->write.runs_alone = writes && engine->runs_alone && engine->runs_alone(job->statement);
        if (job->hint) /* what runs alone is compiled each time before it waits */
                job->hint->writes = writes && !job->write.runs_alone;
        if (writes && job->lender && !job->is_prepare && !job->write.runs_alone && !(job->load && job->lender->is_pin))
                return go_back_to_transaction(job);
        if ((writes && !job->is_prepare && !may_write(job)) || (job->load && !load_check(job)))
                return false;
        if (!job->page && !job->is_prepare && job_statement_reads(job) && !job->write.is_savepoint)
                return sql_error_set(&job->error, ERROR_NOT_ALLOWED, JOB_HAS_ROWS);
        if (!job->owner->started(job))
                return false;
        return writes && !job->is_prepare ? begin_to_write(job) : (job->started = true);
}

/* A statement of a list is compiled when its turn comes. */
static bool start_list(Job *job) {
        if (!job->context->setup->writes)
                return sql_error_set(&job->error, ERROR_READ_ONLY,
                                     "this worker only reads: its user could not write when it began");
        return job->lender ? refuse_to_write(job) : may_write(job) && begin_to_write(job);
}

static bool join_names(const EngineTables *tables, Bytes *ret, SqlError *error) {
        size_t size = 0;
        char *all, *at;

        for (size_t i = 0; i < tables->n; i++)
                size += strlen(tables->names[i]) + 1;
        if (size == 0 || size > TABLES_SIZE_MAX)
                return true;
        all = at = malloc(size);
        if (!all)
                return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
        for (size_t i = 0; i < tables->n; i++)
                at = stpcpy(at, tables->names[i]) + 1;
        *ret = (Bytes) { .data = all, .size = size };
        return true;
}

/* Its answer is ENDED. */
static bool find_watched(Job *job) {
        const JobSpec *spec = job->spec;
        EngineWatched w;
        bool ok;

        if (!job_engine(job)->watched(job->connection, spec->sql, spec->sql_size, spec->names, &w, &job->error))
                return false;
        ok = join_names(&w.tables, &job->watched[0], &job->error) && join_names(&w.names, &job->watched[1], &job->error);
        engine_tables_done(&w.tables);
        engine_tables_done(&w.names);
        return ok;
}

/* Gets a connection and a statement, and binds the parameters. False with job->error; if that is Busy, the caller must try
 * again. */
static bool start(Job *job) {
        const Engine *engine = job_engine(job);
        const JobSpec *spec = job->spec;

        if (job->write.changes)
                return start_list(job);
        if (job->hint && job->hint->writes && !job->is_prepare && !spec->describe)
                return may_write(job) && begin_to_write(job);
        if (!job->connection) {
                job->connection = job->context->shared;
                job->sequence = job->context->shared_sequence;
                job->context->shared = NULL;
        }
        if (!job->connection)
                job->sequence = job->change_slot == job->context->setup->change_slot ? commit_notes_now(job->context)
                                                                                       : change_number(job->change_slot);
        if (!job->connection &&
            !engine->connect(job->pool, spec->sql, spec->sql_size, job->hint, &job->connection, &job->error))
                return false;
        if (engine->set_client && !job->lender)
                engine->set_client(job->connection, spec->foreign_keys, job_keeps_settings(job), false);
        if (job->keeps)
                engine->hold(job->connection);
        job_enter(job, job->connection, NULL);
        if (job->watched)
                return find_watched(job);
        if (!job->statement &&
            !engine->compile(job->connection, spec->sql, spec->sql_size, job->is_prepare || spec->describe, job->hint,
                             &job->statement, &job->error))
                return false;
        if (!job->is_prepare && !job->load && !engine->bind(job->statement, spec, &job->error))
                return false;
        return tell_start(job);
}

/* ---- the page ---- */

static void begin_flush(Job *job) {
        PageEncoder *e = &job->encoder;

        page_writer_begin_with(&job->writer, job->page, page_encoder_finish(e), e->tail, e->tail_size);
}

static JobState park(Job *job) {
        job->wait.parked_usec = job->wait.lacking_usec > 0 ? job->wait.lacking_usec : now_usec();
        if (job->owner->waits)
                job->owner->waits(job);
        return job_set_state(job, JOB_PARKED);
}

/* Writes the page. READY: it is written; PARKED; or the job ends. */
static JobState flush(Job *job) {
        int r;

        if (page_writer_is_idle(&job->writer)) {
                if (!job_check_result_size(job))
                        return result_too_large(job);
                begin_flush(job);
        }
        r = job->owner->write_page(job);
        if (r == PAGE_WRITER_FULL)
                return park(job);
        if (r < 0)
                return job_end(job, ERROR_PIPE_CLOSED, JOB_READER_LEFT);
        job_set_parked(job, false);
        job->owner->progress(job);
        page_encoder_clear(&job->encoder);
        return job->state;
}

/* ---- the turn ---- */

/* The rows so far go out, then the job waits for its server. */
static JobState await(Job *job) {
        struct epoll_event e = { .events = EPOLLIN | EPOLLONESHOT, .data.ptr = job->context->answer_event };
        int fd = job_engine(job)->awaited_fd(job->connection);

        if (job->owner->reader_left(job))
                return job_end(job, ERROR_PIPE_CLOSED, JOB_READER_LEFT);
        if (!page_encoder_is_empty(&job->encoder) && flush(job) != JOB_READY)
                return job->state;
        if (epoll_ctl(job->context->epoll_fd, EPOLL_CTL_MOD, fd, &e) < 0 &&
            epoll_ctl(job->context->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0)
                return job_end(job, ERROR_OUT_OF_MEMORY, "the kernel has no memory to wait for the server");
        return job_set_state(job, JOB_AWAITING);
}

bool job_is_answered(const Job *job) {
        struct pollfd p = { .events = POLLIN };

        if (job->state != JOB_AWAITING)
                return false;
        p.fd = job_engine(job)->awaited_fd(job->connection);
        return poll(&p, 1, 0) != 0;
}

/* The slice of a job whose statement writes. Answers to earlier requests go before it waits, and its own after that. */
static JobState write_slice(Job *job) {
        bool empty = page_encoder_is_empty(&job->encoder), idle = page_writer_is_idle(&job->writer);

        if (job->write.is_over && idle && empty && job->write.spool.left > 0) {
                int r = row_spool_take(&job->write.spool, job->page, job->encoder.page_size);

                if (r < 0)
                        return job_end(job, ERROR_INPUT_OUTPUT, "the temporary file of its rows cannot be read");
                job->encoder.fill = (size_t) r;
                empty = false;
        }
        if (!idle || (!empty && (!job->write.is_over || job->write.spool.left > 0)))
                return flush(job);
        if (job->write.is_over)
                return job_end(job, ERROR_NONE, NULL);
        job->wait.lock_until_usec = 0; /* for its turn it waits anew */
        if (!job->write.queue->add(job->write.queue, job))
                return job_end(job, ERROR_NONE, NULL);
        return job_set_state(job, JOB_QUEUED);
}

JobState job_slice(Job *job) {
        job_wake(job);
        if (job->state == JOB_RETRY)
                (void) job_set_state(job, JOB_READY);
        if (job->state == JOB_QUEUED)
                return job->state;
        if (job->state == JOB_ENDING)
                return job_finish(job);
        if (job->error.error != ERROR_NONE && !job->write.writes) /* its transaction has ended */
                return job_end(job, ERROR_NONE, NULL);
        if (!job->started && !job->write.is_over) {
                if (!start(job))
                        return job->error.error == ERROR_BUSY ? retry(job) : job_end(job, ERROR_NONE, NULL);
                if (job->watched)
                        return job_end(job, ERROR_NONE, NULL);
                if (!job->page && job->is_prepare) { /* the answer was given */
                        job_release(job);
                        return job_set_state(job, JOB_OVER);
                }
        }
        if (job->write.writes)
                return write_slice(job);
        if (page_writer_is_idle(&job->writer)) {
                /* checked here, too, because the progress handler is hardly called while a job goes from page to page */
                if (job_is_in_writers_way(job, now_usec()))
                        return job_end(job, ERROR_NONE, NULL);
                switch (job_fill(job)) {
                case JOB_FILL_FULL:
                        break;
                case JOB_FILL_DONE:
                        return job_check_result_size(job) ? job_end(job, ERROR_NONE, NULL) : result_too_large(job);
                case JOB_FILL_BUSY:
                        return retry(job);
                case JOB_FILL_AWAITS:
                        return await(job);
                case JOB_FILL_FAILED:
                        return job_end(job, ERROR_NONE, NULL);
                }
        }
        return flush(job);
}

/* ---- from inside a step ---- */

int job_on_progress(Job *job, uint64_t now, bool look) {
        if (job->error.error != ERROR_NONE)
                return 1;
        if (!job->page && job->is_prepare)
                return 0;
        if (job->deadline_usec <= now)
                return !sql_error_set(&job->error, ERROR_TIMED_OUT,
                                      "the query ran past its time limit (RunTimeoutSec= or timeout-usec)");
        if (look && job_is_in_writers_way(job, now))
                return 1;
        if (look && job->owner->reader_left(job))
                return !sql_error_set(&job->error, ERROR_PIPE_CLOSED, JOB_READER_LEFT);
        if (job->state == JOB_QUEUED) /* no row goes before the commit */
                return 0;
        if (page_writer_is_idle(&job->writer)) {
                /* first_row_usec is from the coarse clock: by the precise clock a row would seem to wait since the last
                 * tick */
                if (page_encoder_is_empty(&job->encoder) ||
                    now_coarse_usec() < job->sink.first_row_usec + ROW_SINK_WAIT_USEC)
                        return 0;
                begin_flush(job);
        } else if (!look)
                return 0;
        /* if the pipe is full or broken, the slice will find that again, and can handle it */
        if (page_writer_flush(&job->writer) == PAGE_WRITER_DONE) {
                job->owner->progress(job);
                page_encoder_clear(&job->encoder);
        }
        return 0;
}
