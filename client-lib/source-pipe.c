/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pipes (source-pipe.h). Library. */
#include "client-lib/event-loop.h"
#include "client-lib/pipe-read.h"
#include "client-lib/source-pipe.h"
#include "client-lib/source.h"

int source_pipe_open(SourcePipe *pipe, sd_bus_message *reply, int fd) {
        int copy = pipe_read_copy(fd), r; /* closing the message closes its own descriptor */

        if (copy < 0)
                return copy;
        r = source_set_owner(&pipe->source, reply);
        if (r < 0) {
                (void) safe_close(copy);
                return r;
        }
        pipe->fd = copy;
        pipe->at_end_of_file = pipe->starts_in_frames = false;
        return 0;
}

static ssize_t next(Source *source, uint8_t *room, size_t size) {
        SourcePipe *pipe = (SourcePipe *) source;
        ssize_t n;

        if (pipe->fd < 0)
                return -EAGAIN;
        n = pipe->at_end_of_file ? 0 : pipe_read(pipe->fd, room, size);
        if (n != 0)
                return n;
        pipe->at_end_of_file = true;
        return -ECONNRESET;
}

static bool abandon(Source *source) {
        (void) source;
        return false;
}

/* At the end of the file the descriptor is always ready, and would wake the program forever. */
static struct pollfd get_pollfd(const Source *source) {
        const SourcePipe *pipe = (const SourcePipe *) source;

        return (struct pollfd) { .fd = pipe->at_end_of_file ? -1 : pipe->fd, .events = POLLIN };
}

static bool started(const Source *source) {
        return source_was_answered(source) && !((const SourcePipe *) source)->starts_in_frames;
}

static void close_pipe(Source *source) {
        SourcePipe *pipe = (SourcePipe *) source;

        if (pipe->fd < 0)
                return;
        event_loop_disarm(source->connection, pipe->fd);
        pipe->fd = safe_close(pipe->fd);
}

const SourceOperations source_pipe_operations = {
        .next = next,
        .cancel = source_cancel_on_bus,
        .abandon = abandon,
        .pollfd = get_pollfd,
        .started = started,
        .close = close_pipe,
};
