/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See worker-loop.h.
 */
#include "daemon/worker/core/worker-loop.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon/worker/core/change-numbers.h"
#include "daemon/worker/core/commit-notes.h"
#include "daemon/worker/core/job-slice.h"
#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/report.h"
#include "daemon/worker/core/supervisor-job.h"

#define LOOK_USEC (5 * USEC_PER_MSEC) /* between two checks of the sockets by the progress handler */
#define SERVER_LASTS_USEC (100 * USEC_PER_MSEC) /* so long a request to a server keeps others waiting */
#define HEAR_USEC UINT64_C(200)         /* between two looks for events while channels with memory have requests */
#define N_EVENTS 32
#define NO_PIN "the connection with your TEMP tables has ended"

/* User data of the epoll: a task, or the address of one of these. */
static const char job_event, control_event, timer_event, answer_event;

/* ---- messages ---- */

static Task **find(WorkerLoop *w, uint64_t number) {
        for (Task **link = &w->tasks.first; *link; link = &(*link)->next)
                if ((*link)->number == number)
                        return link;
        return NULL;
}

/* Sets the error with which the progress handler interrupts the task that is inside its step. */
static void interrupt(WorkerLoop *w, ErrorNumber error, const char *message) {
        Job *job = w->tasks.current->job;

        if (job->error.error == ERROR_NONE)
                (void) sql_error_set(&job->error, error, "%s", message);
}

/* The service is gone, and did not say that it stops: it was killed. Libraries repeat a read of a pipe then, but not one
 * that ShuttingDown ended: to repeat it would start the service again, against `systemctl stop`. */
static void interrupt_gone(WorkerLoop *w) {
        const Task *t = w->tasks.current;
        const Job *job = t->job;

        if (!t->type->is_channel && job->statement && !job->lender && job_statement_reads(job))
                interrupt(w, ERROR_DAEMON_LOST, "the service was lost: ask again");
        else
                interrupt(w, ERROR_SHUTTING_DOWN, "the service is stopping: ask again");
}

/* True if the engine now begins or commits the task's transaction. A commit, which decides how the task ends, gets a moment
 * for that. */
static bool interrupt_wait(WorkerLoop *w, const Task *t, const Cancel *c) {
        Job *job = t->type->is_channel ? NULL : t->job;

        if (!job || !(job->write.begins || job->write.commits))
                return false;
        if (job->write.commits) {
                write_batch_hurry(&w->context, now_usec());
                return true;
        }
        (void) sql_error_set(&job->error, c->error, "%s", c->message);
        w->context.wait_until_usec = 1;
        return true;
}

static int cancel(WorkerLoop *w, const Cancel *c) {
        Task **link, *t;

        if (w->tasks.current && w->tasks.current->number == c->number) {
                interrupt(w, c->error, c->message);
                return 0;
        }
        if (transaction_cancel(&w->transactions, c))
                return 0;
        link = find(w, c->number);
        if (!link) /* it has just ended */
                return 0;
        t = *link;
        if (interrupt_wait(w, t, c))
                return 0;
        task_queue_unlink(&w->tasks, link);
        t->type->cancel(t, c->error, c->message);
        return t->type->settle(&w->tasks, t);
}

static int refuse_job(WorkerLoop *w, uint64_t number, ErrorNumber error, const char *message) {
        return report_send(w->control_fd, &(Message) {
                .kind = MESSAGE_ENDED,
                .ended = {
                        .number = number,
                        .failure = { .error = error, .sql_offset = -1, .message = message },
                        .drained = true,
                },
        });
}

/* Without memory only the job itself fails; other jobs continue. */
static int refuse_without_memory(WorkerLoop *w, uint64_t number) {
        return refuse_job(w, number, ERROR_OUT_OF_MEMORY, "the worker is out of memory");
}

/* Begins a job, which is ours now; the job takes over what it needs of `m`. */
static int begin_job(WorkerLoop *w, ReceivedMessage *m) {
        uint64_t number = m->message.job.number;
        bool in_transaction, on_pin;
        SupervisorJob *j;

        if (supervisor_job_new(&w->context, m, &j) < 0)
                return refuse_without_memory(w, number);
        in_transaction = j->job.spec->transaction > 0;
        on_pin = !in_transaction && j->job.spec->pin > 0;
        if (j->job.error.error == ERROR_NONE && (in_transaction || on_pin) && !transaction_add(&w->transactions, &j->job)) {
                (void) supervisor_job_free(j);
                return in_transaction ? refuse_job(w, number, ERROR_TRANSACTION_ENDED, "the transaction has ended")
                                      : refuse_job(w, number, ERROR_PIN_LOST, NO_PIN);
        }
        if (j->job.load && !in_transaction && !on_pin)
                j->job.write.queue = &w->transactions.loads;
        task_queue_prepend(&w->tasks, &j->task);
        return 0;
}

