/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The object that owns everything else. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "daemon/configuration/configuration-files.h"
#include "daemon/supervisor/bus-error.h"
#include "daemon/supervisor/channel.h"
#include "daemon/supervisor/clock.h"
#include "daemon/supervisor/group.h"
#include "daemon/supervisor/invariants.h"
#include "daemon/supervisor/log.h"
#include "daemon/supervisor/manager.h"
#include "daemon/supervisor/policy.h"
#include "daemon/supervisor/run.h"
#include "daemon/supervisor/sd-autoptr.h"
#include "daemon/supervisor/session.h"
#include "daemon/supervisor/statement.h"
#include "daemon/supervisor/worker.h"
#include "dbus-interfaces/sqlipc-names.h"

static const char stopping_sentence[] = "The service is stopping; call again to start it anew.";

#define STOP_USEC UINT64_C(1000000) /* for workers to end by themselves */

/* From a random start below 2^52 the counter stays below 2^53 for longer than any machine runs (I5). */
static int start_numbers(Manager *m) {
        uint64_t n;

        if (getrandom(&n, sizeof n, 0) != sizeof n)
                return -errno;
        m->next_number = (n >> 12) + 1;
        return 0;
}

uint64_t manager_next_number(Manager *m) {
        return m->next_number++;
}

Database *manager_find_database(Manager *m, const char *name) {
        return g_hash_table_lookup(m->databases, name);
}

/* ---- Counting ---- */

uint64_t manager_n_workers(const Manager *m) {
        return m->workers.length - m->n_undead;
}

unsigned manager_n_busy_workers(const Manager *m) {
        unsigned n = 0;

        for (GList *i = m->workers.head; i; i = i->next)
                n += worker_n_runnable(i->data) > 0;
        return n;
}

uint64_t manager_n_runs(const Manager *m) {
        GHashTableIter i;
        uint64_t n = 0;
        void *value;

        g_hash_table_iter_init(&i, m->runs);
        while (g_hash_table_iter_next(&i, NULL, &value))
                n += ((Run *) value)->kind != RUN_PREPARE;
        g_hash_table_iter_init(&i, m->channels);
        while (g_hash_table_iter_next(&i, NULL, &value))
                n += ((Channel *) value)->run.running;
        return n;
}

uint64_t manager_n_parked(const Manager *m) {
        GHashTableIter i;
        uint64_t n = 0;
        void *value;

        g_hash_table_iter_init(&i, m->runs);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                const Run *run = value;

                /* a run that has ended waits for its reader too, but no longer holds a transaction */
                n += run->parked && run->state == RUN_STARTED;
        }
        g_hash_table_iter_init(&i, m->channels);
        while (g_hash_table_iter_next(&i, NULL, &value))
                n += ((Channel *) value)->run.parked;
        return n;
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

static unsigned count_cpus(void) {
        cpu_set_t cpus;

        return sched_getaffinity(0, sizeof cpus, &cpus) < 0 ? 1 : (unsigned) CPU_COUNT(&cpus);
}

int manager_new(BusType type, char **config_directories, Manager **ret) {
        g_autoptr(Manager) m = g_new(Manager, 1);

        *m = (Manager) {
                .uid = geteuid(),
                .config_directories = config_directories ? g_strdupv(config_directories)
                                                         : config_default_directories(type == BUS_USER),
                .n_cpus = count_cpus(),
                .memory_size = (uint64_t) sysconf(_SC_PHYS_PAGES) * (uint64_t) sysconf(_SC_PAGESIZE),
                .config = config_new(),
                .databases = g_hash_table_new(g_str_hash, g_str_equal),
                .peers = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, peer_free),
                .sessions = g_hash_table_new(g_str_hash, g_str_equal),
                .users = g_hash_table_new(NULL, NULL),
                .statements = g_hash_table_new(g_int64_hash, g_int64_equal),
                .runs = g_hash_table_new(g_int64_hash, g_int64_equal),
                .channels = g_hash_table_new(g_int64_hash, g_int64_equal),
                .workers = G_QUEUE_INIT,
        };
        /* The variable allows running from a build tree, before anything is installed. */
        worker_program_open(&m->worker_program, getenv("SQLIPC_WORKER_PATH") ?: SQLIPC_WORKER_PATH);
        uint64_t n_descriptors = raise_descriptor_limit();
        pipe_budget_init(&m->pipe_budget, read_pipe_pages_soft(), n_descriptors);
        m->channels_max = n_descriptors / 8; /* half of all are for pipes */
        int r = start_numbers(m);
        if (r < 0)
                return r;
        r = sd_event_new(&m->event);
        if (r < 0)
                return r;
        r = sd_event_set_watchdog(m->event, true); /* does nothing if the service manager set no watchdog */
        if (r < 0)
                return r;
        r = run_timer_start(m);
        if (r < 0)
                return r;
        r = worker_priority_start(m);
        if (r < 0)
                return r;
        r = invariants_watch(m);
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
        idle_on_call(m);
        if (!m->stopping)
                return 0;
        return bus_error_reply(message, &(Failure) { .error = ERROR_SHUTTING_DOWN, .sql_offset = -1,
                                                    .message = stopping_sentence }, false);
}

