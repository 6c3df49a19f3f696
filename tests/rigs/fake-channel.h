/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's end of a channel, with or without memory, for a service that is scripted byte by byte. Named by its socket,
 * which does not block. Tests only.
 */
#ifndef SQLIPC_TESTS_RIGS_FAKE_CHANNEL_H
#define SQLIPC_TESTS_RIGS_FAKE_CHANNEL_H

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dbus-interfaces/wire/channel-memory.h"
#include "tests/unit/test.h"

static ChannelSide fake_channel_sides[1024]; /* by descriptor */

/* Gives the end memory. Returns its descriptor, which the caller passes to the client and closes. */
static inline int fake_channel_give_memory(int fd) {
        int memory_fd = channel_memory_new();
        ChannelMemory *memory;

        CHECK(fd >= 0 && (size_t) fd < N_ELEMENTS(fake_channel_sides));
        CHECK(memory_fd >= 0);
        CHECK_INT(channel_memory_map(memory_fd, &memory), 0);
        fake_channel_sides[fd] = channel_side_of_worker(memory);
        return memory_fd;
}

static inline ChannelSide *fake_channel_side(int fd) {
        return fake_channel_sides[fd].memory ? &fake_channel_sides[fd] : NULL;
}

static inline void fake_channel_close(int fd) {
        if (fake_channel_side(fd))
                (void) channel_memory_unmap(fake_channel_sides[fd].memory);
        fake_channel_sides[fd] = (ChannelSide) { .memory = NULL };
        close(fd);
}

static inline void fake_channel_wake(int fd) {
        CHECK(send(fd, "", 1, MSG_NOSIGNAL) == 1 || errno == EAGAIN || errno == EPIPE);
}

/* Like recv(): -1 if nothing is there, 0 at the end. */
static inline ssize_t fake_channel_receive(int fd, void *bytes, size_t size) {
        ChannelSide *side = fake_channel_side(fd);
        bool withdrawn;
        char wakes[64];
        ssize_t n, end;

        if (!side)
                return recv(fd, bytes, size, 0);
        n = channel_ring_read(&side->in, bytes, size);
        if (n == 0) {
                do
                        end = recv(fd, wakes, sizeof wakes, 0);
                while (end > 0);
                if (end < 0 && errno == ECONNRESET) /* the library left a byte unread */
                        end = 0;
                channel_ring_reader_sleeps(&side->in);
                n = channel_ring_read(&side->in, bytes, size);
                if (n == 0 && end != 0) {
                        errno = EAGAIN;
                        return -1;
                }
        }
        if (n > 0 && channel_ring_wake_writer(&side->in, &withdrawn))
                fake_channel_wake(fd);
        return n;
}

/* The same, and the bytes stay. */
static inline ssize_t fake_channel_peek(int fd, void *bytes, size_t size) {
        ChannelSide *side = fake_channel_side(fd);
        ChannelRingHead shown;
        ChannelRing ring;
        char wakes[64];
        ssize_t n;

        if (!side)
                return recv(fd, bytes, size, MSG_PEEK);
        if (channel_ring_fill(&side->in) == 0) {
                (void) !recv(fd, wakes, sizeof wakes, 0);
                channel_ring_reader_sleeps(&side->in);
        }
        shown = (ChannelRingHead) { .written = atomic_load(&side->in.head->written) };
        ring = side->in;
        ring.head = &shown;
        n = channel_ring_read(&ring, bytes, size);
        return n > 0 ? n : -1;
}

/* Like send(). */
static inline ssize_t fake_channel_send(int fd, const void *bytes, size_t size) {
        ChannelSide *side = fake_channel_side(fd);
        ssize_t n;

        if (!side)
                return send(fd, bytes, size, MSG_NOSIGNAL);
        n = channel_ring_write(&side->out, bytes, size);
        if (n == 0) {
                channel_ring_writer_sleeps(&side->out);
                n = channel_ring_write(&side->out, bytes, size);
        }
        if (channel_ring_wake_reader(&side->out))
                fake_channel_wake(fd);
        return n > 0 ? n : -1;
}

#endif
