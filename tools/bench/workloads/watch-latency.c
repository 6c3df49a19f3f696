/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The time until a program knows of a commit, see watch-commits.h. It counts from the moment when the writer has its answer
 * (a writer that opens the file: when SQLite returns) to that when a thread that polls the descriptor has read what came. It
 * is negative if that thread is the first of both.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "tools/bench/core/measure.h"
#include "tools/bench/core/sampler.h"
#include "tools/bench/workloads/watch-commits.h"

#define PATIENCE_USEC 10000000
#define PAUSE_USEC 2000 /* between two commits, so that each is told by itself */

typedef enum Way { WAY_OWN, WAY_FOREIGN, WAY_INOTIFY, WAY_SERVERS, _WAY_MAX = WAY_SERVERS + DATABASE_SERVERS_MAX } Way;

/* The findings of one way: one value for each round, and all latencies. */
typedef struct WayFindings {
        GArray *p50, *p99, *statement, *client_cpu, *server_cpu;
        GArray *latencies;
} WayFindings;

typedef struct Waiter Waiter;

/* How a program learns of commits to the target. On error, these report on stderr and return a negative value. */
typedef struct WaiterKind {
        /** Begins, and stores the descriptor to poll. */
        int (*open)(Waiter *waiter);
        /** Reads what has come, without waiting. Returns 0 if it was nothing. */
        int (*take)(Waiter *waiter);
        void (*close)(Waiter *waiter);
} WaiterKind;

struct Waiter {
        const WaiterKind *kind;
        const Service *service;
        const WriteTarget *target;
        ServerConnection *connection;
        int fd, stop_fd;
        atomic_bool failed;
        _Atomic double woken_usec;    /* when it knew; 0: it has not since this was set to 0 */
};

typedef struct Latency {
        const BenchOptions *options;
        WriteTarget targets[_WAY_MAX];
        WriterKind kinds[_WAY_MAX];   /* name NULL: not measured */
        const WaiterKind *waiters[_WAY_MAX];
        const Service *service;
        WayFindings found[_WAY_MAX];
        char *published, *own;        /* files */
} Latency;

/* ---- Waiters ------------------------------------------------------------------------------------------------------ */

static int open_a_watch(Waiter *waiter) {
        return watch_open(waiter->service->bus, &waiter->fd);
}

static int open_inotify(Waiter *waiter) {
        g_autofree char *log = g_strconcat(waiter->target->file, "-wal", NULL);

        waiter->fd = inotify_init1(IN_CLOEXEC);
        if (waiter->fd >= 0 && inotify_add_watch(waiter->fd, log, IN_MODIFY) >= 0)
                return 0;
        fprintf(stderr, "sqlipc-bench: inotify: %s\n", g_strerror(errno));
        return -EIO;
}

static int take_bytes(Waiter *waiter) {
        char bytes[4096];
        ssize_t n = read(waiter->fd, bytes, sizeof bytes);

        return n < 0 ? -errno : n == 0 ? -ECONNRESET : 1;
}

static void close_fd(Waiter *waiter) {
        if (waiter->fd >= 0)
                close(waiter->fd);
}

static int listen_to_server(Waiter *waiter) {
        const DatabaseServer *server = waiter->target->server.server;
        g_autofree char *table = database_server_table(WRITE_SERVER_TABLE);
        int r = server->connect(&waiter->target->server, &waiter->connection);

        if (r >= 0)
                r = waiter->fd = server->listen(waiter->connection, table);
        return r;
}

static int take_notices(Waiter *waiter) {
        return waiter->target->server.server->take_notices(waiter->connection);
}

static void close_connection(Waiter *waiter) {
        waiter->connection = waiter->target->server.server->close(waiter->connection);
}

static const WaiterKind by_watch = { .open = open_a_watch, .take = take_bytes, .close = close_fd };
static const WaiterKind by_inotify = { .open = open_inotify, .take = take_bytes, .close = close_fd };
static const WaiterKind by_notices = { .open = listen_to_server, .take = take_notices, .close = close_connection };

static void *wait_for_commits(void *userdata) {
        Waiter *me = userdata;
        struct pollfd p[] = { { .fd = me->fd, .events = POLLIN }, { .fd = me->stop_fd, .events = POLLIN } };

        while (poll(p, G_N_ELEMENTS(p), -1) >= 0 && !p[1].revents) {
                double none = 0;
                int r = me->kind->take(me);

                if (r < 0) {
                        me->failed = true;
                        break;
                }
                if (r > 0)
                        (void) atomic_compare_exchange_strong(&me->woken_usec, &none, sampler_now_usec());
        }
        return NULL;
}

/* ---- Measuring ---------------------------------------------------------------------------------------------------- */

