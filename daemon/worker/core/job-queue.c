/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job-queue.h.
 */
#include "daemon/worker/core/job-queue.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon/worker/core/job-slice.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/report.h"
#include "daemon/worker/core/supervisor-job.h"

#define LOOK_USEC (5 * USEC_PER_MSEC) /* between two checks of the sockets by the progress handler */
#define LEAVE_USEC (4 * USEC_PER_SEC) /* the time for work under way; after EXIT the supervisor kills soon after */
#define PAUSE_USEC (2 * USEC_PER_MSEC) /* about what it costs to start a worker */
#define N_EVENTS 32

/* User data of the epoll: a task, or the address of one of these. */
static const char job_event, control_event, timer_event;

/* ---- messages ---- */

static Task **find(JobQueue *q, uint64_t number) {
        for (Task **link = &q->tasks.first; *link; link = &(*link)->next)
                if ((*link)->number == number)
                        return link;
        return NULL;
}

/* Sets the error with which the progress handler interrupts the task that is inside its step. */
static void interrupt(JobQueue *q, ErrorNumber error, const char *message) {
        Job *job = q->tasks.current->job;

        if (job->error.error == ERROR_NONE)
                (void) sql_error_set(&job->error, error, "%s", message);
}

static int cancel(JobQueue *q, const Cancel *c) {
        Task **link, *t;

        if (q->tasks.current && q->tasks.current->number == c->number) {
                interrupt(q, c->error, c->message);
                return 0;
        }
        link = find(q, c->number);
        if (!link) /* it has just ended */
                return 0;
        t = *link;
        task_queue_unlink(&q->tasks, link);
        t->type->cancel(t, c->error, c->message);
        return t->type->settle(&q->tasks, t);
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
        SupervisorJob *j;

        if (supervisor_job_new(&q->context, m, &j) < 0)
                return refuse_job(q, number);
        task_queue_prepend(&q->tasks, &j->task);
        return 0;
}

