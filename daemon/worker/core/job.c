/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job.h. From top to bottom: creation and destruction, the state, the next execution.
 */
#include "daemon/worker/core/job.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/worker/core/client-counts.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/report.h"
#include "dbus-interfaces/wire/sqlipc-channel.h"

/* ---- creation and destruction ---- */

static int page_new(JobContext *context, size_t size, uint8_t **ret) {
        void *page;

        if (size == SQLIPC_PAGE_SIZE_DEFAULT && context->spare_page) {
                *ret = context->spare_page;
                context->spare_page = NULL;
                return 0;
        }
        /* by mmap: the kernel provides memory as the page fills, and gets it back piece by piece */
        page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
                return -ENOMEM;
        *ret = page;
        return 0;
}

static void page_free(JobContext *context, uint8_t *page, size_t size) {
        if (!page)
                return;
        if (size == SQLIPC_PAGE_SIZE_DEFAULT && !context->spare_page)
                context->spare_page = page;
        else
                (void) munmap(page, size);
}

void job_context_trim(JobContext *context) {
        if (context->spare_page)
                (void) munmap(context->spare_page, SQLIPC_PAGE_SIZE_DEFAULT);
        context->spare_page = NULL;
}

void job_context_let_go(JobContext *context) {
        if (context->shared)
                context->engine->disconnect(context->shared_pool, context->shared);
        context->shared = NULL;
}

int job_init(Job *job, Task *task, const JobOwner *owner, JobContext *context, int fd, uint32_t page_size) {
        *job = (Job) {
                .task = task,
                .owner = owner,
                .context = context,
                .pool = context->pool,
                .change_slot = context->setup->change_slot,
                .writer = { .fd = fd },
                .error = SQL_ERROR_INIT,
        };
        if (page_size == 0)
                return 0;
        if (page_new(context, page_size, &job->page) < 0)
                return -ENOMEM;
        page_encoder_init(&job->encoder, job->page, page_size, 0);
        return 0;
}

static void share(Job *job) {
        job->context->shared = job->connection;
        job->context->shared_pool = job->pool;
        job->context->shared_sequence = job->sequence;
}

void job_give_back(Job *job) {
        if (!job->connection)
                return;
        page_writer_keep_tail(&job->writer);
        if (job->statement)
                job_engine(job)->release(job->statement);
        job->statement = NULL;
        if (job->lender)
                job->lender->take_back(job->lender, job);
        else if (job->keeps && job->error.error == ERROR_NONE) /* after some errors the engine has ended the transaction */
                share(job);
        else
                job_engine(job)->disconnect(job->pool, job->connection);
        job->connection = NULL;
        job->lender = NULL;
}

void job_stop_sharing(Job *job) {
        if (job->keeps && job->connection)
                job_engine(job)->let_go(job->connection);
        job->keeps = false;
}

static void drop_payload(Job *job) {
        free(job->payload.bytes);
        job->payload.bytes = NULL;
        job->payload.is_row = false;
        job->context->spooled -= job->write.spool.size;
        job->context->spooled_files -= job->write.spool.file_size;
        row_spool_clear(&job->write.spool);
}

void job_release(Job *job) {
        job_give_back(job);
        drop_payload(job);
}

void job_done(Job *job) {
        if (!job->context)
                return;
        if (job->state == JOB_QUEUED)
                job->write.queue->forget(job->write.queue, job);
        job->context->n_awaiting -= job->state == JOB_AWAITING;
        job->keeps = false;
        job_release(job);
        page_free(job->context, job->page, job->encoder.page_size);
        sql_error_done(&job->error);
}

/* ---- the state ---- */

bool job_state_may_follow(JobState from, JobState to) {
        static const unsigned may[_JOB_STATE_MAX] = {
                [JOB_OVER] = 1 << JOB_READY | 1 << JOB_ENDING,
                [JOB_READY] = 1 << JOB_RETRY | 1 << JOB_AWAITING | 1 << JOB_PARKED | 1 << JOB_QUEUED | 1 << JOB_ENDING |
                              1 << JOB_OVER,
                [JOB_RETRY] = 1 << JOB_READY | 1 << JOB_ENDING,
                [JOB_AWAITING] = 1 << JOB_READY | 1 << JOB_ENDING,
                [JOB_PARKED] = 1 << JOB_READY | 1 << JOB_ENDING,
                [JOB_QUEUED] = 1 << JOB_READY | 1 << JOB_ENDING,
                [JOB_ENDING] = 1 << JOB_DRAINING | 1 << JOB_OVER,
                [JOB_DRAINING] = 1 << JOB_ENDING | 1 << JOB_OVER,
        };

        return from < _JOB_STATE_MAX && to < _JOB_STATE_MAX && may[from] & 1u << to;
}

JobState job_set_state(Job *job, JobState state) {
        assert(job_state_may_follow(job->state, state));
        job->context->n_awaiting += (state == JOB_AWAITING) - (job->state == JOB_AWAITING);
        return job->state = state;
}

void job_wake(Job *job) {
        if (job->state == JOB_PARKED || job->state == JOB_AWAITING)
                (void) job_set_state(job, JOB_READY);
        else if (job->state == JOB_DRAINING)
                (void) job_set_state(job, JOB_ENDING);
}

