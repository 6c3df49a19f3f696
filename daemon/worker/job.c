/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job.h.
 */
#include "daemon/worker/job.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/worker/channel-report.h"
#include "daemon/worker/clock.h"
#include "daemon/worker/job-channels.h"
#include "daemon/worker/report.h"

#define LOOK_USEC (5 * USEC_PER_MSEC) /* between two checks of the sockets by the progress handler */
#define LEAVE_USEC (4 * USEC_PER_SEC) /* the time for work under way; after EXIT the supervisor kills soon after */
#define PAUSE_USEC (2 * USEC_PER_MSEC) /* about what it costs to start a worker */
#define N_EVENTS 32

/* User data of the epoll: a run, or the address of one of these. */
static const char job_event, control_event, timer_event;

/* ---- the queue ---- */

void job_queue_append(JobQueue *q, Run *run) {
        run->next = NULL;
        *q->last = run;
        q->last = &run->next;
        q->n_runs++;
        if (run->channel)
                run->channel->queued = true;
}

static void prepend(JobQueue *q, Run *run) {
        run->next = q->first;
        q->first = run;
        if (!run->next)
                q->last = &run->next;
        q->n_runs++;
}

static void unlink_run(JobQueue *q, Run **link) {
        Run *run = *link;

        *link = run->next;
        if (q->last == &run->next)
                q->last = link;
        run->next = NULL;
        q->n_runs--;
        if (run->channel)
                run->channel->queued = false;
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
static int watch(JobQueue *q, Run *run) {
        struct epoll_event e = { .events = EPOLLOUT | EPOLLONESHOT, .data.ptr = run };

        if (epoll_ctl(q->epoll_fd, run->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, run->received.pipe_fd, &e) < 0)
                return -errno;
        run->watched = true;
        return 0;
}

/* The pipe is also open in the supervisor, so closing our descriptor would not remove it from the epoll. */
static void unwatch(JobQueue *q, Run *run) {
        if (run->watched)
                (void) epoll_ctl(q->epoll_fd, EPOLL_CTL_DEL, run->received.pipe_fd, NULL);
        run->watched = false;
}

/* Acts on a run's new state. The run is not in the queue; it is put there again, or is freed. */
static int settle(JobQueue *q, Run *run) {
        int r = 0;

        if (run->channel)
                return channels_settle(q, run->channel);
        switch (run->state) {
        case RUN_OVER:
                unwatch(q, run);
                (void) run_free(run);
                return 0;
        case RUN_PARKED:
        case RUN_DRAINING:
                r = run->again_usec > 0 ? 0 : watch(q, run);
                break;
        case RUN_READY:
        case RUN_RETRY:
        case RUN_IDLE:
                break;
        }
        job_queue_append(q, run);
        return r;
}

/* ---- messages ---- */

/* The number by which the supervisor knows the run. */
static uint64_t number_of(const Run *run) {
        return run->channel ? run->channel->setup.number : run->job->number;
}

void job_queue_take_out(JobQueue *q, Run *run) {
        Run **link = &q->first;

        while (*link != run)
                link = &(*link)->next;
        unlink_run(q, link);
}

static Run **find(JobQueue *q, uint64_t number) {
        for (Run **link = &q->first; *link; link = &(*link)->next)
                if (number_of(*link) == number)
                        return link;
        return NULL;
}

static int cancel(JobQueue *q, const Cancel *c) {
        Run **link, *run;

        if (q->current && number_of(q->current) == c->number) {
                /* it is inside its step: the progress handler interrupts it with this error */
                if (q->current->error.error == ERROR_NONE)
                        (void) sql_error_set(&q->current->error, c->error, "%s", c->message);
                return 0;
        }
        link = find(q, c->number);
        if (!link) /* it has just ended */
                return 0;
        run = *link;
        unlink_run(q, link);
        if (run->channel)
                channel_cancel(run->channel, c->error, c->message);
        else
                run_cancel(run, c->error, c->message);
        return settle(q, run);
}

/* Without memory only the job itself fails; other runs continue. */
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

/* Begins a job, which is ours now; the run takes over what it needs of `m`. */
static int begin_job(JobQueue *q, ReceivedMessage *m) {
        uint64_t number = m->message.job.number;
        Run *run;

        if (run_new(&q->context, m, &run) < 0)
                return refuse_job(q, number);
        prepend(q, run);
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
        channels_leave(q);
        return q->retired ? 0 : unwatch_jobs(q);
}

/* The work under way takes long, so the worker stays. It reports this work, so that the supervisor does not ask again at
 * once. */
static int stay(JobQueue *q) {
        int r;

        q->context.leaving = q->may_stay = false;
        q->leave_usec = UINT64_MAX;
        channels_report_progress(q);
        r = q->retired ? 0 : watch_jobs(q);
        return r < 0 ? r : report_send(q->control_fd, &(Message) { .kind = MESSAGE_STAY });
}

/* When a worker that was asked to give up its place does so. */
static uint64_t give_way_usec(const JobQueue *q) {
        uint64_t idle = channels_idle_since(q);

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
                return channels_add(q, m);
        case MESSAGE_CHANNEL_CLOSE:
                return channels_close(q, &m->message.channel_close);
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
        received_message_done(&m); /* without what the run took over */
        return r;
}

/* ---- epoll ---- */

typedef struct Woken {
        bool job, control, timer;
} Woken;

static void on_pipe(Run *run) {
        /* there is room, or the reader has left: the run's slice will find out */
        if (run->state == RUN_PARKED || run->state == RUN_DRAINING)
                run->state = RUN_READY;
}

/* Waits for at most `msec`. Returns the number of events, or -errno. Marks runs that can continue; frees nothing. */
static int wait_events(JobQueue *q, int msec, Woken *ret) {
        struct epoll_event events[N_EVENTS];
        int n = epoll_wait(q->epoll_fd, events, N_EVENTS, msec);

        *ret = (Woken) {};
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        for (int i = 0; i < n; i++) {
                Run *run = events[i].data.ptr;

                if (events[i].data.ptr == &job_event)
                        ret->job = true;
                else if (events[i].data.ptr == &control_event)
                        ret->control = true;
                else if (events[i].data.ptr == &timer_event)
                        ret->timer = true;
                else if (run->channel)
                        channels_on_events(q, run->channel, events[i].events);
                else
                        on_pipe(run);
        }
        return n;
}

/* ---- time ---- */

/* Called from inside a step, every few milliseconds. */
static void look_around(JobQueue *q) {
        Channel *c = q->current->channel;
        Woken woken;

        if (wait_events(q, 0, &woken) < 0 || (woken.control && read_control(q) < 0))
                q->exiting = true;
        channels_give_away(q);
        if (!c)
                return;
        channel_report_progress(c, now_coarse_usec());
        channel_look(c);
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
        return run_on_progress(q->current, now, look);
}

static int handle_times(JobQueue *q, uint64_t now) {
        for (Run **link = &q->first; *link;) {
                Run *run = *link;
                RunState before = run->state;
                int r;

                if (run->channel)
                        channel_on_time(run->channel, now);
                else
                        run_on_time(run, now);
                if (run->state == before || run->state == RUN_READY) {
                        link = &run->next;
                        continue;
                }
                unlink_run(q, link);
                r = settle(q, run);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Milliseconds for epoll_wait(): 0 if a run can continue. */
static int wait_msec(const JobQueue *q) {
        uint64_t next = q->turn_usec == UINT64_MAX ? q->leave_usec : give_way_usec(q), now;

        for (const Run *run = q->first; run; run = run->next) {
                uint64_t t = run_next_usec(run);

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
        channels = channels_expire(q, now);
        if (channels < next)
                next = channels;
        if (next != UINT64_MAX)
                job_queue_arm(q, next);
        else if (q->n_runs == 0) {
                run_context_trim(&q->context);
                (void) malloc_trim(0);
        }
}

/* ---- the loop ---- */

/* Gives a slice to the first run that can continue, and puts it at the end of the queue. */
static int run_one(JobQueue *q, uint64_t now) {
        for (Run **link = &q->first; *link; link = &(*link)->next) {
                Run *run = *link;

                if (run->state != RUN_READY)
                        continue;
                unlink_run(q, link);
                q->current = run;
                q->looked_usec = now;
                looking_on_turn(&q->looking, run->channel ? run->channel->setup.number : 0);
                if (run->channel)
                        (void) channel_turn(run->channel);
                else
                        (void) run_slice(run);
                q->current = NULL;
                if (q->pool.idle && q->armed_usec == UINT64_MAX)
                        job_queue_arm(q, pool_expire(&q->pool, now));
                return settle(q, run);
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
                channels_end(q);
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
        q->context = (RunContext) { .setup = &q->setup.message.setup, .pool = &q->pool, .control_fd = control_fd };
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
                Run *run = q->first;

                unlink_run(q, &q->first);
                if (!run->channel)
                        (void) run_free(run);
        }
        channels_free(q);
        pool_done(&q->pool);
        run_context_trim(&q->context);
        received_message_done(&q->setup);
        if (q->timer_fd >= 0)
                (void) close(q->timer_fd);
        if (q->epoll_fd >= 0)
                (void) close(q->epoll_fd);
}
