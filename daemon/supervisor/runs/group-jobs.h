/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The jobs that wait for the workers of a group, and those that are in its job socket (group.h). Supervisor.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_GROUP_JOBS_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_GROUP_JOBS_H

#include "daemon/supervisor/workers/group.h"

typedef struct Run Run;

/* The worker that gets the group's next pin: one that has a pin, because it keeps its place while that lasts. NULL: there is
 * none. */
Worker *group_jobs_find_pinned(const Group *g);

/* Queues the run, and sends as many jobs as the socket takes. Runs may fail inside: this run, too, may be freed. */
void group_jobs_submit(Group *g, Run *run);

/* Sends the waiting jobs, as far as the socket takes them, or hands them to an idle worker. Starts a worker if one is needed
 * (group_staff()). Runs may fail inside. */
void group_jobs_send(Group *g);

/* Removes the run from its queue; jobs that waited for it are sent soon. Call this before its state changes: it must still
 * be WAITING, SENT or MISSING. */
void group_jobs_remove(Group *g, Run *run);

/* Puts the run back at the front of those that wait. It is sent again soon. */
void group_jobs_put_back(Group *g, Run *run);

/* Takes back all jobs that no worker has taken; those that the loop sends next come first. A worker may have taken others a
 * moment ago, and tells that soon. */
void group_jobs_take_back(Group *g);

/* Takes back all jobs from the job socket. Their runs are WAITING again and are sent again soon. A run that is SENT, but
 * whose job was not in the socket, is being taken by a worker, or was taken by one that died: run_on_missing() is called for
 * it. */
void group_jobs_recall(Group *g);

/* The number of jobs that were sent at `sent_usec` (CLOCK_MONOTONIC) or before, and that no worker has taken. */
unsigned group_jobs_n_overdue(const Group *g, uint64_t sent_usec);

#endif
