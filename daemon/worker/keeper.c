/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See keeper.h.
 */
#include "daemon/worker/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/protocol/engine-connection.h"
#include "daemon/protocol/protocol.h"
#include "daemon/worker/sandbox/sandbox.h"

#define FD_MIN 10 /* after all numbers that have a meaning */

static void close_all(const EngineDescriptors *d) {
        const int fds[] = { d->job_fd, d->control_fd, d->changes_fd };

        for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
                if (fds[i] >= 0)
                        (void) close(fds[i]);
}

/* Returns as engine_start_receive(), but waits. */
static int receive_start(int connection_fd, EngineDescriptors *ret) {
        int r;

        do {
                struct pollfd p = { .fd = connection_fd, .events = POLLIN };

                if (poll(&p, 1, -1) < 0 && errno != EINTR)
                        return -errno;
                r = engine_start_receive(connection_fd, ret);
        } while (r == -EAGAIN);
        return r;
}

/* ---- In the worker process ---- */

/* All descriptors are moved to free numbers first, because one may occupy the place of another. */
static int put_in_place(const EngineDescriptors *d) {
        const struct { int fd, place; } moves[] = {
                { d->job_fd, WORKER_JOB_FD }, { d->control_fd, WORKER_CONTROL_FD }, { d->changes_fd, WORKER_CHANGES_FD },
        };
        int high[sizeof moves / sizeof *moves];
        size_t n = sizeof moves / sizeof *moves;

        for (size_t i = 0; i < n; i++) {
                high[i] = moves[i].fd >= 0 ? fcntl(moves[i].fd, F_DUPFD_CLOEXEC, FD_MIN) : -1;
                if (moves[i].fd >= 0 && high[i] < 0)
                        return -errno;
        }
        close_all(d);
        for (size_t i = 0; i < n; i++) {
                if (high[i] < 0)
                        (void) close(moves[i].place);
                else if (dup2(high[i], moves[i].place) < 0)
                        return -errno;
                else
                        (void) close(high[i]);
        }
        return KEEPER_IN_WORKER;
}

static int become_worker(int connection_fd, const EngineDescriptors *d, pid_t keeper) {
        int r, high;

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                return -errno;
        if (getppid() != keeper) /* it has ended before that took effect */
                return -ESRCH;
        high = fcntl(connection_fd, F_DUPFD_CLOEXEC, FD_MIN);
        if (high < 0)
                return -errno;
        r = engine_report_send(high, &(EngineReport) { .kind = ENGINE_REPORT_STARTED });
        (void) close(high);
        (void) close(connection_fd);
        return r < 0 ? r : put_in_place(d);
}

/* ---- In the keeper ---- */

static int report_end(int connection_fd, int code, int status) {
        const EngineReport report = { .kind = ENGINE_REPORT_ENDED, .code = code, .status = status };
        int r = engine_report_send(connection_fd, &report);

        return r == -EPIPE || r == -ECONNRESET ? 0 : r; /* the supervisor is gone */
}

/* True if the supervisor is still there. It must not send anything else, so a message is an error. */
static bool is_connected(int connection_fd) {
        char byte;
        ssize_t n = recv(connection_fd, &byte, sizeof byte, MSG_DONTWAIT);

        return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static int keep(int connection_fd, int process_fd) {
        struct pollfd p[] = { { .fd = process_fd, .events = POLLIN }, { .fd = connection_fd, .events = POLLIN } };
        siginfo_t si = {};

        while (p[0].revents == 0) {
                if (poll(p, 2, -1) < 0) {
                        if (errno != EINTR)
                                return -errno;
                        continue;
                }
                if (p[1].revents != 0 && !is_connected(connection_fd)) {
                        (void) pidfd_send_signal(process_fd, SIGKILL, NULL, 0);
                        p[1].fd = -1;
                }
        }
        if (waitid(P_PIDFD, (id_t) process_fd, &si, WEXITED) < 0)
                return -errno;
        return report_end(connection_fd, si.si_code, si.si_status);
}

int keeper_run(int connection_fd) {
        pid_t keeper = getpid(), pid;
        EngineDescriptors d;
        int r, process_fd;

        (void) signal(SIGPIPE, SIG_IGN);
        (void) prctl(PR_SET_DUMPABLE, 0);
        r = receive_start(connection_fd, &d);
        if (r == -EPROTO)
                return report_end(connection_fd, CLD_EXITED, ENGINE_EXIT_OTHER_VERSION);
        if (r <= 0)
                return r;
        pid = fork();
        if (pid == 0)
                return become_worker(connection_fd, &d, keeper);
        r = pid < 0 ? -errno : 0;
        close_all(&d);
        if (r < 0)
                return r;
        process_fd = pidfd_open(pid, 0);
        if (process_fd < 0) {
                r = -errno;
                (void) kill(pid, SIGKILL);
                return r;
        }
        r = sandbox_filter_keeper();
        if (r == 0)
                r = keep(connection_fd, process_fd);
        else
                (void) pidfd_send_signal(process_fd, SIGKILL, NULL, 0);
        (void) close(process_fd);
        return r;
}
