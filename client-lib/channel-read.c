/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading of channels (channel-read.h). Library. */
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#include "client-lib/channel-bytes.h"
#include "client-lib/channel-read.h"
#include "client-lib/event-loop.h"

/* How long a blocking call waits for the socket alone, before it also waits for cancellation and the bus. Most answers
 * come within this time. A signal ends the wait at once. */
#define PATIENCE_MSEC 20

/* After this many reads that bring nothing for the run, channel_read() returns so that its caller can check its
 * deadline or its loop. */
#define READS_MAX 64u

/* Removes the first request: its answer is complete. */
static void pop_request(ChannelLink *ch) {
        ch->first_request = (ch->first_request + 1) % ch->requests_capacity;
        ch->n_requests--;
        if (!ch->answered)
                ch->backoff_usec = ch->not_before_usec = 0; /* the next attempt after a loss need not wait */
        ch->answered = true;
        channel_link_limit_cancel(ch);
}

/* Polls the channel for a moment. Yields the CPU to other processes, above all to the worker, which then runs on this CPU,
 * so that neither side sleeps and has to be woken. -1 with EAGAIN: nothing came. */
static ssize_t receive_soon(ChannelLink *ch, uint8_t *room, size_t size) {
        ChannelPolling *polling = &ch->connection->polling;
        ssize_t n = -1;
        bool found;

        errno = EAGAIN;
        if (!channel_polling_begins(polling, ch->woke_worker, now_usec()))
                return -1;
        do {
                (void) sched_yield();
                n = channel_bytes_look(ch, room, size);
                found = n >= 0 || errno != EAGAIN;
        } while (channel_polling_looked(polling, found, now_usec()));
        return n;
}

/* Every recv() has MSG_DONTWAIT: the service may have kept a copy of the socket, and could change the flags and timeouts
 * that make recv() wait. */
static ssize_t receive_patiently(ChannelLink *ch, uint8_t *room, size_t size) {
        struct pollfd readable = { .fd = ch->fd, .events = POLLIN };
        ssize_t n = ch->side.memory ? channel_bytes_look(ch, room, size) : -1;

        if (n < 0 && (!ch->side.memory || errno == EAGAIN))
                n = receive_soon(ch, room, size);
        ch->connection->patient = false; /* once per call, or a service that sends few bytes at a time could delay the
                                          * deadline */
        if (n < 0 && errno == EAGAIN)
                n = channel_bytes_prepare_wait(ch, room, size);
        if (n >= 0 || errno != EAGAIN || poll(&readable, 1, PATIENCE_MSEC) < 0)
                return n;
        return channel_bytes_receive(ch, room, size);
}

/* Appends one recv() to the bytes in `in`. 0, -EAGAIN, -ECONNRESET. */
static int receive(ChannelLink *ch) {
        size_t rest = buffer_size(&ch->in);
        uint8_t *room;
        ssize_t n;

        if (connection_is_foreign(ch->connection))
                return -ECHILD;
        if (buffer_size(&ch->out) > 0) {
                channel_link_flush(ch);
                if (ch->fd < 0)
                        return -ECONNRESET;
        }
        room = buffer_extend(&ch->in, CHANNEL_READ_SIZE - rest); /* `rest` is less than a header */
        if (!room)
                return -ENOMEM;
        if (ch->connection->patient && buffer_size(&ch->out) == 0)
                n = receive_patiently(ch, room, CHANNEL_READ_SIZE - rest);
        else
                n = channel_bytes_receive(ch, room, CHANNEL_READ_SIZE - rest);
        if (ch->fd < 0)
                return -ECONNRESET;
        ch->in.fill = ch->in.start + rest + (n > 0 ? (size_t) n : 0);
        if (n > 0) {
                ch->moved_usec = ch->connection->blocking ? 0 : now_usec();
                return 0;
        }
        if (n == 0)
                return -ECONNRESET;
        return errno == EAGAIN || errno == EINTR ? -EAGAIN : -ECONNRESET;
}

/* True if a frame of that kind may answer the request. The decoder cannot check this because it does not know the
 * requests. */
static bool is_answer(const Request *request, unsigned frame_kind) {
        return frame_kind == FRAME_ERROR || (frame_kind == FRAME_STATEMENT) == (request->kind == REQUEST_PREPARE);
}

