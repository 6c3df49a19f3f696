/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sends bytes to another process and back with the kernel alone: pipes, a socket pair, sealed memory that is passed. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/bench/core/passing.h"
#include "tools/bench/workloads/echo.h"

enum {
        PIPE_SIZE = 1024 * 1024, /* the default maximum of an unprivileged user */
        SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE,
};

/* Writes a message in one piece: its size in the four bytes before `payload`, then the payload. */
static int write_message(int fd, uint8_t *payload, size_t size) {
        uint32_t head = (uint32_t) size;

        memcpy(payload - sizeof head, &head, sizeof head);
        return passing_write_all(fd, payload - sizeof head, sizeof head + size);
}

/* Reads a message of write_message(); each read takes the bytes that are available. Returns the size, 0 at the end. */
static ssize_t read_message(int fd, uint8_t *payload) {
        uint8_t *start = payload - sizeof(uint32_t);
        size_t done = 0, wanted = sizeof(uint32_t);
        uint32_t size = 0;

        while (done < wanted) {
                ssize_t n = read(fd, start + done, sizeof(uint32_t) + ECHO_SIZE_MAX - done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : done > 0 ? -ENODATA : 0;
                done += (size_t) n;
                if (wanted == sizeof size && done >= wanted) {
                        memcpy(&size, start, sizeof size);
                        if (size > ECHO_SIZE_MAX)
                                return -EPROTO;
                        wanted += size;
                }
        }
        return (ssize_t) size;
}

static int serve_stream(int in, int out, Echo *echo) {
        ssize_t size;
        int r = 0;

        while (r >= 0 && (size = read_message(in, echo->back)) > 0)
                r = write_message(out, echo->back, (size_t) size);
        return r < 0 ? r : (int) size;
}

static int trip_stream(Echo *echo, size_t size) {
        ssize_t n;
        int r;

        r = write_message(echo->out, echo->payload, size);
        if (r < 0)
                return r;
        n = read_message(echo->in, echo->back);
        return n < 0 ? (int) n : n == (ssize_t) size ? 0 : -EPROTO;
}

static int serve_pipe(int fd, void *userdata) {
        Echo *echo = userdata;

        close(fd); /* the bytes go through the pipes */
        close(echo->in);
        close(echo->out);
        return serve_stream(echo->server_in, echo->server_out, echo);
}

static int open_pipe(Echo *echo, const BenchOptions *options) {
        int there[2], back[2], r;

        (void) options;
        if (pipe2(there, O_CLOEXEC) < 0)
                return -errno;
        echo->server_in = there[0];
        echo->out = there[1];
        if (pipe2(back, O_CLOEXEC) < 0)
                return -errno;
        echo->in = back[0];
        echo->server_out = back[1];
        (void) fcntl(echo->out, F_SETPIPE_SZ, PIPE_SIZE); /* may fail: a user at its limit gets smaller pipes */
        (void) fcntl(echo->server_out, F_SETPIPE_SZ, PIPE_SIZE);
        r = child_start(SOCK_STREAM, serve_pipe, echo, &echo->child);
        echo->server = echo->child.pid;
        return r;
}

static int close_pipe(Echo *echo) {
        int *ends[] = { &echo->in, &echo->out, &echo->server_in, &echo->server_out };

        for (size_t i = 0; i < G_N_ELEMENTS(ends); i++) {
                if (*ends[i] >= 0)
                        close(*ends[i]);
                *ends[i] = -1;
        }
        return child_stop(&echo->child);
}

const EchoKind echo_pipe = { .name = "pipe pair", .open = open_pipe, .trip = trip_stream, .close = close_pipe };

static int serve_socket(int fd, void *userdata) {
        return serve_stream(fd, fd, userdata);
}

static int start_child(Echo *echo, int (*serve)(int fd, void *userdata)) {
        int r = child_start(SOCK_STREAM, serve, echo, &echo->child);

        echo->in = echo->out = echo->child.fd;
        echo->server = echo->child.pid;
        return r;
}

static int open_socket_pair(Echo *echo, const BenchOptions *options) {
        (void) options;
        return start_child(echo, serve_socket);
}

static int close_child(Echo *echo) {
        return child_stop(&echo->child);
}

const EchoKind echo_socket_pair = {
        .name = "socket pair", .open = open_socket_pair, .trip = trip_stream, .close = close_child
};

/* Writes a memfd, seals it and passes it. */
static int send_sealed(int socket, const void *bytes, size_t size) {
        int fd, r;

        fd = memfd_create("sqlipc-bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        r = passing_write_all(fd, bytes, size);
        if (r >= 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
                r = -errno;
        if (r >= 0)
                r = passing_send(socket, "", 1, &fd, 1);
        close(fd);
        return r;
}

/* Maps the memfd and copies its contents. Because of its seals it can neither shrink nor change meanwhile. */
static ssize_t copy_sealed(int fd, void *ret_bytes) {
        off_t size = lseek(fd, 0, SEEK_END);
        void *mapped;

        if (size <= 0 || (size_t) size > ECHO_SIZE_MAX || (fcntl(fd, F_GET_SEALS) & SEALS) != SEALS)
                return -EPROTO;
        mapped = mmap(NULL, (size_t) size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (mapped == MAP_FAILED)
                return -errno;
        memcpy(ret_bytes, mapped, (size_t) size);
        munmap(mapped, (size_t) size);
        return size;
}

/* Returns the size, 0 at the end of the stream. */
static ssize_t receive_sealed(int socket, void *ret_bytes) {
        int fds[PASSING_FDS_MAX];
        size_t n_fds;
        char byte;
        ssize_t r;

        r = passing_receive(socket, &byte, sizeof byte, fds, &n_fds);
        if (r > 0)
                r = n_fds == 1 ? copy_sealed(fds[0], ret_bytes) : -EPROTO;
        for (size_t i = 0; i < n_fds; i++)
                close(fds[i]);
        return r;
}

static int serve_memfd(int fd, void *userdata) {
        Echo *echo = userdata;
        ssize_t size;
        int r = 0;

        while (r >= 0 && (size = receive_sealed(fd, echo->back)) > 0)
                r = send_sealed(fd, echo->back, (size_t) size);
        return r < 0 ? r : (int) size;
}

static int open_memfd(Echo *echo, const BenchOptions *options) {
        (void) options;
        return start_child(echo, serve_memfd);
}

static int trip_memfd(Echo *echo, size_t size) {
        ssize_t n;
        int r;

        r = send_sealed(echo->out, echo->payload, size);
        if (r < 0)
                return r;
        n = receive_sealed(echo->in, echo->back);
        return n < 0 ? (int) n : n == (ssize_t) size ? 0 : -EPROTO;
}

const EchoKind echo_memfd = {
        .name = "sealed memfd passed", .open = open_memfd, .trip = trip_memfd, .close = close_child
};
