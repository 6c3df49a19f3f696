/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One worker process. Supervisor. */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/workers/changes.h"
#include "daemon/supervisor/workers/counts-page.h"
#include "daemon/supervisor/workers/lease.h"
#include "daemon/supervisor/workers/password.h"
#include "daemon/supervisor/workers/work-events.h"
#include "daemon/supervisor/workers/worker.h"

/* How much is read from one worker in a turn of the loop, and from a worker that died: a large message costs milliseconds
 * (I1). */
#define MESSAGES_AT_ONCE 64
#define MESSAGE_BYTES_AT_ONCE ((size_t) 1024 * 1024)
#define LAST_WORDS_SIZE_MAX (2 * MESSAGE_MEMFD_SIZE_MAX)
#define DRAIN_USEC UINT64_C(20000) /* until the worker hands over the last bytes for a slow reader */
#define JOB_COMES_USEC UINT64_C(20000) /* until an idle worker is checked again while a job waits */
#define TURN_USEC UINT64_C(500000)
#define KILLED_USEC UINT64_C(2000000) /* the time in which a killed worker should die */
#define EXIT_USEC UINT64_C(5000000) /* for a worker to answer the requests under way on channels (4 s at most), and to end */
#define GIVE_WAY_USEC (WORKER_TURN_USEC + EXIT_USEC)

/* ---- Start ---- */

/* Borrows from `names`, which may be NULL: then it has none. */
static Bytes *names_of(char **names, uint32_t *ret_n) {
        size_t n = names ? g_strv_length(names) : 0;
        Bytes *bytes = g_new(Bytes, n);

        for (size_t i = 0; i < n; i++)
                bytes[i] = (Bytes) { .data = names[i], .size = strlen(names[i]) };
        *ret_n = (uint32_t) n;
        return bytes;
}

/* The part of SETUP for a worker that may write. */
static void set_writing(const DatabaseConfig *d, const Bytes *tables, uint32_t n_tables, Setup *setup) {
        setup->writes = true;
        setup->write_schema = d->write_schema;
        setup->database_size_max = d->database_size_max;
        setup->n_write_tables = n_tables;
        setup->write_tables = (Bytes *) tables;
}

static int send_setup(Worker *w, const Password *password) {
        const DatabaseConfig *d = w->group->database->config;
        const Limits l = w->limits;
        uint32_t n_exposed, n_tables;
        g_autofree Bytes *exposed = names_of(d->expose, &n_exposed);
        g_autofree Bytes *tables = names_of(d->write_tables, &n_tables);
        Message m = {
                .kind = MESSAGE_SETUP,
                .setup = {
                        .path = d->path,
                        .engine = d->engine,
                        .connection = d->connection,
                        .replica_connection = w->group->writes ? NULL : d->replica_connection,
                        .password = password_text(password),
                        .connections_max = (uint32_t) w->n_connections,
                        .consistency = d->consistency,
                        .immutable = d->immutable,
                        .sync_full = d->sync_full,
                        .foreign_keys = d->foreign_keys,
                        .change_slot = changes_of_database(w->context, d)->slot,
                        .heap_size_max = l.heap_max,
                        .temp_size_max = l.temp_size_max / l.workers_max,
                        .park_usec = l.park_timeout_usec,
                        .park_rollback_usec = l.park_timeout_rollback_usec,
                        .wal_size_max = d->wal_size_max,
                        .busy_usec = l.busy_timeout_usec,
                        .drain_usec = DRAIN_USEC,
                        .sql_size_max = (uint32_t) l.sql_size_max,
                        .expression_depth_max = (uint32_t) l.expression_depth_max,
                        .compound_selects_max = (uint32_t) l.compound_selects_max,
                        .vdbe_ops_max = (uint32_t) l.vdbe_ops_max,
                        .variables_max = (uint32_t) l.variables_max,
                        .security_barrier = d->security_barrier,
                        .n_exposed = n_exposed,
                        .exposed = exposed,
                },
        };

        if (w->group->writes)
                set_writing(d, tables, n_tables, &m.setup);
        return message_send(w->control_fd, &m, -1);
}

