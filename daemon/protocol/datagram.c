/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Used by supervisor and worker. See datagram.h. */
#include "daemon/protocol/datagram.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

int datagram_send(int socket_fd, const void *bytes, size_t size, const int *fds, size_t n_fds) {
        union {
                struct cmsghdr header;
                uint8_t space[CMSG_SPACE(sizeof(int) * DATAGRAM_FDS_MAX)];
        } control = {};
        struct iovec part = { .iov_base = (void *) bytes, .iov_len = size };
        struct msghdr h = { .msg_iov = &part, .msg_iovlen = 1 };
        ssize_t n;

        if (n_fds > 0) {
                h.msg_control = &control;
                h.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
                control.header = (struct cmsghdr) {
                        .cmsg_level = SOL_SOCKET,
                        .cmsg_type = SCM_RIGHTS,
                        .cmsg_len = CMSG_LEN(sizeof(int) * n_fds),
                };
                memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * n_fds);
        }
        do
                n = sendmsg(socket_fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}

/* If the other side closed its socket while it had unread data, the kernel reports ECONNRESET first, once, and then what the
 * other side sent before: a worker's last report must not be lost. */
ssize_t datagram_receive(int socket_fd, struct msghdr *h) {
        bool reset = false;
        ssize_t n;

        do
                n = recvmsg(socket_fd, h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !reset && (reset = true))));
        return n >= 0 ? n : errno == ECONNRESET ? 0 : -errno;
}

size_t datagram_take_fds(struct msghdr *h, int *ret_fds, size_t n_max) {
        size_t n_fds = 0;

        for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
                size_t n;

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (size_t i = 0; i < n; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
                        if (n_fds < n_max)
                                ret_fds[n_fds++] = fd;
                        else
                                close(fd);
                }
        }
        return n_fds;
}
