/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The quotas of a uid on a database: all decisions about counts, sizes and times are made here. Supervisor.
 *
 *      counts    of the uid, over all its connections; and, if NAME.conf says so, of the database, over all uids
 *      sizes, times, SQLite's limits    of each run, from NAME.conf, or from sqlipcd.conf if NAME.conf does not set them
 *
 * ExemptRoot=yes lifts these limits for uid 0, including the counts of a database. Some bounds remain for every uid: the
 * pipe pages that the kernel grants, WorkersTotalMax=, the memory that the service keeps for a user (user.h), and the time
 * to wait for a lock or a free worker.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_QUOTA_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_QUOTA_H

#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/base/user.h"

/* The largest SQL in bytes, even if the limits allow more. */
#define SQL_SIZE_MAX ((size_t) 1000000000)

/* The limits that hold now for work of the user on `d`. Its times can be added to and subtracted from a clock without
 * overflow, except that statement_idle_usec may be UINT64_MAX: never. */
Limits quota_limits(const User *u, const Database *d);

/* Like quota_limits(), but as the client is told: with the counts of the database if they are smaller, and with the part of
 * TempSizeMax= that one run can have. */
Limits quota_caller_limits(const User *u, const Database *d);

/* The value of PipePagesMax= for the user. */
uint64_t quota_pipe_pages(const User *u);

/* Each checks if one more is allowed. Otherwise it refuses as refuse_for_now(), with a sentence that names the key and tells
 * the user's own quota from the database's. A transaction is no run, but each of its statements is one. `writes`: it takes
 * turns to write; `n_writers`: how many such transactions the user has on its database besides. */
int quota_check_statement(const User *u, const Database *d, Refusal *refusal);
int quota_check_run(const User *u, const Database *d, Refusal *refusal);
int quota_check_transaction(const User *u, bool writes, uint64_t n_writers, Refusal *refusal);

/* How many workers are kept by pins. */
typedef struct PinPlaces {
        uint64_t n_all, n_of_user, n_on_database;
} PinPlaces;

/* The same for a pin. `places`: NULL if it would keep no worker that is not kept already. */
int quota_check_pin(const User *u, const Database *d, const PinPlaces *places, Refusal *refusal);
int quota_check_channel(const User *u, const Database *d, Refusal *refusal);
int quota_check_watch(const User *u, const Database *d, bool has_pipe, Refusal *refusal);

/* The bound that keeps the user from having another statement on `d`. If there are several, that of the database is
 * returned, because a statement less on `d` helps against both. */
typedef enum StatementBound {
        STATEMENT_BOUND_NONE,
        STATEMENT_BOUND_USER,
        STATEMENT_BOUND_DATABASE,
} StatementBound;
StatementBound quota_statement_bound(const User *u, const Database *d);

/* The same for another channel. */
typedef enum ChannelBound {
        CHANNEL_BOUND_NONE,
        CHANNEL_BOUND_DATABASE,
        CHANNEL_BOUND_DESCRIPTORS,
        CHANNEL_BOUND_USER,
} ChannelBound;
ChannelBound quota_channel_bound(const User *u, const Database *d);

/* True if another channel may replace one of the user before the worker of that has closed it. Until then that one is
 * *released*: it does not count as a channel of the user and the database, but a user can have only a few of them, and they
 * are among all channels of the service. */
bool quota_may_release_channel(const User *u);

/* How many more channels the user may open on `d`. */
uint32_t quota_channels_left(const User *u, const Database *d);

/* The bound that keeps the user from having another worker on `d`: a worker within this bound must end first. To reach it is
 * no error, because groups wait for a place. Half of WorkersTotalMax= is reserved for users without a worker; of these
 * places, half may also go to users without a worker on `d`. One place of a database's WorkersMax= is reserved for users
 * without a worker on it. `n_on_database`: how many workers the user has on `d`; `has_connection`: one to the server of `d`
 * is left for the worker. */
typedef enum WorkerBound {
        WORKER_BOUND_NONE,
        WORKER_BOUND_USER,
        WORKER_BOUND_CONNECTIONS, /* the user's workers have all of its connections to the server */
        WORKER_BOUND_DATABASE,
        WORKER_BOUND_TOTAL,
        WORKER_BOUND_CPU,         /* it is not the group's turn (group.h) */
} WorkerBound;
WorkerBound quota_worker_bound(const User *u, const Database *d, uint64_t n_on_database, bool has_connection);

/* The sentence of the error Busy for a user that got no worker in time, because of the bound. */
const char *quota_why_no_worker(WorkerBound bound);

/* Each adds `change`, 1 or -1, to the sums of the user and of the database (of a watch's pipe: of the user and of all). */
void quota_count_statement(User *u, Database *d, int change);
void quota_count_run(User *u, Database *d, int change);
void quota_count_pin(User *u, int change);
void quota_count_transaction(User *u, bool writes, uint64_t n_writers, int change);
void quota_count_channel(User *u, Database *d, int change);
void quota_count_watch(User *u, Database *d, int change);
void quota_count_watch_pipe(User *u, int change);
void quota_count_worker(User *u, Database *d, int change);

/* Moves a channel from these sums to the released ones, and away from those once it is closed. */
void quota_release_channel(User *u, Database *d);
void quota_forget_released_channel(User *u);

#endif
