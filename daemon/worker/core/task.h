/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. An entry of the worker's queue (task-queue.h), which gets turns: a job from the supervisor
 * (supervisor-job.h) or a channel with requests (served-channel.h). The queue knows tasks by this interface only.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_TASK_H
#define SQLIPC_DAEMON_WORKER_CORE_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "dbus-interfaces/sqlipc-errors.h"

typedef struct Job Job;
typedef struct Task Task;
typedef struct TaskQueue TaskQueue;

typedef struct TaskType {
        /* The task is a channel: it has its turns in rounds (channel-round.h), after which the worker polls for the next
         * requests (channel-polling.h). */
        bool is_channel;

        /* When the task needs a turn or on_time(), if nothing else happens: 0: it can continue now; UINT64_MAX: never. */
        uint64_t (*next_usec)(const Task *t);

        /* Continues the task for a page or about a millisecond. NULL: it is a channel. */
        void (*turn)(Task *t);

        /* Called from inside the task's own step every few milliseconds; NULL: it has nothing to check then. */
        void (*look)(Task *t);

        /* Handles deadlines. True: the task must be settled. */
        bool (*on_time)(Task *t, uint64_t now_usec);

        /* Handles `events` of epoll. Frees nothing, and may put the task into the queue. */
        void (*on_events)(TaskQueue *q, Task *t, uint32_t events);

        /* Ends what is under way. Must not be called from inside the task's own step. */
        void (*cancel)(Task *t, ErrorNumber error, const char *message);

        /* Acts on the task's new state. The task is not in the queue: it is put there again, waits in the epoll, or is
         * freed. -errno of epoll or the control socket. */
        int (*settle)(TaskQueue *q, Task *t);
} TaskType;

struct Task {
        const TaskType *type;
        Task *next;           /* in the queue */
        Job *job;             /* borrowed: what the task executes, for the progress handler */
        uint64_t number;      /* by which the supervisor knows it */
        uint64_t client;      /* of a channel: the same for all channels of one client */
        bool queued;          /* it is in the queue */
};

#endif
