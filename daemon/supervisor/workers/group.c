/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The workers of one uid for one database. Supervisor. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/protocol/engine-connection.h"
#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/high-descriptor.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/workers/group.h"
#include "daemon/supervisor/workers/work-events.h"
#include "daemon/supervisor/workers/worker.h"

#define SIBLING_USEC UINT64_C(20000)         /* a job that was not taken for so long needs another worker */
#define STARVED_USEC UINT64_C(250000)        /* until another worker is asked for its place */
#define TURNS_PER_CPU 2u
#define QUICK_USEC UINT64_C(20000)           /* a group whose last run took less needs no turn for a worker that it has */
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

int group_get(User *u, Database *d, bool writes, Group **ret) {
        for (GList *i = u->groups.head; i; i = i->next) {
                Group *g = i->data;

                if (g->database == d && g->writes == writes) {
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
                .writes = writes,
                .job_fd = -1,
                .workers_fd = -1,
                .waiting = G_QUEUE_INIT,
                .sent = G_QUEUE_INIT,
                .channels = G_QUEUE_INIT,
                .workers = G_QUEUE_INIT,
                .took_usec = QUICK_USEC,
                .user_link.data = g,
                .starved_link.data = g,
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

static void begin_to_starve(Group *g, WorkerBound bound) {
        g->starved_by = bound;
        if (g->starved)
                return;
        g->starved = true;
        g_queue_push_tail_link(&g->context->starved, &g->starved_link);
}

static void end_to_starve(Group *g) {
        g->asked_usec = 0;
        if (!g->starved)
                return;
        g->starved = false;
        g_queue_unlink(&g->context->starved, &g->starved_link);
        if (g->starved_by == WORKER_BOUND_CPU) /* perhaps it is the next one's turn, too */
                g->context->events->place_offered(g->context);
}

Group *group_unref(Group *g) {
        if (!g || --g->n_ref > 0)
                return NULL;
        end_to_starve(g);
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

uint64_t group_n_on_database(const Group *g) {
        uint64_t n = 0;

        for (GList *i = g->user->groups.head; i; i = i->next) {
                const Group *other = i->data;

                n += other->database == g->database ? other->workers.length : 0;
        }
        return n;
}

bool group_shares_connections(const Group *a, const Group *b) {
        const DatabaseConfig *c = a->database->config, *d = b->database->config;

        return a->database == b->database || (database_config_is_server(d) && strcmp(c->name, d->name) == 0 &&
                                              strcmp(database_config_data(c), database_config_data(d)) == 0);
}

uint64_t group_connections_left(const Group *g) {
        uint64_t left = g->database->config->connections_max;

        for (GList *i = g->user->groups.head; i; i = i->next) {
                const Group *other = i->data;

                for (GList *j = group_shares_connections(g, other) ? other->workers.head : NULL; j; j = j->next)
                        left -= MIN(left, ((const Worker *) j->data)->n_connections);
        }
        return left;
}

/* True if the worker seems to have a connection to spare, and was asked for it. It knows better, and answers when that is
 * so. */
static bool ask_worker(Worker *w) {
        if (worker_is_closed(w) || w->connection_asked || w->n_connections <= w->runs.length)
                return false;
        w->connection_asked = message_send(w->control_fd, &(Message) { .kind = MESSAGE_CONNECTION_ASKED }, -1) >= 0;
        return w->connection_asked;
}

bool group_ask_for_connection(const Group *g, const Worker *besides) {
        bool any = false;

        for (GList *i = g->user->groups.head; i; i = i->next) {
                const Group *other = i->data;

                for (GList *j = group_shares_connections(g, other) ? other->workers.head : NULL; j; j = j->next)
                        any |= j->data != besides && ask_worker(j->data);
        }
        return any;
}

static bool waits_for_turn(const Group *g) {
        return g->starved && g->starved_by == WORKER_BOUND_CPU;
}

/* True if it is another group's turn before: of a user with fewer workers in their turn, or with as many, but it has waited
 * longer. */
static bool is_after_others(const Group *g) {
        unsigned n = worker_n_in_turn(g->context, g->user);
        bool waits_longer = true;

        for (GList *i = g->context->starved.head; i; i = i->next) {
                const Group *other = i->data;

                if (other == g) {
                        if (n == 0)
                                return false;
                        waits_longer = false;
                        continue;
                }
                if (other->starved_by != WORKER_BOUND_CPU)
                        continue;
                unsigned n_other = other->user == g->user ? n : worker_n_in_turn(g->context, other->user);
                if (n_other < n || (n_other == n && waits_longer))
                        return true;
        }
        return false;
}

static bool is_its_turn(const Group *g) {
        return worker_n_in_turn(g->context, NULL) < TURNS_PER_CPU * g->context->n_cpus && !is_after_others(g);
}

static bool needs_turn(const Group *g) {
        return !database_config_is_server(g->database->config) && g->took_usec >= QUICK_USEC;
}

/* True if the group waits for a place that a worker for `d` could give up, and its user has none. */
static bool is_owed_place(const Group *g, const Database *d) {
        if (!g->starved)
                return false;
        return g->starved_by == WORKER_BOUND_DATABASE ? g->database == d && group_n_on_database(g) == 0
                                                      : g->starved_by == WORKER_BOUND_TOTAL && g->user->n_workers == 0;
}

bool group_owes_place(const Group *g) {
        for (GList *i = g->context->starved.head; i && (i->data != g || !waits_for_turn(g)); i = i->next)
                if (is_owed_place(i->data, g->database))
                        return true;
        return false;
}

static bool is_any_in_turn(const Group *g) {
        bool any = false;

        for (GList *i = g->workers.head; i; i = i->next)
                any |= worker_is_in_turn(i->data);
        return any;
}

/* True if a worker will be idle soon if it gets no more jobs: it only computes. */
static bool has_worker_to_spare(const Group *g) {
        bool any = false;

        for (GList *i = g->workers.head; i; i = i->next) {
                const Worker *w = i->data;

                any |= worker_stays(w) && !w->channels.head && worker_n_runnable(w) == w->runs.length;
        }
        return any;
}

static bool may_send(const Group *g) {
        bool is_idle = group_find_idle_worker(g);

        if (!g->workers.head || database_config_is_server(g->database->config))
                return true;
        if (has_worker_to_spare(g) && group_owes_place(g))
                return !is_idle && is_any_in_turn(g);
        return !is_idle || !needs_turn(g) || is_its_turn(g);
}

bool group_has_turn(Group *g) {
        if (may_send(g))
                return true;
        if (!waits_for_turn(g)) /* perhaps it waited for one more worker */
                end_to_starve(g);
        begin_to_starve(g, WORKER_BOUND_CPU);
        return false;
}

/* The jobs that wait for workers which have had their turn come back from the sockets. So these workers become idle, and one
 * of them gives up its place. */
static void recall_for(const Group *g) {
        for (GList *i = g->context->workers.head; i; i = i->next) {
                Group *other = ((const Worker *) i->data)->group;

                if (other->sent.head && is_owed_place(g, other->database) && !may_send(other))
                        g->context->work->take_back_jobs(other);
        }
}

void group_on_job_sent(const Group *g, Worker *w) {
        if (needs_turn(g))
                w->turn_usec = clock_usec();
}

void group_on_job_taken(Group *g) {
        g->moved_usec = clock_usec();
        if (waits_for_turn(g))
                g->context->moved_usec = g->moved_usec;
        group_staff(g);
}

WorkerBound group_worker_bound(const Group *g) {
        bool is_server = database_config_is_server(g->database->config);
        WorkerBound bound = quota_worker_bound(g->user, g->database, group_n_on_database(g),
                                               !is_server || group_connections_left(g) > 0);

        if (bound != WORKER_BOUND_NONE || is_server)
                return bound;
        return is_its_turn(g) ? WORKER_BOUND_NONE : WORKER_BOUND_CPU;
}

uint64_t group_moved_usec(const Group *g) {
        uint64_t usec = g->moved_usec;

        switch (g->starved ? g->starved_by : group_worker_bound(g)) {
        case WORKER_BOUND_NONE: break;
        case WORKER_BOUND_USER:
        case WORKER_BOUND_CONNECTIONS:
                for (GList *i = g->user->groups.head; i; i = i->next)
                        usec = MAX(usec, ((const Group *) i->data)->moved_usec);
                break;
        case WORKER_BOUND_DATABASE: return MAX(usec, g->database->moved_usec);
        case WORKER_BOUND_TOTAL:
        case WORKER_BOUND_CPU: return MAX(usec, g->context->moved_usec);
        }
        return usec;
}

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

/* Asks for room within the bound. False: no worker can be asked. */
static bool make_room(const Group *g, WorkerBound bound) {
        Context *context = g->context;

        switch (bound) {
        case WORKER_BOUND_NONE: return false;
        case WORKER_BOUND_USER: return worker_end_idle(context, g->user, NULL);
        case WORKER_BOUND_CONNECTIONS:
                return group_ask_for_connection(g, NULL) || worker_end_idle(context, g->user, g->database);
        case WORKER_BOUND_DATABASE: return worker_end_idle(context, NULL, g->database);
        case WORKER_BOUND_TOTAL: return worker_end_idle(context, NULL, NULL);
        case WORKER_BOUND_CPU: return false;
        }
        return false;
}

/* True if the bounds allow another worker. If not, asks a worker for its place, one at a time: it ends in a moment, unless
 * it is in use. */
static bool may_spawn(Group *g, WorkerBound *ret_bound) {
        uint64_t now = clock_usec();

        *ret_bound = WORKER_BOUND_NONE;
        if (g->context->stopping || (now < g->refused_usec + STARVED_USEC && group_n_workers(g) > 0))
                return false;
        WorkerBound bound = *ret_bound = group_worker_bound(g);
        if (bound != WORKER_BOUND_NONE && now >= g->asked_usec + STARVED_USEC && make_room(g, bound))
                g->asked_usec = now;
        return bound == WORKER_BOUND_NONE;
}

void group_on_offer(Group *g) {
        if (clock_usec() >= g->asked_usec + STARVED_USEC)
                (void) sd_event_source_set_time(g->timer, 0);
}

void group_on_connection_left(const Group *g) {
        for (GList *i = group_connections_left(g) > 0 ? g->user->groups.head : NULL; i; i = i->next) {
                const Group *other = i->data;

                if (other->starved && group_shares_connections(g, other))
                        (void) sd_event_source_set_time(other->timer, 0);
        }
}

static LogFields fields_of(const Group *g) {
        return (LogFields) { .database = database_name(g->database), .uid = &g->user->uid };
}

/* A shortage that may pass is reported as LimitsExceeded: it is no failure of the service. */
static void fail_without_worker(Group *g, int r) {
        bool is_server = database_config_is_server(g->database->config);

        if (is_server && (r == -ENOENT || r == -ECONNREFUSED)) {
                g->context->work->fail(g, ERROR_CANNOT_OPEN,
                                       "Databases of servers need sqlipc-engine.socket, which does not run: install the "
                                       "package sqlipc-engine, and start that unit.");
                return;
        }
        if (is_server && r == -ENOKEY) {
                g->context->work->fail(g, ERROR_CANNOT_OPEN, "The service cannot read the password for the server of this "
                                       "database (PasswordFile=); its log says why.");
                return;
        }
        bool short_of = r == -EMFILE || r == -ENFILE || r == -EAGAIN || r == -ENOMEM;

        g->context->work->fail(g, short_of ? ERROR_LIMITS_EXCEEDED : ERROR_INTERNAL,
                               short_of ? "The service has no descriptor, process or memory left for a worker; try again "
                                          "later." :
                                          "The service cannot start a worker process; its log says why.");
}

void group_spawn(Group *g) {
        WorkerBound bound;

        if (!may_spawn(g, &bound)) {
                begin_to_starve(g, bound);
                recall_for(g);
                return;
        }
        bool has_waited = g->starved;
        int r = worker_new(g);
        if (r >= 0 && has_waited)
                g->context->moved_usec = g->database->moved_usec = g->moved_usec = clock_usec();
        end_to_starve(g);
        if (r >= 0)
                return;
        LogFields fields = fields_of(g);
        log_event_limited(LOG_EVENT_WORKERS_FAIL, "start", &fields, "Cannot start a worker: %s", strerror(-r));
        if (group_n_workers(g) == 0) {
                g->context->work->recall_jobs(g);
                fail_without_worker(g, r);
        }
}

/* The runs that another worker could take part in. One worker commits statements together, and two would only take turns. */
static unsigned n_runs_parallel(const Group *g) {
        unsigned n = 0;

        for (GList *i = g->workers.head; i; i = i->next)
                n += g->context->work->n_parallel(i->data);
        return n;
}

static bool wants_worker(const Group *g, uint64_t now) {
        unsigned n = group_n_workers(g), n_starting = n_workers_starting(g, now);

        if (g->sent.length + g->waiting.length > 0 && n == 0)
                return true;
        /* these jobs have been in the socket for so long that all existing workers must be occupied */
        if (g->context->work->n_overdue(g, now - SIBLING_USEC) > n_starting)
                return true;
        return n > 0 && n_starting == 0 && n_runs_parallel(g) > n && worker_n_busy(g) < g->context->n_cpus;
}

void group_staff(Group *g) {
        g_autoptr(Group) guard G_GNUC_UNUSED = group_ref(g); /* runs that end drop their references */
        uint64_t now = clock_usec();

        bool wants = wants_worker(g, now);
        if (wants)
                group_spawn(g);
        g->context->work->place_channels(g);
        bool holds = g->holds_jobs && g->waiting.head;
        if (holds && group_has_turn(g)) /* also if the worker for which they wait is no longer idle, or has ended */
                (void) sd_event_source_set_enabled(g->resend, SD_EVENT_ONESHOT);
        if (!wants && !holds && g->channels.length == 0)
                end_to_starve(g);
        if (g->sent.length + g->waiting.length + g->channels.length == 0) {
                (void) sd_event_source_set_enabled(g->timer, SD_EVENT_OFF);
                return;
        }
        bool is_next = g->starved_by == WORKER_BOUND_CPU && !is_after_others(g);
        (void) sd_event_source_set_time(g->timer, now + (g->starved && !is_next ? STARVED_USEC : SIBLING_USEC));
        (void) sd_event_source_set_enabled(g->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        group_staff(userdata);
        return 0;
}

static const char refused[] = "The engine processes end before they begin: perhaps MaxConnections= of "
                              "sqlipc-engine.socket is reached. Try again later, or raise it there; the logs of the "
                              "service and of sqlipc-engine@*.service say more.";

void group_on_engine_end(Group *g, const WorkerProcessEnd *end) {
        LogFields fields = fields_of(g);

        g->engine_failure = NULL;
        if (end->code == 0) {
                g->refused_usec = clock_usec();
                g->engine_failure = refused;
        } else if (end->code == CLD_EXITED && end->status == ENGINE_EXIT_OTHER_VERSION) {
                g->engine_failure = "The service and sqlipc-engine are of different versions: install the same, and restart "
                                    "sqlipcd.service.";
                log_event_limited(LOG_EVENT_WORKERS_FAIL, "version", &fields, "%s", g->engine_failure);
        } else if (end->code == CLD_EXITED && end->status == ENGINE_EXIT_NO_ENGINE) {
                g->engine_failure = "The program sqlipc-engine was built without the engine of this database.";
                log_event_limited(LOG_EVENT_WORKERS_FAIL, "engine", &fields, "%s", g->engine_failure);
        }
}

void group_on_worker_gone(Group *g) {
        if (g->n_early_deaths < EARLY_DEATHS_MAX || (g->engine_failure == refused && group_n_workers(g) > 0))
                return;
        g->n_early_deaths = 0;
        LogFields fields = fields_of(g);
        log_event_limited(LOG_EVENT_WORKERS_FAIL, "life", &fields,
                          "Workers die as soon as they start; the jobs that wait fail.");
        g->context->work->fail(g, ERROR_WORKER_LOST, g->engine_failure ?:
                               "The worker processes die as soon as they start; the log of the service says more.");
}

/* ---- Jobs ---- */

Worker *group_find_idle_worker(const Group *g) {
        Worker *found = NULL;

        for (GList *i = g->sent.head ? NULL : g->workers.head; i; i = i->next) {
                Worker *w = i->data;

                if (worker_takes_job(w) && (!found || w->idle_usec > found->idle_usec))
                        found = w;
        }
        return found;
}

static int on_writable(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Group *g = userdata;

        g->context->work->send_jobs(g);
        return 0;
}

static int on_resend(sd_event_source *s, void *userdata) {
        Group *g = userdata;

        g->context->work->send_jobs(g);
        return 0;
}
