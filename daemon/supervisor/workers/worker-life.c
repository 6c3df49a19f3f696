/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of a worker process. Pure. */
#include <assert.h>
#include <stddef.h>

#include "daemon/supervisor/workers/worker-life.h"

/* For each state, the states that may follow. */
static const unsigned transitions[WORKER_STATE_MAX] = {
        [WORKER_STARTING] = 1u << WORKER_RUNNING | 1u << WORKER_ASKED | 1u << WORKER_ENDING | 1u << WORKER_KILLED |
                            1u << WORKER_CLOSED,
        [WORKER_RUNNING] = 1u << WORKER_ASKED | 1u << WORKER_ENDING | 1u << WORKER_KILLED | 1u << WORKER_CLOSED,
        [WORKER_ASKED] = 1u << WORKER_RUNNING | 1u << WORKER_ENDING | 1u << WORKER_KILLED | 1u << WORKER_CLOSED,
        [WORKER_ENDING] = 1u << WORKER_KILLED | 1u << WORKER_CLOSED,
        [WORKER_KILLED] = 1u << WORKER_CLOSED,
        [WORKER_CLOSED] = 1u << WORKER_UNDEAD,
};

static const unsigned settings_transitions[WORKER_SETTINGS_MAX] = {
        [WORKER_CURRENT] = 1u << WORKER_OUTDATED,
        [WORKER_OUTDATED] = 1u << WORKER_RETIRED,
};

static const struct {
        WorkerEndManner manner;
        const char *sentence;
} ends[WORKER_END_MAX] = {
        [WORKER_END_IDLE] = { WORKER_ENDS_BY_EXIT, NULL },
        [WORKER_END_STOPPING] = { WORKER_ENDS_BY_EXIT, NULL },
        [WORKER_END_PLACE] = { WORKER_ENDS_BY_GIVE_WAY, NULL },
        [WORKER_END_OUTDATED] = { WORKER_ENDS_UNLESS_BUSY, NULL },
        [WORKER_END_PRIORITY] = { WORKER_ENDS_UNLESS_BUSY, NULL },
        [WORKER_END_GOES_ON] = { WORKER_ENDS_BY_KILL, "it was told to end, and goes on" },
        [WORKER_END_SOCKET_FULL] = { WORKER_ENDS_BY_KILL, "it does not read its control socket" },
        [WORKER_END_DEAF] = { WORKER_ENDS_BY_KILL, "it has not looked at its sockets for longer than any run may last" },
        [WORKER_END_KEEPS_JOB] = { WORKER_ENDS_BY_KILL, "a job that was cancelled before it started goes on" },
        [WORKER_END_KEEPS_RUN] = { WORKER_ENDS_BY_KILL, "a run goes on past its end" },
        [WORKER_END_KEEPS_PIPE] = { WORKER_ENDS_BY_KILL, "a run that was let go goes on" },
        [WORKER_END_KEEPS_REQUEST] = { WORKER_ENDS_BY_KILL, "a run on a channel that was cancelled goes on" },
        [WORKER_END_KEEPS_CHANNEL] = { WORKER_ENDS_BY_KILL, "it does not let go of a channel that closes" },
        [WORKER_END_KEEPS_LEASE] = { WORKER_ENDS_BY_KILL, "it writes for longer than any run may, while others wait" },
        [WORKER_END_INVALID_PAGE] = { WORKER_ENDS_BY_KILL, "it wrote a page that the format does not allow" },
        [WORKER_END_INVALID_MESSAGE] = { WORKER_ENDS_UNREAD, "it said what it may not say" },
        [WORKER_END_UNREADABLE] = { WORKER_ENDS_UNREAD, "its messages cannot be received" },
};

bool worker_life_permits(WorkerState from, WorkerState to) {
        return transitions[from] & 1u << to;
}

bool worker_life_permits_settings(WorkerSettings from, WorkerSettings to) {
        return settings_transitions[from] & 1u << to;
}

void worker_life_move(WorkerState *state, WorkerState to) {
        assert(worker_life_permits(*state, to));
        *state = to;
}

void worker_life_move_settings(WorkerSettings *settings, WorkerSettings to) {
        assert(worker_life_permits_settings(*settings, to));
        *settings = to;
}

WorkerEndManner worker_life_manner(WorkerEndReason reason) {
        return ends[reason].manner;
}

bool worker_life_is_told(WorkerEndReason reason) {
        return reason == WORKER_END_GOES_ON || (reason != WORKER_END_NONE && ends[reason].manner < WORKER_ENDS_BY_KILL);
}

const char *worker_life_sentence(WorkerEndReason reason) {
        return ends[reason].sentence;
}
