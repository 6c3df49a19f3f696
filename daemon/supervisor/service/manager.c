/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The object that owns everything else. Supervisor. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "config.h"
#include "daemon/configuration/configuration-files.h"
#include "daemon/supervisor/access/admission.h"
#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/base/sd-autoptr.h"
#include "daemon/supervisor/bus/database-bus.h"
#include "daemon/supervisor/bus/log-control.h"
#include "daemon/supervisor/bus/manager-bus.h"
#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/run-due.h"
#include "daemon/supervisor/runs/run-access.h"
#include "daemon/supervisor/runs/session-close.h"
#include "daemon/supervisor/runs/session.h"
#include "daemon/supervisor/runs/statement.h"
#include "daemon/supervisor/runs/watch.h"
#include "daemon/supervisor/runs/work.h"
#include "daemon/supervisor/service/invariants.h"
#include "daemon/supervisor/service/manager.h"
#include "daemon/supervisor/service/publication.h"
#include "daemon/supervisor/workers/counts-page.h"
#include "daemon/supervisor/workers/connections.h"
#include "daemon/supervisor/workers/group.h"
#include "daemon/supervisor/workers/places.h"
#include "daemon/supervisor/workers/worker.h"
#include "dbus-interfaces/sqlipc-names.h"

static const char stopping_sentence[] = "The service is stopping; call again to start it anew.";

#define STOP_USEC UINT64_C(1000000) /* for workers to end by themselves */

static const ContextEvents context_events;

static Manager *manager_of(Context *context) {
        return (Manager *) ((char *) context - offsetof(Manager, context));
}

/* ---- Start ---- */

static uint64_t read_pipe_pages_soft(void) {
        g_autofree char *text = NULL;

        if (!g_file_get_contents("/proc/sys/fs/pipe-user-pages-soft", &text, NULL, NULL))
                return PIPE_PAGES_SOFT_DEFAULT;
        return g_ascii_strtoull(text, NULL, 10);
}

/* Raises the limit to its maximum: the usual 1024 are few for pipes, and sd-bus closes the bus connection when it runs out
 * of them. */
static uint64_t raise_descriptor_limit(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 1024;
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? before : limit.rlim_cur;
}

static void put_in_force(Context *context, Config *config) {
        Manager *m = manager_of(context);
        GHashTable *before = publication_replace(context, config);

        announcements_add(&m->announcements, before);
        publication_free(before);
        idle_on_reload(&m->idle);
}

/* Of the unit sqlipc-engine.socket. */
static char *find_engine_socket(BusType type) {
        const char *path = getenv("SQLIPC_ENGINE_SOCKET"), *runtime = getenv("XDG_RUNTIME_DIR");

        if (path)
                return g_strdup(path);
        return g_strconcat(type == BUS_USER && runtime ? runtime : "/run", "/sqlipc-engine/socket", NULL);
}

static void init_modules(Manager *m, char **directories, uint64_t n_descriptors) {
        Context *context = &m->context;

        /* The variable allows running from a build tree, before anything is installed. */
        worker_program_open(&m->worker_program, getenv("SQLIPC_WORKER_PATH") ?: SQLIPC_WORKER_PATH);
        pipe_budget_init(&m->pipes.budget, read_pipe_pages_soft(), n_descriptors);
        context->channels_max = n_descriptors / 8; /* each has up to two; five eighths are for pipes (pipe-budget.h) */
        context->work = &work_events;
        context->worker_program = &m->worker_program;
        context->engine_socket = m->engine_socket;
        context->priorities = &m->priorities;
        context->pipes = &m->pipes;
        context->statement_expiry = &m->statement_expiry;
        context->run_timer = &m->run_timer;
        context->peer_watch = &m->peer_watch;
        context->polkit = &m->polkit;
        context->listings = &m->listings;
        context->pacing = &m->pacing;
        context->changes = &m->changes;
        context->watch_poll = &m->watch_poll;
        m->changes.page.fd = m->watch_poll.fd = -1; /* until they are started */
        context->watch_pipes_max = n_descriptors / 5; /* 13,107 of the units' LimitNOFILE= */
        context->argument_files_max = n_descriptors / 32;
        m->announcements.context = context;
        m->reload = (Reload) { .context = context, .directories = directories, .put_in_force = put_in_force };
}