static int begin_transaction(WorkerLoop *w, const Begin *begin) {
        int r = transaction_begin(&w->transactions, begin);

        if (r == -ENOTCONN)
                return refuse_job(w, begin->number, ERROR_PIN_LOST, NO_PIN);
        if (r == -EROFS)
                return refuse_job(w, begin->number, ERROR_READ_ONLY, "this transaction may only read the database");
        if (r == -EBUSY)
                return refuse_job(w, begin->number, ERROR_BUSY, "the pin has a transaction already: end that first");
        return r == -ENOMEM ? refuse_without_memory(w, begin->number) : r;
}

static int add(WorkerLoop *w, int fd, uint32_t events, const void *what) {
        struct epoll_event e = { .events = events, .data.ptr = (void *) what };

        return epoll_ctl(w->tasks.epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static int handle_control(WorkerLoop *w, ReceivedMessage *m) {
        switch (m->message.kind) {
        case MESSAGE_PREPARE:
        case MESSAGE_RUN:
        case MESSAGE_TABLES:
        case MESSAGE_EXECUTE:
        case MESSAGE_LOAD:
        case MESSAGE_EXECUTE_BATCH:
                return begin_job(w, m);
        case MESSAGE_BEGIN:
                return begin_transaction(w, &m->message.begin);
        case MESSAGE_COMMIT:
                transaction_commit(&w->transactions, m->message.number, false);
                return 0;
        case MESSAGE_ATTACH:
                transaction_answer(&w->transactions, &m->message.attach);
                return 0;
        case MESSAGE_TRY_COMMIT:
                transaction_commit(&w->transactions, m->message.number, true);
                return 0;
        case MESSAGE_CANCEL:
                return cancel(w, &m->message.cancel);
        case MESSAGE_CHANNEL:
                return channel_set_add(&w->channels, m);
        case MESSAGE_CHANNEL_CLOSE:
                return channel_set_close(&w->channels, &m->message.channel_close);
        case MESSAGE_LEASE:
                return writer_on_lease(&w->writer, m->message.number != 0);
        case MESSAGE_LEASE_TAKEN:
                return writer_on_lease_taken(&w->writer);
        case MESSAGE_WATCH:
                writer_on_watch(&w->writer, m->message.number != 0);
                return 0;
        case MESSAGE_LEASE_ASKED:
                writer_on_lease_asked(&w->writer);
                return 0;
        case MESSAGE_CONNECTION:
                return connection_share_on_connection(&w->connections);
        case MESSAGE_CONNECTION_ASKED:
                return connection_share_on_asked(&w->connections);
        case MESSAGE_PING:
                return report_send(w->control_fd, &(Message) { .kind = MESSAGE_PONG, .number = m->message.number });
        case MESSAGE_RETIRE:
                return leaving_retire(&w->leaving);
        case MESSAGE_EXIT:
                return leaving_exit(&w->leaving);
        case MESSAGE_GIVE_WAY:
                return leaving_give_way(&w->leaving, m->message.number);
        default:
                return -EBADMSG;
        }
}

/* Reads all messages that wait on the control socket. */
static int read_control(WorkerLoop *w) {
        const uint64_t n_orders = change_numbers_orders();

        for (;;) {
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;
                int r = message_receive(w->control_fd, &m);

                if (r == -EAGAIN) {
                        w->context.n_orders = n_orders;
                        return 0;
                }
                if (r == 0)
                        leaving_go_now(&w->leaving);
                if (r <= 0)
                        return r;
                r = handle_control(w, &m);
                received_message_done(&m);
                if (r < 0)
                        return r;
        }
}

static void hear(void *userdata) {
        WorkerLoop *w = userdata;

        if (read_control(w) < 0)
                leaving_go_now(&w->leaving);
}

static bool is_job(MessageKind kind) {
        return kind == MESSAGE_PREPARE || kind == MESSAGE_RUN || kind == MESSAGE_EXECUTE || kind == MESSAGE_EXECUTE_BATCH ||
               kind == MESSAGE_LOAD || kind == MESSAGE_BEGIN || kind == MESSAGE_TABLES;
}

static uint64_t number_of(const Message *m) {
        return m->kind == MESSAGE_BEGIN ? m->begin.number : m->job.number;
}

/* Takes one job, unless another worker of the group was faster. */
static int take_job(WorkerLoop *w) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        int r = message_receive(w->job_fd, &m);

        if (r == -EAGAIN)
                return 0;
        if (r == 0)
                leaving_go_now(&w->leaving);
        if (r <= 0)
                return r;
        if (!is_job(m.message.kind)) {
                received_message_done(&m);
                return -EBADMSG;
        }
        /* first of all: whatever happens to this process now, the supervisor knows whose job was lost */
        r = report_send(w->control_fd, &(Message) { .kind = MESSAGE_TAKEN, .number = number_of(&m.message) });
        if (r == 0)
                r = m.message.kind == MESSAGE_BEGIN ? begin_transaction(w, &m.message.begin) : begin_job(w, &m);
        received_message_done(&m); /* without what the job took over */
        return r;
}

/* ---- epoll ---- */

typedef struct Woken {
        bool job, control, timer;
} Woken;

/* Servers have answered. */
static void wake_answered(WorkerLoop *w) {
        for (Task *t = w->tasks.first; t; t = t->next)
                if (t->job && job_is_answered(t->job))
                        job_wake(t->job);
}

/* Waits for at most `msec`. Returns the number of events, or -errno. Marks tasks that can continue; frees nothing. */
static int wait_events(WorkerLoop *w, int msec, Woken *ret) {
        struct epoll_event events[N_EVENTS];
        bool answered = false;
        int n = epoll_wait(w->tasks.epoll_fd, events, N_EVENTS, msec);

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
                else if (events[i].data.ptr == &answer_event)
                        answered = true;
                else
                        t->type->on_events(&w->tasks, t, events[i].events);
        }
        if (answered)
                wake_answered(w);
        return n;
}

