/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See supervisor-job.h. From top to bottom: creation and destruction, the owner of the job, the task.
 */
#include "daemon/worker/core/supervisor-job.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "daemon/worker/core/job-end.h"
#include "daemon/worker/core/job-slice.h"
#include "daemon/worker/core/job-time.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/report.h"
#include "daemon/worker/core/statement-frames.h"

#define PROGRESS_USEC (500 * USEC_PER_MSEC) /* between two reports of progress */
#define LACK_USEC (10 * USEC_PER_MSEC)      /* until the next attempt if the kernel has no memory for a pipe */
#define N_FULL_BEFORE_FILLING 2             /* the pipe must be full so often before FILLING is sent, once */

static const JobOwner owner;
static const TaskType task_type;

/* ---- creation and destruction ---- */

static void begin_load(SupervisorJob *j) {
        const JobSpec *spec = &j->received.message.job;

        load_init(&j->load, j->received.pipe_fd, spec->page_size, spec->row_size_max);
        j->job.load = &j->load;
}

static int init(SupervisorJob *j, JobContext *context, const ReceivedMessage *received) {
        const JobSpec *spec = &received->message.job;
        bool has_page = received->message.kind == MESSAGE_RUN, is_batch = received->message.kind == MESSAGE_EXECUTE_BATCH;

        if (is_batch)
                j->changes = calloc(spec->n_statements, sizeof(int64_t));
        if (is_batch && !j->changes)
                return -ENOMEM;
        return job_init(&j->job, &j->task, &owner, context, received->pipe_fd, has_page ? spec->page_size : 0);
}

int supervisor_job_new(JobContext *context, ReceivedMessage *received, SupervisorJob **ret) {
        MessageKind received_kind = received->message.kind;
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
        j->job.write.changes = j->changes;
        j->job.watched = received_kind == MESSAGE_TABLES ? j->found : NULL;
        j->task = (Task) { .type = &task_type, .job = &j->job, .number = j->received.message.job.number };
        job_begin(&j->job, &j->received.message.job, is_prepare, NULL);
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