static int on_control(sd_event_source *s, int fd, uint32_t revents, void *userdata);
static void on_process_end(WorkerProcess *p, const WorkerProcessEnd *end, void *userdata);
static int on_idle(sd_event_source *s, uint64_t usec, void *userdata);
static int receive(Worker *w, size_t *budget);

static int add_sources(Worker *w) {
        sd_event *e = w->context->event;
        int r = sd_event_add_io(e, &w->io, w->control_fd, EPOLLIN, on_control, w);

        if (r >= 0)
                r = sd_event_add_time(e, &w->idle_timer, CLOCK_MONOTONIC,
                                      w->idle_usec + w->context->config->limits.worker_idle_usec, 0, on_idle, w);
        return r;
}

int worker_new(Group *g) {
        Worker *w = g_new(Worker, 1);

        *w = (Worker) {
                .context = g->context,
                .group = group_ref(g),
                .limits = quota_limits(g->user, g->database),
                .process = WORKER_PROCESS_INIT,
                .n_connections = database_config_is_server(g->database->config) ? 1 : 0,
                .control_fd = -1,
                .runs = G_QUEUE_INIT,
                .channels = G_QUEUE_INIT,
                .started_usec = clock_usec(),
                .idle_usec = clock_usec(),
                .turn_usec = clock_usec(),
                .group_link.data = w,
                .context_link.data = w,
                .lease_link.data = w,
        };
        g_queue_push_tail_link(&g->workers, &w->group_link);
        g_queue_push_tail_link(&g->context->workers, &w->context_link);
        quota_count_worker(g->user, g->database, 1);

        g_autoptr(Password) password = NULL;
        int counts_fd = -1, r = password_read(g->database->config->password_file, &password);
        if (r >= 0 && !database_config_is_server(g->database->config))
                r = counts_fd = counts_page_fd(g->user);
        if (r >= 0)
                r = worker_process_start(&w->process, w->context, g->database->config->engine, g->workers_fd,
                                         w->context->changes->page.fd, counts_fd, on_process_end, w, &w->control_fd);
        if (r >= 0)
                r = send_setup(w, password);
        if (r >= 0 || r == -EPIPE) /* on EPIPE it has ended already, which on_process_end() handles */
                r = add_sources(w);
        if (r < 0) {
                worker_free(w);
                return r;
        }
        if (!w->process.is_engine) /* those have the weights of their unit */
                worker_priority_add(w->context->priorities, &w->priority, w->process.pid, g->user);
        log_full(LOG_DEBUG, database_name(g->database), NULL, "Worker %i started for uid %u.", (int) w->process.pid,
                 (unsigned) g->user->uid);
        return 0;
}

/* ---- Runs ---- */

unsigned worker_n_runnable(const Worker *w) {
        return w->context->work->n_runnable(w);
}

unsigned worker_n_busy(const Group *g) {
        bool is_server = database_config_is_server(g->database->config);
        unsigned n = 0;

        for (GList *i = g->context->workers.head; i; i = i->next) {
                const Worker *w = i->data;

                n += database_config_is_server(w->group->database->config) == is_server && worker_n_runnable(w) > 0;
        }
        return n;
}

bool worker_is_in_turn(const Worker *w) {
        return clock_usec() < w->turn_usec + TURN_USEC && !worker_is_closed(w) &&
               !database_config_is_server(w->group->database->config) &&
               (w->state == WORKER_STARTING || worker_n_runnable(w) > 0);
}

unsigned worker_n_in_turn(const Context *context, const User *u) {
        unsigned n = 0;

        for (GList *i = context->workers.head; i; i = i->next)
                n += (!u || ((const Worker *) i->data)->group->user == u) && worker_is_in_turn(i->data);
        return n;
}

/* ---- Priority ---- */

static Worker *worker_of_priority(const WorkerPriority *p) {
        return (Worker *) ((char *) p - offsetof(Worker, priority));
}

