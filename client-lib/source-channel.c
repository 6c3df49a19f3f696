/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Answers on channels (source-channel.h). Library. */
#include "client-lib/buffer.h"
#include "client-lib/channel-link.h"
#include "client-lib/channel-read.h"
#include "client-lib/source-channel.h"

static ssize_t next(Source *source, uint8_t *room, size_t size) {
        SourceChannel *channel = (SourceChannel *) source;
        Buffer *backlog = &channel->reader.backlog;
        size_t n = buffer_size(backlog);

        if (n == 0)
                return channel->reader.lost ? -ECONNRESET : channel_read(channel->link, &channel->reader, room, size);
        return (ssize_t) buffer_take(backlog, room, size);
}

static void cancel(Source *source) {
        SourceChannel *channel = (SourceChannel *) source;

        channel_link_cancel(channel->link, &channel->reader);
}

static bool abandon(Source *source) {
        SourceChannel *channel = (SourceChannel *) source;

        channel_link_forget(channel->link, &channel->reader);
        return true;
}

static struct pollfd get_pollfd(const Source *source) {
        const SourceChannel *channel = (const SourceChannel *) source;

        return channel->reader.lost ? (struct pollfd) { .fd = -1 } : channel_link_pollfd(channel->link);
}

/* Only frames tell. */
static bool started(const Source *source) {
        (void) source;
        return false;
}

static void leave(Source *source) {
        SourceChannel *channel = (SourceChannel *) source;

        channel_link_forget(channel->link, &channel->reader);
        buffer_drop(&channel->reader.backlog, buffer_size(&channel->reader.backlog));
        channel->reader.lost = channel->reader.keeps_more = false;
}

static void distrust(Source *source) {
        SourceChannel *channel = (SourceChannel *) source;

        if (!channel->reader.lost)
                channel_link_drop(channel->link);
}

static Source *ahead(const Source *source) {
        ChannelReader *first = channel_link_first_reader(((const SourceChannel *) source)->link);

        return first ? &first->source : NULL;
}

static bool keep_more(Source *source) {
        ChannelReader *first = channel_link_first_reader(((SourceChannel *) source)->link);

        if (!first || first->keeps_more)
                return false;
        first->keeps_more = true;
        return true;
}

static const void *descriptor_owner(const Source *source) {
        return ((const SourceChannel *) source)->link;
}

const SourceOperations source_channel_operations = {
        .next = next,
        .cancel = cancel,
        .abandon = abandon,
        .pollfd = get_pollfd,
        .started = started,
        .close = leave,
        .distrust = distrust,
        .ahead = ahead,
        .keep_more = keep_more,
        .descriptor_owner = descriptor_owner,
        .shared = true,
};
