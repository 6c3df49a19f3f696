/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sides of a comparison, run in turn: one warm-up run of each, then rounds of all, every other round backwards, so that a
 * machine that slows down or speeds up favours nobody. What each run cost, on both sides of it.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <glib.h>
#include <stdint.h>
#include <sys/types.h>

/* One way of doing what is compared. */
typedef struct Side {
        const char *name;
        /** Does it once. Negative: it failed, and said why on stderr. */
        int (*run)(void *userdata);
        /** After the clock has stopped, and after a failure, too: frees the result. Returns a number that is the same on all
         * sides where the results are. NULL: nothing to compare. */
        uint64_t (*check)(void *userdata);
        void *userdata;
        pid_t server;  /* whose processor time and memory count as the server's, with its children; 0: none */
} Side;

/* What the runs of a side cost, one element a run; warm-up not counted. GArrays of double. */
typedef struct Findings {
        GArray *usec;                                 /* wall clock */
        GArray *client_cpu_usec, *server_cpu_usec;    /* user and system */
        GArray *client_switches, *server_switches;    /* context switches, voluntary and not */
        double client_peak_kib, server_peak_kib;      /* resident, at most, over all runs; NAN where /proc does not tell */
} Findings;

/** Runs `sides` in turn, `n_rounds` times; `ret` is an array of n_sides, each to be freed with findings_done(). Shows
 * progress on a terminal. -EBADMSG: the result of one differs from that of the first; else what a run returned. Said
 * on stderr, and nothing is to be freed then. */
int measure_sides(const Side *sides, size_t n_sides, int n_rounds, const char *what, Findings *ret);

/** Frees what measure_sides() made. */
void findings_done(Findings *findings);

/** The ratio of a's values to b's, of neighbours in the same round. The caller frees it. */
GArray *measure_ratios(const GArray *a, const GArray *b);
/** Each value times `factor`. The caller frees it. */
GArray *measure_scaled(const GArray *values, double factor);

/* Where client and server run, of the CPUs that this process may use from its start. */
typedef enum Placement {
        PLACEMENT_FREE,     /* as the kernel likes */
        PLACEMENT_ONE_CPU,  /* both on the first */
        PLACEMENT_TWO_CPUS, /* this process on the first, the server on the second */
} Placement;

/** Places this process, and `server` with its children (0: none); those that they start later inherit it. -ENODEV: not
 * enough CPUs. -EPERM: the server is another user's. */
int measure_place(Placement placement, pid_t server);

/** Progress on stderr, if it is a terminal: "WHAT: DONE of TOTAL". At the end, where `done` is `total`, the line goes. */
void measure_progress(const char *what, unsigned done, unsigned total);
/** No progress from now on. */
void measure_be_quiet(void);

#endif