int manager_connect(Manager *m, BusType type, const char *address) {
        int r = open_bus(type, address, &m->bus);

        if (r < 0)
                return r;
        r = sd_bus_can_send(m->bus, SD_BUS_TYPE_UNIX_FD);
        if (r <= 0)
                return r < 0 ? r : -EOPNOTSUPP;
        r = policy_watch(m); /* the filter that was added last runs first */
        if (r < 0)
                return r;
        r = pacing_watch(m);
        if (r < 0)
                return r;
        r = sd_bus_add_filter(m->bus, NULL, on_call, m);
        if (r < 0)
                return r;
        r = sd_bus_match_signal(m->bus, NULL, NULL, "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local",
                                "Disconnected", on_disconnected, m);
        if (r < 0)
                return r;
        r = peer_watch(m);
        if (r < 0)
                return r;
        r = manager_bus_export(m);
        if (r < 0)
                return r;
        r = database_bus_export(m);
        if (r < 0)
                return r;
        r = log_control_export(m);
        if (r < 0)
                return r;
        r = sd_bus_attach_event(m->bus, m->event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;
        r = idle_start(m);
        if (r < 0)
                return r;
        r = status_start(m);
        if (r < 0)
                return r;
        /* last, so that all is ready for the clients that call this name */
        return sd_bus_request_name(m->bus, SQLIPC_BUS_NAME, 0);
}

/* ---- Stop ---- */

static bool has_draining_runs(const Manager *m) {
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, m->runs);
        while (g_hash_table_iter_next(&i, NULL, &value))
                if (((const Run *) value)->state == RUN_DRAINING)
                        return true;
        return false;
}

/* A slow reader has until STOP_USEC to read the last bytes of its stream. */
static void exit_if_done(Manager *m) {
        if (m->stopping && m->name_released && !m->workers.head && !has_draining_runs(m))
                (void) sd_event_exit(m->event, m->exit_code);
}

/* Workers that did not end in time are killed when the manager is freed. */
static int on_stop_timeout(sd_event_source *s, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        if (!clock_timer_was_late(usec, &m->stop_spared) ||
            sd_event_source_set_time_relative(s, STOP_USEC) < 0 || sd_event_source_set_enabled(s, SD_EVENT_ONESHOT) < 0)
                return sd_event_exit(m->event, m->exit_code);
        return 0;
}

static void close_sessions(Manager *m) {
        GHashTableIter i;
        void *value;

        for (;;) {
                g_hash_table_iter_init(&i, m->sessions);
                if (!g_hash_table_iter_next(&i, NULL, &value))
                        return;
                (void) session_close(value, ERROR_SHUTTING_DOWN, stopping_sentence);
        }
}

static void grow_pipes_before_exit(Manager *m) {
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, m->runs);
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
        int r = m->bus ? sd_bus_release_name_async(m->bus, NULL, SQLIPC_BUS_NAME, on_name_released, m) : -ENOTCONN;

        m->name_released = r < 0;
}

bool manager_is_busy(const Manager *m) {
        return g_hash_table_size(m->statements) > 0 || g_hash_table_size(m->runs) > 0 ||
               g_hash_table_size(m->channels) > 0 || manager_is_reloading(m) || announcements_are_busy(m) ||
               policy_is_busy(m) || pacing_is_busy(m);
}