static int write_one(const WriterKind *kind, void *writer, Waiter *waiter, int64_t number, GArray *statements,
                     GArray *latencies) {
        const char *message;
        double begin, told, woken, value;

        g_usleep(PAUSE_USEC);
        waiter->woken_usec = 0;
        begin = sampler_now_usec();
        if (kind->write(writer, number, &message) < 0) {
                fprintf(stderr, "sqlipc-bench: %s: %s\n", kind->name, message);
                return -EIO;
        }
        told = sampler_now_usec();
        while ((woken = waiter->woken_usec) == 0 && !waiter->failed && sampler_now_usec() < told + PATIENCE_USEC)
                g_usleep(50);
        if (woken == 0) {
                fprintf(stderr, "sqlipc-bench: %s: a commit was not told.\n", kind->name);
                return -ETIMEDOUT;
        }
        value = told - begin;
        g_array_append_val(statements, value);
        value = woken - told;
        g_array_append_val(latencies, value);
        return measure_interrupted();
}

static void append(GArray *values, double value) {
        g_array_append_val(values, value);
}

static int write_all(const Latency *l, Way way, void *writer, Waiter *waiter) {
        g_autoptr(GArray) statements = g_array_new(FALSE, FALSE, sizeof(double));
        g_autoptr(GArray) latencies = g_array_new(FALSE, FALSE, sizeof(double));
        const WayFindings *found = &l->found[way];
        const WriterKind *kind = &l->kinds[way];
        int64_t n = bench_amount(l->options, 10, 200, 1000);
        Usage own[2], server[2] = {};
        int r = 0;

        sampler_read_own(&own[0]);
        if (kind->server != 0)
                sampler_read_tree(kind->server, &server[0]);
        for (int64_t i = 0; i < n && r >= 0; i++)
                r = write_one(kind, writer, waiter, i, statements, latencies);
        if (r < 0)
                return r;
        sampler_read_own(&own[1]);
        if (kind->server != 0)
                sampler_read_tree(kind->server, &server[1]);
        append(found->p50, report_quantile(latencies, 0.5));
        append(found->p99, report_quantile(latencies, 0.99));
        append(found->statement, report_quantile(statements, 0.5));
        append(found->client_cpu, (own[1].cpu_usec - own[0].cpu_usec) / (double) n);
        append(found->server_cpu, (server[1].cpu_usec - server[0].cpu_usec) / (double) n);
        g_array_append_vals(found->latencies, latencies->data, latencies->len);
        return 0;
}

/* A first commit is not measured: it makes the file's log, and starts the worker. */
static int measure_open(const Latency *l, Way way, void *writer) {
        const WriterKind *kind = &l->kinds[way];
        Waiter waiter = { .kind = l->waiters[way], .service = l->service, .target = kind->target, .fd = -1 };
        const char *message;
        int stop[2], r = kind->write(writer, -1, &message);

        if (r < 0)
                return r;
        if (pipe(stop) < 0)
                return -errno;
        waiter.stop_fd = stop[0];
        r = waiter.kind->open(&waiter);
        if (r >= 0) {
                GThread *thread = g_thread_new("watch", wait_for_commits, &waiter);
                r = write_all(l, way, writer, &waiter);
                close(stop[1]);
                (void) g_thread_join(thread);
        } else
                close(stop[1]);
        close(stop[0]);
        waiter.kind->close(&waiter);
        return r;
}

static int measure_way(const Latency *l, Way way) {
        const WriterKind *kind = &l->kinds[way];
        void *writer;
        int r;

        if (!kind->name)
                return 0;
        r = kind->open(kind->target, &writer);
        if (r < 0)
                return r;
        r = measure_open(l, way, writer);
        kind->close(writer);
        return r;
}

/* All ways in turn, every other round backwards. */
static int measure_rounds(const Latency *l) {
        unsigned n_rounds = (unsigned) bench_rounds(l->options);
        int r = 0;

        for (unsigned round = 0; r >= 0 && round < n_rounds; round++)
                for (unsigned i = 0; r >= 0 && i < _WAY_MAX; i++) {
                        measure_progress("latency", round * _WAY_MAX + i, n_rounds * _WAY_MAX);
                        r = measure_way(l, (Way) (round % 2 == 0 ? i : _WAY_MAX - 1 - i));
                }
        measure_progress("latency", 1, 1);
        return r;
}

/* ---- Report ------------------------------------------------------------------------------------------------------- */

static void report_way(const Latency *l, Way way, ReportTable *table) {
        const WayFindings *found = &l->found[way];
        unsigned column = 0;

        report_table_row(table, l->kinds[way].name, false);
        report_table_values(table, column++, found->p50);
        report_table_values(table, column++, found->p99);
        report_table_value(table, column++, report_quantile(found->latencies, 1));
        report_table_values(table, column++, found->statement);
        report_table_values(table, column++, found->client_cpu);
        if (l->kinds[way].server != 0)
                report_table_values(table, column++, found->server_cpu);
}

