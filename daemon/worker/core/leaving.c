/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See leaving.h.
 */
#include "daemon/worker/core/leaving.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>

#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/core/report.h"

#define LEAVE_USEC (4 * USEC_PER_SEC) /* the time for work under way; after EXIT the supervisor kills soon after */
#define PAUSE_USEC (2 * USEC_PER_MSEC) /* about what it costs to start a worker */

bool leaving_state_may_follow(LeavingState from, LeavingState to) {
        static const unsigned may[_LEAVING_STATE_MAX] = {
                [LEAVING_STAYS] = 1 << LEAVING_ASKED | 1 << LEAVING_GIVES_WAY | 1 << LEAVING_LEAVES | 1 << LEAVING_GONE,
                [LEAVING_ASKED] = 1 << LEAVING_GIVES_WAY | 1 << LEAVING_LEAVES | 1 << LEAVING_GONE,
                [LEAVING_GIVES_WAY] = 1 << LEAVING_STAYS | 1 << LEAVING_LEAVES | 1 << LEAVING_GONE,
                [LEAVING_LEAVES] = 1 << LEAVING_GONE,
        };

        return from < _LEAVING_STATE_MAX && to < _LEAVING_STATE_MAX && may[from] & 1u << to;
}

void leaving_set_state(Leaving *l, LeavingState state) {
        assert(state == l->state || leaving_state_may_follow(l->state, state));
        l->state = state;
}

bool leaving_takes_jobs(const Leaving *l) {
        return l->state <= LEAVING_ASKED && !l->retired;
}

static int watch_jobs(Leaving *l) {
        /* siblings wait on the same socket, and only one of them must wake up */
        struct epoll_event e = { .events = EPOLLIN | EPOLLEXCLUSIVE, .data.ptr = (void *) l->job_event };

        return epoll_ctl(l->channels->tasks->epoll_fd, EPOLL_CTL_ADD, l->job_fd, &e) < 0 ? -errno : 0;
}

static int unwatch_jobs(Leaving *l) {
        return epoll_ctl(l->channels->tasks->epoll_fd, EPOLL_CTL_DEL, l->job_fd, NULL) < 0 ? -errno : 0;
}

int leaving_init(Leaving *l, ChannelSet *channels, int job_fd, const void *job_event) {
        *l = (Leaving) { .channels = channels, .job_fd = job_fd, .job_event = job_event, .started_usec = now_usec() };
        return watch_jobs(l);
}

int leaving_retire(Leaving *l) {
        bool watched = leaving_takes_jobs(l);

        l->retired = true;
        return watched ? unwatch_jobs(l) : 0;
}

/* Changes to GIVES_WAY or LEAVES: no more work is taken. -errno of epoll. */
static int leave(Leaving *l, LeavingState state) {
        bool watched = leaving_takes_jobs(l), begins = l->state <= LEAVING_ASKED;

        l->leave_usec = now_usec() + LEAVE_USEC;
        leaving_set_state(l, state);
        if (begins) {
                l->channels->context->leaving = true;
                channel_set_leave(l->channels);
        }
        return watched ? unwatch_jobs(l) : 0;
}

int leaving_exit(Leaving *l) {
        return l->state < LEAVING_GONE ? leave(l, LEAVING_LEAVES) : 0;
}

int leaving_give_way(Leaving *l, uint64_t turn_usec) {
        uint64_t soon = now_usec() + PAUSE_USEC, turn = l->started_usec + turn_usec;

        if (l->state >= LEAVING_LEAVES)
                return 0;
        if (turn_usec == 0)
                return leave(l, LEAVING_GIVES_WAY);
        if (l->state != LEAVING_GIVES_WAY) {
                leaving_set_state(l, LEAVING_ASKED);
                l->turn_usec = turn > soon ? turn : soon;
        }
        return 0;
}

void leaving_go_now(Leaving *l) {
        leaving_set_state(l, LEAVING_GONE);
}

/* The work under way takes long, so the worker stays. It reports this work, so that the supervisor does not ask again at
 * once. */
static int stay(Leaving *l) {
        JobContext *context = l->channels->context;
        int r;

        context->leaving = false;
        leaving_set_state(l, LEAVING_STAYS);
        channel_set_report_progress(l->channels);
        r = leaving_takes_jobs(l) ? watch_jobs(l) : 0;
        return r < 0 ? r : report_send(context->control_fd, &(Message) { .kind = MESSAGE_STAY });
}

uint64_t leaving_next_usec(const Leaving *l) {
        uint64_t idle;

        switch (l->state) {
        case LEAVING_ASKED:
                idle = channel_set_idle_since(l->channels);
                return idle < l->turn_usec - PAUSE_USEC ? idle + PAUSE_USEC : l->turn_usec;
        case LEAVING_GIVES_WAY:
        case LEAVING_LEAVES:
                return l->leave_usec;
        case LEAVING_STAYS:
        case LEAVING_GONE:
        case _LEAVING_STATE_MAX:
                return UINT64_MAX;
        }
        return UINT64_MAX;
}

int leaving_check(Leaving *l, uint64_t now) {
        if (l->state == LEAVING_STAYS || now < leaving_next_usec(l))
                return 0;
        if (l->state == LEAVING_ASKED)
                return leave(l, LEAVING_GIVES_WAY);
        if (l->state == LEAVING_GIVES_WAY)
                return stay(l);
        leaving_set_state(l, LEAVING_GONE);
        return 0;
}

bool leaving_is_over(const Leaving *l) {
        if (l->state < LEAVING_GIVES_WAY)
                return false;
        return l->state == LEAVING_GONE || (!l->channels->tasks->first && !l->channels->first);
}