static WorkerLoad load_of_priority(const WorkerPriority *p) {
        const Worker *w = worker_of_priority(p);

        return worker_n_runnable(w) > 0 ? WORKER_LOAD_RUNNING : worker_is_idle(w) ? WORKER_LOAD_NONE : WORKER_LOAD_WAITING;
}

static void end_for_priority(WorkerPriority *p) {
        (void) worker_end(worker_of_priority(p), WORKER_END_PRIORITY);
}

int worker_start_priorities(Context *context) {
        static const PriorityEvents events = { .load = load_of_priority, .end = end_for_priority };

        return worker_priority_start(context->priorities, context->event, &events);
}

/* ---- Idle time ---- */

static void watch_idle(Worker *w, uint64_t usec) {
        (void) sd_event_source_set_time(w->idle_timer, usec);
        (void) sd_event_source_set_enabled(w->idle_timer, SD_EVENT_ONESHOT);
}

bool worker_is_idle(const Worker *w) {
        return !w->runs.head && !w->channels.head;
}

/* True if the worker may be taking a job from the socket at this moment, or is about to get one. */
static bool may_have_job(const Worker *w) {
        return w->runs.head || w->group->sent.head || (w->group->waiting.head && !group_owes_place(w->group));
}

void worker_on_work_over(Worker *w) {
        if (!w->runs.head)
                w->context->events->place_offered(w->context);
        if (!worker_is_idle(w) || worker_is_closed(w))
                return;
        w->idle_usec = clock_usec(); /* the timer checks this when it fires, so no query has to set the timer */
        if (w->state == WORKER_ASKED || w->state == WORKER_ENDING)
                watch_idle(w, w->idle_usec + EXIT_USEC);
        else if (w->context->stopping)
                (void) worker_end(w, WORKER_END_STOPPING);
        else if (w->settings != WORKER_CURRENT)
                (void) worker_end(w, WORKER_END_OUTDATED);
}

bool worker_takes_job(const Worker *w) {
        return w->state == WORKER_RUNNING && w->settings == WORKER_CURRENT && worker_is_idle(w);
}

int worker_cancel(Worker *w, uint64_t number, ErrorNumber error, const char *sentence) {
        if (worker_is_closed(w))
                return 0; /* its runs and channels end with it */
        return message_send(w->control_fd, &(Message) {
                .kind = MESSAGE_CANCEL,
                .cancel = { .number = number, .error = error, .message = sentence },
        }, -1);
}

/* ---- End ---- */

static void set_state(Worker *w, WorkerState to) {
        if (w->state == WORKER_STARTING && to >= WORKER_KILLED)
                w->group->n_early_deaths++;
        if (to >= WORKER_KILLED)
                worker_priority_remove(w->context->priorities, &w->priority);
        worker_life_move(&w->state, to);
}

void worker_on_sign_of_life(Worker *w) {
        w->group->n_early_deaths = 0;
        w->group->engine_failure = NULL;
        if (w->state == WORKER_STARTING)
                set_state(w, WORKER_RUNNING);
}

static void tell_to_end(Worker *w, WorkerEndReason reason, const Message *m, uint64_t usec) {
        int r = message_send(w->control_fd, m, -1);

        set_state(w, m->kind == MESSAGE_GIVE_WAY ? WORKER_ASKED : WORKER_ENDING);
        w->end = reason;
        if (r < 0 && r != -EPIPE && r != -ECONNRESET) /* a worker that has ended already need not be told */
                (void) worker_end(w, WORKER_END_SOCKET_FULL);
        else
                watch_idle(w, clock_usec() + usec);
}

static void tell_to_exit(Worker *w, WorkerEndReason reason) {
        if (w->state < WORKER_ENDING)
                tell_to_end(w, reason, &(Message) { .kind = MESSAGE_EXIT }, EXIT_USEC);
}

/* A worker inside a call that cannot be interrupted answers after that call. A worker that a reload outdated begins nothing
 * more, because it has the old limits. */
