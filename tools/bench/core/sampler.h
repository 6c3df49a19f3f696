/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads wall-clock time, and processor time and memory of this process and the service's processes, from /proc. */
#ifndef SQLIPC_TOOLS_BENCH_CORE_SAMPLER_H
#define SQLIPC_TOOLS_BENCH_CORE_SAMPLER_H

#include <stdint.h>
#include <sys/types.h>

/* What a process has used so far; for several processes, the sums. */
typedef struct Usage {
        double cpu_usec;        /* user and system */
        double switches;        /* context switches of all threads, voluntary and not */
        uint64_t anonymous_kib; /* RssAnon, private memory, now */
        uint64_t peak_kib;      /* VmHWM, peak resident memory since the start or sampler_reset_peaks() */
} Usage;

/** Returns CLOCK_MONOTONIC in microseconds. */
double sampler_now_usec(void);
/** Reads processor time, context switches and peak memory of this process. Takes only a few microseconds. */
void sampler_read_own(Usage *ret);
/** Reads the same for `pid`, without its children. */
void sampler_read_one(pid_t pid, Usage *ret);
/** Reads the sums for `pid` and its descendants. A process that cannot be read counts as zero. */
void sampler_read_tree(pid_t pid, Usage *ret);
/** Adds them to `usage`. */
void sampler_add_tree(pid_t pid, Usage *usage);
/** Resets the peaks of resident memory of `pid` and its descendants. Returns a negative errno if the kernel forbids this:
 * only root may do it for the processes of a daemon that is not "dumpable". */
int sampler_reset_peaks(pid_t pid);
/** Calls `act` for `pid` and its descendants, those of main threads. Stops at the first error and returns it. */
int sampler_for_tree(pid_t pid, int (*act)(pid_t pid, void *userdata), void *userdata);

#endif