int manager_new(BusType type, char **config_directories, Manager **ret) {
        g_autoptr(Manager) m = g_new0(Manager, 1);
        int r = context_init(&m->context, &context_events);

        m->engine_socket = find_engine_socket(type);
        init_modules(m, config_directories ? g_strdupv(config_directories) : config_default_directories(type == BUS_USER),
                     raise_descriptor_limit());
        if (r < 0)
                return r;
        r = sd_event_set_watchdog(m->context.event, true); /* does nothing if the service manager set no watchdog */
        if (r < 0)
                return r;
        statement_start_expiry(&m->context);
        r = changes_start(&m->changes, &m->context);
        if (r < 0)
                return r;
        r = watch_poll_start(&m->watch_poll, &m->context, watch_on_pipe);
        if (r < 0)
                return r;
        r = run_timer_start(&m->run_timer, m->context.event, run_due, &m->context);
        if (r < 0)
                return r;
        r = worker_start_priorities(&m->context);
        if (r < 0)
                return r;
        r = invariants_watch(&m->context);
        if (r < 0)
                return r;
        *ret = g_steal_pointer(&m);
        return 0;
}

static int open_bus(BusType type, const char *address, sd_bus **ret) {
        g_autoptr(sd_bus) bus = NULL;
        int r;

        switch (type) {
        case BUS_SYSTEM: return sd_bus_open_system(ret);
        case BUS_USER: return sd_bus_open_user(ret);
        case BUS_ADDRESS: break;
        }
        r = sd_bus_new(&bus);
        if (r >= 0)
                r = sd_bus_set_address(bus, address);
        if (r >= 0)
                r = sd_bus_set_bus_client(bus, true);
        if (r >= 0)
                r = sd_bus_negotiate_fds(bus, true);
        if (r >= 0)
                r = sd_bus_start(bus);
        if (r < 0)
                return r;
        *ret = g_steal_pointer(&bus);
        return 0;
}

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        log_event(LOG_EVENT_BUS_LOST, NULL, "The connection to the bus is lost.");
        manager_stop(userdata, EXIT_FAILURE);
        return 0;
}

static int on_call(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Manager *m = userdata;

        if (!sd_bus_message_is_method_call(message, NULL, NULL))
                return 0;
        idle_on_call(&m->idle);
        if (!m->context.stopping)
                return 0;
        return bus_error_reply(message, &(Failure) { .error = ERROR_SHUTTING_DOWN, .sql_offset = -1,
                                                    .message = stopping_sentence }, false);
}

static bool is_busy(const Context *context) {
        return manager_is_busy(manager_of((Context *) context));
}

static void stop(Context *context, int exit_code) {
        manager_stop(manager_of(context), exit_code);
}

static const IdleEvents idle_events = { .is_busy = is_busy, .stop = stop };

static void on_peer_leaving(Context *context, const char *name) {
        (void) session_close(g_hash_table_lookup(context->sessions, name), ERROR_CANCELLED, "The client left the bus.");
}

static const PeerEvents peer_events = {
        .leaving = on_peer_leaving, .left = admission_on_name_left, .forget = admission_forget_peer,
};