/* ---- time ---- */

static bool is_gone(const WorkerLoop *w) {
        return w->leaving.state == LEAVING_GONE;
}

/* Leaves, or stays, if it is time for that. */
static void check_leaving(WorkerLoop *w, uint64_t now) {
        int r = leaving_check(&w->leaving, now);

        if (r == 0)
                return;
        if (w->context.report_error == 0)
                w->context.report_error = r;
        leaving_go_now(&w->leaving);
}

/* True if the channels that wait had better be served by another worker. SQLite's step is long if it looks around at all. A
 * server's engine always looks around while it waits, and gains from channels that are together: it asks for all of them at
 * once. */
static bool step_lasts(const WorkerLoop *w) {
        const Job *job = w->tasks.current->job;

        return !w->context.engine->state_is_remote || !job || w->looked_usec >= job->taken_usec + SERVER_LASTS_USEC;
}

/* Called from inside a step, every few milliseconds. */
static void look_around(WorkerLoop *w) {
        Task *t = w->tasks.current;
        Woken woken;

        if (wait_events(w, 0, &woken) < 0)
                leaving_go_now(&w->leaving);
        if (woken.control)
                hear(w);
        (void) channel_set_look(&w->channels);
        if (step_lasts(w))
                channel_set_give_away(&w->channels);
        if (t->type->look)
                t->type->look(t);
}

/* Called while the engine begins or commits a transaction. Only an engine of a server waits there. */
static int on_wait(WorkerLoop *w) {
        uint64_t now;
        Woken woken;

        if (w->context.wait_until_usec == 0 || !w->context.engine->state_is_remote)
                return 0;
        now = now_usec();
        if (now - w->looked_usec >= LOOK_USEC) {
                w->looked_usec = now;
                if (wait_events(w, 0, &woken) < 0)
                        leaving_go_now(&w->leaving);
                else if (woken.control)
                        hear(w);
        }
        check_leaving(w, now);
        return is_gone(w) || now >= w->context.wait_until_usec;
}

/* True if a job whose server has answered waits for its turn. It may have locks that the task inside the step waits for. */
static bool has_answered(const WorkerLoop *w) {
        if (!w->context.engine->state_is_remote)
                return false;
        for (const Task *t = w->tasks.first; t; t = t->next)
                if (t != w->tasks.current && t->job && t->job->state == JOB_READY && t->job->connection)
                        return true;
        return false;
}

