/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. When a worker takes no more work, and when it ends.
 *
 *      STAYS --GIVE_WAY--> ASKED --a pause, or its turn is over--> GIVES_WAY --work under way lasts--> STAYS
 *        |                   |                                       |
 *        +-------------------+---------------EXIT--------------------+--> LEAVES --LEAVE_USEC later--> GONE
 *        +-------------------+---the supervisor is gone, an error----+------------------------------> GONE
 *
 * RETIRE: the worker leaves the job socket to the others. EXIT: it begins nothing more. Channels go back as soon as
 * everything that was begun is answered; then the worker ends. Some seconds after EXIT, whatever is left is ended.
 *
 * GIVE_WAY: the same as EXIT, but only once nothing is under way, and nothing has come for as long as it takes to start
 * another worker (PAUSE_USEC). A worker that is in constant use has WORKER_TURN_USEC before that: otherwise the workers of
 * busy clients would replace each other for every request. If something is still under way some seconds later, it is
 * expected to last: the worker stays for it, and takes new work again. GIVE_WAY 0 does not wait: STAYS and ASKED change to
 * GIVES_WAY at once.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_LEAVING_H
#define SQLIPC_DAEMON_WORKER_CORE_LEAVING_H

#include "daemon/worker/core/channel-set.h"

typedef enum LeavingState {
        LEAVING_STAYS,
        LEAVING_ASKED,     /* to give way; works on until then */
        LEAVING_GIVES_WAY, /* begins nothing more, but may stay */
        LEAVING_LEAVES,    /* begins nothing more */
        LEAVING_GONE,      /* drops what is left */
        _LEAVING_STATE_MAX,
} LeavingState;

typedef struct Leaving {
        LeavingState state;
        bool retired;          /* RETIRE came, in any state */
        ChannelSet *channels;  /* borrowed; context->leaving there holds in the states GIVES_WAY and LEAVES */
        int job_fd;            /* borrowed; watched while the worker takes jobs */
        const void *job_event; /* the user data of that in the epoll */
        uint64_t started_usec;
        uint64_t turn_usec;    /* ASKED: when the worker leaves even if it is in use */
        uint64_t leave_usec;   /* GIVES_WAY, LEAVES: until when jobs under way may continue */
} Leaving;

/* True if the worker may change from `from` to `to`, by the diagram above. */
bool leaving_state_may_follow(LeavingState from, LeavingState to);

/* Changes the state, which the diagram must allow unless it is the same. */
void leaving_set_state(Leaving *l, LeavingState state);

/* Begins to watch the job socket. -errno of epoll. */
int leaving_init(Leaving *l, ChannelSet *channels, int job_fd, const void *job_event);

/* Handle the messages of those names. `turn_usec` is that of GIVE_WAY; unless it is 0, a request that has just come with its
 * channel is still answered. -errno of epoll. */
int leaving_retire(Leaving *l);
int leaving_exit(Leaving *l);
int leaving_give_way(Leaving *l, uint64_t turn_usec);

/* Ends everything. */
void leaving_go_now(Leaving *l);

/* Acts if it is time to leave, to go or to stay. -errno of epoll or the control socket. */
int leaving_check(Leaving *l, uint64_t now_usec);

/* When leaving_check() is due, UINT64_MAX: never. */
uint64_t leaving_next_usec(const Leaving *l);

/* True if the worker takes jobs from the job socket. */
bool leaving_takes_jobs(const Leaving *l);

/* True if the worker must end now. */
bool leaving_is_over(const Leaving *l);

#endif