static void report_all(const Latency *l, Report *report) {
        ReportTable *table = report_table(report, "watch-latency", "From the commit to the program that waits", "way");

        report_table_column(table, "p50", "us");
        report_table_column(table, "p99", "us");
        report_table_column(table, "worst", "us");
        report_table_column(table, "the statement itself", "us");
        report_table_column(table, "client CPU", "us/commit");
        report_table_column(table, "server CPU", "us/commit");
        for (Way way = 0; way < _WAY_MAX; way++)
                if (l->kinds[way].name)
                        report_way(l, way, table);
        report_note(report, "A latency is the time from the writer's answer until another thread has read that something"
                            " changed. It is negative if that is earlier than the answer. Writer and waiter are one process,"
                            " whose processor time is the client's.");
        report_note(report, "inotify alone tells of a write to the log, which is before the commit; it does not tell when"
                            " the commit is visible, or if there is one.");
}

/* ---- Life --------------------------------------------------------------------------------------------------------- */

static void name_watches(Latency *l) {
        l->kinds[WAY_OWN] = write_library(&l->targets[WAY_OWN]);
        l->kinds[WAY_OWN].name = "Watch, commits through the service";
        l->kinds[WAY_FOREIGN] = write_direct(&l->targets[WAY_FOREIGN]);
        l->kinds[WAY_FOREIGN].name = "Watch, commits past the service";
        for (Way way = WAY_OWN; way <= WAY_FOREIGN; way++) {
                l->kinds[way].server = l->service->pid;
                l->waiters[way] = &by_watch;
        }
        l->kinds[WAY_INOTIFY] = write_direct(&l->targets[WAY_INOTIFY]);
        l->kinds[WAY_INOTIFY].name = "inotify alone, a file that is not shared";
        l->waiters[WAY_INOTIFY] = &by_inotify;
}

static int name_server(Latency *l, Way way, const DatabaseServerChoice *choice) {
        g_autofree char *table = database_server_table(WRITE_SERVER_TABLE);
        ServerConnection *connection = NULL;
        int r;

        if (!choice->server->listen)
                return 0;
        l->targets[way].server = *choice;
        l->kinds[way] = write_server(&l->targets[way]);
        l->waiters[way] = &by_notices;
        r = l->kinds[way].clear(&l->targets[way]);
        if (r >= 0)
                r = choice->server->connect(choice, &connection);
        if (r < 0)
                return r;
        l->kinds[way].server = choice->server->get_pid(connection);
        r = choice->server->notify(connection, table);
        choice->server->close(connection);
        return r;
}

static int name_ways(Latency *l) {
        DatabaseServerChoice servers[DATABASE_SERVERS_MAX];
        int n_servers = database_servers_get(l->options, servers), r = n_servers;

        for (Way way = 0; way < _WAY_MAX; way++)
                l->targets[way] = (WriteTarget) {
                        .options = l->options, .table = WATCH_TABLE, .file = way == WAY_INOTIFY ? l->own : l->published,
                };
        name_watches(l);
        if (r >= 0)
                r = l->kinds[WAY_INOTIFY].clear(&l->targets[WAY_INOTIFY]);
        for (int i = 0; r >= 0 && i < n_servers; i++)
                r = name_server(l, (Way) (WAY_SERVERS + i), &servers[i]);
        return r;
}

/* Leaves no file and no table of the others. */
static void leave_nothing(const Latency *l) {
        write_direct_remove(&l->targets[WAY_INOTIFY]);
        for (Way way = WAY_SERVERS; way < _WAY_MAX; way++)
                if (l->kinds[way].name)
                        write_server_drop(&l->targets[way]);
}

int watch_latency(const BenchOptions *options, const Service *service, Report *report) {
        g_autofree Latency *l = g_new0(Latency, 1);
        int r;

        l->options = options;
        l->service = service;
        l->published = g_build_filename(options->folder, WATCH_TABLE ".sqlite", NULL);
        l->own = g_build_filename(options->folder, "direct-watch.sqlite", NULL);
        for (Way way = 0; way < _WAY_MAX; way++)
                l->found[way] = (WayFindings) {
                        .p50 = g_array_new(FALSE, FALSE, sizeof(double)), .p99 = g_array_new(FALSE, FALSE, sizeof(double)),
                        .statement = g_array_new(FALSE, FALSE, sizeof(double)),
                        .client_cpu = g_array_new(FALSE, FALSE, sizeof(double)),
                        .server_cpu = g_array_new(FALSE, FALSE, sizeof(double)),
                        .latencies = g_array_new(FALSE, FALSE, sizeof(double)),
                };
        r = name_ways(l);
        if (r >= 0)
                r = measure_rounds(l);
        if (r >= 0)
                report_all(l, report);
        leave_nothing(l);
        for (Way way = 0; way < _WAY_MAX; way++) {
                const WayFindings *f = &l->found[way];
                GArray *arrays[] = { f->p50, f->p99, f->statement, f->client_cpu, f->server_cpu, f->latencies };

                for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
                        g_array_unref(arrays[i]);
        }
        g_free(l->published);
        g_free(l->own);
        return r;
}
