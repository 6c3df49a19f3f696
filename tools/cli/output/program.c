/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs that the shell runs (program.h). */
#include "tools/cli/output/program.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/output/interrupt.h"

/* The time that a child gets to restore the terminal when we must exit. */
enum { LEAVE_MSEC = 1000 };

/* Unblocks all signals for the child, and restores SIGPIPE, which we ignore. Signals that were ignored when we started stay
 * ignored. */
static int reset_signals(posix_spawnattr_t *attributes) {
        sigset_t none, ours;
        int r;

        sigemptyset(&none);
        sigemptyset(&ours);
        sigaddset(&ours, SIGPIPE);
        r = posix_spawnattr_setsigmask(attributes, &none);
        if (r == 0)
                r = posix_spawnattr_setsigdefault(attributes, &ours);
        if (r == 0)
                r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        return r;
}

static int place_files(posix_spawn_file_actions_t *actions, const ProgramFiles *files) {
        const int wanted[] = { files->input, files->output, files->third };
        const int places[] = { STDIN_FILENO, STDOUT_FILENO, 3 };
        int r = 0;

        for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && r == 0; i++)
                if (wanted[i] >= 0)
                        r = posix_spawn_file_actions_adddup2(actions, wanted[i], places[i]);
        return r;
}

int program_start(const char *const *argv, const ProgramFiles *files, pid_t *ret) {
        posix_spawnattr_t attributes;
        posix_spawn_file_actions_t actions;
        int r;

        (void) fflush(stdout); /* our output must come before the child's */
        r = posix_spawnattr_init(&attributes);
        if (r != 0)
                return -r;
        r = posix_spawn_file_actions_init(&actions);
        if (r == 0) {
                r = reset_signals(&attributes);
                if (r == 0)
                        r = place_files(&actions, files);
                if (r == 0)
                        r = posix_spawnp(ret, argv[0], &actions, &attributes, (char *const *) argv, environ);
                (void) posix_spawn_file_actions_destroy(&actions);
        }
        (void) posix_spawnattr_destroy(&attributes);
        return -r;
}

static int reap(pid_t pid) {
        int status;

        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        (void) interrupt_take(); /* it was meant for the child */
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int program_wait(pid_t pid, int timeout_msec) {
        struct pollfd fds[2] = { { .events = POLLIN }, { .fd = interrupt_fd(), .events = POLLIN } };
        int n = 1;

        fds[0].fd = pidfd_open(pid, 0);
        if (fds[0].fd < 0)
                return reap(pid);
        while (n != 0 && fds[0].revents == 0) {
                if (interrupt_leave() && fds[1].fd >= 0) {
                        fds[1].fd = -1;
                        timeout_msec = LEAVE_MSEC;
                        (void) kill(pid, SIGTERM);
                }
                n = poll(fds, 2, timeout_msec);
                if (n > 0 && fds[1].revents)
                        (void) interrupt_take();
        }
        (void) close(fds[0].fd);
        return n == 0 ? -ETIMEDOUT : reap(pid);
}

int program_run_shell(const char *command, const char *argument) {
        const char *const argv[] = { "sh", "-c", command, "sh", argument, NULL };
        const ProgramFiles files = PROGRAM_FILES_OURS;
        pid_t pid;
        int r;

        r = program_start(argv, &files, &pid);
        if (r >= 0)
                r = program_wait(pid, -1);
        return interrupt_leave() ? -ECANCELED : r;
}
