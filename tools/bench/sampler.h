/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a run costs: wall clock, processor time, memory; of this process and of the service's, read from /proc. */
#ifndef BENCH_SAMPLER_H
#define BENCH_SAMPLER_H

#include <stdint.h>
#include <sys/types.h>

/** CLOCK_MONOTONIC in microseconds. */
double sampler_now_usec(void);
/** Processor time of this process so far, user and system, in microseconds. */
double sampler_own_cpu_usec(void);
/** Processor time and private memory (RssAnon, in KiB) of `pid` and its children, together. A process that cannot be
 * read counts as nothing. Any pointer may be NULL. */
void sampler_read_tree(pid_t pid, double *ret_cpu_usec, uint64_t *ret_anonymous_kib);
/** Forgets the peak of this process' resident memory, so that sampler_peak_kib() tells the one since. */
void sampler_reset_peak(void);
uint64_t sampler_peak_kib(void);

#endif
