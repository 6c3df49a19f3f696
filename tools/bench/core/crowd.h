/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes that work at the same time. Each is forked, and prepares itself, before the clock starts. All begin together. No
 * process ends before the last one has finished its work, so that the resource use of all processes that serve them can be
 * read while those still exist.
 */
#ifndef SQLIPC_TOOLS_BENCH_CORE_CROWD_H
#define SQLIPC_TOOLS_BENCH_CORE_CROWD_H

typedef struct Crowd Crowd;

/* The places at which each process waits for all others. */
typedef enum CrowdBarrier { CROWD_START, CROWD_END, _CROWD_BARRIER_MAX } CrowdBarrier;

/** Makes a crowd of `n` processes, which crowd_start() starts. The caller ends it with crowd_end(). */
int crowd_new(unsigned n, Crowd **ret);
/** Starts processes that run live(), which calls crowd_wait_at() for each barrier in turn. If live() fails, it reports the
 * reason on stderr and returns a negative value. */
int crowd_start(Crowd *crowd, int (*live)(const Crowd *crowd, unsigned number, void *userdata), void *userdata);
/** Waits in a process of the crowd until crowd_pass(). */
int crowd_wait_at(const Crowd *crowd, CrowdBarrier barrier);
/** Waits in the parent until all processes wait at the next barrier. -ECHILD: one has ended instead. */
int crowd_wait_for_all(const Crowd *crowd);
void crowd_pass(Crowd *crowd, CrowdBarrier barrier);
/** Passes all barriers, waits until all processes have ended, and frees `crowd`, or NULL. -ECHILD: one has failed. */
int crowd_end(Crowd *crowd);

#endif
