/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The loop of the worker, and the events that wake it: one epoll over the job socket, the control socket,
 * the channels, the pipes of jobs that wait for their readers, and a timer for things that are due after seconds of quiet.
 *
 * Order: a new job goes before continued ones; jobs that can continue take turns page by page; channels with requests get a
 * millisecond each. Between two slices the worker reads its sockets, so a job waits for one page at most, unless the engine
 * is inside one long step. In that case another worker of the group takes the job, and channels with requests are given
 * back so that another worker can take them.
 *
 * RETIRE: the worker leaves the job socket to the others. EXIT: it begins nothing more. Channels go back as soon as
 * everything that was begun is answered; then the worker ends. Some seconds after EXIT, whatever is left is ended.
 *
 * GIVE_WAY: the same as EXIT, but only once nothing is under way, and nothing has come for as long as it takes to start
 * another worker (PAUSE_USEC). A worker that is in constant use has WORKER_TURN_USEC before that: otherwise the workers of
 * busy clients would replace each other for every request. If something is still under way some seconds later, it is
 * expected to last: the worker stays for it, and takes new work again.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_JOB_QUEUE_H
#define SQLIPC_DAEMON_WORKER_CORE_JOB_QUEUE_H

#include <stdbool.h>

#include "daemon/worker/core/channel-set.h"
#include "daemon/worker/core/job.h"
#include "daemon/worker/core/looking.h"
#include "daemon/worker/core/task-queue.h"

typedef struct JobQueue {
        int job_fd, control_fd;
        ReceivedMessage setup; /* owned; `context.setup` points into it */
        JobContext context;
        TaskQueue tasks;       /* jobs from the supervisor, and channels that are not idle */
        ChannelSet channels;   /* all channels */
        uint64_t looked_usec;  /* when the progress handler last made system calls */
        Looking looking;
        uint64_t leave_usec;   /* EXIT, GIVE_WAY: until when jobs under way may continue; UINT64_MAX: neither came */
        bool may_stay;         /* it was GIVE_WAY, not EXIT */
        uint64_t started_usec;
        uint64_t turn_usec;    /* GIVE_WAY came: when the worker leaves even if it is in use; otherwise UINT64_MAX */
        bool retired;          /* RETIRE came */
        bool exiting;          /* the time after EXIT is over, or the supervisor is gone */
} JobQueue;

/* Takes over `setup`, borrows the sockets. The process must be set up for `engine`. -ENOMEM, or -errno of epoll or the
 * timer. */
int job_queue_init(JobQueue *q, const Engine *engine, int job_fd, int control_fd, ReceivedMessage *setup);

/* Runs jobs until EXIT or the end of the control socket; then returns 0. -EBADMSG: the supervisor sent an unknown message;
 * other -errno. */
int job_queue_run(JobQueue *q);

void job_queue_done(JobQueue *q);

#endif
