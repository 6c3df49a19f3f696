/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lowers the priority of workers that compute for long. Supervisor.
 *
 * A worker that has computed for half a second, without a quarter of a second of rest, continues at a lower priority (nice).
 * So a client with a query of a millisecond finds a processor at once, no matter how many workers another user keeps busy.
 * If nothing else runs, the worker computes as fast as before. It gets its priority back once it, and all other workers of
 * its user at a lower priority, have rested for a second (the system's unit allows that by LimitNICE=). If raising the
 * priority is not allowed, the worker ends instead, and the next query starts another one.
 *
 * Workers that the user starts earlier than that have the lower priority at once. So it makes no difference if the worker
 * that computed goes on, ends or is killed.
 *
 * One timer serves all workers. It runs only while a worker must be watched, so an idle service sleeps.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_WORKER_PRIORITY_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_WORKER_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "daemon/supervisor/base/user.h"

/* Part of each worker. */
typedef struct WorkerPriority {
        pid_t pid;
        User *user;              /* not owned */
        uint64_t cpu_usec;       /* CPU time of its whole life, at the last check */
        uint64_t busy_usec;      /* CPU time since it last rested */
        unsigned n_rests;        /* how many checks in a row found it at rest */
        bool lowered;
        GList link;              /* in the timer's `workers` */
} WorkerPriority;

typedef enum WorkerLoad {
        WORKER_LOAD_NONE,        /* it has no run and no channel */
        WORKER_LOAD_WAITING,     /* none of its runs wants a CPU */
        WORKER_LOAD_RUNNING,
} WorkerLoad;

/* Functions of the workers' owner. */
typedef struct PriorityEvents {
        WorkerLoad (*load)(const WorkerPriority *p);
        void (*end)(WorkerPriority *p); /* its priority cannot be raised: another worker should take its place */
} PriorityEvents;

typedef struct PriorityTimer {
        const PriorityEvents *events;
        GQueue workers;          /* of WorkerPriority, by link */
        sd_event_source *source;
        uint64_t looked_usec;    /* when it last fired; 0: it does not run */
        int nice;                /* the supervisor's own nice value */
} PriorityTimer;

/* Makes the timer, which does not run yet. 0 or -errno. */
int worker_priority_start(PriorityTimer *t, sd_event *event, const PriorityEvents *events);
void worker_priority_stop(PriorityTimer *t);

/* The worker was just started, as process `pid`: it gets the lower priority if its user computed a moment ago. */
void worker_priority_add(PriorityTimer *t, WorkerPriority *p, pid_t pid, User *user);

/* The worker is killed or dead. Does nothing if it was not added. */
void worker_priority_remove(PriorityTimer *t, WorkerPriority *p);

/* A worker has something to do: starts the timer. */
void worker_priority_watch(PriorityTimer *t);

#endif
