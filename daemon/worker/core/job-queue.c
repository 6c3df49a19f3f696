/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job-queue.h.
 */
#include "daemon/worker/core/job-queue.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/worker/core/channel-report.h"
#include "daemon/worker/core/channel-set.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/report.h"

#define LOOK_USEC (5 * USEC_PER_MSEC) /* between two checks of the sockets by the progress handler */
#define LEAVE_USEC (4 * USEC_PER_SEC) /* the time for work under way; after EXIT the supervisor kills soon after */
#define PAUSE_USEC (2 * USEC_PER_MSEC) /* about what it costs to start a worker */
#define N_EVENTS 32

/* User data of the epoll: a job, or the address of one of these. */
static const char job_event, control_event, timer_event;

/* ---- the queue ---- */

void job_queue_append(JobQueue *q, Job *job) {
        job->next = NULL;
        *q->last = job;
        q->last = &job->next;
        q->n_jobs++;
        if (job->channel)
                job->channel->queued = true;
}

static void prepend(JobQueue *q, Job *job) {
        job->next = q->first;
        q->first = job;
        if (!job->next)
                q->last = &job->next;
        q->n_jobs++;
}

static void unlink_run(JobQueue *q, Job **link) {
        Job *job = *link;

        *link = job->next;
        if (q->last == &job->next)
                q->last = link;
        job->next = NULL;
        q->n_jobs--;
        if (job->channel)
                job->channel->queued = false;
}

