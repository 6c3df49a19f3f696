/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch: how long after a commit a program knows of it, and the costs of watches for the program that writes. Each latency
 * is from the answer to the statement (for a commit past the service: from the return of SQLite) to the moment when a thread
 * that polls the descriptor runs. It is negative if that thread runs before the answer is there.
 */
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "tools/bench/core/bench-service.h"
#include "tools/bench/core/library.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/workload.h"

/* of org.sqlipc1(5) */
#define SERVICE "org.sqlipc1"
#define OBJECT "/org/sqlipc1/database/write_5fwal"
#define INTERFACE "org.sqlipc1.Database"

#define DATABASE "write_wal"
#define INSERT "INSERT INTO " DATABASE "(n, r, t) VALUES (1, 0.5, 'a row')"
#define PATIENCE_USEC 10000000
#define PAUSE_USEC 2000 /* between two commits, so that each is told by itself */

typedef struct WatchRun {
        const BenchOptions *options;
        Service service;
        sqlipc_connection *writer;
        sqlite3 *direct;       /* another program, as the service sees it */
        char *file;
        atomic_uint_fast64_t woken_usec; /* when the watcher ran; 0: it has not since it was set to that */
} WatchRun;

static uint64_t now_usec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000 + (uint64_t) t.tv_nsec / 1000;
}

/* ---- Watches ------------------------------------------------------------------------------------------------------ */

/* Returns the descriptor of a watch of the table. */
static int open_watch(WatchRun *w, int *ret) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply = NULL;
        uint64_t number;
        int fd, r = sd_bus_call_method(w->service.bus, SERVICE, OBJECT, INTERFACE, "Watch", &error, &reply,
                                       "asa{sv}", 1, DATABASE, 0);

        if (r >= 0)
                r = sd_bus_message_read(reply, "th", &number, &fd);
        if (r >= 0) {
                *ret = dup(fd);
                r = *ret < 0 ? -errno : 0;
        } else
                fprintf(stderr, "sqlipc-bench: cannot watch " DATABASE ": %s\n", error.message ?: g_strerror(-r));
        (void) sd_bus_message_unref(reply);
        sd_bus_error_free(&error);
        return r;
}

static int open_inotify(const WatchRun *w, int *ret) {
        g_autofree char *log = g_strconcat(w->file, "-wal", NULL);
        int fd = inotify_init1(IN_CLOEXEC);

        if (fd < 0 || inotify_add_watch(fd, log, IN_MODIFY) < 0) {
                fprintf(stderr, "sqlipc-bench: inotify: %s\n", g_strerror(errno));
                return -errno;
        }
        *ret = fd;
        return 0;
}

typedef struct Watcher {
        WatchRun *run;
        int fd, stop_fd;
} Watcher;

static void *watch(void *userdata) {
        const Watcher *me = userdata;
        struct pollfd p[] = { { .fd = me->fd, .events = POLLIN }, { .fd = me->stop_fd, .events = POLLIN } };
        char bytes[4096];

        while (poll(p, 2, -1) >= 0 && !p[1].revents) {
                uint_fast64_t none = 0;

                (void) atomic_compare_exchange_strong(&me->run->woken_usec, &none, now_usec());
                if (read(me->fd, bytes, sizeof bytes) <= 0)
                        break;
        }
        return NULL;
}

/* ---- Latency ------------------------------------------------------------------------------------------------------ */

static int write_by_service(WatchRun *w) {
        int64_t n;
        int r = sqlipc_exec(w->writer, DATABASE, INSERT, &n);

        return r < 0 ? library_failed(w->writer, r, INSERT) : 0;
}

static int write_past_it(WatchRun *w) {
        if (sqlite3_exec(w->direct, INSERT, NULL, NULL, NULL) == SQLITE_OK)
                return 0;
        fprintf(stderr, "sqlipc-bench: %s: %s\n", w->file, sqlite3_errmsg(w->direct));
        return -EIO;
}

/* Writes once, and waits for the watcher. */
static int measure_one(WatchRun *w, int (*write_row)(WatchRun *w), GArray *latencies) {
        uint64_t told, woken;
        double latency;
        int r;

        g_usleep(PAUSE_USEC);
        atomic_store(&w->woken_usec, 0);
        r = write_row(w);
        told = now_usec();
        if (r < 0)
                return r;
        while ((woken = atomic_load(&w->woken_usec)) == 0 && now_usec() < told + PATIENCE_USEC)
                g_usleep(50);
        if (woken == 0) {
                fprintf(stderr, "sqlipc-bench: a commit was not told.\n");
                return -ETIMEDOUT;
        }
        latency = (double) (int64_t) (woken - told);
        g_array_append_val(latencies, latency);
        return measure_interrupted();
}

