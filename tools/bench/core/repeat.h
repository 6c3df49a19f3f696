/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Repeats a short operation for a fixed time, so that one run shows the cost of one operation. A run is meant for a Side
 * (measure.h), which starts with a warm-up run.
 */
#ifndef SQLIPC_TOOLS_BENCH_CORE_REPEAT_H
#define SQLIPC_TOOLS_BENCH_CORE_REPEAT_H

#include <glib.h>

typedef struct Repeat {
        const char *name;
        /** Does the operation once. Returns a negative errno on error. */
        int (*once)(void *userdata);
        void *userdata;
        double loop_usec;  /* duration of a run */
        GArray *usec;      /* of double, one per run: time of one operation */
        GArray *counts;    /* of double, one per run: number of operations */
} Repeat;

void repeat_init(Repeat *repeat, const char *name, int (*once)(void *userdata), void *userdata, double loop_usec);
void repeat_done(Repeat *repeat);
/** Does one run, with at least one operation. Reports errors on stderr. */
int repeat_run(Repeat *repeat);
/** Removes the results of all runs so far. */
void repeat_clear(Repeat *repeat);
/** Removes the result of the first run, the warm-up run, so that the elements correspond to those of Findings. */
void repeat_drop_warm_up(Repeat *repeat);

#endif
