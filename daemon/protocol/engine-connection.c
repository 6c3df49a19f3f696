/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Used by supervisor and worker. See engine-connection.h. */
#include "daemon/protocol/engine-connection.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config.h"
#include "daemon/protocol/datagram.h"

#define N_DESCRIPTORS DATAGRAM_FDS_MAX
#define VERSION_SIZE 32

/* Both ends are processes of one machine and, as the version says, of one build: so these are the bytes. */
typedef struct StartBytes {
        char version[VERSION_SIZE];
        uint8_t has[N_DESCRIPTORS];
} StartBytes;

typedef struct ReportBytes {
        uint32_t kind;
        int32_t code, status;
} ReportBytes;

_Static_assert(sizeof SQLIPC_VERSION <= VERSION_SIZE, "the version is told in the first message");

int engine_start_send(int connection_fd, const EngineDescriptors *descriptors) {
        const int fds[N_DESCRIPTORS] = { descriptors->job_fd, descriptors->control_fd, descriptors->changes_fd };
        StartBytes bytes = { .version = SQLIPC_VERSION };
        int sent[N_DESCRIPTORS];
        size_t n = 0;

        for (size_t i = 0; i < N_DESCRIPTORS; i++)
                if (fds[i] >= 0) {
                        bytes.has[i] = 1;
                        sent[n++] = fds[i];
                }
        return datagram_send(connection_fd, &bytes, sizeof bytes, sent, n);
}

/* Beside the bytes of a message: its descriptors, and the pid of the sender. */
typedef struct Ancillary {
        int fds[N_DESCRIPTORS];
        size_t n_fds;
        pid_t pid;
} Ancillary;

static void close_all(const Ancillary *a) {
        for (size_t i = 0; i < a->n_fds; i++)
                (void) close(a->fds[i]);
}

static pid_t find_sender(struct msghdr *h) {
        struct ucred credentials = {};

        for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c))
                if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
                        memcpy(&credentials, CMSG_DATA(c), sizeof credentials);
        return credentials.pid;
}

/* Returns the size of the message, or as engine_report_receive(). */
static ssize_t receive(int fd, void *bytes, size_t size, Ancillary *ret) {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof ret->fds) + CMSG_SPACE(sizeof(struct ucred))];
        struct iovec iov = { bytes, size };
        struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
        ssize_t n = datagram_receive(fd, &h);

        *ret = (Ancillary) {};
        if (n < 0)
                return n;
        ret->n_fds = datagram_take_fds(&h, ret->fds, N_DESCRIPTORS);
        ret->pid = find_sender(&h);
        if (n > 0 && !(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
                return n;
        close_all(ret); /* an empty message may have descriptors all the same */
        return n == 0 ? 0 : -EBADMSG;
}

int engine_start_receive(int connection_fd, EngineDescriptors *ret) {
        int *to[N_DESCRIPTORS] = { &ret->job_fd, &ret->control_fd, &ret->changes_fd };
        StartBytes bytes;
        Ancillary a;
        ssize_t n = receive(connection_fd, &bytes, sizeof bytes, &a);
        size_t used = 0;

        *ret = (EngineDescriptors) { -1, -1, -1 };
        if (n <= 0)
                return (int) n;
        bool same = n == sizeof bytes && memchr(bytes.version, 0, VERSION_SIZE) &&
                    strcmp(bytes.version, SQLIPC_VERSION) == 0;
        for (size_t i = 0; same && i < N_DESCRIPTORS; i++)
                used += bytes.has[i] != 0;
        if (!same || used != a.n_fds) {
                close_all(&a);
                return same ? -EBADMSG : -EPROTO;
        }
        for (size_t i = 0, next = 0; i < N_DESCRIPTORS; i++)
                if (bytes.has[i])
                        *to[i] = a.fds[next++];
        return 1;
}

int engine_report_send(int connection_fd, const EngineReport *report) {
        ReportBytes bytes = { .kind = report->kind, .code = report->code, .status = report->status };

        return datagram_send(connection_fd, &bytes, sizeof bytes, NULL, 0);
}

int engine_report_expect(int connection_fd) {
        const int on = 1;

        return setsockopt(connection_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 ? -errno : 0;
}

int engine_report_receive(int connection_fd, EngineReport *ret) {
        ReportBytes bytes;
        Ancillary a;
        ssize_t n = receive(connection_fd, &bytes, sizeof bytes, &a);

        if (n <= 0)
                return (int) n;
        close_all(&a);
        if (n != sizeof bytes || (bytes.kind != ENGINE_REPORT_STARTED && bytes.kind != ENGINE_REPORT_ENDED))
                return -EBADMSG;
        *ret = (EngineReport) { .kind = bytes.kind, .code = bytes.code, .status = bytes.status, .pid = a.pid };
        return 1;
}
