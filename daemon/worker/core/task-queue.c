/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See task-queue.h.
 */
#include "daemon/worker/core/task-queue.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/worker/core/monotonic.h"

int task_queue_init(TaskQueue *q) {
        *q = (TaskQueue) { .last = &q->first, .timer_fd = -1, .armed_usec = UINT64_MAX };
        q->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (q->epoll_fd < 0)
                return -errno;
        q->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        return q->timer_fd < 0 ? -errno : 0;
}

void task_queue_done(TaskQueue *q) {
        if (q->timer_fd >= 0)
                (void) close(q->timer_fd);
        if (q->epoll_fd >= 0)
                (void) close(q->epoll_fd);
}

void task_queue_append(TaskQueue *q, Task *t) {
        t->next = NULL;
        *q->last = t;
        q->last = &t->next;
        t->queued = true;
}

void task_queue_prepend(TaskQueue *q, Task *t) {
        t->next = q->first;
        q->first = t;
        if (!t->next)
                q->last = &t->next;
        t->queued = true;
}

void task_queue_unlink(TaskQueue *q, Task **link) {
        Task *t = *link;

        *link = t->next;
        if (q->last == &t->next)
                q->last = link;
        t->next = NULL;
        t->queued = false;
}

void task_queue_take_out(TaskQueue *q, Task *t) {
        Task **link = &q->first;

        if (!t->queued)
                return;
        while (*link != t)
                link = &(*link)->next;
        task_queue_unlink(q, link);
}

void task_queue_arm(TaskQueue *q, uint64_t usec) {
        struct itimerspec when = {
                .it_value = { .tv_sec = (time_t) (usec / USEC_PER_SEC), .tv_nsec = (long) (usec % USEC_PER_SEC) * 1000 },
        };

        if (timerfd_settime(q->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0)
                q->armed_usec = usec;
}
