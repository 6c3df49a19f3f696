/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The cost of many watches for programs that write, see watch-commits.h. Another process holds the watches, and reads them
 * or not. It reads all of them in one loop, which costs the machine less than a process for each.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/bench/core/child.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/core/sampler.h"
#include "tools/bench/workloads/watch-commits.h"

/* The service tells of commits for some time after the last watch has ended, so all rounds of WAY_WITHOUT come first. */
typedef enum Way { WAY_WITHOUT, WAY_ENDED, WAY_UNREAD, WAY_READ, _WAY_MAX } Way;

static const char *const way_names[] = {
        [WAY_WITHOUT] = "no watch", [WAY_ENDED] = "watches that have ended",
        [WAY_UNREAD] = "watches that are not read", [WAY_READ] = "watches that are read",
};

static const unsigned settings[] = { 1, 8 }; /* writers */

typedef struct WayFindings {
        GArray *per_second, *p99, *server_cpu, *notices, *grown;
} WayFindings;

typedef struct Loss {
        const BenchOptions *options;
        const Service *service;
        WriteTarget target;
        WriterKind kind;
        double usec;                   /* of a run */
        unsigned n_watches;
        WayFindings found[G_N_ELEMENTS(settings)][_WAY_MAX];
} Loss;

/* ---- The process that watches ------------------------------------------------------------------------------------- */

typedef struct Holder {
        const Loss *loss;
        bool reads;
} Holder;

static int open_watches(const Loss *l, sd_bus *bus, int epoll_fd) {
        for (unsigned i = 0; i < l->n_watches; i++) {
                int fd, r = watch_open(bus, &fd);

                if (r < 0)
                        return r;
                if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &(struct epoll_event) { .events = EPOLLIN, .data.fd = fd }) < 0)
                        return -errno;
        }
        return 0;
}

/* Until the parent writes. Returns the number of notices. */
static int read_notices(int fd, int epoll_fd, uint64_t *ret_n) {
        struct epoll_event events[64], e = { .events = EPOLLIN, .data.fd = fd };

        *ret_n = 0;
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0)
                return -errno;
        for (;;) {
                int n = epoll_wait(epoll_fd, events, G_N_ELEMENTS(events), -1);

                if (n < 0)
                        return -errno;
                for (int i = 0; i < n; i++) {
                        char number[8];

                        if (events[i].data.fd == fd)
                                return 0;
                        if (read(events[i].data.fd, number, sizeof number) != sizeof number)
                                return -EIO;
                        ++*ret_n;
                }
        }
}

/* Says that it is ready by a byte. When it gets one, it answers with the number of notices that it has read. */
static int hold(int fd, void *userdata) {
        const Holder *me = userdata;
        int epoll_fd = epoll_create1(EPOLL_CLOEXEC), r;
        uint64_t n_notices = 0;
        sd_bus *bus;
        char byte = 0;

        r = epoll_fd < 0 ? -errno : bench_service_open_bus(me->loss->options, &bus);
        if (r >= 0)
                r = open_watches(me->loss, bus, epoll_fd);
        if (r >= 0 && write(fd, &byte, 1) != 1)
                r = -errno;
        if (r >= 0 && me->reads)
                r = read_notices(fd, epoll_fd, &n_notices);
        if (r >= 0 && (read(fd, &byte, 1) != 1 || write(fd, &n_notices, sizeof n_notices) != sizeof n_notices))
                r = -EIO;
        return r;
}

/* ---- Measuring ---------------------------------------------------------------------------------------------------- */

static void append(GArray *values, double value) {
        g_array_append_val(values, value);
}

static double memory_kib(const Loss *l) {
        Usage usage;

        sampler_read_one(l->service->pid, &usage);
        return (double) usage.anonymous_kib;
}

static int write_rows(const Loss *l, unsigned setting, WayFindings *found) {
        double before = memory_kib(l);
        WriteFindings findings;
        int r = write_run(&l->kind, settings[setting], l->usec, &findings);

        if (r < 0)
                return r;
        append(found->grown, memory_kib(l) - before);
        append(found->per_second, findings.per_second);
        append(found->p99, report_quantile(findings.usec, 0.99) / 1e3);
        append(found->server_cpu, findings.server_cpu_usec);
        if (findings.n_failed > 0)
                fprintf(stderr, "sqlipc-bench: writes failed: %s\n", findings.failure);
        r = findings.n_failed > 0 ? -EIO : 0;
        write_findings_done(&findings);
        return r;
}

static int measure_beside(const Loss *l, unsigned setting, Way way, WayFindings *found) {
        Holder holder = { .loss = l, .reads = way == WAY_READ };
        uint64_t n_notices = 0;
        Child child;
        char byte = 0;
        int r = child_start(SOCK_STREAM, hold, &holder, &child), ended;

        if (r < 0)
                return r;
        if (read(child.fd, &byte, 1) != 1)
                r = -ECHILD;
        double begin = sampler_now_usec();
        if (r >= 0)
                r = write_rows(l, setting, found);
        double usec = sampler_now_usec() - begin;
        if (r >= 0 && (write(child.fd, &byte, 1) != 1 ||
                       recv(child.fd, &n_notices, sizeof n_notices, MSG_WAITALL) != sizeof n_notices))
                r = -ECHILD;
        append(found->notices, (double) n_notices * 1e6 / usec);
        ended = child_stop(&child);
        return r < 0 ? r : ended;
}

