/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads from pipes without waiting (pipe-read.h). Library. */
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "client-lib/pipe-read.h"
#include "client-lib/util.h"

int pipe_read_copy(int fd) {
        struct stat st;
        int copy, flags;

        flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fstat(fd, &st) < 0)
                return -errno;
        /* vmsplice() would write to a descriptor that is open for both reading and writing */
        if (!S_ISFIFO(st.st_mode) || (flags & (O_ACCMODE | O_PATH)) != O_RDONLY)
                return -EBADMSG;
        copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        return copy < 0 ? -errno : copy;
}

static ssize_t read_if_ready(int fd, const struct iovec *room) {
        struct pollfd readable = { .fd = fd, .events = POLLIN };
        int n = poll(&readable, 1, 0);

        /* only here, so that no pipe costs a system call that its reads do not need */
        if (n > 0 && fcntl(fd, F_SETFL, O_RDONLY | O_NONBLOCK) < 0)
                return -1;
        if (n > 0)
                return readv(fd, room, 1);
        if (n == 0)
                errno = EAGAIN;
        return -1;
}

/* True if the kernel does not know the call, or a seccomp filter forbids it. */
static bool is_unavailable(ssize_t n) {
        return n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM);
}

ssize_t pipe_read(int fd, uint8_t *room, size_t size) {
        const struct iovec rooms = { .iov_base = room, .iov_len = size };
        ssize_t n;

        do {
                n = preadv2(fd, &rooms, 1, -1, RWF_NOWAIT);
                if (is_unavailable(n))
                        n = vmsplice(fd, &rooms, 1, SPLICE_F_NONBLOCK);
                if (is_unavailable(n))
                        n = read_if_ready(fd, &rooms);
        } while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
}
