/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages with descriptors, see passing.h. */
#include "tools/bench/core/passing.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef union Control {
        struct cmsghdr header; /* aligns the buffer */
        char bytes[CMSG_SPACE(PASSING_FDS_MAX * sizeof(int))];
} Control;

int passing_send(int socket, const void *bytes, size_t size, const int *fds, size_t n_fds) {
        struct iovec part = { .iov_base = (void *) bytes, .iov_len = size };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = size > 0 };
        Control control;
        ssize_t n;

        if (n_fds > PASSING_FDS_MAX)
                return -EINVAL;
        if (n_fds > 0) {
                memset(&control, 0, sizeof control);
                control.header = (struct cmsghdr) {
                        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n_fds * sizeof(int))
                };
                memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
                message.msg_control = &control;
                message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        }
        do
                n = sendmsg(socket, &message, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}

ssize_t passing_receive(int socket, void *buffer, size_t size, int ret_fds[static PASSING_FDS_MAX], size_t *ret_n_fds) {
        Control control;
        struct iovec part = { .iov_base = buffer, .iov_len = size };
        struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
        };
        struct cmsghdr *header;
        ssize_t n;

        *ret_n_fds = 0;
        do
                n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        header = CMSG_FIRSTHDR(&message);
        if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
                *ret_n_fds = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(ret_fds, CMSG_DATA(header), *ret_n_fds * sizeof(int));
        }
        return message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EPROTO : n;
}

int passing_read_all(int fd, void *buffer, size_t size) {
        for (size_t done = 0; done < size;) {
                ssize_t n = read(fd, (char *) buffer + done, size - done);

                if (n == 0)
                        return -ENODATA;
                if (n < 0 && errno != EINTR)
                        return -errno;
                done += n > 0 ? (size_t) n : 0;
        }
        return 0;
}

int passing_write_all(int fd, const void *bytes, size_t size) {
        for (size_t done = 0; done < size;) {
                ssize_t n = write(fd, (const char *) bytes + done, size - done);

                if (n < 0 && errno != EINTR)
                        return -errno;
                done += n > 0 ? (size_t) n : 0;
        }
        return 0;
}
