/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a uid may have on a database: each decision about counts, sizes and times is here. Supervisor.
 *
 *      counts    of the uid, over all its connections; and, by NAME.conf, of the database, over all uids
 *      sizes, times, SQLite's limits    of each run, by sqlipcd.conf or, in its place, NAME.conf
 *
 * ExemptRoot=yes lifts them from uid 0, counts of a database included. What is left bounds everybody: what the kernel grants
 * for pipes, WorkersTotalMax=, what the service itself keeps in memory for a user (user.h), and how long it waits for a lock
 * or a free worker.
 */
#ifndef SQLIPC_QUOTA_H
#define SQLIPC_QUOTA_H

#include "database.h"
#include "user.h"

/* What holds now for what the user does on `d`. Sums and differences of its times with a clock do not overflow;
 * statement_idle_usec may be UINT64_MAX: never. */
Limits quota_limits(const User *u, const Database *d);

/* The same as a client meets it: counts that the database shares out among all, where they are smaller, and the part of
 * TempSizeMax= that one run can have. */
Limits quota_caller_limits(const User *u, const Database *d);

/* PipePagesMax=. */
uint64_t quota_pipe_pages(const User *u);

/* May there be one more? LIMITS_EXCEEDED, with a sentence that tells the user's own quota from the database's. */
int quota_check_statement(const User *u, const Database *d, Refusal *refusal);
int quota_check_run(const User *u, const Database *d, Refusal *refusal);
int quota_check_channel(const User *u, const Database *d, Refusal *refusal);

/* Whose workers must become fewer before the user has one more on `d`: that is waited for, and no error. Half of
 * WorkersTotalMax=, and one of a database's WorkersMax=, are kept for users that have no worker (there). */
typedef enum WorkerBound {
        WORKER_BOUND_NONE,
        WORKER_BOUND_USER,
        WORKER_BOUND_DATABASE,
        WORKER_BOUND_TOTAL,
} WorkerBound;
WorkerBound quota_worker_bound(const User *u, const Database *d);

/* The sentence of Busy, for a user that waited in vain. */
const char *quota_why_no_worker(const User *u, const Database *d);

/* Both sums at once. */
void quota_count_statement(User *u, Database *d, int change);
void quota_count_run(User *u, Database *d, int change);
void quota_count_channel(User *u, Database *d, int change);
void quota_count_worker(User *u, Database *d, int change);

#endif
