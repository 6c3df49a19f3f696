/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The memory of a channel. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
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

/* ---- Access ---- */

/* The client can punch holes into the memory at any time, because its descriptor must be writable. If the kernel cannot
 * allocate a page for a hole, each access to it raises SIGBUS, also a read. Only the mapping has atomic operations, so
 * pwrite() is no substitute: the client could see one half of an index. */
static struct {
        const uint8_t *start; /* the mapping that is in use, NULL: none */
        sigjmp_buf back;
} guarded;

typedef struct MemoryAccess {
        const SharedMemory *memory;
        int socket_fd;
        Bytes bytes; /* to be written */
        ssize_t (*run)(const struct MemoryAccess *a, ChannelSide *side);
} MemoryAccess;

static void on_bus_error(int number, siginfo_t *info, void *context) {
        const uint8_t *at = info->si_addr;

        (void) context;
        if (guarded.start && at >= guarded.start && at < guarded.start + CHANNEL_MEMORY_SIZE)
                siglongjmp(guarded.back, 1);
        (void) signal(number, SIG_DFL); /* an error of ours: the access is repeated, and ends the process */
}

/* Runs a->run(). -EFAULT: a page cannot be allocated. */
static ssize_t run_guarded(const MemoryAccess *a, ChannelMemory *memory) {
        if (sigsetjmp(guarded.back, 1) != 0)
                return -EFAULT;
        guarded.start = (const uint8_t *) memory;
        ChannelSide side = channel_side_of_worker(memory);
        return a->run(a, &side);
}

/* The same with the memory mapped; or -errno of mmap(). */
static ssize_t access_memory(const MemoryAccess *a) {
        struct sigaction guard = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO }, before;
        ChannelMemory *memory;
        ssize_t r = channel_memory_map(a->memory->fd, &memory);

        if (r < 0)
                return r;
        if (sigaction(SIGBUS, &guard, &before) < 0)
                r = -errno;
        else {
                r = run_guarded(a, memory);
                guarded.start = NULL;
                (void) sigaction(SIGBUS, &before, NULL);
        }
        (void) channel_memory_unmap(memory);
        return r;
}

static ssize_t write_answers(const MemoryAccess *a, ChannelSide *side) {
        ssize_t n = write_ring(&side->out, a->bytes);

        if (channel_ring_wake_reader(&side->out)) {
                int r = wake(a->socket_fd);

                n = r < 0 ? r : n;
        }
        return n;
}

ssize_t shared_memory_write(const SharedMemory *m, Bytes bytes, int socket_fd) {
        return access_memory(&(MemoryAccess) { .memory = m, .socket_fd = socket_fd, .bytes = bytes, .run = write_answers });
}

/* Returns 1 if a request waits, 0 if none does. */
static ssize_t let_sleep(const MemoryAccess *a, ChannelSide *side) {
        uint8_t bytes[512];

        (void) !recv(a->socket_fd, bytes, sizeof bytes, MSG_DONTWAIT);
        channel_ring_reader_sleeps(&side->in);
        return channel_ring_fill(&side->in) != 0;
}

bool shared_memory_rest(const SharedMemory *m, int socket_fd) {
        return access_memory(&(MemoryAccess) { .memory = m, .socket_fd = socket_fd, .run = let_sleep }) != 0;
}
