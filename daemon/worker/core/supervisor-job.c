/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See supervisor-job.h. From top to bottom: a job that is in a file, creation and destruction, the owner
 * of the job, the task.
 */
#include "daemon/worker/core/supervisor-job.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon/protocol/statement-list.h"
#include "daemon/worker/core/job-end.h"
#include "daemon/worker/core/job-slice.h"
#include "daemon/worker/core/job-time.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/report.h"
#include "daemon/worker/core/statement-frames.h"
#include "dbus-interfaces/wire/call-arguments.h"

#define PROGRESS_USEC (500 * USEC_PER_MSEC) /* between two reports of progress */
#define LACK_USEC (10 * USEC_PER_MSEC)      /* until the next attempt if the kernel has no memory for a pipe */
#define N_FULL_BEFORE_FILLING 2             /* the pipe must be full so often before FILLING is sent, once */

static const JobOwner owner;
static const TaskType task_type;

/* ---- a job that is in a file ---- */

static bool refuse_file(SqlError *error) {
        return sql_error_set(error, ERROR_INVALID_REQUEST,
                             "the file of the option \"arguments\" does not have the form that is described for it");
}

/* Checks a statement of the file, which any client may have made. */
static bool check_statement(const SupervisorJob *j, const JobSpec *statement, SqlError *error) {
        const JobContext *context = j->job.context;
        uint64_t max = j->received.message.job.parameters_size_max;

        if (statement->sql[statement->sql_size] != 0 || !job_parameters_are_valid(statement))
                return refuse_file(error);
        if (statement->parameters_size > max)
                return sql_error_set(error, ERROR_LIMITS_EXCEEDED,
                                     "the parameters take %zu bytes, and RowSizeMax= allows %llu: pass less, or in several "
                                     "runs", statement->parameters_size, (unsigned long long) max);
        return engine_check_sql_size(context->setup, statement->sql_size, error);
}

/* Sets the statements of a batch. */
static bool use_list(SupervisorJob *j, SqlError *error) {
        const uint8_t *at = j->arguments, *end = at + j->arguments_size;
        JobSpec *spec = &j->received.message.job, one = {};

        for (spec->n_statements = 0; at < end; spec->n_statements++) {
                if (spec->n_statements == STATEMENT_LIST_N_MAX)
                        return sql_error_set(error, ERROR_LIMITS_EXCEEDED,
                                             "a batch has at most %u statements: divide it", STATEMENT_LIST_N_MAX);
                if (!statement_list_next(&at, end, &one))
                        return refuse_file(error);
                if (!check_statement(j, &one, error)) {
                        sql_error_prefix(error, "statement %u: ", spec->n_statements + 1);
                        return false;
                }
        }
        spec->statements = j->arguments;
        spec->statements_size = (size_t) j->arguments_size;
        return true;
}

/* Sets SQL and parameters of the only statement. */
static bool use_statement(SupervisorJob *j, SqlError *error) {
        const uint8_t *at = j->arguments, *end = at + j->arguments_size;
        JobSpec *spec = &j->received.message.job, one = *spec;

        bool is_load = j->received.message.kind == MESSAGE_LOAD;

        if (!statement_list_next(&at, end, &one) || at != end || (spec->sql_size > 0 && one.sql_size > 0) ||
            (is_load && one.parameters_size > 0)) /* its rows come down the pipe */
                return refuse_file(error);
        if (!check_statement(j, &one, error))
                return false;
        if (spec->sql_size > 0) {
                one.sql = spec->sql;
                one.sql_size = spec->sql_size;
        }
        if (one.parameters_size == 0)
                one.parameters = NULL;
        *spec = one;
        return true;
}

/* Maps the file, whose descriptor is not needed any more. */
static bool map_file(SupervisorJob *j, SqlError *error) {
        int fd = j->received.memory_fd, r = call_arguments_check(fd, &j->arguments_size);

        if (r >= 0)
                r = call_arguments_map(fd, j->arguments_size, &j->arguments);
        (void) close(fd);
        j->received.memory_fd = -1;
        if (r == -ENOMEM)
                return sql_error_set(error, ERROR_OUT_OF_MEMORY,
                                     "SQL and parameters of %llu bytes need more memory than HeapMax= allows",
                                     (unsigned long long) j->arguments_size);
        return r >= 0 || refuse_file(error);
}

static bool use_file(SupervisorJob *j, SqlError *error) {
        if (!map_file(j, error))
                return false;
        return j->received.message.kind == MESSAGE_EXECUTE_BATCH ? use_list(j, error) : use_statement(j, error);
}

/* ---- creation and destruction ---- */

static void begin_load(SupervisorJob *j) {
        const JobSpec *spec = &j->received.message.job;

        load_init(&j->load, j->received.pipe_fd, spec->page_size, spec->row_size_max);
        j->job.load = &j->load;
}

