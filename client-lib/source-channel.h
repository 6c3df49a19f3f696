/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The source that reads answers on a database's channel (channel-link.h). Library.
 *
 * The link sorts what comes: bytes of this source go into its reader's backlog while other sources are read. An abandoned
 * run is cancelled and forgotten: the link drops the rest of its frames.
 */
#ifndef SQLIPC_CLIENT_LIB_SOURCE_CHANNEL_H
#define SQLIPC_CLIENT_LIB_SOURCE_CHANNEL_H

#include "client-lib/channel-link.h"

typedef struct SourceChannel {
        ChannelReader reader; /* begins with the source */
        ChannelLink *link;    /* the database's, which may be closed; not owned */
} SourceChannel;

extern const SourceOperations source_channel_operations;

#endif