/* Sets the timer to fire at `usec`. It is for things that are due after seconds, so that no query needs to set it. */
void job_queue_arm(JobQueue *q, uint64_t usec) {
        struct itimerspec when = {
                .it_value = { .tv_sec = (time_t) (usec / USEC_PER_SEC), .tv_nsec = (long) (usec % USEC_PER_SEC) * 1000 },
        };

        if (timerfd_settime(q->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0)
                q->armed_usec = usec;
}

/* Waits for room in the pipe; epoll reports errors of the pipe in any case. */
static int watch(JobQueue *q, Job *job) {
        struct epoll_event e = { .events = EPOLLOUT | EPOLLONESHOT, .data.ptr = job };

        if (epoll_ctl(q->epoll_fd, job->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, job->received.pipe_fd, &e) < 0)
                return -errno;
        job->watched = true;
        return 0;
}

/* The pipe is also open in the supervisor, so closing our descriptor would not remove it from the epoll. */
static void unwatch(JobQueue *q, Job *job) {
        if (job->watched)
                (void) epoll_ctl(q->epoll_fd, EPOLL_CTL_DEL, job->received.pipe_fd, NULL);
        job->watched = false;
}

/* Acts on a job's new state. The job is not in the queue; it is put there again, or is freed. */
static int settle(JobQueue *q, Job *job) {
        int r = 0;

        if (job->channel)
                return channel_set_settle(q, job->channel);
        switch (job->state) {
        case JOB_OVER:
                unwatch(q, job);
                (void) job_free(job);
                return 0;
        case JOB_PARKED:
        case JOB_DRAINING:
                r = job->again_usec > 0 ? 0 : watch(q, job);
                break;
        case JOB_READY:
        case JOB_RETRY:
        case JOB_IDLE:
                break;
        }
        job_queue_append(q, job);
        return r;
}

/* ---- messages ---- */

/* The number by which the supervisor knows the job. */
static uint64_t number_of(const Job *job) {
        return job->channel ? job->channel->setup.number : job->spec->number;
}

void job_queue_take_out(JobQueue *q, Job *job) {
        Job **link = &q->first;

        while (*link != job)
                link = &(*link)->next;
        unlink_run(q, link);
}

static Job **find(JobQueue *q, uint64_t number) {
        for (Job **link = &q->first; *link; link = &(*link)->next)
                if (number_of(*link) == number)
                        return link;
        return NULL;
}

static int cancel(JobQueue *q, const Cancel *c) {
        Job **link, *job;

        if (q->current && number_of(q->current) == c->number) {
                /* it is inside its step: the progress handler interrupts it with this error */
                if (q->current->error.error == ERROR_NONE)
                        (void) sql_error_set(&q->current->error, c->error, "%s", c->message);
                return 0;
        }
        link = find(q, c->number);
        if (!link) /* it has just ended */
                return 0;
        job = *link;
        unlink_run(q, link);
        if (job->channel)
                served_channel_cancel(job->channel, c->error, c->message);
        else
                job_cancel(job, c->error, c->message);
        return settle(q, job);
}

/* Without memory only the job itself fails; other jobs continue. */
static int refuse_job(JobQueue *q, uint64_t number) {
        return report_send(q->control_fd, &(Message) {
                .kind = MESSAGE_ENDED,
                .ended = {
                        .number = number,
                        .failure = {
                                .error = ERROR_OUT_OF_MEMORY,
                                .sql_offset = -1,
                                .message = "the worker is out of memory",
                        },
                        .drained = true,
                },
        });
}

/* Begins a job, which is ours now; the job takes over what it needs of `m`. */
static int begin_job(JobQueue *q, ReceivedMessage *m) {
        uint64_t number = m->message.job.number;
        Job *job;

        if (job_new(&q->context, m, &job) < 0)
                return refuse_job(q, number);
        prepend(q, job);
        return 0;
}

static int add(JobQueue *q, int fd, uint32_t events, const void *what) {
        struct epoll_event e = { .events = events, .data.ptr = (void *) what };

        return epoll_ctl(q->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static int watch_jobs(JobQueue *q) {
        /* siblings wait on the same socket, and only one of them must wake up */
        return add(q, q->job_fd, EPOLLIN | EPOLLEXCLUSIVE, &job_event);
}

static int unwatch_jobs(JobQueue *q) {
        return epoll_ctl(q->epoll_fd, EPOLL_CTL_DEL, q->job_fd, NULL) < 0 ? -errno : 0;
}

static int retire(JobQueue *q) {
        bool watched = !q->retired && !q->context.leaving;

        q->retired = true;
        return watched ? unwatch_jobs(q) : 0;
}

static int leave(JobQueue *q, bool may_stay) {
        bool leaving = q->context.leaving;

        q->leave_usec = now_usec() + LEAVE_USEC;
        q->turn_usec = UINT64_MAX;
        q->may_stay = may_stay;
        if (leaving)
                return 0;
        q->context.leaving = true;
        channel_set_leave(q);
        return q->retired ? 0 : unwatch_jobs(q);
}

/* The work under way takes long, so the worker stays. It reports this work, so that the supervisor does not ask again at
 * once. */
static int stay(JobQueue *q) {
        int r;

        q->context.leaving = q->may_stay = false;
        q->leave_usec = UINT64_MAX;
        channel_set_report_progress(q);
        r = q->retired ? 0 : watch_jobs(q);
        return r < 0 ? r : report_send(q->control_fd, &(Message) { .kind = MESSAGE_STAY });
}

/* When a worker that was asked to give up its place does so. */
static uint64_t give_way_usec(const JobQueue *q) {
        uint64_t idle = channel_set_idle_since(q);

        return idle < q->turn_usec - PAUSE_USEC ? idle + PAUSE_USEC : q->turn_usec;
}

/* A request that has just come with its channel is still answered, unless `turn_usec` is 0. */
static int begin_giving_way(JobQueue *q, uint64_t turn_usec) {
        uint64_t soon = now_usec() + PAUSE_USEC, turn = q->started_usec + turn_usec;

        if (turn_usec == 0)
                return leave(q, true);
        if (!q->context.leaving)
                q->turn_usec = turn > soon ? turn : soon;
        return 0;
}

static int check_giving_way(JobQueue *q, uint64_t now) {
        return q->turn_usec != UINT64_MAX && now >= give_way_usec(q) ? leave(q, true) : 0;
}

/* Checks if the time for work under way has passed. */
static void check_leaving(JobQueue *q, uint64_t now) {
        if (now < q->leave_usec)
                return;
        if (!q->may_stay)
                q->exiting = true;
        else if (!q->context.report_error)
                q->context.report_error = stay(q);
}

static int handle_control(JobQueue *q, ReceivedMessage *m) {
        switch (m->message.kind) {
        case MESSAGE_PREPARE:
        case MESSAGE_RUN:
                return begin_job(q, m);
        case MESSAGE_CANCEL:
                return cancel(q, &m->message.cancel);
        case MESSAGE_CHANNEL:
                return channel_set_add(q, m);
        case MESSAGE_CHANNEL_CLOSE:
                return channel_set_close(q, &m->message.channel_close);
        case MESSAGE_PING:
                return report_send(q->control_fd, &(Message) { .kind = MESSAGE_PONG, .number = m->message.number });
        case MESSAGE_RETIRE:
                return retire(q);
        case MESSAGE_EXIT:
                return leave(q, false);
        case MESSAGE_GIVE_WAY:
                return begin_giving_way(q, m->message.number);
        default:
                return -EBADMSG;
        }
}

/* Reads all messages that wait on the control socket. */
static int read_control(JobQueue *q) {
        for (;;) {
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;
                int r = message_receive(q->control_fd, &m);

                if (r == -EAGAIN)
                        return 0;
                if (r == 0)
                        q->exiting = true;
                if (r <= 0)
                        return r;
                r = handle_control(q, &m);
                received_message_done(&m);
                if (r < 0)
                        return r;
        }
}

/* Takes one job, unless another worker of the group was faster. */
static int take_job(JobQueue *q) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        int r = message_receive(q->job_fd, &m);

        if (r == -EAGAIN)
                return 0;
        if (r == 0)
                q->exiting = true;
        if (r <= 0)
                return r;
        if (m.message.kind != MESSAGE_PREPARE && m.message.kind != MESSAGE_RUN) {
                received_message_done(&m);
                return -EBADMSG;
        }
        /* first of all: whatever happens to this process now, the supervisor knows whose job was lost */
        r = report_send(q->control_fd, &(Message) { .kind = MESSAGE_TAKEN, .number = m.message.job.number });
        if (r == 0)
                r = begin_job(q, &m);
        received_message_done(&m); /* without what the job took over */
        return r;
}

/* ---- epoll ---- */

typedef struct Woken {
        bool job, control, timer;
} Woken;

static void on_pipe(Job *job) {
        /* there is room, or the reader has left: the job's slice will find out */
        if (job->state == JOB_PARKED || job->state == JOB_DRAINING)
                job->state = JOB_READY;
}

/* Waits for at most `msec`. Returns the number of events, or -errno. Marks jobs that can continue; frees nothing. */
static int wait_events(JobQueue *q, int msec, Woken *ret) {
        struct epoll_event events[N_EVENTS];
        int n = epoll_wait(q->epoll_fd, events, N_EVENTS, msec);

        *ret = (Woken) {};
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        for (int i = 0; i < n; i++) {
                Job *job = events[i].data.ptr;

                if (events[i].data.ptr == &job_event)
                        ret->job = true;
                else if (events[i].data.ptr == &control_event)
                        ret->control = true;
                else if (events[i].data.ptr == &timer_event)
                        ret->timer = true;
                else if (job->channel)
                        channel_set_on_events(q, job->channel, events[i].events);
                else
                        on_pipe(job);
        }
        return n;
}

/* ---- time ---- */

/* Called from inside a step, every few milliseconds. */
static void look_around(JobQueue *q) {
        ServedChannel *c = q->current->channel;
        Woken woken;

        if (wait_events(q, 0, &woken) < 0 || (woken.control && read_control(q) < 0))
                q->exiting = true;
        channel_set_give_away(q);
        if (!c)
                return;
        channel_report_progress(c, now_coarse_usec());
        served_channel_look(c);
        if (c->input.cancelled && q->current->error.error == ERROR_NONE)
                (void) sql_error_set(&q->current->error, ERROR_CANCELLED, "the query was cancelled");
}

static int on_progress(void *userdata) {
        JobQueue *q = userdata;
        uint64_t now;
        bool look;

        if (!q->current)
                return 0;
        now = now_usec();
        look = now - q->looked_usec >= LOOK_USEC;
        if (look) {
                q->looked_usec = now;
                look_around(q);
        }
        if (check_giving_way(q, now) < 0)
                q->exiting = true;
        check_leaving(q, now);
        if (q->exiting && q->current->error.error == ERROR_NONE)
                (void) sql_error_set(&q->current->error, ERROR_SHUTTING_DOWN, "the service is stopping: ask again");
        return job_on_progress(q->current, now, look);
}

static int handle_times(JobQueue *q, uint64_t now) {
        for (Job **link = &q->first; *link;) {
                Job *job = *link;
                JobState before = job->state;
                int r;

                if (job->channel)
                        served_channel_on_time(job->channel, now);
                else
                        job_on_time(job, now);
                if (job->state == before || job->state == JOB_READY) {
                        link = &job->next;
                        continue;
                }
                unlink_run(q, link);
                r = settle(q, job);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Milliseconds for epoll_wait(): 0 if a job can continue. */
static int wait_msec(const JobQueue *q) {
        uint64_t next = q->turn_usec == UINT64_MAX ? q->leave_usec : give_way_usec(q), now;

        for (const Job *job = q->first; job; job = job->next) {
                uint64_t t = job_next_usec(job);

                if (t == 0)
                        return 0;
                if (t < next)
                        next = t;
        }
        if (next == UINT64_MAX)
                return -1;
        now = now_usec();
        if (next <= now)
                return 0;
        return next - now > 60 * USEC_PER_SEC ? 60000 : (int) ((next - now) / 1000) + 1;
}

/* Frees what was kept for work that did not come; if nothing is left to do, returns memory to the kernel, too. */
static void on_timer(JobQueue *q) {
        uint64_t now = now_coarse_usec(), next, channels;
        uint64_t n;

        (void) read(q->timer_fd, &n, sizeof n);
        q->armed_usec = UINT64_MAX;
        next = pool_expire(&q->pool, now);
        channels = channel_set_expire(q, now);
        if (channels < next)
                next = channels;
        if (next != UINT64_MAX)
                job_queue_arm(q, next);
        else if (q->n_jobs == 0) {
                job_context_trim(&q->context);
                (void) malloc_trim(0);
        }
}

/* ---- the loop ---- */

/* Gives a slice to the first job that can continue, and puts it at the end of the queue. */
static int run_one(JobQueue *q, uint64_t now) {
        for (Job **link = &q->first; *link; link = &(*link)->next) {
                Job *job = *link;

                if (job->state != JOB_READY)
                        continue;
                unlink_run(q, link);
                q->current = job;
                q->looked_usec = now;
                looking_on_turn(&q->looking, job->channel ? job->channel->setup.number : 0);
                if (job->channel)
                        (void) served_channel_turn(job->channel);
                else
                        (void) job_slice(job);
                q->current = NULL;
                if (q->pool.idle && q->armed_usec == UINT64_MAX)
                        job_queue_arm(q, pool_expire(&q->pool, now));
                return settle(q, job);
        }
        return 0;
}

/* Polls for a moment. Returns the number of events, or -errno. */
static int look_for_events(JobQueue *q, Woken *ret) {
        uint64_t until = now_usec() + LOOKING_USEC;
        int n;

        do {
                (void) sched_yield();
                n = wait_events(q, 0, ret);
        } while (n == 0 && now_usec() < until);
        looking_on_looked(&q->looking, n > 0);
        return n;
}

/* Waits until there is something to do. */
static int wait_for_work(JobQueue *q, Woken *ret) {
        int msec = wait_msec(q), n = 0;

        if (msec != 0 && looking_begins(&q->looking))
                n = look_for_events(q, ret);
        if (n == 0)
                n = wait_events(q, msec, ret);
        return n < 0 ? n : 0;
}

static int turn(JobQueue *q) {
        Woken woken;
        uint64_t now;
        int r = wait_for_work(q, &woken);

        now = now_usec();
        if (r == 0 && woken.control)
                r = read_control(q);
        if (r == 0)
                r = check_giving_way(q, now);
        check_leaving(q, now);
        if (r == 0 && !q->exiting)
                r = handle_times(q, now);
        if (r == 0 && !q->exiting && woken.timer)
                on_timer(q);
        if (r == 0 && !q->exiting && !q->context.leaving && !q->retired && woken.job)
                r = take_job(q);
        if (r == 0 && !q->exiting)
                r = run_one(q, now);
        return r == 0 ? q->context.report_error : r;
}

static bool is_over(const JobQueue *q) {
        return q->exiting || (q->context.leaving && !q->first && !q->channels);
}

int job_queue_run(JobQueue *q) {
        int r = 0;

        while (!is_over(q) && r == 0)
                r = turn(q);
        if (r == -EPIPE || r == -ECONNRESET) /* the supervisor is gone */
                r = 0;
        if (r == 0)
                channel_set_end(q);
        return r;
}

int job_queue_init(JobQueue *q, int job_fd, int control_fd, ReceivedMessage *setup) {
        int r;

        *q = (JobQueue) {
                .job_fd = job_fd,
                .control_fd = control_fd,
                .timer_fd = -1,
                .setup = *setup,
                .last = &q->first,
                .armed_usec = UINT64_MAX,
                .leave_usec = UINT64_MAX,
                .started_usec = now_usec(),
                .turn_usec = UINT64_MAX,
        };
        *setup = RECEIVED_MESSAGE_INIT;
        q->context = (JobContext) { .setup = &q->setup.message.setup, .pool = &q->pool, .control_fd = control_fd };
        q->pool = (Pool) { .setup = q->context.setup, .progress = on_progress, .userdata = q };
        q->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        q->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (q->epoll_fd < 0 || q->timer_fd < 0)
                return -errno;
        r = watch_jobs(q);
        if (r == 0)
                r = add(q, control_fd, EPOLLIN, &control_event);
        return r < 0 ? r : add(q, q->timer_fd, EPOLLIN, &timer_event);
}

void job_queue_done(JobQueue *q) {
        while (q->first) {
                Job *job = q->first;

                unlink_run(q, &q->first);
                if (!job->channel)
                        (void) job_free(job);
        }
        channel_set_free(q);
        pool_done(&q->pool);
        job_context_trim(&q->context);
        received_message_done(&q->setup);
        if (q->timer_fd >= 0)
                (void) close(q->timer_fd);
        if (q->epoll_fd >= 0)
                (void) close(q->epoll_fd);
}
