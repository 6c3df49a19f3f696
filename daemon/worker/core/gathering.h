/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Decides if the writer waits a moment for more jobs before it begins a batch. Pure.
 *
 * Clients that wait for each answer send their next requests just after a commit, one after the other. If a batch began with
 * the first of them, the others would wait for the commit after it. So after a commit the writer expects as many jobs as
 * there were then, committed or waiting, and waits for them, but not for longer than half of the time that the commit took,
 * nor than GATHERING_USEC_MAX. It does not wait if it expects only one. If no job comes in that time, the next batches do
 * not wait: first one, then three, and so on.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_GATHERING_H
#define SQLIPC_DAEMON_WORKER_CORE_GATHERING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GATHERING_USEC_MAX 1000u
#define GATHERING_VAIN_MAX 6u /* after so many waits without a job, one batch of 64 waits */

typedef struct Gathering {
        size_t n_expected;   /* jobs */
        uint64_t limit_usec; /* the longest wait for them */
        uint64_t until_usec; /* the end of the wait; 0: none has begun since the last batch */
        size_t n_first;      /* jobs that were there when it began */
        unsigned n_vain;     /* waits that brought no job, in a row */
        unsigned n_to_skip;  /* batches that do not wait */
} Gathering;

/* A commit is over, which took so long. `n` jobs were in its batch or wait for the next one, `n_max` fit a batch. */
void gathering_on_commit(Gathering *g, size_t n, size_t n_max, uint64_t usec);

/* `n` jobs wait, and nothing else is left to do. True: look for more of them, then call this again. */
bool gathering_waits(Gathering *g, size_t n, uint64_t now_usec);

/* A batch begins, of `n` jobs. */
void gathering_end(Gathering *g, size_t n);

#endif
