/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ways of moving long values, see wide-ways.h. */
#include "tools/bench/workloads/wide-ways.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/bench/core/child.h"
#include "tools/bench/core/passing.h"
#include "tools/bench/core/shared-ring.h"

void wide_look(WideValues *values, const void *bytes, size_t size) {
        const uint8_t *p = bytes;
        uint64_t sum = 0, word;

        for (size_t i = 0; i + sizeof word <= size; i += sizeof word) {
                memcpy(&word, p + i, sizeof word);
                sum += word;
        }
        for (size_t i = size - size % sizeof word; i < size; i++)
                sum += p[i];
        values->sum += sum;
        values->n_bytes += size;
}

static int failed(const char *what, int r) {
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: %s: %s\n", what, g_strerror(-r));
        return r;
}

/* ---- In the child ------------------------------------------------------------------------------------------------- */

/* The state of a way, for both sides. */
typedef struct Way {
        const WideSource *source;
        int (*send)(struct Way *way, const void *bytes, uint64_t size); /* sends a value; `bytes` NULL: the end */
        int pipe[2];
        int socket; /* of the current process */
        SharedRing ring;
} Way;

static int send_values(Way *way, sqlite3_stmt *statement) {
        int code, r = 0;

        while (r >= 0 && (code = sqlite3_step(statement)) == SQLITE_ROW) {
                sqlite3_value *value = sqlite3_column_value(statement, 0);
                const void *bytes = sqlite3_value_blob(value);
                size_t size = (size_t) sqlite3_value_bytes(value);

                r = size > 0 && bytes ? way->send(way, bytes, size) : -EINVAL;
        }
        if (r >= 0 && code != SQLITE_DONE)
                r = -EIO;
        return r < 0 ? r : way->send(way, NULL, 0);
}

