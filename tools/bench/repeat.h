/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Something short, done again and again for a fixed time, so that a run of it tells what one costs. Its run is a Side's
 * (measure.h), which does one to warm up.
 */
#ifndef BENCH_REPEAT_H
#define BENCH_REPEAT_H

#include <glib.h>

typedef struct Repeat {
        const char *name;
        /** Does it once. Negative errno. */
        int (*once)(void *userdata);
        void *userdata;
        double loop_usec;  /* how long a run goes on */
        GArray *usec;      /* of double, one a run: what one took */
        GArray *counts;    /* of double, one a run: how many there were */
} Repeat;

void repeat_init(Repeat *repeat, const char *name, int (*once)(void *userdata), void *userdata, double loop_usec);
void repeat_done(Repeat *repeat);
/** A run: once at least. Says on stderr what failed. */
int repeat_run(Repeat *repeat);
/** Forgets the runs until now. */
void repeat_clear(Repeat *repeat);
/** Forgets the first run, the one to warm up, so that runs are those of Findings. */
void repeat_drop_warm_up(Repeat *repeat);

#endif
