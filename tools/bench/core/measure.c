/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs the sides of a comparison in turn, see measure.h. */
#include "tools/bench/core/measure.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/bench/core/sampler.h"

/* ---- Progress ----------------------------------------------------------------------------------------------------- */

static bool quiet;

void measure_be_quiet(void) {
        quiet = true;
}

void measure_progress(const char *what, unsigned done, unsigned total) {
        if (quiet || !isatty(STDERR_FILENO))
                return;
        if (done < total)
                fprintf(stderr, "\r\033[K%s: %u of %u", what, done, total); /* erases to the end of the line first */
        else
                fputs("\r\033[K", stderr);
        fflush(stderr);
}

/* ---- Signals ------------------------------------------------------------------------------------------------------ */

static volatile sig_atomic_t caught;

static void on_signal(int number) {
        caught = number;
}

void measure_catch_signals(void) {
        static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
        const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART | (int) SA_RESETHAND };

        for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
                (void) sigaction(numbers[i], &action, NULL);
}

int measure_interrupted(void) {
        static bool is_reported;

        if (!caught)
                return 0;
        if (!is_reported)
                fprintf(stderr, "sqlipc-bench: interrupted by %s.\n", strsignal(caught));
        is_reported = true;
        return -EINTR;
}

/* ---- Rounds ------------------------------------------------------------------------------------------------------- */

static void findings_init(Findings *findings) {
        *findings = (Findings) {
                .usec = g_array_new(FALSE, FALSE, sizeof(double)),
                .client_cpu_usec = g_array_new(FALSE, FALSE, sizeof(double)),
                .server_cpu_usec = g_array_new(FALSE, FALSE, sizeof(double)),
                .client_switches = g_array_new(FALSE, FALSE, sizeof(double)),
                .server_switches = g_array_new(FALSE, FALSE, sizeof(double)),
        };
}

void findings_done(Findings *findings) {
        g_clear_pointer(&findings->usec, g_array_unref);
        g_clear_pointer(&findings->client_cpu_usec, g_array_unref);
        g_clear_pointer(&findings->server_cpu_usec, g_array_unref);
        g_clear_pointer(&findings->client_switches, g_array_unref);
        g_clear_pointer(&findings->server_switches, g_array_unref);
}

/* What client and server have used so far. */
typedef struct Reading {
        Usage client, server;
} Reading;

static void read_both(const Side *side, Reading *ret) {
        *ret = (Reading) {};
        if (side->server > 0)
                sampler_read_tree(side->server, &ret->server);
        if (side->behind > 0)
                sampler_add_tree(side->behind, &ret->server);
        if (side->client > 0)
                sampler_read_one(side->client, &ret->client);
        else
                sampler_read_own(&ret->client);
}

/* If a child of the server has ended meanwhile, the sums no longer contain its share. */
static void append_difference(GArray *values, double before, double after) {
        double difference = MAX(after - before, 0);

        g_array_append_val(values, difference);
}

static void keep(Findings *findings, double usec, const Reading *before, const Reading *after) {
        g_array_append_val(findings->usec, usec);
        append_difference(findings->client_cpu_usec, before->client.cpu_usec, after->client.cpu_usec);
        append_difference(findings->server_cpu_usec, before->server.cpu_usec, after->server.cpu_usec);
        append_difference(findings->client_switches, before->client.switches, after->client.switches);
        append_difference(findings->server_switches, before->server.switches, after->server.switches);
}

/* Not fmax(), because that ignores NAN. */
static void keep_peak(double *peak_kib, bool is_known, uint64_t kib) {
        *peak_kib = is_known && !isnan(*peak_kib) ? fmax(*peak_kib, (double) kib) : NAN;
}

static int run_once(const Side *side, Findings *findings, bool warm_up, uint64_t *ret_check) {
        bool own_peak = sampler_reset_peaks(side->client > 0 ? side->client : getpid()) >= 0;
        bool server_peak = side->server > 0 && sampler_reset_peaks(side->server) >= 0 &&
                           (side->behind == 0 || sampler_reset_peaks(side->behind) >= 0);
        Reading before, after;
        double start;
        int r;

        read_both(side, &before);
        start = sampler_now_usec();
        r = side->run(side->userdata);
        start = sampler_now_usec() - start;
        read_both(side, &after);
        *ret_check = side->check ? side->check(side->userdata) : 0; /* also frees the result */
        if (r < 0) {
                fprintf(stderr, "sqlipc-bench: %s failed: %s\n", side->name, g_strerror(-r));
                return r;
        }
        keep_peak(&findings->client_peak_kib, own_peak, after.client.peak_kib);
        keep_peak(&findings->server_peak_kib, server_peak, after.server.peak_kib);
        if (!warm_up)
                keep(findings, start, &before, &after);
        return 0;
}