void job_set_parked(Job *job, bool parked) {
        if (job->wait.settled == parked)
                return;
        job->wait.settled = parked;
        job->owner->parked(job, parked);
}

/* ---- the next execution ---- */

/* The position of the page's next byte in the stream that the writer writes. */
static uint64_t position(const Job *job) {
        return job->writer.total + (job->writer.bytes ? job->writer.size - job->writer.sent : job->encoder.fill);
}

uint64_t job_bytes(const Job *job) {
        return position(job) + job->write.spool.left - job->sink.start_bytes;
}

/* The job begins with the next byte of the page, which may have answers to earlier requests. */
static void begin_sink(Job *job) {
        job->sink = (RowSink) {
                .encoder = &job->encoder,
                .writer = &job->writer,
                .start_bytes = position(job),
                .row_size_max = job->spec->row_size_max,
                .n_rows_max = job->spec->result_rows_max,
                .first_row_usec = page_encoder_is_empty(&job->encoder) ? now_coarse_usec() : job->sink.first_row_usec,
        };
}

void job_enter(Job *job, EngineConnection *connection, const Job *last) {
        if (!job_engine(job)->enter)
                return;
        job->counts_before = last ? last->counts : client_counts_load(&job->spec->counts);
        job->counts = job->counts_before;
        job_engine(job)->enter(connection, &job->counts_before);
}

void job_leave(Job *job, EngineConnection *connection) {
        if (job_engine(job)->leave)
                job_engine(job)->leave(connection, &job->counts);
}

bool job_set_time_zone(Job *job) {
        const char *zone = job->spec->time_zone;

        return !job_engine(job)->set_time_zone || job_engine(job)->set_time_zone(zone && *zone ? zone : NULL) ||
               sql_error_set(&job->error, ERROR_OUT_OF_MEMORY,
                             "the time zone cannot be read: the service is short of memory or descriptors");
}

void job_store_counts(const Job *job) {
        if (memcmp(&job->counts, &job->counts_before, sizeof job->counts) != 0)
                client_counts_store(&job->spec->counts, &job->counts);
}

void job_rewind(Job *job) {
        drop_payload(job);
        page_encoder_clear(&job->encoder);
        begin_sink(job);
        job->rows_ended = false;
        job->counters = (EndCounters) {};
}

bool job_keeps_settings(const Job *job) {
        const JobSpec *spec = job->spec;

        return job->is_prepare || spec->time_zone || spec->foreign_keys != FOREIGN_KEYS_CONFIGURED;
}

bool job_statement_only_temp(const Job *job) {
        return job_engine(job)->only_temp && job_engine(job)->only_temp(job->statement);
}

bool job_statement_writes(const Job *job) {
        return (job->context->setup->writes || job_statement_only_temp(job)) && job_engine(job)->writes(job->statement);
}

static bool does_nothing(const Job *job) {
        const Engine *engine = job_engine(job);

        return (engine->does_nothing && engine->does_nothing(job->statement)) ||
                (engine->attaches && engine->attaches(job->statement));
}

bool job_statement_reads(const Job *job) {
        return !job_statement_writes(job) && !does_nothing(job);
}

static void begin(Job *job, const JobSpec *spec, bool is_prepare, EngineHint *hint) {
        sql_error_done(&job->error);
        job->spec = spec;
        job->hint = hint;
        job->is_prepare = is_prepare;
        job->deadline_usec = is_prepare ? UINT64_MAX : spec->deadline_usec; /* a compile has its own limit */
        job->told = JOB_TOLD_NOTHING;
        job->refused = job->started = job->rows_ended = job->payload.is_row = job->end_encoded = false;
        (void) page_encoder_finish(&job->encoder);
        job->encoder.run = spec->number;
        begin_sink(job);
        job->payload.kind = is_prepare ? (FrameKind) FRAME_STATEMENT : FRAME_COLUMNS;
        job->counters = (EndCounters) {};
        job->counts_before = job->counts = (ClientCounts) {};
        job->sequence = 0;
        job->wait = (JobWait) {};
        job->write = (JobWrite) { .queue = job->context->writer, .changes = job->write.changes };
        job->has_own_limit = false;
        job->writer_usec = 0;
        job->taken_usec = now_usec();
}

void job_begin(Job *job, const JobSpec *spec, bool is_prepare, EngineHint *hint) {
        begin(job, spec, is_prepare, hint);
        (void) job_set_state(job, JOB_READY);
}

SqlError *job_refuse(Job *job, const JobSpec *spec) {
        begin(job, spec, false, NULL);
        job->refused = true;
        (void) job_set_state(job, JOB_ENDING);
        return &job->error;
}

const char *job_wanted_database(const Job *job, const EngineConnection *connection) {
        return connection && job_engine(job)->wants ? job_engine(job)->wants(connection) : NULL;
}

void job_ask_for_database(const Job *job, const EngineConnection *connection, uint64_t pin) {
        const char *name = job_wanted_database(job, connection);
        int r;

        if (!name)
                return;
        r = report_send(job->context->control_fd, &(Message) {
                .kind = MESSAGE_ATTACH_WANTED,
                .attach = { .number = pin, .name = name },
        });
        if (r < 0)
                job->context->report_error = r;
}
