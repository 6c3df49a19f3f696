/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The answers that come on a channel (channel-link.h): read in large pieces, and passed to the readers of the requests.
 * Library.
 *
 * The bytes of an answer go directly to its reader if that one is read now, else into the reader's backlog. Answers to
 * forgotten requests are dropped.
 */
#ifndef SQLIPC_CLIENT_LIB_CHANNEL_READ_H
#define SQLIPC_CLIENT_LIB_CHANNEL_READ_H

#include "client-lib/channel-link.h"

/* Reads bytes for `reader`, which has a request in progress, like read(). More than 0; -EAGAIN; -ECONNRESET: the channel is
 * lost; -EBADMSG: the channel sent invalid data, and is lost; -ENOBUFS: an unread answer before this one is too large to
 * be kept, and channel_link_first_reader() is its reader; -ENOMEM. */
ssize_t channel_read(ChannelLink *ch, ChannelReader *reader, uint8_t *room, size_t size);

/* Reads and drops the answers that no reader needs any more, as far as they have come. */
void channel_read_forgotten(ChannelLink *ch);

#endif