/* Compares a result with that of the first side. */
static int check_result(const Side *side, uint64_t check, const Side *first, uint64_t expected) {
        if (!side->check || check == expected)
                return 0;
        fprintf(stderr, "sqlipc-bench: %s brings something else than %s did.\n"
                        "Is the service's database the same file, and does the query say its order?\n",
                side->name, first->name);
        return -EBADMSG;
}

static int run_rounds(const Side *sides, size_t n_sides, int n_rounds, const char *what, Findings *findings) {
        const Side *first = NULL; /* the first side with a check() */
        uint64_t expected = 0, check;
        int r = 0;

        for (int round = 0; r >= 0 && round <= n_rounds; round++) /* round 0 is the warm-up */
                for (size_t i = 0; r >= 0 && i < n_sides; i++) {
                        size_t k = round % 2 == 0 ? i : n_sides - 1 - i;

                        measure_progress(what, (unsigned) ((size_t) round * n_sides + i),
                                         (unsigned) ((size_t) (n_rounds + 1) * n_sides));
                        r = measure_interrupted();
                        if (r >= 0)
                                r = run_once(&sides[k], &findings[k], round == 0, &check);
                        if (r >= 0 && !first && sides[k].check) {
                                first = &sides[k];
                                expected = check;
                        }
                        if (r >= 0)
                                r = check_result(&sides[k], check, first, expected);
                }
        measure_progress(what, 1, 1);
        return r;
}

int measure_sides(const Side *sides, size_t n_sides, int n_rounds, const char *what, Findings *ret) {
        int r;

        g_assert(n_rounds > 0);
        for (size_t i = 0; i < n_sides; i++)
                findings_init(&ret[i]);
        r = run_rounds(sides, n_sides, n_rounds, what, ret);
        for (size_t i = 0; r < 0 && i < n_sides; i++)
                findings_done(&ret[i]);
        return r;
}

GArray *measure_ratios(const GArray *a, const GArray *b) {
        GArray *ratios = g_array_new(FALSE, FALSE, sizeof(double));

        for (guint i = 0; i < MIN(a->len, b->len); i++) {
                double ratio = g_array_index(a, double, i) / g_array_index(b, double, i);

                g_array_append_val(ratios, ratio);
        }
        return ratios;
}

GArray *measure_sums(const GArray *a, const GArray *b) {
        GArray *sums = g_array_new(FALSE, FALSE, sizeof(double));

        for (guint i = 0; i < MIN(a->len, b->len); i++) {
                double sum = g_array_index(a, double, i) + g_array_index(b, double, i);

                g_array_append_val(sums, sum);
        }
        return sums;
}

GArray *measure_scaled(const GArray *values, double factor) {
        GArray *scaled = g_array_new(FALSE, FALSE, sizeof(double));

        for (guint i = 0; i < values->len; i++) {
                double value = g_array_index(values, double, i) * factor;

                g_array_append_val(scaled, value);
        }
        return scaled;
}

/* ---- Placement ---------------------------------------------------------------------------------------------------- */

/* Returns the CPUs that this process was allowed to use at its start, before any placement. */
static int allowed_cpus(cpu_set_t *ret) {
        static cpu_set_t allowed;
        static bool is_known;

        if (!is_known && sched_getaffinity(0, sizeof allowed, &allowed) < 0)
                return -errno;
        is_known = true;
        *ret = allowed;
        return 0;
}

/* Returns a set with only the n-th CPU of `allowed`, counted from 0. */
static int nth_cpu(const cpu_set_t *allowed, int n, cpu_set_t *ret) {
        CPU_ZERO(ret);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, allowed) && n-- == 0) {
                        CPU_SET(cpu, ret);
                        return 0;
                }
        return -ENODEV;
}

/* Places every thread, because a server may have a thread for each connection. */
static int place_process(pid_t pid, void *userdata) {
        g_autofree char *path = g_strdup_printf("/proc/%d/task", pid);
        g_autoptr(GDir) threads = g_dir_open(path, 0, NULL);
        const cpu_set_t *cpus = userdata;
        const char *name;

        while (threads && (name = g_dir_read_name(threads))) /* NULL: the process has ended */
                if (sched_setaffinity((pid_t) g_ascii_strtoll(name, NULL, 10), sizeof *cpus, cpus) < 0 && errno != ESRCH)
                        return -errno;
        return 0;
}

int measure_place(Placement placement, pid_t server) {
        cpu_set_t allowed, ours, theirs;
        int r = allowed_cpus(&allowed);

        ours = theirs = allowed;
        if (r >= 0 && placement != PLACEMENT_FREE)
                r = nth_cpu(&allowed, 0, &ours);
        if (r >= 0 && placement != PLACEMENT_FREE)
                r = nth_cpu(&allowed, placement == PLACEMENT_TWO_CPUS ? 1 : 0, &theirs);
        if (r >= 0 && server > 0)
                r = sampler_for_tree(server, place_process, &theirs);
        if (r == -EPERM)
                fprintf(stderr, "sqlipc-bench: cannot move process %d to a CPU: it is another user's.\n", (int) server);
        return r < 0 ? r : place_process(getpid(), &ours);
}
