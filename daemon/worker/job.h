/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The queue of jobs, and what wakes the worker: one epoll over the job socket, the control socket, the
 * channels, the pipes of runs that wait for their readers, and a timer for what happens after seconds of quiet.
 *
 * Order: a new job goes before continued ones, runs that can go on take turns page by page, channels with requests a
 * millisecond each. Between two slices the sockets are looked at, so a job waits for one page at most, unless SQLite sits in
 * one long step: then a sibling of this worker takes it, and channels with requests are given back for another to take.
 *
 * RETIRE: the job socket is left to others. EXIT: nothing is begun any more. Channels go back as soon as all that was begun
 * is answered; then the worker ends. After some seconds EXIT ends what is left.
 *
 * GIVE_WAY: the same, once nothing is under way and nothing came for as long as it takes to start another worker
 * (PAUSE_USEC). A worker that is asked for more all the time has WORKER_TURN_USEC before: else workers of busy clients
 * would replace each other for every request. What is under way some seconds later lasts: the worker stays for it, and for
 * all that comes.
 */
#ifndef JOB_H
#define JOB_H

#include <stdbool.h>

#include "channel.h"
#include "looking.h"
#include "pool.h"
#include "run.h"

typedef struct JobQueue {
        int job_fd, control_fd, epoll_fd, timer_fd;
        ReceivedMessage setup; /* owned; what `context.setup` points into */
        RunContext context;
        Pool pool;
        Run *first, **last;    /* all runs, and channels that are not idle; those that are ready take turns from the front */
        unsigned n_runs;
        Channel *channels;     /* all */
        Run *current;          /* inside sqlite3_step, for the progress handler */
        uint64_t looked_usec;  /* when the progress handler last made system calls */
        uint64_t armed_usec;   /* when the timer fires, UINT64_MAX: it does not */
        Looking looking;
        uint64_t leave_usec;   /* EXIT, GIVE_WAY: when what is under way then has had its time; UINT64_MAX: none came */
        bool may_stay;         /* GIVE_WAY, not EXIT */
        uint64_t started_usec;
        uint64_t turn_usec;    /* GIVE_WAY, and it is in use: when it gives way all the same; else UINT64_MAX */
        bool retired;          /* RETIRE came */
        bool exiting;          /* that is over, or the supervisor is gone */
} JobQueue;

/* Takes over `setup`, borrows the sockets. SQLite must be set up. -errno of epoll. */
int job_queue_init(JobQueue *q, int job_fd, int control_fd, ReceivedMessage *setup);

/* Runs jobs until EXIT or the end of the control socket: 0. -EBADMSG: the supervisor says what we do not know; other
 * -errno. */
int job_queue_run(JobQueue *q);

void job_queue_done(JobQueue *q);

/* For job-channels.c: turns, and the timer, which fires at `usec`. */
void job_queue_append(JobQueue *q, Run *run);
void job_queue_take_out(JobQueue *q, Run *run);
void job_queue_arm(JobQueue *q, uint64_t usec);

#endif
