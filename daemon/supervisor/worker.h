/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One worker process: started, told, heard, ended. Supervisor.
 *
 *         /<----------what is under way there lasts (STAY)----------\
 *      running --idle for WorkerIdleSec=, or another needs its place--> ending (EXIT, GIVE_WAY) --\
 *         \--a deadline passed, or it spoke out of turn--> killed (SIGKILL) -----------------------+--> dead --> gone
 *          \--it crashed---------------------------------------------------------------------------/
 *
 * A killed worker that waits in the kernel (for a disk, a file server) dies late. After two seconds its runs are lost and it
 * holds no place any more, except of its own uid: others must not wait for it. Of such workers there are half as many as
 * WorkersTotalMax= at most.
 *
 * What it says is decoded as hostile: a message that protocol.h does not know, or about a job that it does not have, is
 * its end. Only its own user's runs die with it.
 */
#ifndef SQLIPC_WORKER_H
#define SQLIPC_WORKER_H

#include <systemd/sd-event.h>

#include "grace.h"
#include "group.h"
#include "run.h"
#include "worker-priority.h"

struct Worker {
        Manager *manager;         /* not owned */
        Group *group;             /* reference */
        pid_t pid;
        int control_fd;           /* -1: dead */
        GQueue runs;              /* of Run, by worker_link: taken, and not drained */
        GQueue channels;          /* of Channel, by worker_link */
        bool spoke;               /* it took a job, or answered */
        bool ending, killed;
        bool undead;              /* killed KILLED_USEC ago, and not dead yet */
        bool may_stay;            /* ending, unless something lasts there */
        bool outdated;            /* a reload changed what it was started with: it ends once nothing runs there */
        bool retired;             /* outdated, and told to take no more jobs */
        uint64_t n_said;          /* messages of its */
        bool distrusted;          /* nothing that it says is read any more */
        uint64_t started_usec;
        uint64_t idle_usec;       /* since when it has had no run and no channel */
        /* worker-channels.h */
        bool ping_sent, ping_again;
        uint64_t ping_number;     /* of the one that is owed an answer, or of the next */
        uint64_t ping_usec;       /* when it was asked; 0: it owes no answer */
        Grace grace;              /* for the answer */
        uint64_t stuck_until_usec;
        bool spared, end_spared;  /* clock_timer_was_late() to the watch; to the end, which may come in the same turn */
        WorkerPriority priority;
        sd_event_source *io, *child, *idle_timer, *watch;
        GList group_link, manager_link;
};

/* Starts one for the group. */
int worker_new(Group *g);

/* Reads all that it has said until now. */
void worker_process(Worker *w);

/* The run is its own from now on, or no longer. */
void worker_add_run(Worker *w, Run *run);
void worker_remove_run(Worker *w, Run *run);

/* One thing less to do: its idle time may begin. */
void worker_on_work_over(Worker *w);

/* It is up and has nothing to do: a job for it need not wait in the job socket for who comes first. */
bool worker_takes_job(const Worker *w);

/* Tells it to end a run, or that of a channel. A worker that does not listen is killed by the run's timer. Returns the error
 * of a message that could not be sent. */
int worker_cancel(Worker *w, uint64_t number, ErrorNumber error, const char *sentence);

void worker_kill(Worker *w, const char *why);

/* Lets it end by itself. Channels come back before, those on which something is under way when that is answered; what lasts
 * is ended. */
void worker_end(Worker *w);

/* The same, unless a job may be on its way there or a run is known to be under way: false. Where something has begun on a
 * channel that we have not heard of yet, and lasts, it goes on there as before, after some seconds. */
bool worker_end_unless_busy(Worker *w);

/* What it was started with holds no longer: it ends, at once or when what runs there is over, and its channels go on
 * elsewhere; in the second case they are closed first, so that no run on them begins under what is past. Nor does a job,
 * where there may be another worker for it. */
void worker_outdate(Worker *w);

/* Ends the worker that has been idle for longest: of `u`, or (NULL) of the uid with most workers that has an idle one; on
 * `d`, or (NULL) anywhere. If none is idle, one that has only channels, on which nothing is known to run: it gives them back
 * and ends as soon as nothing is under way on them. False: there is none. */
bool worker_end_idle(Manager *m, const User *u, const Database *d);

/* The loop is over: kills and reaps it. */
void worker_free(Worker *w);

static inline bool worker_stays(const Worker *w) {
        return w->control_fd >= 0 && !w->ending && !w->killed;
}

/* No run and no channel. */
bool worker_is_idle(const Worker *w);

/* Runs that want a CPU, those on channels included as far as they are known. */
unsigned worker_n_runnable(const Worker *w);

#endif