static void give_way(Worker *w, WorkerEndReason reason) {
        const Limits l = quota_limits(w->group->user, w->group->database);

        uint64_t turn_usec = w->settings == WORKER_CURRENT ? WORKER_TURN_USEC : 0;

        if (worker_is_idle(w))
                tell_to_exit(w, reason);
        else if (worker_stays(w))
                tell_to_end(w, reason, &(Message) { .kind = MESSAGE_GIVE_WAY, .number = turn_usec },
                            MAX(l.run_timeout_usec, l.prepare_timeout_usec) + GIVE_WAY_USEC);
}

static LogFields fields_of(const Worker *w) {
        return (LogFields) {
                .database = database_name(w->group->database),
                .uid = &w->group->user->uid,
                .worker_pid = w->process.pid,
        };
}

static void kill_process(Worker *w, WorkerEndReason reason) {
        const char *why = worker_life_sentence(reason);
        LogFields fields = fields_of(w);

        if (w->state >= WORKER_KILLED || !w->process.exists)
                return;
        log_event_limited(LOG_EVENT_WORKER_KILLED, why, &fields, "Worker %i is killed: %s.", (int) w->process.pid, why);
        set_state(w, WORKER_KILLED);
        w->end = reason;
        worker_process_kill(&w->process);
        watch_idle(w, clock_usec() + KILLED_USEC);
}

bool worker_end(Worker *w, WorkerEndReason reason) {
        if (reason == WORKER_END_OUTDATED && w->settings == WORKER_CURRENT)
                worker_life_move_settings(&w->settings, WORKER_OUTDATED);
        switch (worker_life_manner(reason)) {
        case WORKER_ENDS_BY_EXIT: tell_to_exit(w, reason); break;
        case WORKER_ENDS_BY_GIVE_WAY: give_way(w, reason); break;
        case WORKER_ENDS_UNLESS_BUSY:
                if (may_have_job(w) || w->context->work->has_busy_channels(w))
                        return false;
                give_way(w, reason);
                break;
        case WORKER_ENDS_BY_KILL: kill_process(w, reason); break;
        case WORKER_ENDS_UNREAD:
                w->distrusted = true;
                (void) sd_event_source_set_enabled(w->io, SD_EVENT_OFF);
                kill_process(w, reason);
                break;
        }
        return true;
}

bool worker_has_limits_of(const Worker *w, const Group *g) {
        const Limits l = quota_limits(g->user, g->database);

        return memcmp(&l, &w->limits, sizeof l) == 0;
}

void worker_retire(Worker *w) {
        const Group *g = w->group;

        w->context->work->end_channels(w);
        if (w->settings == WORKER_RETIRED || group_worker_bound(g) != WORKER_BOUND_NONE)
                return;
        if (message_send(w->control_fd, &(Message) { .kind = MESSAGE_RETIRE }, -1) >= 0)
                worker_life_move_settings(&w->settings, WORKER_RETIRED);
}

static int on_stay(Worker *w) {
        if (worker_stays(w))
                return -EBADMSG;
        if (w->state != WORKER_ASKED) /* meanwhile it was told to end in any case */
                return 0;
        set_state(w, WORKER_RUNNING);
        w->end = WORKER_END_NONE;
        if (w->settings != WORKER_CURRENT)
                worker_retire(w);
        watch_idle(w, clock_usec() + w->context->config->limits.worker_idle_usec);
        group_staff(w->group);
        return 0;
}

static void stop_waiting(Worker *w);

static bool may_end(const Worker *w) {
        return worker_stays(w) && worker_is_idle(w) && !may_have_job(w);
}

static int on_idle(sd_event_source *s, uint64_t usec, void *userdata) {
        Worker *w = userdata;
        uint64_t wait_usec = w->context->config->limits.worker_idle_usec, now = clock_usec();

        if (w->state >= WORKER_KILLED)
                stop_waiting(w);
        else if (!worker_stays(w) && clock_timer_was_late(usec, &w->end_spared))
                watch_idle(w, now + EXIT_USEC);
        else if (!worker_stays(w))
                (void) worker_end(w, WORKER_END_GOES_ON);
        else if (worker_is_idle(w) && now < w->idle_usec + wait_usec)
                watch_idle(w, w->idle_usec + wait_usec);
        else if (may_end(w))
                (void) worker_end(w, WORKER_END_IDLE);
        else /* not at once, even with WorkerIdleSec=0: the timer would keep the loop from sending the waiting job */
                watch_idle(w, now + MAX(wait_usec, JOB_COMES_USEC));
        return 0;
}

