/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions for the work of groups and workers: jobs and channels. Supervisor.
 *
 * Groups and workers hold runs and channels in queues, but do not know them. These functions are in runs/, and reached
 * through the context.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_WORK_EVENTS_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_WORK_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/protocol/protocol.h"
#include "dbus-interfaces/sqlipc-errors.h"

typedef struct Group Group;
typedef struct Worker Worker;

typedef struct WorkEvents {
        /* ---- Of a group ---- */
        void (*send_jobs)(Group *g);     /* the job socket may have room, or jobs were taken back */
        void (*take_back_jobs)(Group *g); /* the jobs that no worker has taken */
        void (*recall_jobs)(Group *g);   /* the same after the end of a worker, which may have taken some without a word */
        unsigned (*n_overdue)(const Group *g, uint64_t sent_usec); /* jobs that were sent by then, and not taken */
        void (*place_channels)(Group *g); /* hands waiting channels to workers */
        void (*fail)(Group *g, ErrorNumber error, const char *sentence); /* fails all jobs and channels that wait */

        /* ---- Of a worker ---- */
        int (*dispatch)(Worker *w, const Message *m); /* -EBADMSG: it may not send this now */
        unsigned (*n_runnable)(const Worker *w);      /* runs that want a CPU, on channels too */
        unsigned (*n_parallel)(const Worker *w);      /* the same without those that write: they take turns anyway */
        bool (*has_busy_channels)(const Worker *w);   /* see worker-channels.h */
        uint64_t (*used_usec)(const Worker *w);       /* when one of its channels was last used; 0: it has none */
        void (*end_channels)(Worker *w);              /* its settings no longer hold: those that are outdated, too, close
                                                       * after their runs */
        void (*lose)(Worker *w, bool was_told);       /* it is dead. `was_told`: after EXIT or GIVE_WAY */
        void (*break_pipes)(const Worker *w, bool ended_well); /* it was reaped; see worker-runs.h */
} WorkEvents;

#endif
