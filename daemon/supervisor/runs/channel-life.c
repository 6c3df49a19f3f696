/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of a channel. Pure. */
#include <assert.h>

#include "daemon/supervisor/runs/channel-life.h"

/* For each state, the states that may follow. */
static const unsigned transitions[CHANNEL_STATE_MAX] = {
        [CHANNEL_RESTING] = 1u << CHANNEL_WAITING | 1u << CHANNEL_AT_WORKER,
        [CHANNEL_WAITING] = 1u << CHANNEL_AT_WORKER,
        [CHANNEL_DRAINING] = 1u << CHANNEL_RESTING | 1u << CHANNEL_WAITING,
        [CHANNEL_AT_WORKER] = 1u << CHANNEL_RESTING | 1u << CHANNEL_WAITING | 1u << CHANNEL_DRAINING |
                              1u << CHANNEL_LEAVING | 1u << CHANNEL_CLOSING,
        [CHANNEL_LEAVING] = 1u << CHANNEL_DRAINING | 1u << CHANNEL_CLOSING,
};

static const struct {
        ChannelEndManner manner;
        const char *sentence;
} ends[CHANNEL_END_MAX] = {
        [CHANNEL_END_NONE] = { CHANNEL_ENDS_AT_ONCE, "it cannot go on" },
        [CHANNEL_END_CLIENT_GONE] = { CHANNEL_ENDS_NOW, "its client has left the bus" },
        [CHANNEL_END_HANGUP] = { CHANNEL_ENDS_NOW, "its client closed it" },
        [CHANNEL_END_NO_PLACE] = { CHANNEL_ENDS_NOW, "no worker had time for it (QueueTimeoutSec=)" },
        [CHANNEL_END_UNREAD] = { CHANNEL_ENDS_NOW, "an answer was not read in time" },
        [CHANNEL_END_UNANSWERED] = { CHANNEL_ENDS_NOW, "its last answer took too long" },
        [CHANNEL_END_UNHEARD] = { CHANNEL_ENDS_PATIENTLY, "its worker reads no requests: other work holds it up" },
        [CHANNEL_END_IDLE] = { CHANNEL_ENDS_GENTLY, "it was not used (StatementIdleSec=)" },
        [CHANNEL_END_RELEASED] = { CHANNEL_ENDS_GENTLY, "another one needed its place" },
        [CHANNEL_END_UNPUBLISHED] = { CHANNEL_ENDS_GENTLY, "its database is no longer published so" },
        [CHANNEL_END_RIGHTS] = { CHANNEL_ENDS_GENTLY, "the rights of its client may have changed" },
        [CHANNEL_END_OUTDATED] = { CHANNEL_ENDS_GENTLY, "its worker has old settings" },
        [CHANNEL_END_BY_WORKER] = { CHANNEL_ENDS_AT_ONCE, "its worker closed it" },
        [CHANNEL_END_WORKER_LOST] = { CHANNEL_ENDS_AT_ONCE, "its worker is dead" },
        [CHANNEL_END_LOOP] = { CHANNEL_ENDS_AT_ONCE, "the service ends" },
};

bool channel_life_permits(ChannelState from, ChannelState to) {
        return transitions[from] & 1u << to;
}

void channel_life_move(ChannelState *state, ChannelState to) {
        assert(channel_life_permits(*state, to));
        *state = to;
}

ChannelEndManner channel_life_manner(ChannelEndReason reason) {
        return ends[reason].manner;
}

const char *channel_life_sentence(ChannelEndReason reason) {
        return ends[reason].sentence;
}
