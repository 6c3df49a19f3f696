/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The workers of one uid and one database, and the jobs that wait for them. Supervisor.
 *
 * All workers of a group read one job socket: whoever is free takes the next job, so nothing queues behind a stuck one. We
 * keep both ends: ours to send, theirs to start siblings with and to take jobs back that no worker has taken.
 *
 * A worker is started when there is none, when a job has waited SIBLING_USEC, or when more runs want a CPU than the group
 * has workers while CPUs idle; bounded per uid and in all. If a bound forbids it, an idle worker is asked for its place, and
 * the group tries again (`starved`) once a worker is gone. Groups that wait so are served in the order in which they began
 * to wait. If all workers are occupied, one is asked as soon as it has nothing to do.
 */
#ifndef SQLIPC_GROUP_H
#define SQLIPC_GROUP_H

#include <systemd/sd-event.h>

#include "database.h"
#include "user.h"

typedef struct Run Run;
typedef struct Worker Worker;

typedef struct Group {
        Manager *manager;         /* not owned */
        unsigned n_ref;           /* workers, runs and channels */
        User *user;               /* reference */
        Database *database;       /* reference */
        int job_fd, workers_fd;   /* the two ends of the job socket */
        GQueue waiting, sent;     /* of Run, by group_link; first in, first out */
        GQueue channels;          /* of Channel, by group_link: those that wait for a worker */
        GQueue workers;           /* of Worker, by group_link */
        bool starved;             /* wants a worker that a bound forbids */
        uint64_t starved_usec;    /* since when */
        uint64_t asked_usec;      /* when a worker was last asked for its place; 0: none was */
        unsigned n_early_deaths;  /* of workers that never said anything, in a row */
        sd_event_source *writable, *timer, *resend;
        GList user_link;
} Group;

/* The group of uid and database, born here if need be. A reference. */
int group_get(User *u, Database *d, Group **ret);
Group *group_ref(Group *g);
Group *group_unref(Group *g);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Group, group_unref)

/* Queues the run and sends what the socket takes. Runs may fail inside. */
void group_submit(Group *g, Run *run);

/* The run is not WAITING or SENT any more. */
void group_remove(Group *g, Run *run);

/* The run goes back to the front of those that wait. */
void group_put_back(Group *g, Run *run);

/* Takes back what lies in the job socket: such runs are WAITING again and go out again soon. SENT ones that were not there
 * are being taken right now, and are told run_on_missing(). */
void group_recall(Group *g);

/* Workers that take jobs: those that were not told to end, nor to retire. */
unsigned group_n_workers(const Group *g);

/* Starts a worker if bounds allow; where they do not, something idle ends first, and the group is `starved`. */
void group_spawn(Group *g);

/* Starts a worker if one is needed and allowed, and hands over the channels that wait. */
void group_staff(Group *g);

/* A worker has less to do than before: if no other was asked for its place, this one may be, in the next turn. */
void group_on_offer(Group *g);

/* `w` is dead, its runs are dealt with. `early`: it never said anything. */
void group_on_worker_gone(Group *g, bool early);

#endif
