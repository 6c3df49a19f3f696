/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * reference: sends a message of 112,192 bytes with descriptors to another process, in a datagram or by reference, as in a
 * comparison of sockets and files of 2015: user and system time of a million messages, and the cost of each system call.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <linux/magic.h>

#include "tools/bench/core/measure.h"
#include "tools/bench/core/sampler.h"
#include "tools/bench/workloads/reference-calls.h"
#include "tools/bench/workloads/reference-ways.h"
#include "tools/bench/workloads/workload.h"

enum { N_WAYS_MAX = 8 };

/* One way and the cost per message of its runs, of which the first is the warm-up. */
typedef struct Sending {
        Reference reference;
        unsigned n_messages;
        uint64_t check;
        GArray *usec, *sender_user, *sender_system, *receiver_user, *receiver_system; /* of double */
} Sending;

static void append(GArray *values, double usec, uint64_t n) {
        double value = usec / (double) n;

        g_array_append_val(values, value);
}

static int run_sending(void *userdata) {
        Sending *sending = userdata;
        CpuTimes before = reference_cpu_times(), after;
        ReferenceTotals totals;
        double start = sampler_now_usec();
        int r;

        r = reference_send(&sending->reference, sending->n_messages, &totals);
        if (r < 0)
                return r;
        after = reference_cpu_times();
        append(sending->usec, sampler_now_usec() - start, totals.n_messages);
        append(sending->sender_user, after.user_usec - before.user_usec, totals.n_messages);
        append(sending->sender_system, after.system_usec - before.system_usec, totals.n_messages);
        append(sending->receiver_user, totals.cpu.user_usec, totals.n_messages);
        append(sending->receiver_system, totals.cpu.system_usec, totals.n_messages);
        sending->check = totals.check;
        return 0;
}

static uint64_t check_sending(void *userdata) {
        const Sending *sending = userdata;

        return sending->check;
}

/* ---- Report ------------------------------------------------------------------------------------------------------- */

static const char *const part_names[] = {
        "time", "sender, user", "sender, system", "receiver, user", "receiver, system"
};

/* The sum of all but the first, run by run. */
static GArray *sum_of_cpu(GArray *const parts[G_N_ELEMENTS(part_names)]) {
        GArray *sums = g_array_new(FALSE, FALSE, sizeof(double));

        for (guint run = 0; run < parts[0]->len; run++) {
                double sum = 0;

                for (unsigned i = 1; i < G_N_ELEMENTS(part_names); i++)
                        sum += g_array_index(parts[i], double, run);
                g_array_append_val(sums, sum);
        }
        return sums;
}

/* Microseconds for a message are seconds for a million. */
static void fill_row(ReportTable *table, ReportChart *chart, const Sending *sending, const Findings *findings) {
        GArray *const parts[] = {
                sending->usec, sending->sender_user, sending->sender_system, sending->receiver_user, sending->receiver_system
        };
        g_autoptr(GArray) cpu = NULL, switches = NULL;

        for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++)
                g_array_remove_index(parts[i], 0); /* the warm-up */
        cpu = sum_of_cpu(parts);
        switches = measure_scaled(findings->client_switches, 1.0 / sending->n_messages);
        report_table_row(table, sending->reference.way->name, false);
        for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
                report_table_values(table, i, parts[i]);
                if (i > 0)
                        report_chart_bar(chart, i - 1, sending->reference.way->name, report_median(parts[i]));
        }
        report_table_values(table, G_N_ELEMENTS(parts), cpu);
        report_table_values(table, G_N_ELEMENTS(parts) + 1, switches);
        report_table_value(table, G_N_ELEMENTS(parts) + 2, findings->server_peak_kib);
}

static void fill_report(Report *report, const Sending *sendings, const Findings *findings) {
        ReportTable *table = report_table(report, "messages", "A million messages of 112,192 bytes with descriptors", "way");
        ReportChart *chart = report_chart(report, "messages", "Processor time of a million messages", "", "seconds",
                                          REPORT_BARS | REPORT_LOG_Y);

        for (unsigned i = 0; i < G_N_ELEMENTS(part_names); i++) {
                (void) report_table_column(table, part_names[i], "s");
                if (i > 0)
                        (void) report_chart_series(chart, part_names[i], false);
        }
        (void) report_table_column(table, "user and system, both", "s");
        (void) report_table_column(table, "sender's switches, a message", "");
        (void) report_table_column(table, "receiver's peak", "KiB");
        for (unsigned i = 0; i < n_reference_ways; i++)
                fill_row(table, chart, &sendings[i], &findings[i]);
}

static const char *file_system_name(const char *folder) {
        struct statfs stat;

        if (statfs(folder, &stat) < 0)
                return "an unknown file system";
        switch ((uint32_t) stat.f_type) { /* signed, and of 32 bits on some machines */
        case TMPFS_MAGIC: return "memory (tmpfs)";
        case OVERLAYFS_SUPER_MAGIC: return "overlayfs";
        case EXT4_SUPER_MAGIC: return "ext4";
        case BTRFS_SUPER_MAGIC: return "btrfs";
        case XFS_SUPER_MAGIC: return "xfs";
        default: return "another file system";
        }
}

