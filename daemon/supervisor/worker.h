/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One worker process: started, told, heard, ended. Supervisor.
 *
 *      running --idle for WorkerIdleSec=, or another needs its place--> ending (EXIT) --\
 *         \--a deadline passed, or it spoke out of turn--> killed (SIGKILL) -------------+--> dead --reaped--> gone
 *          \--it crashed-----------------------------------------------------------------/
 *
 * What it says is decoded as hostile: a message that protocol.h does not know, or about a job that it does not have, is
 * its end. Only its own user's runs die with it.
 */
#ifndef SQLIPC_WORKER_H
#define SQLIPC_WORKER_H

#include <systemd/sd-event.h>

#include "group.h"
#include "run.h"

struct Worker {
        Manager *manager;         /* not owned */
        Group *group;             /* reference */
        pid_t pid;
        int control_fd;           /* -1: dead */
        GQueue runs;              /* of Run, by worker_link: taken, and not drained */
        bool spoke;               /* it took a job */
        bool ending, killed;
        bool distrusted;          /* nothing that it says is read any more */
        uint64_t started_usec;
        uint64_t idle_usec;       /* since when it has had no run */
        sd_event_source *io, *child, *idle_timer;
        GList group_link, manager_link;
};

/* Starts one for the group. */
int worker_new(Group *g);

/* Reads all that it has said until now. */
void worker_process(Worker *w);

/* The run is its own from now on, or no longer. */
void worker_add_run(Worker *w, Run *run);
void worker_remove_run(Worker *w, Run *run);

/* Tells it to end a run. A worker that does not listen is killed by the run's timer. */
void worker_cancel(Worker *w, uint64_t number, ErrorNumber error, const char *sentence);

void worker_kill(Worker *w, const char *why);

/* Lets it end by itself. */
void worker_end(Worker *w);

/* Ends the worker that has been idle for longest: of `u`, or (NULL) of the uid with most workers that has an idle one; on
 * `d`, or (NULL) anywhere. */
void worker_end_idle(Manager *m, const User *u, const Database *d);

/* The loop is over: kills and reaps it. */
void worker_free(Worker *w);

static inline bool worker_stays(const Worker *w) {
        return w->control_fd >= 0 && !w->ending && !w->killed;
}

unsigned worker_n_runnable(const Worker *w);

#endif
