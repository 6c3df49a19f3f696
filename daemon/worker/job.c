/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job.h.
 */
#include "job.h"

#include <errno.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "report.h"

#define LOOK_USEC (5 * USEC_PER_MSEC) /* between two looks of the progress handler at the world outside */
#define N_EVENTS 32

/* epoll's user data: a run, or one of these. */
static const char job_event, control_event;

/* ---- the queue ---- */

static void append(JobQueue *q, Run *run) {
        run->next = NULL;
        *q->last = run;
        q->last = &run->next;
        q->n_runs++;
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
}

/* Waits for room in the pipe; an error of the pipe is told in any case. */
static int watch(JobQueue *q, Run *run) {
        struct epoll_event e = { .events = EPOLLOUT | EPOLLONESHOT, .data.ptr = run };

        if (epoll_ctl(q->epoll_fd, run->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, run->received.pipe_fd, &e) < 0)
                return -errno;
        run->watched = true;
        return 0;
}

/* The pipe is open in the supervisor too, so closing our descriptor would leave it in the epoll. */
static void unwatch(JobQueue *q, Run *run) {
        if (run->watched)
                (void) epoll_ctl(q->epoll_fd, EPOLL_CTL_DEL, run->received.pipe_fd, NULL);
        run->watched = false;
}

/* What a run's new state asks for; the run is not in the queue and goes back there, or is freed. */
static int settle(JobQueue *q, Run *run) {
        int r = 0;

        switch (run->state) {
        case RUN_OVER:
                unwatch(q, run);
                (void) run_free(run);
                return 0;
        case RUN_PARKED:
        case RUN_DRAINING:
                r = watch(q, run);
                break;
        case RUN_READY:
        case RUN_RETRY:
                break;
        }
        append(q, run);
        return r;
}

/* ---- messages ---- */

static Run **find(JobQueue *q, uint64_t number) {
        for (Run **link = &q->first; *link; link = &(*link)->next)
                if ((*link)->job->number == number)
                        return link;
        return NULL;
}

static int cancel(JobQueue *q, const Cancel *c) {
        Run **link, *run;

        if (q->current && q->current->job->number == c->number) {
                /* inside its step: the progress handler interrupts it with this error */
                if (q->current->error.error == ERROR_NONE)
                        (void) sql_error_set(&q->current->error, c->error, "%s", c->message);
                return 0;
        }
        link = find(q, c->number);
        if (!link) /* it has just ended */
                return 0;
        run = *link;
        unlink_run(q, link);
        run_cancel(run, c->error, c->message);
        return settle(q, run);
}

/* All that waits on the control socket: cancels and exit. */
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
                if (m.message.kind == MESSAGE_CANCEL)
                        r = cancel(q, &m.message.cancel);
                else if (m.message.kind == MESSAGE_EXIT)
                        q->exiting = true;
                else
                        r = -EBADMSG;
                received_message_done(&m);
                if (r < 0)
                        return r;
        }
}

/* A job that there is no memory for fails alone: other runs go on. */
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

/* One job, if nobody else of the group was faster. */
static int take_job(JobQueue *q) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        Run *run = NULL;
        uint64_t number;
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
        number = m.message.job.number;
        /* first of all: whatever happens to us from here on, the supervisor knows whose job was lost */
        r = report_send(q->control_fd, &(Message) { .kind = MESSAGE_TAKEN, .number = number });
        if (r == 0 && run_new(&q->context, &m, &run) == 0)
                prepend(q, run);
        else if (r == 0)
                r = refuse_job(q, number);
        received_message_done(&m); /* what a run took over is no longer in it */
        return r;
}

/* ---- time ---- */

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
                if (read_control(q) < 0)
                        q->exiting = true;
        }
        if (q->exiting && q->current->error.error == ERROR_NONE)
                (void) sql_error_set(&q->current->error, ERROR_SHUTTING_DOWN, "the service is stopping: ask again");
        return run_on_progress(q->current, now, look);
}

