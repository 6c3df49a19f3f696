/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whose computing may wait. Supervisor.
 *
 * A worker that has computed for half a second, without a quarter of a second of rest, goes on at a lower priority (nice):
 * who asks a question that takes a millisecond finds a processor at once, and not after as many workers as somebody has
 * kept busy. Alone it computes as fast as before. Once it rests for a second, and all that its user has at a lower priority
 * does, it gets its priority back (the system's unit allows that by LimitNICE=), or, where that is not allowed, it ends, and
 * the next query starts another.
 *
 * What a user starts earlier than that has the lower priority at once: it makes no difference whether the worker that
 * computed goes on, ends or is killed.
 *
 * One timer for all. It runs while there is something to look at, so an idle service sleeps.
 */
#ifndef SQLIPC_WORKER_PRIORITY_H
#define SQLIPC_WORKER_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct Manager Manager;
typedef struct Worker Worker;

typedef struct WorkerPriority {
        uint64_t cpu_usec;       /* of all its life, when it was last looked at */
        uint64_t busy_usec;      /* CPU time since it last rested */
        unsigned n_rests;        /* looks in a row that found it resting */
        bool lowered;
} WorkerPriority;

typedef struct PriorityTimer {
        sd_event_source *source;
        uint64_t looked_usec;    /* 0: it does not run */
        int nice;                /* our own */
} PriorityTimer;

/* 0 or -errno. */
int worker_priority_start(Manager *m);
void worker_priority_stop(PriorityTimer *t);

/* It was started a moment ago. */
void worker_priority_inherit(Worker *w);

/* A worker has something to do. */
void worker_priority_watch(Manager *m);

/* CPU time of all its life; 0: it is dead, which others find out. */
uint64_t worker_cpu_usec(const Worker *w);

#endif