int manager_connect(Manager *m, BusType type, const char *address) {
        int r = open_bus(type, address, &m->context.bus);

        if (r < 0)
                return r;
        r = sd_bus_can_send(m->context.bus, SD_BUS_TYPE_UNIX_FD);
        if (r <= 0)
                return r < 0 ? r : -EOPNOTSUPP;
        r = admission_watch(&m->context); /* the filter that was added last runs first */
        if (r < 0)
                return r;
        r = pacing_watch(&m->context);
        if (r < 0)
                return r;
        r = sd_bus_add_filter(m->context.bus, NULL, on_call, m);
        if (r < 0)
                return r;
        r = sd_bus_match_signal(m->context.bus, NULL, NULL, "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local",
                                "Disconnected", on_disconnected, m);
        if (r < 0)
                return r;
        r = peer_watch(&m->context, &peer_events);
        if (r < 0)
                return r;
        r = manager_bus_export(&m->context);
        if (r < 0)
                return r;
        r = database_bus_export(&m->context);
        if (r < 0)
                return r;
        r = log_control_export(&m->context);
        if (r < 0)
                return r;
        r = sd_bus_attach_event(m->context.bus, m->context.event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;
        r = idle_start(&m->idle, &m->context, &idle_events);
        if (r < 0)
                return r;
        r = status_start(&m->status, &m->context);
        if (r < 0)
                return r;
        /* last, so that all is ready for the clients that call this name */
        return sd_bus_request_name(m->context.bus, SQLIPC_BUS_NAME, 0);
}

/* ---- Stop ---- */

static bool has_draining_runs(const Manager *m) {
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, m->context.runs);
        while (g_hash_table_iter_next(&i, NULL, &value))
                if (((const Run *) value)->state == RUN_DRAINING)
                        return true;
        return false;
}

/* A slow reader has until STOP_USEC to read the last bytes of its stream. */
static void exit_if_done(Manager *m) {
        if (m->context.stopping && m->name_released && !m->context.workers.head && !has_draining_runs(m))
                (void) sd_event_exit(m->context.event, m->exit_code);
}

/* Workers that did not end in time are killed when the manager is freed. */
static int on_stop_timeout(sd_event_source *s, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        if (!clock_timer_was_late(usec, &m->stop_spared) ||
            sd_event_source_set_time_relative(s, STOP_USEC) < 0 || sd_event_source_set_enabled(s, SD_EVENT_ONESHOT) < 0)
                return sd_event_exit(m->context.event, m->exit_code);
        return 0;
}

static void close_sessions(Manager *m) {
        GHashTableIter i;
        void *value;

        for (;;) {
                g_hash_table_iter_init(&i, m->context.sessions);
                if (!g_hash_table_iter_next(&i, NULL, &value))
                        return;
                (void) session_close(value, ERROR_SHUTTING_DOWN, stopping_sentence);
        }
}

static void grow_pipes_before_exit(Manager *m) {
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, m->context.runs);
        while (g_hash_table_iter_next(&i, NULL, &value))
                if (((Run *) value)->pipe)
                        pipe_grow_before_exit(((Run *) value)->pipe);
}

static int on_name_released(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Manager *m = userdata;

        m->name_released = true;
        exit_if_done(m);
        return 0;
}

/* Later calls start the next instance. Calls that the bus sent here before are answered before its reply comes. */
static void release_name(Manager *m) {
        sd_bus *bus = m->context.bus;
        int r = bus ? sd_bus_release_name_async(bus, NULL, SQLIPC_BUS_NAME, on_name_released, m) : -ENOTCONN;

        m->name_released = r < 0;
}

bool manager_is_busy(const Manager *m) {
        const Context *context = &m->context;

        return g_hash_table_size(context->statements) > 0 || g_hash_table_size(context->runs) > 0 ||
               g_hash_table_size(context->channels) > 0 || g_hash_table_size(context->watches) > 0 ||
               reload_is_busy(&m->reload) || announcements_are_busy(&m->announcements) || admission_is_busy(context) ||
               pacing_is_busy(context) ||
               /* without the name, later calls reach the other instance, which begins with 0 */
               (m->idle.state != IDLE_NAMELESS && counts_page_is_needed(context));
}