static int measure_without(Loss *l) {
        unsigned n_rounds = (unsigned) bench_rounds(l->options);
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < n_rounds * G_N_ELEMENTS(settings); i++) {
                unsigned setting = i % G_N_ELEMENTS(settings);

                measure_progress("writers without watches", i, n_rounds * G_N_ELEMENTS(settings));
                r = write_rows(l, setting, &l->found[setting][WAY_WITHOUT]);
        }
        measure_progress("writers without watches", 1, 1);
        return r;
}

/* The others in turn, every other round backwards. */
static int measure_setting(Loss *l, unsigned setting) {
        unsigned n_rounds = (unsigned) bench_rounds(l->options), n = _WAY_MAX - WAY_ENDED;
        int r = 0;

        for (unsigned round = 0; r >= 0 && round < n_rounds; round++)
                for (unsigned i = 0; r >= 0 && i < n; i++) {
                        Way way = (Way) (WAY_ENDED + (round % 2 == 0 ? n - 1 - i : i));
                        WayFindings *found = &l->found[setting][way];

                        measure_progress("writers beside watches", round * n + i, n_rounds * n);
                        r = way == WAY_ENDED ? write_rows(l, setting, found) : measure_beside(l, setting, way, found);
                }
        measure_progress("writers beside watches", 1, 1);
        return r;
}

/* ---- Report ------------------------------------------------------------------------------------------------------- */

static void report_setting(const Loss *l, unsigned setting, Report *report) {
        g_autofree char *id = g_strdup_printf("watch-loss-%u", settings[setting]);
        g_autofree char *title = g_strdup_printf("%u writer%s beside %u watches", settings[setting],
                                                 settings[setting] == 1 ? "" : "s", l->n_watches);
        ReportTable *table = report_table(report, id, title, "beside");

        report_table_column(table, "rows/s", "");
        report_table_column(table, "/ no watch", "");
        report_table_column(table, "p99", "ms");
        report_table_column(table, "server CPU", "us/row");
        report_table_column(table, "notices read/s", "");
        report_table_column(table, "supervisor's memory, growth", "KiB");
        for (Way way = 0; way < _WAY_MAX; way++) {
                const WayFindings *found = &l->found[setting][way];
                g_autoptr(GArray) ratios = measure_ratios(found->per_second, l->found[setting][WAY_WITHOUT].per_second);

                report_table_row(table, way_names[way], false);
                report_table_values(table, 0, found->per_second);
                report_table_values(table, 1, ratios);
                report_table_values(table, 2, found->p99);
                report_table_values(table, 3, found->server_cpu);
                if (way >= WAY_UNREAD)
                        report_table_values(table, 4, found->notices);
                report_table_values(table, 5, found->grown);
        }
}

int watch_loss(const BenchOptions *options, const Service *service, Report *report) {
        Loss l = {
                .options = options, .service = service, .usec = (double) bench_amount(options, 50, 1000, 3000) * 1e3,
                .n_watches = (unsigned) bench_amount(options, 50, 1000, 1000),
                .target = { .options = options, .table = WATCH_TABLE },
        };
        int r;

        l.kind = write_library(&l.target);
        l.kind.server = service->pid;
        for (unsigned setting = 0; setting < G_N_ELEMENTS(settings); setting++)
                for (Way way = 0; way < _WAY_MAX; way++)
                        l.found[setting][way] = (WayFindings) {
                                .per_second = g_array_new(FALSE, FALSE, sizeof(double)),
                                .p99 = g_array_new(FALSE, FALSE, sizeof(double)),
                                .server_cpu = g_array_new(FALSE, FALSE, sizeof(double)),
                                .notices = g_array_new(FALSE, FALSE, sizeof(double)),
                                .grown = g_array_new(FALSE, FALSE, sizeof(double)),
                        };
        r = measure_without(&l);
        for (unsigned setting = 0; r >= 0 && setting < G_N_ELEMENTS(settings); setting++) {
                r = measure_setting(&l, setting);
                if (r >= 0)
                        report_setting(&l, setting, report);
        }
        for (unsigned setting = 0; setting < G_N_ELEMENTS(settings); setting++)
                for (Way way = 0; way < _WAY_MAX; way++) {
                        const WayFindings *f = &l.found[setting][way];
                        GArray *arrays[] = { f->per_second, f->p99, f->server_cpu, f->notices, f->grown };

                        for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
                                g_array_unref(arrays[i]);
                }
        if (r >= 0)
                report_note(report, "Each row is a transaction. The rounds without a watch come first, because the service"
                                    " tells of commits for half a minute after the last watch has ended. One other process"
                                    " holds the watches, and reads them in one loop. Several writers share a commit if the"
                                    " service groups them.");
        return r;
}