static int serve_values(int fd, void *userdata) {
        Way *way = userdata;
        sqlite3 *db = NULL;
        sqlite3_stmt *statement = NULL;
        int r = -EIO;

        way->socket = way->ring.peer = fd;
        if (sqlite3_open_v2(way->source->file, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK &&
            sqlite3_prepare_v2(db, way->source->sql, -1, &statement, NULL) == SQLITE_OK)
                r = send_values(way, statement);
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: %s: %s, %s\n", way->source->sql, sqlite3_errmsg(db), g_strerror(-r));
        (void) sqlite3_finalize(statement);
        (void) sqlite3_close(db);
        return r;
}

/* ---- Pipes -------------------------------------------------------------------------------------------------------- */

static int write_chunks(int fd, const uint8_t *bytes, uint64_t size) {
        int r = 0;

        for (uint64_t sent = 0; r >= 0 && sent < size; sent += WIDE_CHUNK_SIZE)
                r = passing_write_all(fd, bytes + sent, MIN(size - sent, WIDE_CHUNK_SIZE));
        return r;
}

static int serve_memory(int fd, void *userdata) {
        Way *way = userdata;
        uint64_t size = way->source->n_bytes / MAX(way->source->n, 1);
        g_autofree uint8_t *bytes = g_malloc(size);
        int r = 0;

        (void) fd;
        memset(bytes, 1, size);
        for (uint64_t i = 0; r >= 0 && i < way->source->n; i++)
                r = write_chunks(way->pipe[1], bytes, size);
        return r;
}

static int send_by_pipe(Way *way, const void *bytes, uint64_t size) {
        int r = passing_write_all(way->pipe[1], &size, sizeof size);

        return r < 0 ? r : write_chunks(way->pipe[1], bytes, size);
}

/* Reads a value into `room`, which is reused for the next value. */
static int read_value(int fd, uint64_t size, GByteArray *room, WideValues *values) {
        int r;

        if (size > room->len)
                g_byte_array_set_size(room, (guint) size);
        r = passing_read_all(fd, room->data, size);
        if (r < 0)
                return r;
        values->n++;
        wide_look(values, room->data, size);
        return 0;
}

static int read_memory(Way *way, WideValues *values) {
        g_autoptr(GByteArray) room = g_byte_array_new();
        int r = 0;

        for (uint64_t i = 0; r >= 0 && i < way->source->n; i++)
                r = read_value(way->pipe[0], way->source->n_bytes / way->source->n, room, values);
        return r;
}

static int read_pipe(Way *way, WideValues *values) {
        g_autoptr(GByteArray) room = g_byte_array_new();
        uint64_t size;
        int r;

        for (;;) {
                r = passing_read_all(way->pipe[0], &size, sizeof size);
                if (r < 0 || size == 0)
                        return r;
                r = read_value(way->pipe[0], size, room, values);
                if (r < 0)
                        return r;
        }
}

static int run_child(Way *way, int (*serve)(int fd, void *userdata), int (*receive)(Way *way, WideValues *values),
                     WideValues *ret) {
        Child child = CHILD_INIT;
        int r = child_start(SOCK_STREAM, serve, way, &child), stopped;

        *ret = (WideValues) {};
        if (r < 0)
                return r;
        if (way->pipe[1] >= 0)
                close(way->pipe[1]);
        way->socket = way->ring.peer = child.fd;
        r = receive(way, ret);
        if (way->pipe[0] >= 0)
                close(way->pipe[0]); /* before waiting for the child, which may be blocked in a write */
        stopped = child_stop(&child);
        return r < 0 ? r : stopped;
}

static int by_pipe(Way *way, int (*serve)(int fd, void *userdata), int (*receive)(Way *way, WideValues *values),
                   WideValues *ret) {
        if (pipe2(way->pipe, O_CLOEXEC) < 0)
                return -errno;
        if (fcntl(way->pipe[1], F_SETPIPE_SZ, (int) WIDE_PIPE_SIZE) < 0) {
                int r = -errno;

                close(way->pipe[0]);
                close(way->pipe[1]);
                return r;
        }
        return run_child(way, serve, receive, ret);
}

int wide_by_bare_pipe(const WideSource *source, WideValues *ret) {
        Way way = { .source = source };

        return failed("a bare pipe", by_pipe(&way, serve_memory, read_memory, ret));
}

int wide_by_pipe(const WideSource *source, WideValues *ret) {
        Way way = { .source = source, .send = send_by_pipe };

        return failed("a pipe", by_pipe(&way, serve_values, read_pipe, ret));
}

/* ---- Ring --------------------------------------------------------------------------------------------------------- */

#define SLOT_HEAD ((size_t) 8) /* rest of the value from this slot on, in bytes; 0: no more values */

static int send_by_ring(Way *way, const void *bytes, uint64_t size) {
        const uint8_t *from = bytes;

        do {
                uint64_t n = MIN(size, WIDE_CHUNK_SIZE);
                uint8_t *slot;
                int r = shared_ring_begin_write(&way->ring, &slot);

                if (r < 0)
                        return r;
                memcpy(slot, &size, sizeof size);
                if (n > 0)
                        memcpy(slot + SLOT_HEAD, from, n);
                shared_ring_written(&way->ring);
                from += n;
                size -= n;
        } while (size > 0);
        return 0;
}

/* Copies a value to memory of this process, because in the ring it is in pieces, and the other side may change it at any
 * time. Returns 0 if there are no more values. */
static int read_ring_value(SharedRing *ring, GByteArray *room, WideValues *values) {
        size_t size = 0, n;
        uint64_t left;

        do {
                const uint8_t *slot;
                int r = shared_ring_begin_read(ring, &slot);

                if (r < 0)
                        return r;
                memcpy(&left, slot, sizeof left);
                n = MIN(left, WIDE_CHUNK_SIZE);
                if (size + n > room->len)
                        g_byte_array_set_size(room, (guint) (size + n));
                if (n > 0)
                        memcpy(room->data + size, slot + SLOT_HEAD, n);
                shared_ring_read(ring);
                size += n;
        } while (left > n);
        if (size == 0)
                return 0;
        values->n++;
        wide_look(values, room->data, size);
        return 1;
}

static int read_ring(Way *way, WideValues *values) {
        g_autoptr(GByteArray) room = g_byte_array_new();
        int r;

        do
                r = read_ring_value(&way->ring, room, values);
        while (r > 0);
        return r;
}

int wide_by_ring(const WideSource *source, WideValues *ret) {
        Way way = { .source = source, .send = send_by_ring, .pipe = { -1, -1 } };
        int r = shared_ring_new(WIDE_CHUNK_SIZE + SLOT_HEAD, WIDE_PIPE_SIZE / WIDE_CHUNK_SIZE, &way.ring);

        if (r >= 0) {
                r = run_child(&way, serve_values, read_ring, ret);
                shared_ring_done(&way.ring);
        }
        return failed("a shared ring", r);
}

/* ---- A memfd for each --------------------------------------------------------------------------------------------- */

static int send_by_memfd(Way *way, const void *bytes, uint64_t size) {
        int fd, r;

        if (!bytes)
                return passing_send(way->socket, &size, sizeof size, NULL, 0);
        fd = memfd_create("value", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        r = passing_write_all(fd, bytes, size);
        if (r >= 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
                r = -errno;
        if (r >= 0)
                r = passing_send(way->socket, &size, sizeof size, &fd, 1);
        close(fd);
        return r;
}

static int look_at_memfd(int fd, uint64_t size, WideValues *values) {
        void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);

        if (bytes == MAP_FAILED)
                return -errno;
        values->n++;
        wide_look(values, bytes, size);
        (void) munmap(bytes, size);
        return 0;
}

static int read_memfds(Way *way, WideValues *values) {
        for (;;) {
                int fds[PASSING_FDS_MAX];
                size_t n_fds;
                uint64_t size;
                ssize_t n = passing_receive(way->socket, &size, sizeof size, fds, &n_fds);
                int r;

                if (n != sizeof size)
                        return n < 0 ? (int) n : -EBADMSG;
                if (n_fds == 0)
                        return 0;
                r = look_at_memfd(fds[0], size, values);
                for (size_t i = 0; i < n_fds; i++)
                        close(fds[i]);
                if (r < 0)
                        return r;
        }
}

int wide_by_memfd(const WideSource *source, WideValues *ret) {
        Way way = { .source = source, .send = send_by_memfd, .pipe = { -1, -1 } };

        return failed("a memfd for each value", run_child(&way, serve_values, read_memfds, ret));
}
