/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a run costs: wall clock, processor time, memory; of this process and of the service's, read from /proc. */
#ifndef BENCH_SAMPLER_H
#define BENCH_SAMPLER_H

#include <stdint.h>
#include <sys/types.h>

/* What a process has used so far; of several, the sums. */
typedef struct Usage {
        double cpu_usec;        /* user and system */
        double switches;        /* of contexts, voluntary and not */
        uint64_t anonymous_kib; /* RssAnon, private memory, now */
        uint64_t peak_kib;      /* VmHWM, resident memory at most, since the start or sampler_reset_peaks() */
} Usage;

/** CLOCK_MONOTONIC in microseconds. */
double sampler_now_usec(void);
/** Processor time and context switches of this process so far, and its peak; costs few microseconds. */
void sampler_read_own(Usage *ret);
/** The same of `pid` alone. */
void sampler_read_one(pid_t pid, Usage *ret);
/** The same of `pid` and its children, together. A process that cannot be read counts as nothing. */
void sampler_read_tree(pid_t pid, Usage *ret);
/** Forgets the peaks of resident memory of `pid` and its children. Negative errno where the kernel does not let us: the
 * processes of a daemon that is not "dumpable" are root's to touch. */
int sampler_reset_peaks(pid_t pid);
/** Calls `act` for `pid` and each child of its main thread. The first error ends it, and is returned. */
int sampler_for_tree(pid_t pid, int (*act)(pid_t pid, void *userdata), void *userdata);

#endif