static int init(SupervisorJob *j, JobContext *context, const ReceivedMessage *received) {
        const JobSpec *spec = &received->message.job;
        bool has_page = received->message.kind == MESSAGE_RUN, is_batch = received->message.kind == MESSAGE_EXECUTE_BATCH;
        uint32_t n = spec->in_file ? STATEMENT_LIST_N_MAX : spec->n_statements;

        if (is_batch)
                j->changes = calloc(n, sizeof(int64_t));
        if (is_batch && !j->changes)
                return -ENOMEM;
        return job_init(&j->job, &j->task, &owner, context, received->pipe_fd, has_page ? spec->page_size : 0);
}

int supervisor_job_new(JobContext *context, ReceivedMessage *received, SupervisorJob **ret) {
        MessageKind received_kind = received->message.kind;
        SqlError error = SQL_ERROR_INIT;
        bool is_prepare = received_kind == MESSAGE_PREPARE;
        SupervisorJob *j = calloc(1, sizeof *j);
        int r;

        if (!j)
                return -ENOMEM;
        r = init(j, context, received);
        if (r < 0) {
                free(j->changes);
                free(j);
                return r;
        }
        j->received = *received;
        *received = RECEIVED_MESSAGE_INIT;
        if (j->received.message.job.in_file && message_has_memory(&j->received.message))
                (void) use_file(j, &error);
        j->job.write.changes = j->changes;
        j->job.watched = received_kind == MESSAGE_TABLES ? j->found : NULL;
        j->task = (Task) { .type = &task_type, .job = &j->job, .number = j->received.message.job.number };
        job_begin(&j->job, &j->received.message.job, is_prepare, NULL);
        j->job.error = error;
        if (j->received.message.kind == MESSAGE_LOAD)
                begin_load(j);
        j->progress_usec = j->job.taken_usec;
        *ret = j;
        return 0;
}

SupervisorJob *supervisor_job_free(SupervisorJob *j) {
        if (!j)
                return NULL;
        job_done(&j->job);
        load_done(&j->load);
        received_message_done(&j->received);
        call_arguments_unmap(j->arguments, j->arguments_size);
        free(j->changes);
        free((char *) j->found[0].data);
        free((char *) j->found[1].data);
        free(j);
        return NULL;
}

SupervisorJob *supervisor_job_of(Task *t) {
        return (SupervisorJob *) (void *) ((char *) t - offsetof(SupervisorJob, task));
}

static SupervisorJob *owner_of(Job *job) {
        return (SupervisorJob *) (void *) ((char *) job - offsetof(SupervisorJob, job));
}

/* ---- the owner of the job ---- */

static void report(Job *job, const Message *m) {
        int r = report_send(job->context->control_fd, m);

        if (r < 0)
                job->context->report_error = r;
}

/* Sends STARTED, with a description if the supervisor asks for one. The answer to EXECUTE is ENDED alone. */
static bool started(Job *job) {
        Message m = {
                .kind = MESSAGE_STARTED,
                .started = { .number = job->spec->number, .read_only = job_statement_reads(job) },
        };
        EngineDescription d = {};
        bool ok = true;

        if (!job->page && !job->is_prepare && !job->load)
                return true;
        if (job->is_prepare || job->spec->describe)
                ok = job->context->engine->describe(job->statement, &d, &job->error) &&
                     statement_frames_started(&d, &m.started, &job->error);
        if (ok)
                report(job, &m);
        free(d.strings);
        return ok;
}

/* If the kernel has no memory for the pipe, the pipe counts as full for now, so that its reader gets the rest later. Such a
 * pipe polls writable all the same, so a timer starts the next attempt. */
static int write_page(Job *job) {
        JobWait *w = &job->wait;
        int r = page_writer_flush(&job->writer);

        if (r != -ENOMEM) {
                w->lacking_usec = w->again_usec = 0;
                return r;
        }
        w->again_usec = now_usec() + LACK_USEC;
        if (w->lacking_usec == 0)
                w->lacking_usec = now_usec();
        return PAGE_WRITER_FULL;
}

static bool reader_left(const Job *job) {
        struct pollfd p = { .fd = job->writer.fd };

        return job->page && poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP));
}

/* Sends FILLING, once: the job could use a larger pipe. */
static void waits(Job *job) {
        SupervisorJob *j = owner_of(job);

        if (++j->n_full == N_FULL_BEFORE_FILLING)
                report(job, &(Message) { .kind = MESSAGE_FILLING, .number = job->spec->number });
}

static void parked(Job *job, bool is_parked) {
        report(job, &(Message) {
                .kind = MESSAGE_PARKED,
                .parked = { .number = job->spec->number, .parked = is_parked },
        });
}

/* Sends PROGRESS, at most twice a second. */
static void progress(Job *job) {
        SupervisorJob *j = owner_of(job);
        uint64_t now = now_coarse_usec();

        if (now < j->progress_usec + PROGRESS_USEC)
                return;
        j->progress_usec = now;
        report(job, &(Message) {
                .kind = MESSAGE_PROGRESS,
                .progress = { .number = job->spec->number, .n_rows = job->sink.n_rows, .n_bytes = job->writer.total },
        });
}

