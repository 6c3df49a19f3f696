/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* watch: how soon a program knows of a commit, and the cost of watches for programs that write. See watch-commits.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "tools/bench/report/service-facts.h"
#include "tools/bench/workloads/watch-commits.h"
#include "tools/bench/workloads/workload.h"

/* of org.sqlipc1(5) */
#define SERVICE "org.sqlipc1"
#define OBJECT "/org/sqlipc1/database/write_5fwal"
#define INTERFACE "org.sqlipc1.Database"

int watch_open(sd_bus *bus, int *ret_fd) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply = NULL;
        uint64_t number;
        int fd, r = sd_bus_call_method(bus, SERVICE, OBJECT, INTERFACE, "Watch", &error, &reply, "asa{sv}", 1,
                                           WATCH_TABLE, 0);

        if (r >= 0)
                r = sd_bus_message_read(reply, "th", &number, &fd);
        if (r >= 0) {
                *ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
                r = *ret_fd < 0 ? -errno : 0;
        }
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: cannot watch " WATCH_TABLE ": %s\n", error.message ?: g_strerror(-r));
        (void) sd_bus_message_unref(reply);
        sd_bus_error_free(&error);
        return r;
}

static int measure(const BenchOptions *options, Report *report) {
        Service service;
        int r = bench_service_open(options, &service);

        if (r < 0)
                return r;
        service_facts_add(report, &service, options);
        r = watch_loss(options, &service, report); /* first, while nothing is watched */
        if (r >= 0)
                r = watch_latency(options, &service, report);
        bench_service_close(&service);
        return r;
}

const Workload workload_watch = {
        .verb = "watch",
        .help = "how soon a commit is known, and the cost of watches",
        .summary = "Measures the time from a commit to the moment when a program knows of it: by Watch, for commits\n"
                   "through the service and past it; by inotify alone; and by the notices of PostgreSQL if --postgres\n"
                   "names a server. Then the rows per second that 1 and 8 writers insert without watches, beside 1,000\n"
                   "that are not read, and beside 1,000 that are. The service publishes the dataset " WATCH_TABLE " with\n"
                   "Mode=read-write.",
        .measure = measure,
        .bus = true,
        .folder = true,
        .servers = true,
        .in_report = true,
};
