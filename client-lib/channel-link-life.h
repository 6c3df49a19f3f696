/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life cycle of the link of a channel: its states, and the changes from one to another. Library. Pure.
 *
 *      CLOSED <--> OPENING --> OPEN --> CLOSED
 *
 * These are all transitions; channel_link_life_move() makes no others.
 *
 *      from     to       when
 *      CLOSED   OPENING  transport.h wants it
 *      OPENING  OPEN     the reply had a socket
 *      OPENING  CLOSED   the reply was an error or invalid, or the connection is closed
 *      OPEN     CLOSED   end-of-file, invalid data, a cancel that was ignored, or another database needs the place
 */
#ifndef SQLIPC_CLIENT_LIB_CHANNEL_LINK_LIFE_H
#define SQLIPC_CLIENT_LIB_CHANNEL_LINK_LIFE_H

#include <stdbool.h>

typedef enum ChannelLinkState {
        CHANNEL_LINK_CLOSED,
        CHANNEL_LINK_OPENING, /* OpenChannel was sent */
        CHANNEL_LINK_OPEN,    /* it has a socket */
        CHANNEL_LINK_STATE_MAX,
} ChannelLinkState;

/* True if the list above has the transition. */
bool channel_link_life_permits(ChannelLinkState from, ChannelLinkState to);

/* Changes `*state`. The list above must have the transition. */
void channel_link_life_move(ChannelLinkState *state, ChannelLinkState to);

#endif
