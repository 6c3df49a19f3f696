/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes that work at the same time, see crowd.h. Each barrier is a pipe: a process writes a byte when it arrives, and
 * passes when the parent closes its own end.
 */
#include "tools/bench/core/crowd.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Member {
        pid_t pid;                 /* 0: not started */
        int pidfd;
} Member;

struct Crowd {
        unsigned n;
        Member *members;
        int arrived[2];            /* each process writes a byte at each barrier */
        int barriers[_CROWD_BARRIER_MAX][2]; /* nothing is ever written */
};

static void close_pipe(int fds[2]) {
        for (int i = 0; i < 2; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
}

int crowd_new(unsigned n, Crowd **ret) {
        Crowd *crowd = g_new(Crowd, 1);
        int r = 0;

        *crowd = (Crowd) {
                .n = n, .members = g_new0(Member, n), .arrived = { -1, -1 }, .barriers = { { -1, -1 }, { -1, -1 } },
        };
        if (pipe2(crowd->arrived, O_CLOEXEC) < 0)
                r = -errno;
        for (unsigned i = 0; r >= 0 && i < _CROWD_BARRIER_MAX; i++)
                if (pipe2(crowd->barriers[i], O_CLOEXEC) < 0)
                        r = -errno;
        if (r < 0)
                (void) crowd_end(crowd);
        else
                *ret = crowd;
        return r;
}

/* ---- A process of the crowd --------------------------------------------------------------------------------------- */

int crowd_wait_at(const Crowd *crowd, CrowdBarrier barrier) {
        char byte = 0;

        if (write(crowd->arrived[1], &byte, 1) != 1)
                return -EIO;
        while (read(crowd->barriers[barrier][0], &byte, 1) < 0)
                if (errno != EINTR)
                        return -errno;
        return 0;
}

static void begin(const Crowd *crowd) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(crowd->arrived[0]);
        for (unsigned i = 0; i < _CROWD_BARRIER_MAX; i++)
                close(crowd->barriers[i][1]);
}

/* ---- The parent's ------------------------------------------------------------------------------------------------- */

int crowd_start(Crowd *crowd, int (*live)(const Crowd *crowd, unsigned number, void *userdata), void *userdata) {
        for (unsigned i = 0; i < crowd->n; i++) {
                pid_t pid = fork();

                if (pid < 0)
                        return -errno;
                if (pid == 0) {
                        begin(crowd);
                        _exit(live(crowd, i, userdata) < 0 ? 1 : 0);
                }
                crowd->members[i] = (Member) { .pid = pid, .pidfd = pidfd_open(pid, 0) };
                if (crowd->members[i].pidfd < 0)
                        return -errno;
        }
        return 0;
}

int crowd_wait_for_all(const Crowd *crowd) {
        g_autofree struct pollfd *fds = g_new0(struct pollfd, crowd->n + 1);
        char byte;

        for (unsigned i = 0; i < crowd->n; i++)
                fds[i] = (struct pollfd) { .fd = crowd->members[i].pidfd, .events = POLLIN };
        fds[crowd->n] = (struct pollfd) { .fd = crowd->arrived[0], .events = POLLIN };

        for (unsigned n = 0; n < crowd->n;) {
                if (poll(fds, crowd->n + 1, -1) < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                if (fds[crowd->n].revents == 0)
                        return -ECHILD;
                if (read(crowd->arrived[0], &byte, 1) == 1)
                        n++;
        }
        return 0;
}

void crowd_pass(Crowd *crowd, CrowdBarrier barrier) {
        close(crowd->barriers[barrier][1]);
        crowd->barriers[barrier][1] = -1;
}

static int wait_for(const Member *member) {
        int status;

        if (member->pid <= 0)
                return 0;
        while (waitpid(member->pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        if (member->pidfd >= 0)
                close(member->pidfd);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

int crowd_end(Crowd *crowd) {
        int r = 0;

        if (!crowd)
                return 0;
        for (unsigned i = 0; i < _CROWD_BARRIER_MAX; i++)
                if (crowd->barriers[i][1] >= 0)
                        crowd_pass(crowd, (CrowdBarrier) i);
        for (unsigned i = 0; i < crowd->n; i++) {
                int ended = wait_for(&crowd->members[i]);

                r = r < 0 ? r : ended;
        }
        close_pipe(crowd->arrived);
        for (unsigned i = 0; i < _CROWD_BARRIER_MAX; i++)
                close_pipe(crowd->barriers[i]);
        g_free(crowd->members);
        g_free(crowd);
        return r;
}