/* True if the worker has only channels, and none is known to have a run: it may end, and its channels go to other
 * workers. */
static bool may_give_way(const Worker *w) {
        return worker_stays(w) && !w->runs.head && w->channels.head && !w->context->work->has_busy_channels(w);
}

/* When the worker was last used, as far as the supervisor knows. */
static uint64_t used_usec(const Worker *w) {
        return MAX(w->idle_usec, w->context->work->used_usec(w));
}

/* The user with more workers gives one up; of one user's workers, the one that has not been used for longer. */
static bool goes_before(const Worker *a, const Worker *b) {
        uint64_t n_a = a->group->user->n_workers, n_b = b->group->user->n_workers;

        return n_a != n_b ? n_a > n_b : used_usec(a) < used_usec(b);
}

static Worker *find_to_end(const Context *context, const User *u, const Database *d, bool (*allowed)(const Worker *w)) {
        Worker *found = NULL;

        for (GList *i = context->workers.head; i; i = i->next) {
                Worker *w = i->data;

                if (!allowed(w) || (u && w->group->user != u) || (d && w->group->database != d))
                        continue;
                if (!found || goes_before(w, found))
                        found = w;
        }
        return found;
}

bool worker_end_idle(Context *context, const User *u, const Database *d) {
        Worker *w = find_to_end(context, u, d, may_end) ?: find_to_end(context, u, d, may_give_way);

        return w && worker_end(w, WORKER_END_PLACE);
}

/* The worker is dead, or must be treated as dead. */
static void close_worker(Worker *w) {
        bool was_told = w->state == WORKER_ASKED || w->state == WORKER_ENDING;

        if (worker_is_closed(w))
                return;
        if (!was_told)
                w->group->user->lost_usec = clock_usec();
        set_state(w, WORKER_CLOSED);
        w->io = sd_event_source_disable_unref(w->io);
        w->watch = sd_event_source_disable_unref(w->watch);
        watch_idle(w, clock_usec() + KILLED_USEC); /* until it is reaped */
        close(w->control_fd);
        w->control_fd = -1;
        w->context->work->recall_jobs(w->group); /* in case it died while it took one; and before it puts back older ones */
        w->context->work->lose(w, was_told);
        group_on_worker_gone(w->group);
}

/* Reads the messages that a dead or dying worker has sent. If they are too many, the rest is unknown, as after an invalid
 * message. */
static void read_last_words(Worker *w) {
        size_t budget = LAST_WORDS_SIZE_MAX;

        while (!worker_is_closed(w) && !w->distrusted && receive(w, &budget) > 0)
                if (budget == 0)
                        w->distrusted = true;
}

/* A killed worker waits in the kernel, perhaps for hours: other users must not wait for it. Called once. */
static void stop_waiting(Worker *w) {
        Context *context = w->context;
        const Limits l = quota_limits(w->group->user, w->group->database);
        g_autoptr(Group) g = group_ref(w->group);
        LogFields fields = fields_of(w);

        log_event(LOG_EVENT_WORKER_KILLED, &fields,
                  "Worker %i was killed and does not die: it waits in the kernel, as a rule for a disk or a file server. "
                  "Its runs are lost.", (int) w->process.pid);
        if (context->n_undead < (l.workers_total_max + 1) / 2) {
                w->holds_no_place = true;
                context->n_undead++;
                g->database->n_workers--;
        }
        read_last_words(w);
        close_worker(w);
        set_state(w, WORKER_UNDEAD);
        lease_leave(w); /* others find the database locked, and report that, as long as the kernel keeps this worker */
        (void) sd_event_source_set_enabled(w->idle_timer, SD_EVENT_OFF);
        context->events->worker_gone(context);
        group_staff(g);
}