static int handle_times(JobQueue *q, uint64_t now) {
        for (Run **link = &q->first; *link;) {
                Run *run = *link;
                RunState before = run->state;
                int r;

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

/* Milliseconds for epoll_wait(): 0 if a run can go on. */
static int wait_msec(JobQueue *q, uint64_t now) {
        uint64_t next = pool_expire(&q->pool, now);

        for (Run *run = q->first; run; run = run->next) {
                uint64_t t = run_next_usec(run);

                if (t < next)
                        next = t;
        }
        if (next == UINT64_MAX)
                return -1;
        if (next <= now)
                return 0;
        return next - now > 60 * USEC_PER_SEC ? 60000 : (int) ((next - now) / 1000) + 1;
}

/* ---- the loop ---- */

/* The first run that can go on gets a slice, and goes to the end of the queue. */
static int run_one(JobQueue *q) {
        for (Run **link = &q->first; *link; link = &(*link)->next) {
                Run *run = *link;

                if (run->state != RUN_READY)
                        continue;
                unlink_run(q, link);
                q->current = run;
                q->looked_usec = now_usec();
                (void) run_slice(run);
                q->current = NULL;
                return settle(q, run);
        }
        return 0;
}

static void on_pipe(Run *run) {
        /* room, or the reader left: its slice will find out which */
        if (run->state == RUN_PARKED || run->state == RUN_DRAINING)
                run->state = RUN_READY;
}

/* Nothing to do, and so for long that connections are due to be closed. */
static void rest(JobQueue *q) {
        (void) pool_expire(&q->pool, now_usec());
        run_context_trim(&q->context);
        (void) malloc_trim(0);
}

int job_queue_run(JobQueue *q) {
        while (!q->exiting) {
                struct epoll_event events[N_EVENTS];
                bool job = false, control = false;
                int n, r = 0;

                n = epoll_wait(q->epoll_fd, events, N_EVENTS, wait_msec(q, now_usec()));
                if (n < 0 && errno != EINTR)
                        return -errno;
                for (int i = 0; i < n; i++) {
                        if (events[i].data.ptr == &job_event)
                                job = true;
                        else if (events[i].data.ptr == &control_event)
                                control = true;
                        else
                                on_pipe(events[i].data.ptr);
                }
                /* after the pipes: these may free runs */
                if (control)
                        r = read_control(q);
                if (r == 0 && !q->exiting)
                        r = handle_times(q, now_usec());
                if (r == 0 && !q->exiting && job)
                        r = take_job(q);
                if (r == 0 && !q->exiting)
                        r = run_one(q);
                if (r == 0)
                        r = q->context.report_error;
                if (r == -EPIPE || r == -ECONNRESET) /* the supervisor is gone */
                        return 0;
                if (r < 0)
                        return r;
                if (n == 0 && q->n_runs == 0)
                        rest(q);
        }
        return 0;
}

static int add(JobQueue *q, int fd, uint32_t events, const void *what) {
        struct epoll_event e = { .events = events, .data.ptr = (void *) what };

        return epoll_ctl(q->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

int job_queue_init(JobQueue *q, int job_fd, int control_fd, ReceivedMessage *setup) {
        int r;

        *q = (JobQueue) { .job_fd = job_fd, .control_fd = control_fd, .setup = *setup, .last = &q->first };
        *setup = RECEIVED_MESSAGE_INIT;
        q->context = (RunContext) { .setup = &q->setup.message.setup, .pool = &q->pool, .control_fd = control_fd };
        q->pool = (Pool) { .setup = q->context.setup, .progress = on_progress, .userdata = q };
        q->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (q->epoll_fd < 0)
                return -errno;
        /* siblings wait on the same socket: one of them is enough */
        r = add(q, job_fd, EPOLLIN | EPOLLEXCLUSIVE, &job_event);
        return r < 0 ? r : add(q, control_fd, EPOLLIN, &control_event);
}

void job_queue_done(JobQueue *q) {
        while (q->first) {
                Run *run = q->first;

                unlink_run(q, &q->first);
                (void) run_free(run);
        }
        pool_done(&q->pool);
        run_context_trim(&q->context);
        received_message_done(&q->setup);
        if (q->epoll_fd >= 0)
                (void) close(q->epoll_fd);
}