void manager_stop(Manager *m, int exit_code) {
        if (m->stopping)
                return;
        m->stopping = true;
        m->exit_code = exit_code;
        idle_stop(m);
        manager_reload_stop(m);
        announcements_stop(m);
        release_name(m);
        policy_stop(m, stopping_sentence);
        pacing_stop(m, stopping_sentence);
        grow_pipes_before_exit(m);
        close_sessions(m);
        for (GList *i = m->workers.head; i; i = i->next) {
                Worker *w = i->data;
                if (!w->runs.head) /* others end after their runs; channels were told to close */
                        (void) worker_end(w, WORKER_END_STOPPING);
        }
        int r = sd_event_add_time_relative(m->event, &m->stop_timer, CLOCK_MONOTONIC, STOP_USEC, 0, on_stop_timeout, m);
        if (r < 0)
                (void) sd_event_exit(m->event, exit_code);
        exit_if_done(m);
}

void manager_on_run_drained(Manager *m) {
        exit_if_done(m);
}

static GPtrArray *find_starved(const Manager *m) {
        GPtrArray *starved = g_ptr_array_new();
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, m->users);
        while (g_hash_table_iter_next(&i, NULL, &value))
                for (GList *k = ((User *) value)->groups.head; k; k = k->next)
                        if (((Group *) k->data)->starved)
                                g_ptr_array_add(starved, group_ref(k->data));
        return starved;
}

void manager_offer_places(Manager *m) {
        if (m->n_starved == 0)
                return;
        g_autoptr(GPtrArray) starved = find_starved(m);
        for (guint k = 0; k < starved->len; k++) {
                group_on_offer(starved->pdata[k]);
                (void) group_unref(starved->pdata[k]);
        }
}

static int waits_longer(const void *a, const void *b) {
        const Group *one = *(Group *const *) a, *other = *(Group *const *) b;

        return one->starved_usec < other->starved_usec ? -1 : one->starved_usec > other->starved_usec;
}

void manager_on_worker_gone(Manager *m) {
        g_autoptr(GPtrArray) starved = find_starved(m);

        g_ptr_array_sort(starved, waits_longer);
        for (guint k = 0; k < starved->len; k++) {
                Group *g = starved->pdata[k];

                g->asked_usec = 0; /* another group may have got the place that this one asked for */
                group_staff(g);
                (void) group_unref(g);
        }
        exit_if_done(m);
}

static void lose_runs(Manager *m) {
        GHashTableIter i;
        void *value;

        for (;;) {
                g_hash_table_iter_init(&i, m->runs);
                if (!g_hash_table_iter_next(&i, NULL, &value))
                        return;
                run_lost(value);
        }
}

static void free_channels(Manager *m) {
        GHashTableIter i;
        void *value;

        for (;;) {
                g_hash_table_iter_init(&i, m->channels);
                if (!g_hash_table_iter_next(&i, NULL, &value))
                        return;
                channel_free(value);
        }
}

static void free_pipes(Manager *m) {
        GHashTableIter i;
        void *value;

        for (;;) {
                User *u;

                g_hash_table_iter_init(&i, m->users);
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
        m->stopping = true;
        manager_reload_stop(m);
        announcements_stop(m);
        close_sessions(m);
        lose_runs(m);
        free_channels(m);
        while (m->workers.head)
                worker_free(m->workers.head->data);
        free_pipes(m);
        m->stop_timer = sd_event_source_disable_unref(m->stop_timer);
        m->read_ahead = sd_event_source_disable_unref(m->read_ahead);
        statement_expiry_done(&m->statement_expiry);
        run_timer_done(&m->run_timer);
        worker_priority_stop(&m->priorities);
        m->rest_timer = sd_event_source_disable_unref(m->rest_timer);
        idle_stop(m);
        status_stop(m);
        listing_done(m);
        m->bus = sd_bus_flush_close_unref(m->bus);
        manager_release_databases(m->databases);
        g_hash_table_unref(m->peers);
        pacing_done(m);
        g_free(m->polkit.authority);
        g_hash_table_unref(m->sessions);
        g_hash_table_unref(m->users);
        g_hash_table_unref(m->statements);
        g_hash_table_unref(m->runs);
        g_hash_table_unref(m->channels);
        config_free(m->config);
        worker_program_close(&m->worker_program);
        g_strfreev(m->config_directories);
        m->event = sd_event_unref(m->event);
        g_free(m);
        return NULL;
}