void worker_free(Worker *w) {
        Group *g = w->group;

        worker_process_done(&w->process, !w->holds_no_place);
        w->io = sd_event_source_disable_unref(w->io);
        w->idle_timer = sd_event_source_disable_unref(w->idle_timer);
        w->watch = sd_event_source_disable_unref(w->watch);
        if (w->control_fd >= 0)
                close(w->control_fd);
        assert(worker_is_idle(w));
        lease_leave(w);
        worker_priority_remove(w->context->priorities, &w->priority);
        g_queue_unlink(&g->workers, &w->group_link);
        g_queue_unlink(&w->context->workers, &w->context_link);
        quota_count_worker(g->user, g->database, -1);
        if (w->holds_no_place) { /* stop_waiting() has subtracted it from these already */
                g->database->n_workers++;
                w->context->n_undead--;
        }
        g_free(w);
        (void) group_unref(g);
}

static void log_end(const Worker *w, const WorkerProcessEnd *end, bool expected) {
        const char *how = end->code == CLD_EXITED ? "exited with status" : "died of signal";
        LogFields fields = fields_of(w);

        if (end->code == 0 && !expected)
                log_event_limited(LOG_EVENT_WORKER_LOST, "silent", &fields,
                                  "An engine process has ended without a word: its unit failed (see journalctl -u "
                                  "'sqlipc-engine@*') or was stopped, or MaxConnections= of sqlipc-engine.socket is "
                                  "reached.");
        else if (end->code == 0)
                log_full(LOG_DEBUG, fields.database, NULL, "Worker %i has ended.", (int) w->process.pid);
        else if (expected)
                log_full(LOG_DEBUG, fields.database, NULL, "Worker %i %s %i.", (int) w->process.pid, how, end->status);
        else if (end->code == CLD_KILLED && end->status == SIGALRM)
                log_event_limited(LOG_EVENT_WORKER_KILLED, "PrepareTimeoutSec=", &fields,
                                  "Worker %i ended itself: it was busy with SQL of a channel past PrepareTimeoutSec=, or "
                                  "past the time limit that came with it.",
                                  (int) w->process.pid);
        else
                log_event_limited(LOG_EVENT_WORKER_LOST, NULL, &fields, "Worker %i %s %i.", (int) w->process.pid, how,
                                  end->status);
}

static void on_process_end(WorkerProcess *p, const WorkerProcessEnd *end, void *userdata) {
        Worker *w = userdata;
        Context *context = w->context;
        g_autoptr(Group) g = group_ref(w->group);

        read_last_words(w);
        bool exited_well = end->code == CLD_EXITED && end->status == 0;
        log_end(w, end, w->end != WORKER_END_NONE || exited_well);
        if (p->is_engine)
                group_on_engine_end(g, end);
        w->ended_well = exited_well && !w->distrusted;
        /* status 0 of a worker that was not told to end, or broke the protocol, does not mean that it wrote everything */
        context->work->break_pipes(w, exited_well && worker_life_is_told(w->end) && !w->distrusted);
        close_worker(w);
        worker_free(w);
        context->events->worker_gone(context); /* first: its own group may want the place that it gave up */
        group_staff(g);
}

/* ---- Messages from the worker ---- */