static int measure_latency(WatchRun *w, const char *name, int fd, int (*write_row)(WatchRun *w), Report *report) {
        g_autoptr(GArray) latencies = g_array_new(FALSE, FALSE, sizeof(double));
        int64_t n = bench_amount(w->options, 20, 500, 2000);
        Watcher watcher = { .run = w, .fd = fd };
        int stop[2], r = 0;

        if (pipe(stop) < 0)
                return -errno;
        watcher.stop_fd = stop[0];
        GThread *thread = g_thread_new("watch", watch, &watcher);
        for (int64_t i = 0; i < n && r >= 0; i++)
                r = measure_one(w, write_row, latencies);
        close(stop[1]);
        (void) g_thread_join(thread);
        close(stop[0]);
        if (r >= 0)
                report_figure(report, name, "us", latencies);
        return r;
}

static int measure_latencies(WatchRun *w, Report *report) {
        int fd, r = open_watch(w, &fd);

        if (r < 0)
                return r;
        r = measure_latency(w, "commit through the service, by Watch", fd, write_by_service, report);
        if (r >= 0)
                r = measure_latency(w, "commit past the service, by Watch", fd, write_past_it, report);
        close(fd);
        if (r >= 0)
                r = open_inotify(w, &fd);
        if (r < 0)
                return r;
        r = measure_latency(w, "commit past the service, by inotify alone", fd, write_past_it, report);
        close(fd);
        return r;
}

/* ---- The writer's loss -------------------------------------------------------------------------------------------- */

static int measure_rate(WatchRun *w, GArray *rates) {
        int64_t n = bench_amount(w->options, 50, 2000, 10000);
        uint64_t began = now_usec();
        double rate;

        for (int64_t i = 0; i < n; i++) {
                int r = write_by_service(w);

                if (r < 0)
                        return r;
        }
        rate = (double) n * 1e6 / (double) (now_usec() - began);
        g_array_append_val(rates, rate);
        return measure_interrupted();
}

/* With watches that no client reads. The rates without and with them are taken in turns. */
static int measure_loss(WatchRun *w, unsigned n_watches, Report *report) {
        g_autoptr(GArray) with = g_array_new(FALSE, FALSE, sizeof(double));
        g_autoptr(GArray) without = g_array_new(FALSE, FALSE, sizeof(double));
        g_autofree char *name = g_strdup_printf("commits beside %u watches that are not read", n_watches);
        g_autofree int *fds = g_new(int, n_watches);
        int n_rounds = bench_rounds(w->options), r = 0;

        for (int round = 0; round < n_rounds && r >= 0; round++) {
                unsigned n = 0;

                r = measure_rate(w, without);
                while (r >= 0 && n < n_watches) {
                        r = open_watch(w, &fds[n]);
                        n += r >= 0;
                }
                if (r >= 0)
                        r = measure_rate(w, with);
                while (n > 0)
                        close(fds[--n]);
        }
        if (r < 0)
                return r;
        report_figure(report, "commits without a watch", "/s", without);
        report_figure(report, name, "/s", with);
        return 0;
}

/* ---- Life --------------------------------------------------------------------------------------------------------- */

static int open_all(WatchRun *w) {
        int r = library_open(w->options, SQLIPC_TRANSPORT_CHANNEL, &w->writer);

        if (r < 0)
                return r;
        if (sqlite3_open_v2(w->file, &w->direct, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
            sqlite3_busy_timeout(w->direct, 10000) == SQLITE_OK)
                return 0;
        fprintf(stderr, "sqlipc-bench: %s: %s\n", w->file, sqlite3_errmsg(w->direct));
        return -EIO;
}

static int measure(const BenchOptions *options, Report *report) {
        WatchRun w = { .options = options, .file = g_strdup_printf("%s/" DATABASE ".sqlite", options->folder) };
        int r = bench_service_open(options, &w.service);

        if (r >= 0) {
                service_facts_add(report, &w.service, options);
                r = open_all(&w);
        }
        if (r >= 0)
                r = measure_latencies(&w, report);
        if (r >= 0)
                r = measure_loss(&w, (unsigned) bench_amount(options, 50, 1000, 10000), report);
        (void) sqlite3_close(w.direct);
        sqlipc_close(w.writer);
        bench_service_close(&w.service);
        g_free(w.file);
        return r;
}

const Workload workload_watch = {
        .verb = "watch",
        .help = "how soon a commit is known, and the cost of watches",
        .summary = "Measures the time from a commit to the wake-up of a program that watches the table, for commits\n"
                   "through the service and past it, and for inotify alone; then the commits per second without\n"
                   "watches and beside many that are not read (WatchesMax= must allow them). The service publishes\n"
                   "the dataset " DATABASE " with Mode=read-write.",
        .measure = measure,
        .bus = true,
        .folder = true,
};