void manager_stop(Manager *m, int exit_code) {
        if (m->context.stopping)
                return;
        m->context.stopping = true;
        m->exit_code = exit_code;
        idle_stop(&m->idle);
        reload_stop(&m->reload);
        announcements_stop(&m->announcements);
        release_name(m);
        admission_stop(&m->context, stopping_sentence);
        pacing_stop(&m->context, stopping_sentence);
        grow_pipes_before_exit(m);
        close_sessions(m);
        for (GList *i = m->context.workers.head; i; i = i->next) {
                Worker *w = i->data;
                if (!w->runs.head) /* others end after their runs; channels were told to close */
                        (void) worker_end(w, WORKER_END_STOPPING);
        }
        int r = sd_event_add_time_relative(m->context.event, &m->stop_timer, CLOCK_MONOTONIC, STOP_USEC, 0, on_stop_timeout,
                                           m);
        if (r < 0)
                (void) sd_event_exit(m->context.event, exit_code);
        exit_if_done(m);
}

/* ---- Events that the modules report ---- */

/* Starved groups first: the worker may have been the last one. */
static void on_worker_gone(Context *context) {
        places_on_worker_gone(context);
        connections_on_worker_gone(context);
        exit_if_done(manager_of(context));
}

static void on_run_drained(Context *context) {
        exit_if_done(manager_of(context));
}

static void on_rights_changed(Context *context) {
        channels_on_policy_changed(context);
        watches_on_rights_changed(context);
        run_access_on_rights_changed(context);
}

static void reload(Context *context, ReloadHandler handler, void *userdata) {
        reload_start(&manager_of(context)->reload, handler, userdata);
}

static const ContextEvents context_events = {
        .place_offered = places_offer,
        .worker_gone = on_worker_gone,
        .run_drained = on_run_drained,
        .rights_changed = on_rights_changed,
        .write_granted = channels_on_write_granted,
        .pipe_grown = run_access_on_pipe_grown,
        .reload = reload,
};

/* ---- End ---- */

static void lose_runs(Manager *m) {
        GHashTableIter i;
        void *value;

        for (;;) {
                g_hash_table_iter_init(&i, m->context.runs);
                if (!g_hash_table_iter_next(&i, NULL, &value))
                        return;
                run_end(value, RUN_END_WORKER_LOST, ERROR_NONE, NULL);
        }
}

static void free_channels(Manager *m) {
        GHashTableIter i;
        void *value;

        for (;;) {
                g_hash_table_iter_init(&i, m->context.channels);
                if (!g_hash_table_iter_next(&i, NULL, &value))
                        return;
                channel_end(value, CHANNEL_END_LOOP);
        }
}

static void free_pipes(Manager *m) {
        GHashTableIter i;
        void *value;

        for (;;) {
                User *u;

                g_hash_table_iter_init(&i, m->context.users);
                if (!g_hash_table_iter_next(&i, NULL, &value))
                        return;
                u = user_ref(value);
                while (u->pipes.head)
                        pipe_free(u->pipes.head->data);
                (void) user_unref(u);
        }
}

Manager *manager_free(Manager *m) {
        if (!m)
                return NULL;
        m->context.stopping = true;
        reload_stop(&m->reload);
        announcements_stop(&m->announcements);
        close_sessions(m);
        lose_runs(m);
        free_channels(m);
        while (m->context.workers.head)
                worker_free(m->context.workers.head->data);
        free_pipes(m);
        changes_stop(&m->changes);
        watch_poll_stop(&m->watch_poll);
        m->stop_timer = sd_event_source_disable_unref(m->stop_timer);
        m->peer_watch.read_ahead = sd_event_source_disable_unref(m->peer_watch.read_ahead);
        expiry_done(&m->statement_expiry);
        run_timer_done(&m->run_timer);
        worker_priority_stop(&m->priorities);
        m->pipes.timer = sd_event_source_disable_unref(m->pipes.timer);
        idle_stop(&m->idle);
        status_stop(&m->status);
        listing_done(&m->listings);
        m->context.bus = sd_bus_flush_close_unref(m->context.bus);
        publication_free(g_steal_pointer(&m->context.databases));
        peer_forget_all(&m->context);
        pacing_done(&m->pacing);
        m->polkit.retry = sd_event_source_disable_unref(m->polkit.retry);
        g_free(m->polkit.authority);
        worker_program_close(&m->worker_program);
        g_free(m->engine_socket);
        g_strfreev(m->reload.directories);
        context_done(&m->context);
        g_free(m);
        return NULL;
}
