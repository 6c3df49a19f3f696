/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The workers of one uid and one database. Supervisor. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/high-descriptor.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/workers/group.h"
#include "daemon/supervisor/workers/placement.h"
#include "daemon/supervisor/workers/worker.h"

#define SIBLING_USEC UINT64_C(20000)         /* a job that was not taken for so long needs another worker */
#define STARVED_USEC UINT64_C(250000)        /* then another worker is asked for its place */
#define STARTING_USEC UINT64_C(1000000)      /* a new worker is expected to take a job within this time */
#define EARLY_DEATHS_MAX 3u
#define SOCKET_BUFFER_SIZE (1024 * 1024)

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata);
static int on_writable(sd_event_source *s, int fd, uint32_t revents, void *userdata);
static int on_resend(sd_event_source *s, void *userdata);

/* ---- Creation and end ---- */

static int open_socket(Group *g) {
        int fds[2], size = SOCKET_BUFFER_SIZE;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
                return -errno;
        g->job_fd = fds[0];
        g->workers_fd = high_descriptor(fds[1]);
        (void) setsockopt(g->job_fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size); /* a smaller buffer is only slower */
        return g->workers_fd < 0 ? g->workers_fd : 0;
}

static int add_sources(Group *g) {
        sd_event *e = g->context->event;
        int r = sd_event_add_io(e, &g->writable, g->job_fd, EPOLLOUT, on_writable, g);

        if (r >= 0)
                r = sd_event_source_set_enabled(g->writable, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(e, &g->timer, CLOCK_MONOTONIC, UINT64_MAX, 1000, on_timer, g);
        if (r >= 0)
                r = sd_event_source_set_enabled(g->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(e, &g->resend, on_resend, g);
        if (r >= 0)
                r = sd_event_source_set_enabled(g->resend, SD_EVENT_OFF);
        /* After all timers that are due, since each of them may recall the same jobs. */
        return r < 0 ? r : sd_event_source_set_priority(g->resend, SD_EVENT_PRIORITY_NORMAL + 10);
}

int group_get(User *u, Database *d, Group **ret) {
        for (GList *i = u->groups.head; i; i = i->next) {
                Group *g = i->data;

                if (g->database == d) {
                        *ret = group_ref(g);
                        return 0;
                }
        }

        g_autoptr(Group) g = g_new(Group, 1);
        *g = (Group) {
                .context = u->context,
                .n_ref = 1,
                .user = user_ref(u),
                .database = database_ref(d),
                .job_fd = -1,
                .workers_fd = -1,
                .waiting = G_QUEUE_INIT,
                .sent = G_QUEUE_INIT,
                .channels = G_QUEUE_INIT,
                .workers = G_QUEUE_INIT,
                .user_link.data = g,
        };
        g_queue_push_tail_link(&u->groups, &g->user_link);
        int r = open_socket(g);
        if (r >= 0)
                r = add_sources(g);
        if (r < 0)
                return r;
        *ret = g_steal_pointer(&g);
        return 0;
}

Group *group_ref(Group *g) {
        g->n_ref++;
        return g;
}

static void set_starved(Group *g, bool starved) {
        if (!starved)
                g->asked_usec = 0;
        if (starved == g->starved)
                return;
        g->starved = starved;
        g->starved_usec = clock_usec();
        g->context->n_starved += starved ? 1 : -1u;
}

Group *group_unref(Group *g) {
        if (!g || --g->n_ref > 0)
                return NULL;
        set_starved(g, false);
        g->writable = sd_event_source_disable_unref(g->writable);
        g->timer = sd_event_source_disable_unref(g->timer);
        g->resend = sd_event_source_disable_unref(g->resend);
        if (g->job_fd >= 0)
                close(g->job_fd);
        if (g->workers_fd >= 0)
                close(g->workers_fd);
        g_queue_unlink(&g->user->groups, &g->user_link);
        (void) user_unref(g->user);
        (void) database_unref(g->database);
        g_free(g);
        return NULL;
}

/* ---- Workers ---- */

unsigned group_n_workers(const Group *g) {
        unsigned n = 0;

        for (GList *i = g->workers.head; i; i = i->next) {
                const Worker *w = i->data;

                n += worker_stays(w) && w->settings != WORKER_RETIRED;
        }
        return n;
}

/* Workers that were just started and will take a job once they are up. */
static unsigned n_workers_starting(const Group *g, uint64_t now) {
        unsigned n = 0;

        for (GList *i = g->workers.head; i; i = i->next) {
                const Worker *w = i->data;
                n += w->state == WORKER_STARTING && now < w->started_usec + STARTING_USEC;
        }
        return n;
}

static bool end_idle_within(const Group *g, WorkerBound bound) {
        Context *context = g->context;

        switch (bound) {
        case WORKER_BOUND_NONE: return false;
        case WORKER_BOUND_USER: return worker_end_idle(context, g->user, NULL);
        case WORKER_BOUND_DATABASE: return worker_end_idle(context, NULL, g->database);
        case WORKER_BOUND_TOTAL: return worker_end_idle(context, NULL, NULL);
        }
        return false;
}

/* One worker at a time is asked for its place: it ends in a moment, unless it is in use. */
static bool may_spawn(Group *g) {
        uint64_t now = clock_usec();

        if (g->context->stopping)
                return false;
        WorkerBound bound = quota_worker_bound(g->user, g->database, g->workers.length);
        if (bound != WORKER_BOUND_NONE && now >= g->asked_usec + STARVED_USEC && end_idle_within(g, bound))
                g->asked_usec = now;
        return bound == WORKER_BOUND_NONE;
}

void group_on_offer(Group *g) {
        if (clock_usec() >= g->asked_usec + STARVED_USEC)
                (void) sd_event_source_set_time(g->timer, 0);
}

static void fail_all(Group *g, ErrorNumber error, const char *sentence) {
        g_autoptr(Group) guard G_GNUC_UNUSED = group_ref(g); /* runs that end drop their references */

        while (g->sent.head || g->waiting.head) {
                Run *run = (g->sent.head ?: g->waiting.head)->data;
                run_end(run, RUN_END_FAILED, error, sentence);
        }
        while (g->channels.head)
                channel_end(g->channels.head->data, CHANNEL_END_WORKER_LOST);
}

static LogFields fields_of(const Group *g) {
        return (LogFields) { .database = database_name(g->database), .uid = &g->user->uid };
}

/* A shortage that may pass is reported as LimitsExceeded: it is no failure of the service. */
static void fail_without_worker(Group *g, int r) {
        if (r == -EMFILE || r == -ENFILE || r == -EAGAIN || r == -ENOMEM)
                fail_all(g, ERROR_LIMITS_EXCEEDED,
                         "The service has no descriptor, process or memory left for a worker; try again later.");
        else
                fail_all(g, ERROR_INTERNAL, "The service cannot start a worker process; its log says why.");
}

void group_spawn(Group *g) {
        set_starved(g, !may_spawn(g));
        if (g->starved)
                return;
        int r = worker_new(g);
        if (r >= 0)
                return;
        LogFields fields = fields_of(g);
        log_event_limited(LOG_EVENT_WORKERS_FAIL, "start", &fields, "Cannot start a worker: %s", strerror(-r));
        if (group_n_workers(g) == 0) {
                group_recall(g);
                fail_without_worker(g, r);
        }
}

/* The number of jobs that have been in the socket for so long that all existing workers must be occupied. */
static unsigned n_jobs_overdue(const Group *g, uint64_t now) {
        unsigned n = 0;

        for (GList *i = g->sent.head; i; i = i->next) {
                const Run *run = i->data;
                n += run->state == RUN_SENT && now >= run->sent_usec + SIBLING_USEC;
        }
        return n;
}

static unsigned n_runs_runnable(const Group *g) {
        unsigned n = 0;

        for (GList *i = g->workers.head; i; i = i->next)
                n += worker_n_runnable(i->data);
        return n;
}

static bool wants_worker(const Group *g, uint64_t now) {
        unsigned n = group_n_workers(g), n_starting = n_workers_starting(g, now);

        if (g->sent.length + g->waiting.length > 0 && n == 0)
                return true;
        if (n_jobs_overdue(g, now) > n_starting)
                return true;
        return n > 0 && n_starting == 0 && n_runs_runnable(g) > n && worker_n_busy(g->context) < g->context->n_cpus;
}

void group_staff(Group *g) {
        g_autoptr(Group) guard G_GNUC_UNUSED = group_ref(g); /* runs that end drop their references */
        uint64_t now = clock_usec();

        bool wants = wants_worker(g, now);
        if (wants)
                group_spawn(g);
        placement_run(g);
        if (!wants && g->channels.length == 0)
                set_starved(g, false);
        if (g->sent.length + g->waiting.length + g->channels.length == 0) {
                (void) sd_event_source_set_enabled(g->timer, SD_EVENT_OFF);
                return;
        }
        (void) sd_event_source_set_time(g->timer, now + (g->starved ? STARVED_USEC : SIBLING_USEC));
        (void) sd_event_source_set_enabled(g->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        group_staff(userdata);
        return 0;
}

void group_on_worker_gone(Group *g) {
        group_recall(g);
        if (g->n_early_deaths < EARLY_DEATHS_MAX)
                return;
        g->n_early_deaths = 0;
        LogFields fields = fields_of(g);
        log_event_limited(LOG_EVENT_WORKERS_FAIL, "life", &fields,
                          "Workers die as soon as they start; the jobs that wait fail.");
        fail_all(g, ERROR_WORKER_LOST, "The worker processes die as soon as they start; the log of the service says more.");
}

/* ---- Jobs ---- */

static Message job_message(const Run *run) {
        size_t size;
        const char *sql = g_bytes_get_data(run->sql, &size);

        return (Message) {
                .kind = run->kind == RUN_PREPARE ? MESSAGE_PREPARE : MESSAGE_RUN,
                .job = {
                        .number = run->number,
                        .sql = sql ?: "", /* GBytes returns NULL for empty SQL, and NULL would mean that there is no SQL */
                        .sql_size = size,
                        .describe = run->describe,
                        .page_size = run->page_size,
                        .deadline_usec = run->deadline_usec,
                        .row_size_max = run->row_size_max,
                        .result_rows_max = run->result_rows_max,
                        .result_size_max = run->result_size_max,
                        .n_positional = run->parameters.n_positional,
                        .n_named = run->parameters.n_named,
                        .parameters = run->parameters.row,
                        .parameters_size = run->parameters.row_size,
                },
        };
}

static void move_to_sent(Group *g, Run *run) {
        g_queue_unlink(&g->waiting, &run->group_link);
        g_queue_push_tail_link(&g->sent, &run->group_link);
        run_on_sent(run);
}

/* An idle worker, if there is one: it has the job once the job is sent to it, and need not report that. Of several workers,
 * the one that became idle last is taken, so that the others may end. Not used while jobs are in the socket: they came
 * before, and the worker may be taking one. */
static Worker *find_idle_worker(const Group *g) {
        Worker *found = NULL;

        for (GList *i = g->sent.head ? NULL : g->workers.head; i; i = i->next) {
                Worker *w = i->data;

                if (worker_takes_job(w) && (!found || w->idle_usec > found->idle_usec))
                        found = w;
        }
        return found;
}

static int send_job(Group *g, Run *run) {
        Message m = job_message(run);
        int pipe_fd = run->pipe ? run->pipe->write_fd : -1;
        Worker *w = find_idle_worker(g);

        if (w && message_send(w->control_fd, &m, pipe_fd) >= 0)
                return run_on_taken(run, w);
        int r = message_send(g->job_fd, &m, pipe_fd);
        if (r >= 0)
                move_to_sent(g, run);
        return r;
}

/* A large job needs descriptors and memory of its own. */
static ErrorNumber error_of_send(int r) {
        return r == -ENOMEM                                  ? ERROR_OUT_OF_MEMORY
               : r == -E2BIG || r == -EMFILE || r == -ENFILE ? ERROR_LIMITS_EXCEEDED
                                                             : ERROR_INTERNAL;
}

/* Sends the waiting jobs, as far as the socket takes them. */
static void pump(Group *g) {
        g_autoptr(Group) guard G_GNUC_UNUSED = group_ref(g); /* runs that end drop their references */
        int r = 0;

        while (r >= 0 && g->waiting.head) {
                Run *run = g->waiting.head->data;

                if (run->pipe && run->pipe->write_fd < 0) { /* its pipe was broken meanwhile */
                        run_end(run, RUN_END_WORKER_LOST, ERROR_NONE, NULL);
                        continue;
                }
                r = send_job(g, run);
                if (r < 0 && r != -EAGAIN) {
                        LogFields fields = fields_of(g);
                        log_full_limited(LOG_WARNING, &fields, "A job cannot be sent: %s", strerror(-r));
                        run_end(run, RUN_END_FAILED, error_of_send(r), "The job could not be handed to a worker.");
                        r = 0;
                }
        }
        (void) sd_event_source_set_enabled(g->writable, g->waiting.head ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
        group_staff(g);
}

static int on_writable(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        pump(userdata);
        return 0;
}

static int on_resend(sd_event_source *s, void *userdata) {
        pump(userdata);
        return 0;
}

void group_submit(Group *g, Run *run) {
        g_queue_push_tail_link(&g->waiting, &run->group_link);
        run_on_queued(run);
        pump(g);
}

void group_remove(Group *g, Run *run) {
        g_queue_unlink(run->state == RUN_WAITING ? &g->waiting : &g->sent, &run->group_link);
}

void group_put_back(Group *g, Run *run) {
        g_queue_push_head_link(&g->waiting, &run->group_link);
        run_on_queued(run);
        (void) sd_event_source_set_enabled(g->resend, SD_EVENT_ONESHOT);
}

static void take_back(Group *g, uint64_t number) {
        Run *run = g_hash_table_lookup(g->context->runs, &number);

        if (!run || run->group != g || (run->state != RUN_SENT && run->state != RUN_MISSING))
                return;
        g_queue_unlink(&g->sent, &run->group_link);
        run_on_queued(run);
        g_queue_push_tail_link(&g->waiting, &run->group_link);
}

void group_recall(Group *g) {
        GQueue later = g->waiting;
        uint64_t number;

        /* Jobs that were sent came before those that wait. */
        g->waiting = (GQueue) G_QUEUE_INIT;
        while (message_withdraw_job(g->workers_fd, &number) > 0)
                take_back(g, number);
        while (later.head)
                g_queue_push_tail_link(&g->waiting, g_queue_pop_head_link(&later));

        for (GList *i = g->sent.head; i; i = i->next)
                run_on_missing(i->data);
        if (g->waiting.head)
                (void) sd_event_source_set_enabled(g->resend, SD_EVENT_ONESHOT);
}
