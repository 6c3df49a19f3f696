/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The server of a rival, see child.h. */
#include "tools/bench/core/child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MSEC = 1000 };

static _Noreturn void be_child(pid_t parent, int fd, int (*serve)(int fd, void *userdata), void *userdata) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) /* the parent died before prctl() */
                _exit(EXIT_FAILURE);
        _exit(serve(fd, userdata) < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

int child_start(int type, int (*serve)(int fd, void *userdata), void *userdata, Child *ret) {
        pid_t parent = getpid(), pid;
        int fds[2], r;

        if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        pid = fork();
        r = -errno;
        if (pid == 0) {
                close(fds[0]);
                be_child(parent, fds[1], serve, userdata);
        }
        close(fds[1]);
        if (pid < 0) {
                close(fds[0]);
                return r;
        }
        *ret = (Child) { .pid = pid, .fd = fds[0] };
        return 0;
}

/* Waits for the child, and kills it if it does not end by itself. */
static void wait_or_kill(pid_t pid) {
        for (int msec = 0; msec < PATIENCE_MSEC; msec++) {
                siginfo_t info = {};

                if (waitid(P_PID, (id_t) pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == pid)
                        return;
                (void) usleep(1000);
        }
        (void) kill(pid, SIGKILL);
}

int child_stop(Child *child) {
        int status = 0, r = 0;

        if (child->fd >= 0)
                close(child->fd);
        if (child->pid > 0) {
                wait_or_kill(child->pid);
                if (waitpid(child->pid, &status, 0) < 0)
                        r = -errno;
                else if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
                        r = -EIO;
        }
        *child = CHILD_INIT;
        return r;
}
