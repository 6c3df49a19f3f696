/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The workers of one uid for one database, with or without the right to write, and the jobs that wait for them. Supervisor.
 *
 * A uid has two groups for a database if one of its connections may write it and another may not (their groups differ). Its
 * bounds count the workers of both.
 *
 * All workers of a group read one job socket, so the next free worker takes the next job, and nothing queues after a stuck
 * worker. The supervisor keeps both ends: its own to send, and the workers' end to start siblings with it and to take back
 * jobs that no worker has taken.
 *
 * A worker is started if there is none, if a job has waited for SIBLING_USEC, or if more runs want a CPU than the group has
 * workers while CPUs are idle; the number of workers is bounded for each uid and in all. If a bound forbids a new worker, an
 * idle worker is asked to give up its place, and the group tries again (`starved`) once a worker is gone, and at intervals.
 * Groups that wait for a place are served in the order in which they began to wait. If all workers are occupied, one is
 * asked as soon as it has nothing to do.
 *
 * If many users ask at the same time, not all of them get a worker at once: too many would share the processors until all
 * are late. Turns for databases in files:
 *
 *      a worker is in its turn     from its start, or from the job that it gets while it is idle, until it computes no more,
 *                                  or half a second has passed; jobs that it takes from the socket meanwhile prolong nothing
 *      workers in their turn       at most two for each processor; past that, groups wait
 *      the next one                is the group that has waited longest, of those whose users have the fewest workers in
 *                                  their turn
 *
 * So a crowd of short queries is computed as fast as the processors can, a long query delays the start of others by no more
 * than its turn, and many queries of one user by no more than a long one. A job for an idle worker waits for a turn as well,
 * unless the last run of its group was quick: then it needs none, and takes none from others. If a user without a worker
 * waits for a place, workers past their turn get no more jobs, so that one becomes idle and gives up its place.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_GROUP_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_GROUP_H

#include <systemd/sd-event.h>

#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/base/user.h"
#include "daemon/supervisor/workers/worker-process.h"

typedef struct Worker Worker;

typedef struct Group {
        Context *context;         /* not owned */
        unsigned n_ref;           /* held by workers, runs and channels */
        User *user;               /* reference */
        Database *database;       /* reference */
        bool writes;              /* its users may write (policy_may_write()), and its workers are started for that */
        int job_fd, workers_fd;   /* the two ends of the job socket */
        GQueue waiting, sent;     /* of Run, by group_link, in the order in which they go, or went */
        GQueue channels;          /* of Channel, by group_link: channels that wait for a worker */
        GQueue workers;           /* of Worker, by group_link */
        uint64_t n_writers;       /* transactions that take turns to write */
        uint64_t n_pins;          /* connections of clients' own, open or not */
        bool holds_jobs;          /* when jobs were last sent, some had to wait for the group's turn */
        bool starved;             /* wants a worker, but a bound forbids it */
        WorkerBound starved_by;   /* which one; NONE: none of them, but no worker can be started now */
        uint64_t took_usec;       /* how long a worker computed for its last run, or for several at once */
        uint64_t moved_usec;      /* when a worker last took one of its jobs, or was started after the group had waited */
        uint64_t asked_usec;      /* when a worker was last asked for its place; 0: never */
        unsigned n_early_deaths;  /* how many workers in a row died before they sent a message */
        uint64_t refused_usec;    /* when an engine process last ended without a word */
        const char *engine_failure; /* what is told to clients if engine processes end so early; NULL: nothing special */
        sd_event_source *writable, *timer, *resend;
        GList user_link;          /* in the user's `groups` */
        GList starved_link;       /* in the context's `starved`, while `starved` */
} Group;

/* Returns a reference to the group of uid, database and right, which is created if there is none. -errno, for lack of
 * descriptors or memory. */
int group_get(User *u, Database *d, bool writes, Group **ret);
Group *group_ref(Group *g);
Group *group_unref(Group *g);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Group, group_unref)

/* An idle worker, if there is one: it has the job once the job is sent to it, and need not report that. Of several workers,
 * the one that became idle last is taken, so that the others may end. Not used while jobs are in the socket: they came
 * before, and the worker may be taking one. */
Worker *group_find_idle_worker(const Group *g);

/* How many workers the user of the group has on its database, in either of its groups. */
uint64_t group_n_on_database(const Group *g);

/* The number of workers that take jobs: those that were not told to end or to retire. */
unsigned group_n_workers(const Group *g);

/* True if the connections to the server are counted together for these groups, which are of one user: also those of an
 * earlier configuration of the same database. */
bool group_shares_connections(const Group *a, const Group *b);

/* How many more connections to the server the workers of the user may have (ConnectionsMax=). */
uint64_t group_connections_left(const Group *g);

/* Asks workers that seem to have a connection to spare, but not `besides` (NULL: all). False: none can be asked. */
bool group_ask_for_connection(const Group *g, const Worker *besides);

/* The bound that keeps the group from having another worker. */
WorkerBound group_worker_bound(const Group *g);

/* The time of the last progress among the work that waits for the same as the jobs of this group; 0: none. While there is
 * progress, a job may wait longer. */
uint64_t group_moved_usec(const Group *g);

/* May a job be sent to the workers of the group now? If not, the group waits for its turn. */
bool group_has_turn(Group *g);

/* True if a user without a worker has waited longer for a place that a worker of this group can give up. */
bool group_owes_place(const Group *g);

/* The job went to an idle worker of the group, after group_has_turn(). */
void group_on_job_sent(const Group *g, Worker *w);

/* A worker has taken a job of the group. */
void group_on_job_taken(Group *g);

/* Starts a worker if the bounds allow it. If they do not, an idle worker is ended first, and the group is `starved`. */
void group_spawn(Group *g);

/* Starts a worker if one is needed and allowed, and hands over the channels that wait. */
void group_staff(Group *g);

/* A worker, of any group, has less to do than before, and this group is starved. The worker may be asked for its place in
 * the next turn of the loop, unless the group has just asked another one. */
void group_on_offer(Group *g);

/* If a connection to the server is left, groups that are starved look again. */
void group_on_connection_left(const Group *g);

/* The engine process of a worker of the group has ended; group_on_worker_gone() may have been called before, or follows. */
void group_on_engine_end(Group *g, const WorkerProcessEnd *end);

/* A worker of the group is dead or as good as dead, its runs have been dealt with, and the jobs were taken back. Fails them
 * if workers die again and again before they begin anything, unless the unit of engine processes refuses more of them: then
 * the jobs wait for the group's other workers. */
void group_on_worker_gone(Group *g);

#endif