/* Of each statement, if all of them took effect. */
static Bytes changes_of(const Job *job) {
        bool has_some = job->write.changes && job->error.error == ERROR_NONE;

        if (!has_some)
                return (Bytes) {};
        return (Bytes) { (const char *) job->write.changes, job->spec->n_statements * sizeof(int64_t) };
}

static Bytes watched_of(const Job *job, unsigned which) {
        return job->watched && job->error.error == ERROR_NONE ? job->watched[which] : (Bytes) {};
}

static void ended(Job *job, bool is_drained) {
        report(job, &(Message) {
                .kind = MESSAGE_ENDED,
                .ended = {
                        .number = job->spec->number,
                        .failure = sql_error_as_failure(&job->error),
                        .n_rows = job->sink.n_rows,
                        .n_bytes = job_bytes(job) + (is_drained ? 0 : job_end_size_left(job)),
                        .usec = now_usec() - job->taken_usec,
                        .drained = is_drained,
                        .wrote = job->counters.wrote,
                        .n_changes = job->counters.n_changes,
                        .last_rowid = job->counters.last_rowid,
                        .sequence = job->counters.sequence,
                        .foreign_keys = (uint32_t) job->counters.foreign_keys,
                        .changes = changes_of(job),
                        .tables = watched_of(job, 0),
                        .names = watched_of(job, 1),
                },
        });
}

/* Sends DRAINED: nothing is left to be written except `unread`, which the supervisor writes (size 0: none). */
static void report_drained(Job *job, Bytes unread) {
        report(job, &(Message) { .kind = MESSAGE_DRAINED, .drained = { .number = job->spec->number, .unread = unread } });
}

static void drained(Job *job) {
        report_drained(job, (Bytes) {});
}

/* A job that only drains must not keep a worker. */
static void hand_over(Job *job) {
        uint8_t *bytes;
        size_t size;

        if (job_take_unread(job, &bytes, &size) < 0) { /* there is no memory now: try again later */
                job->wait.drain_until_usec = now_usec() + job->context->setup->drain_usec;
                return;
        }
        report_drained(job, (Bytes) { .data = (const char *) bytes, .size = size });
        free(bytes);
        (void) job_set_state(job, JOB_OVER);
}

static const JobOwner owner = {
        .started = started,
        .write_page = write_page,
        .reader_left = reader_left,
        .waits = waits,
        .parked = parked,
        .progress = progress,
        .ended = ended,
        .drained = drained,
        .hand_over = hand_over,
};

/* ---- the task ---- */

static uint64_t next_usec(const Task *t) {
        return job_next_usec(t->job);
}

static void turn(Task *t) {
        (void) job_slice(t->job);
}

/* A job that can continue stays in the queue; any other must be settled. */
static bool on_time(Task *t, uint64_t now) {
        JobState before = t->job->state;

        job_on_time(t->job, now);
        return t->job->state != before && job_next_usec(t->job) > 0;
}

/* There is room in the pipe, or the reader has left: the job's slice will find out. The same holds for rows and the writer
 * of a load. */
static void on_events(TaskQueue *q, Task *t, uint32_t events) {
        supervisor_job_of(t)->load.waits = false;
        job_wake(t->job);
}

static void cancel(Task *t, ErrorNumber error, const char *message) {
        (void) job_end(t->job, error, message);
}

/* Waits for room in the pipe, or for rows; epoll reports errors of the pipe in any case. */
static int watch(TaskQueue *q, SupervisorJob *j, uint32_t events) {
        struct epoll_event e = { .events = events | EPOLLONESHOT, .data.ptr = &j->task };

        if (epoll_ctl(q->epoll_fd, j->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, j->received.pipe_fd, &e) < 0)
                return -errno;
        j->watched = true;
        return 0;
}

int supervisor_job_await_rows(TaskQueue *q, Task *t) {
        return watch(q, supervisor_job_of(t), EPOLLIN);
}

/* The pipe is also open in the supervisor, so closing our descriptor would not remove it from the epoll. */
static void unwatch(TaskQueue *q, SupervisorJob *j) {
        if (j->watched)
                (void) epoll_ctl(q->epoll_fd, EPOLL_CTL_DEL, j->received.pipe_fd, NULL);
        j->watched = false;
}

static int settle(TaskQueue *q, Task *t) {
        SupervisorJob *j = supervisor_job_of(t);
        JobState state = j->job.state;
        int r = 0;

        if (state == JOB_OVER) {
                unwatch(q, j);
                (void) supervisor_job_free(j);
                return 0;
        }
        if ((state == JOB_PARKED || state == JOB_DRAINING) && j->job.wait.again_usec == 0)
                r = watch(q, j, EPOLLOUT);
        else if (state == JOB_AWAITING)
                r = watch(q, j, 0);
        task_queue_append(q, t);
        return r;
}

static const TaskType task_type = {
        .next_usec = next_usec,
        .turn = turn,
        .on_time = on_time,
        .on_events = on_events,
        .cancel = cancel,
        .settle = settle,
};
