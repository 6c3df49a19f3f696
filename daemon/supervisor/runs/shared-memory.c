/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The memory of a channel. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/supervisor/runs/shared-memory.h"
#include "dbus-interfaces/wire/channel-memory.h"

struct SharedMemory {
        User *user; /* reference */
        int fd;     /* owned */
};

SharedMemory *shared_memory_new(User *u) {
        int fd = CHANNEL_MEMORY_SIZE <= MEMORY_OF_USER_MAX - u->memory_size ? channel_memory_new() : -1;

        if (fd < 0)
                return NULL;
        SharedMemory *m = g_new(SharedMemory, 1);
        *m = (SharedMemory) { .user = user_ref(u), .fd = fd };
        u->memory_size += CHANNEL_MEMORY_SIZE;
        return m;
}

SharedMemory *shared_memory_free(SharedMemory *m) {
        if (!m)
                return NULL;
        close(m->fd);
        m->user->memory_size -= CHANNEL_MEMORY_SIZE;
        (void) user_unref(m->user);
        g_free(m);
        return NULL;
}

int shared_memory_fd(const SharedMemory *m) {
        return m->fd;
}

bool shared_memory_has_requests(const SharedMemory *m) {
        return channel_memory_has_requests(m->fd);
}

/* A full socket has bytes that wake the client. */
static int wake(int socket_fd) {
        ssize_t n;

        do
                n = send(socket_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n == 0 || (n < 0 && errno == EINTR));
        return n < 0 && errno != EAGAIN ? -errno : 0;
}

static ssize_t write_ring(ChannelRing *ring, Bytes bytes) {
        ssize_t n, done = channel_ring_write(ring, (const uint8_t *) bytes.data, bytes.size);

        if (done < 0 || (size_t) done == bytes.size)
                return done;
        channel_ring_writer_sleeps(ring);
        n = channel_ring_write(ring, (const uint8_t *) bytes.data + done, bytes.size - (size_t) done);
        return n < 0 ? n : done + n;
}

ssize_t shared_memory_write(const SharedMemory *m, Bytes bytes, int socket_fd) {
        ChannelMemory *memory;
        ssize_t n;

        /* A write to a page that the kernel cannot allocate raises SIGBUS. */
        if (fallocate(m->fd, 0, 0, CHANNEL_MEMORY_SIZE) < 0)
                return -errno;
        n = channel_memory_map(m->fd, &memory);
        if (n < 0)
                return n;
        ChannelSide side = channel_side_of_worker(memory);
        n = write_ring(&side.out, bytes);
        if (channel_ring_wake_reader(&side.out)) {
                int r = wake(socket_fd);
                n = r < 0 ? r : n;
        }
        (void) channel_memory_unmap(memory);
        return n;
}

bool shared_memory_rest(const SharedMemory *m, int socket_fd) {
        uint8_t bytes[512];
        ChannelMemory *memory;

        if (channel_memory_map(m->fd, &memory) < 0)
                return true;
        ChannelSide side = channel_side_of_worker(memory);
        (void) !recv(socket_fd, bytes, sizeof bytes, MSG_DONTWAIT);
        channel_ring_reader_sleeps(&side.in);
        bool waits = channel_ring_fill(&side.in) != 0;
        (void) channel_memory_unmap(memory);
        return waits;
}
