/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes to pipes without waiting (pipe-write.h). Library. */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "client-lib/pipe-write.h"
#include "client-lib/util.h"

int pipe_write_copy(int fd) {
        struct stat st;
        int copy, flags;

        flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISFIFO(st.st_mode) || (flags & (O_ACCMODE | O_PATH)) != O_WRONLY)
                return -EBADMSG;
        copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (copy < 0)
                return -errno;
        if (fcntl(copy, F_SETFL, flags | O_NONBLOCK) < 0) { /* for the last resort of pipe_write() */
                int r = -errno;

                (void) safe_close(copy);
                return r;
        }
        return copy;
}

static ssize_t write_if_ready(int fd, const uint8_t *bytes, size_t size) {
        struct pollfd writable = { .fd = fd, .events = POLLOUT };
        int n = poll(&writable, 1, 0);

        if (n > 0)
                return write(fd, bytes, size < PIPE_BUF ? size : PIPE_BUF);
        if (n == 0)
                errno = EAGAIN;
        return -1;
}

/* True if the kernel does not know the call, or a seccomp filter forbids it. */
static bool is_unavailable(ssize_t n) {
        return n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM);
}

static ssize_t write_without_waiting(int fd, const uint8_t *bytes, size_t size) {
        const struct iovec content = { .iov_base = (void *) bytes, .iov_len = size };
        ssize_t n;

        do {
                n = pwritev2(fd, &content, 1, -1, RWF_NOWAIT);
                if (is_unavailable(n))
                        n = write_if_ready(fd, bytes, size);
        } while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
}

ssize_t pipe_write(int fd, const uint8_t *bytes, size_t size) {
        const struct timespec at_once = { .tv_sec = 0 };
        sigset_t sigpipe, before, pending;
        ssize_t n;

        (void) sigemptyset(&sigpipe);
        (void) sigaddset(&sigpipe, SIGPIPE);
        (void) pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
        (void) sigemptyset(&pending);
        (void) sigpending(&pending); /* one that waits already is the program's */
        n = write_without_waiting(fd, bytes, size);
        if (n == -EPIPE && sigismember(&pending, SIGPIPE) == 0)
                while (sigtimedwait(&sigpipe, NULL, &at_once) < 0 && errno == EINTR)
                        ;
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        return n;
}