static int add(JobQueue *q, int fd, uint32_t events, const void *what) {
        struct epoll_event e = { .events = events, .data.ptr = (void *) what };

        return epoll_ctl(q->tasks.epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static int watch_jobs(JobQueue *q) {
        /* siblings wait on the same socket, and only one of them must wake up */
        return add(q, q->job_fd, EPOLLIN | EPOLLEXCLUSIVE, &job_event);
}

static int unwatch_jobs(JobQueue *q) {
        return epoll_ctl(q->tasks.epoll_fd, EPOLL_CTL_DEL, q->job_fd, NULL) < 0 ? -errno : 0;
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
        channel_set_leave(&q->channels);
        return q->retired ? 0 : unwatch_jobs(q);
}

/* The work under way takes long, so the worker stays. It reports this work, so that the supervisor does not ask again at
 * once. */
static int stay(JobQueue *q) {
        int r;

        q->context.leaving = q->may_stay = false;
        q->leave_usec = UINT64_MAX;
        channel_set_report_progress(&q->channels);
        r = q->retired ? 0 : watch_jobs(q);
        return r < 0 ? r : report_send(q->control_fd, &(Message) { .kind = MESSAGE_STAY });
}

/* When a worker that was asked to give up its place does so. */
static uint64_t give_way_usec(const JobQueue *q) {
        uint64_t idle = channel_set_idle_since(&q->channels);

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
                return channel_set_add(&q->channels, m);
        case MESSAGE_CHANNEL_CLOSE:
                return channel_set_close(&q->channels, &m->message.channel_close);
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

/* Waits for at most `msec`. Returns the number of events, or -errno. Marks tasks that can continue; frees nothing. */
static int wait_events(JobQueue *q, int msec, Woken *ret) {
        struct epoll_event events[N_EVENTS];
        int n = epoll_wait(q->tasks.epoll_fd, events, N_EVENTS, msec);

        *ret = (Woken) {};
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        for (int i = 0; i < n; i++) {
                Task *t = events[i].data.ptr;

                if (events[i].data.ptr == &job_event)
                        ret->job = true;
                else if (events[i].data.ptr == &control_event)
                        ret->control = true;
                else if (events[i].data.ptr == &timer_event)
                        ret->timer = true;
                else
                        t->type->on_events(&q->tasks, t, events[i].events);
        }
        return n;
}

/* ---- time ---- */

/* Called from inside a step, every few milliseconds. */
static void look_around(JobQueue *q) {
        Task *t = q->tasks.current;
        Woken woken;

        if (wait_events(q, 0, &woken) < 0 || (woken.control && read_control(q) < 0))
                q->exiting = true;
        channel_set_give_away(&q->channels);
        if (t->type->look)
                t->type->look(t);
}

static int on_progress(void *userdata) {
        JobQueue *q = userdata;
        uint64_t now;
        bool look;

        if (!q->tasks.current)
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
        if (q->exiting)
                interrupt(q, ERROR_SHUTTING_DOWN, "the service is stopping: ask again");
        return job_on_progress(q->tasks.current->job, now, look);
}

static int handle_times(JobQueue *q, uint64_t now) {
        for (Task **link = &q->tasks.first; *link;) {
                Task *t = *link;
                int r;

                if (!t->type->on_time(t, now)) {
                        link = &t->next;
                        continue;
                }
                task_queue_unlink(&q->tasks, link);
                r = t->type->settle(&q->tasks, t);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Milliseconds for epoll_wait(): 0 if a task can continue. */
static int wait_msec(const JobQueue *q) {
        uint64_t next = q->turn_usec == UINT64_MAX ? q->leave_usec : give_way_usec(q), now;

        for (const Task *t = q->tasks.first; t; t = t->next) {
                uint64_t usec = t->type->next_usec(t);

                if (usec == 0)
                        return 0;
                if (usec < next)
                        next = usec;
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

        (void) read(q->tasks.timer_fd, &n, sizeof n);
        q->tasks.armed_usec = UINT64_MAX;
        next = q->context.engine->expire(q->context.pool, now);
        channels = channel_set_expire(&q->channels, now);
        if (channels < next)
                next = channels;
        if (next != UINT64_MAX)
                task_queue_arm(&q->tasks, next);
        else if (!q->tasks.first) {
                job_context_trim(&q->context);
                (void) malloc_trim(0);
        }
}

/* ---- the loop ---- */

/* Has idle connections closed after a while. */
static void arm_for_connections(JobQueue *q, uint64_t now) {
        uint64_t next = q->context.engine->expire(q->context.pool, now);

        if (next != UINT64_MAX)
                task_queue_arm(&q->tasks, next);
}

/* Gives a turn to the first task that can continue, and puts it at the end of the queue. */
static int run_one(JobQueue *q, uint64_t now) {
        for (Task **link = &q->tasks.first; *link; link = &(*link)->next) {
                Task *t = *link;

                if (t->type->next_usec(t) > 0)
                        continue;
                task_queue_unlink(&q->tasks, link);
                q->tasks.current = t;
                q->looked_usec = now;
                looking_on_turn(&q->looking, t->type->may_poll ? t->number : 0);
                t->type->turn(t);
                q->tasks.current = NULL;
                if (q->tasks.armed_usec == UINT64_MAX)
                        arm_for_connections(q, now);
                return t->type->settle(&q->tasks, t);
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
        return q->exiting || (q->context.leaving && !q->tasks.first && !q->channels.first);
}

int job_queue_run(JobQueue *q) {
        int r = 0;

        while (!is_over(q) && r == 0)
                r = turn(q);
        if (r == -EPIPE || r == -ECONNRESET) /* the supervisor is gone */
                r = 0;
        if (r == 0)
                channel_set_end(&q->channels);
        return r;
}

int job_queue_init(JobQueue *q, const Engine *engine, int job_fd, int control_fd, ReceivedMessage *setup) {
        int r;

        *q = (JobQueue) {
                .job_fd = job_fd,
                .control_fd = control_fd,
                .setup = *setup,
                .leave_usec = UINT64_MAX,
                .started_usec = now_usec(),
                .turn_usec = UINT64_MAX,
        };
        *setup = RECEIVED_MESSAGE_INIT;
        q->context = (JobContext) { .setup = &q->setup.message.setup, .engine = engine, .control_fd = control_fd };
        q->channels = (ChannelSet) { .tasks = &q->tasks, .context = &q->context };
        r = task_queue_init(&q->tasks);
        if (r == 0)
                r = engine->start(q->context.setup, on_progress, q, &q->context.pool);
        if (r == 0)
                r = watch_jobs(q);
        if (r == 0)
                r = add(q, control_fd, EPOLLIN, &control_event);
        return r < 0 ? r : add(q, q->tasks.timer_fd, EPOLLIN, &timer_event);
}

void job_queue_done(JobQueue *q) {
        channel_set_free(&q->channels);
        while (q->tasks.first) { /* only jobs from the supervisor are left */
                Task *t = q->tasks.first;

                task_queue_unlink(&q->tasks, &q->tasks.first);
                (void) supervisor_job_free(supervisor_job_of(t));
        }
        q->context.engine->stop(q->context.pool);
        job_context_trim(&q->context);
        received_message_done(&q->setup);
        task_queue_done(&q->tasks);
}
