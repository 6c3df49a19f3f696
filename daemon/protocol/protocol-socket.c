/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages on their socket (protocol.h): a datagram each, with the descriptors that belong to them. Used by supervisor and
 * worker. A message of more than MESSAGE_SIZE_MAX is in a sealed memfd. In its place a *stub* is sent: u32 STUB_KIND, u64
 * size, u64 number. The number is the one that follows the kind in the message itself.
 */
#include "daemon/protocol/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/protocol/datagram.h"
#include "daemon/protocol/message-layout.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

#define STUB_KIND UINT32_MAX /* in place of a message's kind */
#define STUB_SIZE ((size_t) 20)
#define STUB_NUMBER_OFFSET ((size_t) 12)
#define NUMBER_OFFSET ((size_t) 4) /* of a job, after its kind */

/* Makes a memfd with `bytes`, and seals it, so that no process can change it any more. */
static int memfd_sealed(const uint8_t *bytes, size_t size) {
        int fd = memfd_create("sqlipc-message", MFD_CLOEXEC | MFD_ALLOW_SEALING), r = 0;

        if (fd < 0)
                return -errno;
        for (size_t done = 0; done < size && r == 0;) {
                ssize_t n = write(fd, bytes + done, size - done);

                if (n < 0 && errno != EINTR)
                        r = -errno;
                else if (n > 0)
                        done += (size_t) n;
        }
        if (r == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                r = -errno;
        if (r < 0) {
                close(fd);
                return r;
        }
        return fd;
}

int message_send_with(int fd, const Message *m, int pipe_fd, int memory_fd) {
        uint8_t stub[STUB_SIZE], *bytes;
        int fds[DATAGRAM_FDS_MAX], memfd = -1, r;
        size_t size, n_fds = 0;

        r = message_encode(m, &bytes, &size);
        if (r < 0)
                return r;
        if (size > MESSAGE_SIZE_MAX) {
                memfd = memfd_sealed(bytes, size);
                if (memfd < 0)
                        r = memfd;
                else
                        fds[n_fds++] = memfd;
        }
        if (pipe_fd >= 0)
                fds[n_fds++] = pipe_fd;
        if (memory_fd >= 0)
                fds[n_fds++] = memory_fd;
        if (memfd >= 0) {
                store_le32(stub, STUB_KIND);
                store_le64(stub + 4, size);
                memcpy(stub + STUB_NUMBER_OFFSET, bytes + NUMBER_OFFSET, sizeof(uint64_t));
                r = datagram_send(fd, stub, sizeof stub, fds, n_fds);
                close(memfd);
        } else if (r >= 0)
                r = datagram_send(fd, bytes, size, fds, n_fds);
        if (m->kind == MESSAGE_SETUP)
                explicit_bzero(bytes, size); /* it may have a password */
        free(bytes);
        return r;
}

int message_send(int fd, const Message *m, int pipe_fd) {
        return message_send_with(fd, m, pipe_fd, -1);
}


/* Reads a sealed memfd of `size` bytes. If it were not sealed, it could shrink while we read it, or change after our
 * checks. */
static int read_memfd(int fd, uint64_t size, uint8_t **ret) {
        const int needed = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
        int seals = fcntl(fd, F_GET_SEALS);
        const Layout *layout;
        struct stat st;
        uint8_t kind[4], *bytes;

        if (seals < 0 || (seals & needed) != needed || fstat(fd, &st) < 0 || size > MESSAGE_JOB_SIZE_MAX ||
            (uint64_t) st.st_size != size || pread(fd, kind, sizeof kind, 0) != sizeof kind)
                return -EBADMSG;
        layout = message_layout(load_le32(kind)); /* only jobs, which workers do not send, may be as large as that */
        if (!layout || size > layout->size_max)
                return -EBADMSG;
        bytes = malloc(size > 0 ? size : 1);
        if (!bytes)
                return -ENOMEM;
        for (size_t done = 0; done < size;) {
                ssize_t n = pread(fd, bytes + done, size - done, (off_t) done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0) {
                        free(bytes);
                        return n < 0 ? -errno : -EBADMSG;
                }
                done += (size_t) n;
        }
        *ret = bytes;
        return 0;
}

/* Returns the bytes of the message itself, from the datagram or from its memfd. */
static int take_bytes(const uint8_t *datagram, size_t size, int memfd, uint8_t **ret_bytes, size_t *ret_size) {
        uint8_t *bytes;

        if (memfd >= 0) {
                *ret_size = load_le64(datagram + 4);
                return read_memfd(memfd, *ret_size, ret_bytes);
        }
        bytes = malloc(size > 0 ? size : 1);
        if (!bytes)
                return -ENOMEM;
        memcpy(bytes, datagram, size);
        *ret_bytes = bytes;
        *ret_size = size;
        return 0;
}

int message_receive(int fd, ReceivedMessage *ret) {
        union {
                struct cmsghdr header;
                uint8_t space[CMSG_SPACE(sizeof(int) * DATAGRAM_FDS_MAX)];
        } control;
        uint8_t datagram[MESSAGE_SIZE_MAX];
        struct iovec part = { .iov_base = datagram, .iov_len = sizeof datagram };
        struct msghdr h = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
        int fds[DATAGRAM_FDS_MAX], memfd = -1, r;
        uint8_t *bytes = NULL;
        size_t size = 0, n_fds, i = 0;
        ssize_t n;

        n = datagram_receive(fd, &h);
        if (n < 0)
                return (int) n;

        n_fds = datagram_take_fds(&h, fds, DATAGRAM_FDS_MAX);
        if (n == 0) { /* end of file, or an empty message, which may have descriptors all the same */
                for (size_t k = 0; k < n_fds; k++)
                        close(fds[k]);
                return 0;
        }
        if ((size_t) n == STUB_SIZE && load_le32(datagram) == STUB_KIND && n_fds > 0)
                memfd = fds[i++];
        r = !(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? take_bytes(datagram, (size_t) n, memfd, &bytes, &size) : -EBADMSG;
        if (r == 0)
                r = message_decode(bytes, size, ret);
        if (r == 0 && n_fds - i != (size_t) message_has_fd(ret->message.kind) + message_has_memory(&ret->message)) {
                received_message_done(ret);
                bytes = NULL;
                r = -EBADMSG;
        }
        if (memfd >= 0)
                close(memfd);
        if (r < 0) {
                free(bytes);
                for (size_t k = memfd >= 0; k < n_fds; k++)
                        close(fds[k]);
                return r;
        }
        if (message_has_fd(ret->message.kind))
                ret->pipe_fd = fds[i++];
        if (message_has_memory(&ret->message))
                ret->memory_fd = fds[i++];
        return 1;
}

int message_withdraw_job(int fd, uint64_t *ret_number) {
        uint8_t head[STUB_SIZE];
        struct iovec part = { .iov_base = head, .iov_len = sizeof head };
        struct msghdr h = { .msg_iov = &part, .msg_iovlen = 1 };
        ssize_t n = datagram_receive(fd, &h); /* without room for descriptors the kernel closes them */

        if (n <= 0)
                return (int) n;
        if ((size_t) n < NUMBER_OFFSET + sizeof(uint64_t))
                return -EBADMSG;
        bool is_stub = load_le32(head) == STUB_KIND;
        if (is_stub && (size_t) n < STUB_SIZE)
                return -EBADMSG;
        *ret_number = load_le64(head + (is_stub ? STUB_NUMBER_OFFSET : NUMBER_OFFSET));
        return 1;
}

void received_message_done(ReceivedMessage *m) {
        free(m->bytes);
        free(m->arrays[0]);
        free(m->arrays[1]);
        if (m->pipe_fd >= 0)
                close(m->pipe_fd);
        if (m->memory_fd >= 0)
                close(m->memory_fd);
        *m = RECEIVED_MESSAGE_INIT;
}
