/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of the link of a channel (channel-link-life.h). Library. Pure. */
#include <assert.h>

#include "client-lib/channel-link-life.h"

/* For each state, the states that may follow. */
static const unsigned transitions[CHANNEL_LINK_STATE_MAX] = {
        [CHANNEL_LINK_CLOSED] = 1u << CHANNEL_LINK_OPENING,
        [CHANNEL_LINK_OPENING] = 1u << CHANNEL_LINK_OPEN | 1u << CHANNEL_LINK_CLOSED,
        [CHANNEL_LINK_OPEN] = 1u << CHANNEL_LINK_CLOSED,
};

bool channel_link_life_permits(ChannelLinkState from, ChannelLinkState to) {
        return transitions[from] & 1u << to;
}

void channel_link_life_move(ChannelLinkState *state, ChannelLinkState to) {
        assert(channel_link_life_permits(*state, to));
        *state = to;
}
