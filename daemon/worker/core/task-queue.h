/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The tasks that are not idle, the epoll that wakes them, and a timer for things that are due after seconds of
 * quiet. Tasks that can continue take turns from the front. The user data of a task in the epoll is the Task.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_TASK_QUEUE_H
#define SQLIPC_DAEMON_WORKER_CORE_TASK_QUEUE_H

#include "daemon/worker/core/task.h"

struct TaskQueue {
        Task *first, **last;
        Task *current;         /* the task inside its step; in the list only if the writer steps it (write-batch.h) */
        int epoll_fd, timer_fd;
        uint64_t armed_usec;   /* when the timer fires, UINT64_MAX: it is off */
};

/* -errno of epoll or the timer; then task_queue_done() is still needed. */
int task_queue_init(TaskQueue *q);

/* The queue must be empty. */
void task_queue_done(TaskQueue *q);

void task_queue_append(TaskQueue *q, Task *t);
void task_queue_prepend(TaskQueue *q, Task *t);

/* Removes the task that `link` points to: &q->first, or &next of the task before it. */
void task_queue_unlink(TaskQueue *q, Task **link);

/* Removes the task, if it is in the queue. */
void task_queue_take_out(TaskQueue *q, Task *t);

/* Sets the timer to fire at `usec` (CLOCK_MONOTONIC). It is for things that are due after seconds, so that no query needs to
 * set it. */
void task_queue_arm(TaskQueue *q, uint64_t usec);

#endif