/* Reads the header of the next frame. 1: the header is complete; 0: not yet; -EBADMSG: it is invalid. */
static int begin_frame(ChannelLink *ch) {
        const uint8_t *header = ch->in.bytes + ch->in.start;
        unsigned kind;
        bool more;

        if (buffer_size(&ch->in) < FRAME_HEADER_SIZE)
                return 0;
        kind = header[4];
        if (ch->n_requests == 0 || load_le64(header + 8) != channel_link_request_at(ch, 0)->number ||
            !is_answer(channel_link_request_at(ch, 0), kind))
                return -EBADMSG;
        if (load_le32(header) > ch->page_size - FRAME_HEADER_SIZE)
                return -EBADMSG;
        more = load_le16(header + 6) & FRAME_MORE;
        ch->frame_left = FRAME_HEADER_SIZE + frame_padded(load_le32(header));
        ch->frame_ends = kind == FRAME_END || kind == FRAME_ERROR || (kind == FRAME_STATEMENT && !more);
        return 1;
}

/* Drops `size` bytes of the current frame, which were passed on. */
static void consume(ChannelLink *ch, size_t size) {
        buffer_drop(&ch->in, size);
        ch->frame_left -= size;
        if (ch->frame_left == 0 && ch->frame_ends)
                pop_request(ch);
}

/* Keeps bytes that came while another reader is read. */
static int put_aside(ChannelReader *reader, const uint8_t *bytes, size_t size) {
        sqlipc_connection *connection = reader->source.connection;
        uint8_t *room = buffer_extend(&reader->backlog, size);

        if (!room)
                return -ENOMEM;
        memcpy(room, bytes, size);
        if (reader->source.waits_since == connection->n_turns) { /* its program waits for the socket, which is empty now */
                reader->source.waits_since = 0;
                event_loop_wake(connection);
        }
        return 0;
}

static size_t unread_max(const ChannelReader *reader) {
        return reader->keeps_more ? CHANNEL_UNREAD_MORE_SIZE_MAX : CHANNEL_UNREAD_SIZE_MAX;
}

/* Passes on the bytes in `in`, those for `reader` to `room`. Returns the number of bytes in `room`, or an error. */
static ssize_t distribute(ChannelLink *ch, ChannelReader *reader, uint8_t *room, size_t size) {
        size_t n = 0;
        int r;

        while (buffer_size(&ch->in) > 0) {
                size_t some;
                ChannelReader *target;

                if (ch->frame_left == 0) {
                        r = begin_frame(ch);
                        if (r < 0)
                                return r;
                        if (r == 0)
                                break;
                }
                target = channel_link_request_at(ch, 0)->reader;
                some = ch->frame_left < buffer_size(&ch->in) ? ch->frame_left : buffer_size(&ch->in);
                if (target == reader) {
                        if (n == size)
                                break;
                        some = some < size - n ? some : size - n;
                        memcpy(room + n, ch->in.bytes + ch->in.start, some);
                        n += some;
                } else if (target) {
                        if (buffer_size(&target->backlog) + some > unread_max(target))
                                return n > 0 ? (ssize_t) n : -ENOBUFS;
                        r = put_aside(target, ch->in.bytes + ch->in.start, some);
                        if (r < 0)
                                return r;
                }
                consume(ch, some);
        }
        return (ssize_t) n;
}

ssize_t channel_read(ChannelLink *ch, ChannelReader *reader, uint8_t *room, size_t size) {
        for (unsigned n_reads = 0;; n_reads++) {
                ssize_t n = distribute(ch, reader, room, size);

                if (n == 0 && n_reads == READS_MAX) {
                        event_loop_come_back(ch->connection);
                        return -EAGAIN;
                }

                if (n == 0) /* a run that waits for no answer, and yet has not ended: the last frame did not end it */
                        n = channel_link_count(ch, reader) > 0 ? receive(ch) : -EBADMSG;
                if (n == -ECONNRESET || n == -EBADMSG)
                        channel_link_drop(ch);
                if (n != 0)
                        return n;
        }
}

void channel_read_forgotten(ChannelLink *ch) {
        ChannelReader placeholder; /* only its address is used: no request has it */
        unsigned reads_left = READS_MAX;
        ssize_t n = 0;

        ch->connection->patient = false;
        while (n >= 0 && reads_left-- > 0 && ch->n_requests > 0 && !channel_link_request_at(ch, 0)->reader) {
                n = distribute(ch, &placeholder, NULL, 0);
                if (n == 0 && ch->n_requests > 0 && !channel_link_request_at(ch, 0)->reader)
                        n = receive(ch);
        }
        if (n == -ECONNRESET || n == -EBADMSG)
                channel_link_drop(ch);
}
