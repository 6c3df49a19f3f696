/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pipe that leads to a client, and its place in the budget. Supervisor.
 *
 *      pipe_new --> in use (by a statement, a run) --last unref--> retired --POLLERR: no read end is left--> gone
 *                      |                                           (100 ms, or until the uid's next pipe; then watched)
 *                      \--pipe_break: a worker was lost--> closed, reads end-of-file, counts no more
 *
 * 1. We own the write end and pass it along with each run. It stays open, silent, until the last read end is gone: only so
 *    do we learn that its pages are free (a client may keep its end as long as it likes).
 * 2. A client can grow a pipe at our cost. pipe_check() sees it; the pipe then counts at its real size. We look when its run
 *    parks, at a few pipes of a uid, in turns, when it gets one more, and at those of all uids when the kernel has fewer
 *    pages left than it should.
 */
#ifndef SQLIPC_PIPE_H
#define SQLIPC_PIPE_H

#include <systemd/sd-event.h>

#include "user.h"

typedef struct Pipe {
        User *user;              /* reference */
        unsigned n_ref;          /* statement and run; 0: retired */
        int write_fd;            /* non-blocking; -1: broken */
        int read_fd;             /* blocking, until it was handed out; else -1 */
        PipeShare share;         /* what counts */
        uint64_t number;         /* of the statement, or else of the run, that it is for */
        bool ran, filled;        /* it was grown for its first run, for a run that fills it */
        bool rests;              /* retired a moment ago: in manager->resting_pipes, by rest_link */
        bool unwatched;          /* could not be watched, which is in the log */
        sd_event_source *watch;  /* retired: waits for POLLERR; in use: for room (pipe_watch_room()) */
        const struct Worker *ended_by; /* whose run was the last to end, and how much it had said by then */
        uint64_t ended_at;
        GList link;              /* in user->pipes */
        GList rest_link;
} Pipe;

/* Checks of pipes that each new one pays for: calls to the kernel that do not grow with what the user holds. */
#define PIPE_CHECKS_PER_CALL UINT64_C(8)

/* A pipe of one page; `for_run`: as large as its first run wants it, if the budget has that. Checks some of the user's other
 * pipes first. LIMITS_EXCEEDED if the budget has no room. */
int pipe_new(User *u, bool for_run, Pipe **ret, Refusal *refusal);
Pipe *pipe_ref(Pipe *p);
/* The last reference retires it. */
Pipe *pipe_unref(Pipe *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Pipe, pipe_unref)

/* The loop ends: closes it, whoever reads. */
void pipe_free(Pipe *p);

/* The reader sees end-of-file. Frees its pages; the write end cannot be passed any more. */
void pipe_break(Pipe *p);

/* The read end, which is the caller's from now on; only once. */
int pipe_take_read_fd(Pipe *p);
void pipe_close_read_fd(Pipe *p);

/* No read end is left, or it is broken. */
bool pipe_is_closed(const Pipe *p);

/* Calls `handler` while the pipe has room, or once its reader is gone; until pipe_unwatch(). */
int pipe_watch_room(Pipe *p, sd_event_io_handler_t handler, void *userdata);
void pipe_unwatch(Pipe *p);

/* Grows as far as budget and kernel allow; more is never needed, only faster. */
void pipe_grow_for_run(Pipe *p);
void pipe_grow_for_filling(Pipe *p);
/* The service stops: room for the rest of a frame and its ERROR, so that a reader that is behind finds them. */
void pipe_grow_before_exit(Pipe *p);

/* Compares with what we made it. True: the client grew it, and it counts so now. */
bool pipe_check(Pipe *p);

#endif