uint64_t worker_message_number(const Message *m) {
        switch (m->kind) {
        case MESSAGE_STARTED: return m->started.number;
        case MESSAGE_PARKED: return m->parked.number;
        case MESSAGE_ENDED:
        case MESSAGE_COMMIT_REFUSED: return m->ended.number;
        case MESSAGE_PROGRESS: return m->progress.number;
        case MESSAGE_TAKEN:
        case MESSAGE_FILLING: return m->number;
        case MESSAGE_DRAINED: return m->drained.number;
        case MESSAGE_CHANNEL_PROGRESS: return m->channel_progress.number;
        case MESSAGE_CHANNEL_RESTED:
        case MESSAGE_CHANNEL_CLOSED: return m->channel_end.progress.number;
        case MESSAGE_ATTACH_WANTED: return m->attach.number;
        case MESSAGE_ATTACH:
        case MESSAGE_PONG:
        case MESSAGE_SETUP:
        case MESSAGE_PREPARE:
        case MESSAGE_RUN:
        case MESSAGE_CANCEL:
        case MESSAGE_CHANNEL:
        case MESSAGE_CHANNEL_CLOSE:
        case MESSAGE_PING:
        case MESSAGE_EXIT:
        case MESSAGE_RETIRE:
        case MESSAGE_GIVE_WAY:
        case MESSAGE_STAY:
        case MESSAGE_EXECUTE:
        case MESSAGE_EXECUTE_BATCH:
        case MESSAGE_BEGIN:
        case MESSAGE_COMMIT:
        case MESSAGE_TRY_COMMIT:
        case MESSAGE_LOAD:
        case MESSAGE_LEASE:
        case MESSAGE_LEASE_ASKED:
        case MESSAGE_LEASE_WANTED:
        case MESSAGE_LEASE_RETURNED:
        case MESSAGE_LEASE_KEPT:
        case MESSAGE_LEASE_TAKEN:
        case MESSAGE_COMMITTING:
        case MESSAGE_TABLES:
        case MESSAGE_WATCH:
        case MESSAGE_COMMITTED:
        case MESSAGE_OBSERVE:
        case MESSAGE_OBSERVED:
        case MESSAGE_NOTIFIER:
        case MESSAGE_CONNECTION_WANTED:
        case MESSAGE_CONNECTION:
        case MESSAGE_CONNECTION_ASKED:
        case MESSAGE_CONNECTION_RETURNED: break;
        }
        return 0; /* no run or channel has this number */
}

static int dispatch(Worker *w, const Message *m) {
        switch (m->kind) {
        case MESSAGE_STAY: return on_stay(w);
        case MESSAGE_LEASE_WANTED: return lease_on_wanted(w);
        case MESSAGE_LEASE_RETURNED: return lease_on_returned(w);
        case MESSAGE_LEASE_KEPT: return lease_on_kept(w);
        case MESSAGE_COMMITTED: return lease_on_committed(w, &m->committed);
        default: return w->context->work->dispatch(w, m);
        }
}

/* Reads one message and subtracts its size from `budget`. 1: there may be more; 0: there is nothing to read now. */
static int receive(Worker *w, size_t *budget) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        int r = message_receive(w->control_fd, &m);

        if (r == -EAGAIN)
                return 0;
        if (r == 0) {
                /* Without its control socket the worker is useless. on_process_end() follows. */
                worker_process_kill(&w->process);
                close_worker(w);
                return 0;
        }
        if (r > 0) {
                *budget -= MIN(*budget, m.size);
                w->n_said++;
                r = dispatch(w, &m.message);
                if (r < 0) {
                        LogFields fields = fields_of(w);
                        log_full_limited(LOG_WARNING, &fields,
                                         "Worker %i sent message %i about %" PRIu64 ", which is out of turn.",
                                         (int) w->process.pid, (int) m.message.kind, worker_message_number(&m.message));
                }
        }
        received_message_done(&m);
        if (r >= 0)
                return 1;
        if (r != -EBADMSG)
                log_warning_limited("A message of worker %i cannot be received: %s", (int) w->process.pid, strerror(-r));
        (void) worker_end(w, r == -EBADMSG ? WORKER_END_INVALID_MESSAGE : WORKER_END_UNREADABLE);
        return 0;
}

void worker_process(Worker *w) {
        size_t budget = MESSAGE_BYTES_AT_ONCE;

        for (int i = 0; i < MESSAGES_AT_ONCE && budget > 0 && !worker_is_closed(w) && !w->distrusted; i++)
                /* an idle worker sends nothing, so skip the read */
                if (receive(w, &budget) <= 0 || worker_is_idle(w))
                        return;
}

static int on_control(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        worker_process(userdata);
        return 0;
}
