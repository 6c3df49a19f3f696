/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The loop of the worker, and the events that wake it: one epoll over the job socket, the control socket,
 * the channels, the pipes of jobs that wait for their readers, and a timer for things that are due after seconds of quiet.
 *
 * Order: a new job goes before continued ones; jobs that can continue take turns page by page; the channels with requests
 * get a millisecond together (channel-round.h). Between two slices the worker reads its sockets, so a job waits for one page
 * at most, unless the engine is inside one long step. In that case another worker of the group takes the job, and channels
 * with requests are given back so that another worker can take them. Jobs that write gather in the writer (writer.h), which
 * gets its turn when no task can go on, or after a millisecond.
 *
 * The messages that make the worker end are in leaving.h.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_WORKER_LOOP_H
#define SQLIPC_DAEMON_WORKER_CORE_WORKER_LOOP_H

#include <stdbool.h>

#include "daemon/worker/core/channel-set.h"
#include "daemon/worker/core/connection-share.h"
#include "daemon/worker/core/job.h"
#include "daemon/worker/core/leaving.h"
#include "daemon/worker/core/task-queue.h"
#include "daemon/worker/core/transaction.h"
#include "daemon/worker/core/writer.h"
#include "dbus-interfaces/wire/channel-polling.h"

typedef struct WorkerLoop {
        int job_fd, control_fd;
        ReceivedMessage setup; /* owned; `context.setup` points into it */
        JobContext context;
        TaskQueue tasks;       /* jobs from the supervisor, and channels that are not idle */
        ChannelSet channels;   /* all channels */
        GroupWriter writer;
        TransactionSet transactions;
        uint64_t looked_usec;  /* when the progress handler last made system calls */
        uint64_t heard_usec;   /* when the loop last looked for events */
        bool ran_channels;     /* channels had the last turn: more of their requests may follow at once */
        ChannelPolling polling;
        Leaving leaving;
        ConnectionShare connections;
} WorkerLoop;

/* Takes over `setup`, borrows the sockets. The process must be set up for `engine`. -ENOMEM, or -errno of epoll or the
 * timer. */
int worker_loop_init(WorkerLoop *w, const Engine *engine, int job_fd, int control_fd, ReceivedMessage *setup);

/* Runs jobs until EXIT or the end of the control socket; then returns 0. -EBADMSG: the supervisor sent an invalid message;
 * other -errno. */
int worker_loop_run(WorkerLoop *w);

/* Frees what the worker has, without reports. Must be called even if worker_loop_init() failed. */
void worker_loop_done(WorkerLoop *w);

#endif
