/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sending and receiving on channels (channel-bytes.h). Library. */
#include <sys/socket.h>

#include "client-lib/channel-bytes.h"
#include "dbus-interfaces/wire/channel-memory.h"

/* Of the socket, in a row: a service that sends without end must not keep the program from its deadline. */
#define READS_MAX 64u

int channel_bytes_map(ChannelLink *ch, int fd) {
        ChannelMemory *memory;
        int r = channel_memory_map(fd, &memory);

        if (r == 0)
                ch->side = channel_side_of_client(memory);
        return r;
}

size_t channel_bytes_unmap(ChannelLink *ch) {
        size_t size = 0;

        if (!ch->side.memory)
                return 0;
        if (!connection_is_foreign(ch->connection))
                size = channel_ring_withdraw(&ch->side.out);
        (void) channel_memory_unmap(ch->side.memory);
        ch->side = (ChannelSide) { .memory = NULL };
        return size;
}

static ssize_t fail(ssize_t r) {
        errno = (int) -r;
        return -1;
}

/* Counts a read or write that moved something. */
static ssize_t note(ChannelLink *ch, ssize_t n) {
        if (n > 0)
                turns_step(&ch->connection->turns);
        return n;
}

/* A full socket has bytes that wake the worker. */
static int wake(ChannelLink *ch) {
        ssize_t n;

        do
                n = send(ch->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (n == 0 || (n < 0 && errno == EINTR));
        return n < 0 && errno != EAGAIN ? -errno : 0;
}

/* ---- To the worker ------------------------------------------------------------------------------------------------ */

ssize_t channel_bytes_send(ChannelLink *ch, const uint8_t *bytes, size_t size) {
        ssize_t n;

        if (!ch->side.memory)
                return note(ch, send(ch->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT));
        n = channel_ring_write(&ch->side.out, bytes, size);
        if (n == 0) {
                channel_ring_writer_sleeps(&ch->side.out);
                n = channel_ring_write(&ch->side.out, bytes, size);
        }
        return n > 0 ? note(ch, n) : fail(n == 0 ? -EAGAIN : n);
}

int channel_bytes_wake_worker(ChannelLink *ch) {
        int r;

        if (!ch->side.memory || !channel_ring_wake_reader(&ch->side.out))
                return 0;
        r = wake(ch);
        return r < 0 ? r : 1;
}

/* ---- From the worker ---------------------------------------------------------------------------------------------- */

static ssize_t take(ChannelLink *ch, uint8_t *room, size_t size) {
        ssize_t n = channel_ring_read(&ch->side.in, room, size);
        bool withdrawn; /* for the worker's use only */

        if (n > 0 && channel_ring_wake_writer(&ch->side.in, &withdrawn) && wake(ch) < 0)
                ch->at_end = true;
        return n > 0 ? note(ch, n) : fail(n == 0 ? -EAGAIN : n);
}

/* Reads bytes that woke us, or the end. False: nothing more is there. */
static bool read_socket(ChannelLink *ch) {
        uint8_t bytes[512];
        ssize_t n = recv(ch->fd, bytes, sizeof bytes, MSG_DONTWAIT);

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                ch->at_end = true;
        return note(ch, n) > 0;
}

/* At the end of the socket, earlier answers are still there. */
static ssize_t take_last(ChannelLink *ch, uint8_t *room, size_t size) {
        ssize_t n = take(ch, room, size);

        return n < 0 && errno == EAGAIN && ch->at_end ? 0 : n;
}

ssize_t channel_bytes_look(ChannelLink *ch, uint8_t *room, size_t size) {
        return ch->side.memory ? take(ch, room, size) : note(ch, recv(ch->fd, room, size, MSG_DONTWAIT));
}

ssize_t channel_bytes_receive(ChannelLink *ch, uint8_t *room, size_t size) {
        ssize_t n = channel_bytes_look(ch, room, size);

        if (!ch->side.memory || n >= 0 || errno != EAGAIN)
                return n;
        for (unsigned i = 0; i < READS_MAX && read_socket(ch); i++)
                ;
        if (buffer_size(&ch->out) > 0) { /* the byte may have told that there is room */
                channel_link_flush(ch);
                if (ch->fd < 0)
                        return 0;
        }
        channel_ring_reader_sleeps(&ch->side.in);
        return take_last(ch, room, size);
}

ssize_t channel_bytes_prepare_wait(ChannelLink *ch, uint8_t *room, size_t size) {
        if (!ch->side.memory)
                return fail(-EAGAIN);
        if (!channel_ring_reader_is_asleep(&ch->side.in)) {
                (void) read_socket(ch); /* if this was not all, the wait ends at once */
                channel_ring_reader_sleeps(&ch->side.in);
        }
        return take_last(ch, room, size);
}
