/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pipe that leads to a client, or from it to a load, and its place in the budget. Its states are in pipe-life.h.
 * Supervisor.
 *
 * 1. The supervisor owns the write end and passes it along with each run. It keeps the write end open, and silent, until the
 *    last read end is closed: this is the only way to learn that the pipe's pages are free (a client may keep its end as
 *    long as it likes).
 *    The pipe of a load leads the other way. Its read end must be closed when the load ends, because a client that still
 *    writes would wait for ever. After that the supervisor has a descriptor that is neither end (O_PATH), by which it opens
 *    the pipe for a moment, to see if a write end is left. It does so for a few pipes every five seconds, and if the uid
 *    gets a new one.
 * 2. A client can grow a pipe at the service's cost. pipe_check() notices this, and the pipe then counts at its real size.
 *    A pipe is checked when its run parks. A few pipes of a uid, in turns, are checked when the uid gets a new one. All
 *    pipes are checked when the kernel has fewer pages left than it should.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_PIPE_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_PIPE_H

#include <systemd/sd-event.h>

#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/user.h"
#include "daemon/supervisor/runs/pipe-life.h"

/* The pipes of all users. */
typedef struct PipeStock {
        PipeBudget budget;
        GQueue resting;          /* of Pipe, by rest_link */
        GQueue kept;             /* the same: those of loads that have rested, and have a writer */
        sd_event_source *timer;  /* fires when they have rested; NULL: none has rested yet */
        bool is_slow;            /* the timer is only for those in `kept` */
        bool are_short;          /* the timer looks for pipes that grew */
} PipeStock;

/* Its size only grows while it is in use. */
typedef enum PipeGrowth {
        PIPE_SMALL,             /* one page */
        PIPE_GROWN_FOR_RUN,     /* for its first run, as far as the budget allowed */
        PIPE_GROWN_FOR_FILLING, /* for a run that fills it */
} PipeGrowth;

struct Pipe {
        User *user;              /* reference */
        unsigned n_ref;          /* held by statement and run; 0: retired */
        PipeState state;
        PipeGrowth growth;
        bool is_inward;          /* of a load: the client writes. The service's end is the read end, and the client's the
                                  * write end */
        int write_fd;            /* the service's end, non-blocking; -1: BROKEN, or retired and inward */
        int path_fd;             /* retired and inward: neither end; otherwise -1 */
        int read_fd;             /* the client's end, blocking, until it was handed out; then -1 */
        PipeShare share;         /* the pages that it counts for */
        uint64_t number;         /* of its statement, or of its run if it has no statement */
        bool unwatched;          /* RESTING: it could not be watched, and this was logged. Not a state: tried again */
        sd_event_source *watch;  /* WATCHED: waits for POLLERR; IN_USE: waits for room (pipe_watch_room()) */
        const struct Worker *ended_by; /* the worker whose run was the last to end; only to be compared */
        uint64_t ended_at;       /* how many messages this worker had sent by then */
        GList link;              /* in user->pipes */
        GList rest_link;         /* RESTING: in `resting`; WATCHED and inward: in `kept` */
};

/* How many pipes are checked for each new one. The number of system calls must not grow with the number of pipes that a user
 * holds. */
#define PIPE_CHECKS_PER_CALL UINT64_C(8)

/* Makes a pipe of one page. `for_run`: makes it as large as its first run wants it (PIPE_PAGES_FIRST_RUN), if the budget
 * allows. Checks some of the user's other pipes first. LIMITS_EXCEEDED if the budget has no room, or no descriptor is
 * left. */
int pipe_new(User *u, bool for_run, Pipe **ret, Refusal *refusal);
/* The same for a load. */
int pipe_new_inward(User *u, Pipe **ret, Refusal *refusal);
Pipe *pipe_ref(Pipe *p);
/* The last reference retires it. */
Pipe *pipe_unref(Pipe *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Pipe, pipe_unref)

/* Closes and frees the pipe, whether or not it has a reader. No statement or run has a reference to it. */
void pipe_free(Pipe *p);

/* Closes the write end, so the reader sees end-of-file and no run can use the pipe any more. Its pages are free. */
void pipe_break(Pipe *p);

/* pipe_take_read_fd(): returns the read end, which the caller owns from now on; can be called once. pipe_close_read_fd():
 * closes it, unless it was taken. */
int pipe_take_read_fd(Pipe *p);
void pipe_close_read_fd(Pipe *p);

/* True if the pipe holds bytes that its reader has not read. */
bool pipe_has_bytes(const Pipe *p);

/* True if the user's retired pipes leave room for one more of one page that its client keeps, so that it hinders no other
 * pipe of the user. pipe_shrink() makes it as small. `for_cached`: see pipe-budget.h. */
bool pipe_may_retire(const User *u, bool for_cached);
void pipe_shrink(Pipe *p);

/* True if no read end is left, or the pipe is broken. */
bool pipe_is_closed(const Pipe *p);

/* Calls `handler` while the pipe has room, and once its reader is gone, until pipe_unwatch(). -errno. */
int pipe_watch_room(Pipe *p, sd_event_io_handler_t handler, void *userdata);
void pipe_unwatch(Pipe *p);

/* Grow the pipe as far as budget and kernel allow. A larger pipe is never needed; it is only faster. */
void pipe_grow_for_run(Pipe *p);
void pipe_grow_for_filling(Pipe *p);
/* The service stops: makes room for the rest of a frame and its ERROR, so that a slow reader can still read them. */
void pipe_grow_before_exit(Pipe *p);

/* Compares the pipe's size with the size that we gave it. True if the client grew it; it counts at its real size then. */
bool pipe_check(Pipe *p);

#endif
