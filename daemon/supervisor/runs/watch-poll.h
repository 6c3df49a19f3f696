/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Polls the pipes of all watches. Supervisor.
 *
 * They have an epoll of their own, which is one source of the loop. As sources of the loop, thousands of pipes that are read
 * at the same time would cost their square: the loop dispatches one source, then polls all again.
 *
 * A pipe is told by its edges: when its client has emptied it after it was full, or has closed its end. So no system call
 * is needed for a watch that is told and read, beside its write().
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_WATCH_POLL_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_WATCH_POLL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/supervisor/base/context.h"

/* The pipe of watch `number` has room, or its client has closed its end. There need not be such a watch any more. */
typedef void (*WatchPollHandler)(Context *context, uint64_t number, bool closed);

/* The state of this module in the context. */
typedef struct WatchPoll {
        Context *context;        /* not owned */
        WatchPollHandler handler;
        int fd;
        sd_event_source *source;
} WatchPoll;

/* -errno; call watch_poll_stop() then, too. */
int watch_poll_start(WatchPoll *p, Context *context, WatchPollHandler handler);
void watch_poll_stop(WatchPoll *p);

/* Polls the write end of the watch's pipe. -errno. */
int watch_poll_add(const WatchPoll *p, int fd, uint64_t number);

/* Before the descriptor is closed: a child that is being started may have a copy. */
void watch_poll_remove(const WatchPoll *p, int fd);

#endif