static int on_progress(void *userdata) {
        WorkerLoop *w = userdata;
        uint64_t now;
        bool look;

        if (!w->tasks.current)
                return on_wait(w);
        now = now_usec();
        channel_round_on_progress(&w->channels.round, now);
        look = now - w->looked_usec >= LOOK_USEC;
        if (look) {
                w->looked_usec = now;
                look_around(w);
                writer_on_progress(&w->writer, now);
        }
        check_leaving(w, now);
        if (is_gone(w))
                interrupt_gone(w);
        write_batch_on_progress(&w->writer.batch, look && has_answered(w), now);
        return job_on_progress(w->tasks.current->job, now, look);
}

static int handle_times(WorkerLoop *w, uint64_t now) {
        for (Task **link = &w->tasks.first; *link;) {
                Task *t = *link;
                int r;

                if (!t->type->on_time(t, now)) {
                        link = &t->next;
                        continue;
                }
                task_queue_unlink(&w->tasks, link);
                r = t->type->settle(&w->tasks, t);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Milliseconds for epoll_wait(): 0 if a task can continue. */
static int wait_msec(const WorkerLoop *w) {
        uint64_t next = leaving_next_usec(&w->leaving), writer = writer_next_usec(&w->writer), now;

        if (writer < next)
                next = writer;
        for (const Task *t = w->tasks.first; t; t = t->next) {
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

static uint64_t expire_connections(WorkerLoop *w, uint64_t now) {
        uint64_t next = w->context.engine->expire(w->context.pool, now);
        uint64_t of_guests = guest_databases_expire(&w->channels.guests, w->context.engine, now);

        return of_guests < next ? of_guests : next;
}

/* Frees what was kept for work that did not come; if nothing is left to do, returns memory to the kernel, too. */
static void on_timer(WorkerLoop *w) {
        uint64_t now = now_usec(), next, connections; /* by the coarse clock nothing may be due yet */
        uint64_t n;

        (void) read(w->tasks.timer_fd, &n, sizeof n);
        w->tasks.armed_usec = UINT64_MAX;
        next = channel_set_expire(&w->channels, now);
        connections = expire_connections(w, now); /* after the channels, which keep databases of guests */
        if (connections < next)
                next = connections;
        if (next != UINT64_MAX)
                task_queue_arm(&w->tasks, next);
        else if (!w->tasks.first) {
                job_context_trim(&w->context);
                (void) malloc_trim(0);
        }
}

/* ---- the loop ---- */

/* Has idle connections closed after a while, and an engine of a server look at those that end. */
static void arm_for_connections(WorkerLoop *w, uint64_t now) {
        uint64_t next;

        if (w->tasks.armed_usec != UINT64_MAX && !w->context.engine->state_is_remote)
                return;
        next = expire_connections(w, now);
        if (next < w->tasks.armed_usec)
                task_queue_arm(&w->tasks, next);
}

/* Gives turns to the channels with requests. */
static int run_channels(WorkerLoop *w, Task *first) {
        int r = channel_round(&w->channels.round, &w->tasks, served_channel_of_task(first));

        w->ran_channels = true;
        return r;
}

/* Gives a turn to a task that can continue, and puts it at the end of the queue. */
static int run_task(WorkerLoop *w, Task **link) {
        Task *t = *link;

        if (t->type->is_channel)
                return run_channels(w, t);
        task_queue_unlink(&w->tasks, link);
        w->tasks.current = t;
        w->ran_channels = false;
        t->type->turn(t);
        w->tasks.current = NULL;
        return t->type->settle(&w->tasks, t);
}

/* Gives a turn to the first task that can continue. The writer has its turn when none can, so that jobs gather in it, or
 * when it has waited for a moment. If it expects more jobs, the loop polls for them first. */
static int run_one(WorkerLoop *w, uint64_t now) {
        bool writes = writer_next_usec(&w->writer) <= now;
        Task **link = &w->tasks.first;

        while (*link && (*link)->type->next_usec(*link) > 0)
                link = &(*link)->next;
        if (!*link && !writes)
                return 0;
        w->looked_usec = now;
        if (*link && (!writes || now < w->writer.since_usec + WRITER_GATHER_USEC))
                return run_task(w, link);
        if (!*link && writer_gathers(&w->writer, now)) {
                (void) sched_yield();
                return 0;
        }
        writer_turn(&w->writer);
        return 0;
}

/* Polls for a moment, if requests may follow at once. Returns the number of events, or -errno. */
static int poll_for_events(WorkerLoop *w, Woken *ret) {
        int n = 0;

        if (!w->ran_channels || !channel_polling_begins(&w->polling, true, now_usec()))
                return 0;
        do {
                (void) sched_yield();
                n = w->channels.awake ? channel_set_look(&w->channels) : wait_events(w, 0, ret);
        } while (channel_polling_looked(&w->polling, n != 0, now_usec()));
        return n;
}

/* Waits until there is something to do. Requests in the memory of channels need no event. Beside them it is enough
 * to look for events now and then. */
static int wait_for_work(WorkerLoop *w, Woken *ret) {
        int msec, n = 0;

        *ret = (Woken) {};
        (void) channel_set_look(&w->channels);
        msec = wait_msec(w);
        if (msec != 0)
                n = poll_for_events(w, ret);
        else if (w->channels.awake && now_usec() - w->heard_usec < HEAR_USEC)
                return 0;
        if (n == 0 && msec != 0 && channel_set_fall_asleep(&w->channels))
                msec = 0;
        if (n == 0) {
                n = wait_events(w, msec, ret);
                w->heard_usec = now_usec();
        }
        return n < 0 ? n : 0;
}

static int turn(WorkerLoop *w) {
        Woken woken;
        uint64_t now;
        int r = wait_for_work(w, &woken);

        now = now_usec();
        if (r == 0 && (woken.control || w->context.n_orders != change_numbers_orders()))
                r = read_control(w);
        if (r == 0)
                check_leaving(w, now);
        if (r == 0 && !is_gone(w))
                r = handle_times(w, now);
        if (r == 0 && !is_gone(w) && woken.timer)
                on_timer(w);
        if (r == 0 && woken.job && leaving_takes_jobs(&w->leaving))
                r = take_job(w);
        if (r == 0 && !is_gone(w))
                r = run_one(w, now);
        arm_for_connections(w, now);
        connection_share_update(&w->connections);
        return r == 0 ? w->context.report_error : r;
}

int worker_loop_run(WorkerLoop *w) {
        int r = 0;

        while (!leaving_is_over(&w->leaving) && r == 0)
                r = turn(w);
        if (r == -EPIPE || r == -ECONNRESET) /* the supervisor is gone */
                r = 0;
        if (r == 0) {
                commit_notes_tell(&w->context, false);
                channel_set_end(&w->channels);
        }
        return r;
}

int worker_loop_init(WorkerLoop *w, const Engine *engine, int job_fd, int control_fd, ReceivedMessage *setup) {
        int r;

        *w = (WorkerLoop) {
                .job_fd = job_fd,
                .control_fd = control_fd,
                .setup = *setup,
        };
        *setup = RECEIVED_MESSAGE_INIT;
        w->context = (JobContext) {
                .setup = &w->setup.message.setup,
                .engine = engine,
                .control_fd = control_fd,
                .progress = on_progress,
                .hear = hear,
                .progress_data = w,
        };
        writer_init(&w->writer, &w->context, &w->tasks);
        transaction_set_init(&w->transactions, &w->context, &w->writer, &w->tasks);
        w->connections = (ConnectionShare) { .context = &w->context };
        w->channels = (ChannelSet) { .tasks = &w->tasks, .context = &w->context };
        r = task_queue_init(&w->tasks);
        w->context.epoll_fd = w->tasks.epoll_fd;
        w->context.answer_event = (void *) &answer_event;
        if (r == 0)
                r = engine->start(w->context.setup, on_progress, w, &w->context.pool);
        if (r == 0)
                r = leaving_init(&w->leaving, &w->channels, job_fd, &job_event);
        if (r == 0)
                r = add(w, control_fd, EPOLLIN, &control_event);
        return r < 0 ? r : add(w, w->tasks.timer_fd, EPOLLIN, &timer_event);
}

void worker_loop_done(WorkerLoop *w) {
        channel_set_free(&w->channels);
        while (w->tasks.first) { /* only jobs from the supervisor and transactions are left */
                Task *t = w->tasks.first;

                task_queue_unlink(&w->tasks, &w->tasks.first);
                if (!transaction_has_task(t))
                        (void) supervisor_job_free(supervisor_job_of(t));
        }
        transaction_set_done(&w->transactions);
        writer_done(&w->writer);
        w->context.engine->stop(w->context.pool);
        job_context_trim(&w->context);
        received_message_done(&w->setup);
        task_queue_done(&w->tasks);
}