static void add_notes(Report *report, const BenchOptions *options, unsigned n) {
        report_fact(report, "method",
                    "%u messages a run and way, a fiftieth with gzip; %d runs, in turn; scaled to a million", n,
                    bench_rounds(options));
        report_fact(report, "temporary files", "in %s, which is %s", g_get_tmp_dir(), file_system_name(g_get_tmp_dir()));
        report_note(report, "Each message carries two descriptors of its own. The message is made of random letters, which "
                            "gzip shortens to about 0.6. The queue has 16 places; its lock is held during the copy.");
        report_note(report, "The kernel tells user from system time by what the clock's ticks meet; their sum is exact.");
        report_note(report, "After M. Shuldman, \"IPC performance: sockets vs files\", Inferno Nettverk, 30 June 2015 "
                            "(www.inet.no/blog/post_ipc-performance-sockets-vs-files.html). Its figures were not found.");
}

/* ---- Measuring ---------------------------------------------------------------------------------------------------- */

static void init_arrays(Sending *sending) {
        GArray **const arrays[] = {
                &sending->usec, &sending->sender_user, &sending->sender_system, &sending->receiver_user,
                &sending->receiver_system,
        };

        for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
                *arrays[i] = g_array_new(FALSE, FALSE, sizeof(double));
}

static void free_arrays(Sending *sending) {
        g_clear_pointer(&sending->usec, g_array_unref);
        g_clear_pointer(&sending->sender_user, g_array_unref);
        g_clear_pointer(&sending->sender_system, g_array_unref);
        g_clear_pointer(&sending->receiver_user, g_array_unref);
        g_clear_pointer(&sending->receiver_system, g_array_unref);
}

static int open_all(Sending *sendings, unsigned n) {
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < n_reference_ways; i++) {
                unsigned part = n / reference_ways[i].divisor, group = reference_ways[i].group;

                init_arrays(&sendings[i]);
                sendings[i].n_messages = MAX(part, 1);
                sendings[i].n_messages += (group - sendings[i].n_messages % group) % group;
                r = reference_open(&sendings[i].reference, &reference_ways[i], g_get_tmp_dir());
                if (r < 0)
                        fprintf(stderr, "sqlipc-bench: %s: %s\n", reference_ways[i].name, g_strerror(-r));
        }
        return r;
}

/* In reverse order, because a later process has copies of the earlier ones' descriptors. */
static int close_all(Sending *sendings) {
        int result = 0;

        for (unsigned i = n_reference_ways; i-- > 0;) {
                int r = reference_close(&sendings[i].reference);

                if (r < 0)
                        fprintf(stderr, "sqlipc-bench: the receiver of %s did not end well.\n", reference_ways[i].name);
                result = MIN(result, r);
                free_arrays(&sendings[i]);
        }
        return result;
}

static int measure_all(const BenchOptions *options, Sending *sendings, Report *report) {
        Findings findings[N_WAYS_MAX];
        Side sides[N_WAYS_MAX];
        int r;

        for (unsigned i = 0; i < n_reference_ways; i++)
                sides[i] = (Side) {
                        .name = reference_ways[i].name, .run = run_sending, .check = check_sending, .userdata = &sendings[i],
                        .server = sendings[i].reference.child.pid,
                };
        r = measure_sides(sides, n_reference_ways, bench_rounds(options), "messages", findings);
        if (r < 0)
                return r;
        fill_report(report, sendings, findings);
        for (unsigned i = 0; i < n_reference_ways; i++)
                findings_done(&findings[i]);
        return 0;
}

static int measure(const BenchOptions *options, Report *report) {
        Sending sendings[N_WAYS_MAX] = {};
        unsigned n = (unsigned) bench_amount(options, 48, 10000, 1000000);
        int r, q;

        g_assert(n_reference_ways <= N_WAYS_MAX);
        add_notes(report, options, n);
        r = open_all(sendings, n);
        if (r >= 0)
                r = measure_all(options, sendings, report);
        q = close_all(sendings);
        if (r >= 0)
                r = reference_calls(g_get_tmp_dir(), (unsigned) bench_amount(options, 50, 2000, 20000),
                                    bench_rounds(options), report);
        return r < 0 ? r : q;
}

const Workload workload_reference = {
        .verb = "reference",
        .help = "a large message in a datagram, or by reference: files, memfd, shared memory",
        .summary = "Measures user and system time of a million messages of 112,192 bytes with descriptors: in a datagram,\n"
                   "as an unlinked temporary file or a memfd that is passed, through a queue in shared memory with\n"
                   "locks by fcntl(), and compressed; and what each system call costs that they are made of.",
        .measure = measure,
        .in_report = true,
};
