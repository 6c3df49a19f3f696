/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs the sides of a comparison in turn and measures what each run costs client and server. Each side first has one warm-up
 * run. Rounds of all sides follow; every other round runs backwards, so that a machine that becomes slower or faster favours
 * no side.
 */
#ifndef SQLIPC_TOOLS_BENCH_CORE_MEASURE_H
#define SQLIPC_TOOLS_BENCH_CORE_MEASURE_H

#include <glib.h>
#include <stdint.h>
#include <sys/types.h>

/* One of the ways that are compared. */
typedef struct Side {
        const char *name;
        /** Does one run. On error, reports on stderr and returns a negative value. */
        int (*run)(void *userdata);
        /** Frees the result; called after the clock has stopped, and also after a failure. Returns a hash that is equal on
         * all sides if their results are equal. NULL: there is nothing to compare. */
        uint64_t (*check)(void *userdata);
        void *userdata;
        pid_t server;  /* its processor time and memory, with its children's, count as the server's; 0: none */
        pid_t client;  /* a process that does the work of run(), and counts as the client; 0: this one */
        pid_t behind;  /* a server that `server` asks, which counts, too; 0: none */
} Side;

/* The costs of a side's runs: GArrays of double with one element per run. The warm-up run is not included. */
typedef struct Findings {
        GArray *usec;                                 /* wall clock */
        GArray *client_cpu_usec, *server_cpu_usec;    /* user and system */
        GArray *client_switches, *server_switches;    /* context switches, voluntary and not */
        double client_peak_kib, server_peak_kib;      /* peak resident memory over all runs; NAN if /proc does not show it */
} Findings;

/** Runs `sides` in turn, `n_rounds` times. `ret` is an array of n_sides elements, each of which the caller frees with
 * findings_done(). Shows progress on a terminal. On error, reports on stderr, and the caller has nothing to free. Returns
 * -EBADMSG if the result of a side differs from that of the first, -EINTR after a signal (measure_catch_signals()),
 * otherwise the error of the run that failed. */
int measure_sides(const Side *sides, size_t n_sides, int n_rounds, const char *what, Findings *ret);

/** From now on SIGINT, SIGTERM and SIGHUP end the measurement after the current run, so that its owner can clean up. A
 * second signal of the same kind ends the program at once. */
void measure_catch_signals(void);
/** Returns -EINTR after such a signal, and reports it on stderr the first time; 0 before. */
int measure_interrupted(void);

/** Frees what measure_sides() made. */
void findings_done(Findings *findings);

/** Returns the ratios of a's values to b's, round by round. The caller frees them. */
GArray *measure_ratios(const GArray *a, const GArray *b);
/** Returns the sums of a's values and b's, round by round. The caller frees them. */
GArray *measure_sums(const GArray *a, const GArray *b);
/** Returns each value times `factor`. The caller frees them. */
GArray *measure_scaled(const GArray *values, double factor);

/* On which of the CPUs that this process was allowed to use at its start the client and the server run. */
typedef enum Placement {
        PLACEMENT_FREE,     /* the kernel decides */
        PLACEMENT_ONE_CPU,  /* both on the first */
        PLACEMENT_TWO_CPUS, /* this process on the first, the server on the second */
} Placement;

/** Places this process and `server` (0: none) with its children; processes that they start later inherit the placement.
 * -ENODEV: there are not enough CPUs. -EPERM: the server belongs to another user. */
int measure_place(Placement placement, pid_t server);

/** Shows "WHAT: DONE of TOTAL" on stderr if that is a terminal. Erases the line when `done` equals `total`. */
void measure_progress(const char *what, unsigned done, unsigned total);
/** Disables progress from now on. */
void measure_be_quiet(void);

#endif
