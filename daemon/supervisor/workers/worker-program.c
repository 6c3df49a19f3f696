/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program that workers run. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/protocol/protocol.h"
#include "daemon/supervisor/base/high-descriptor.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/workers/worker-program.h"

static int open_program(const char *path) {
        int fd = open(path, O_PATH | O_CLOEXEC);

        return fd < 0 ? -errno : high_descriptor(fd);
}

void worker_program_open(WorkerProgram *p, const char *path) {
        *p = (WorkerProgram) { .path = path, .fd = open_program(path) };
        if (p->fd < 0) {
                log_error("The worker program %s cannot be opened: %s", path, strerror(-p->fd));
                p->fd = -1;
                return;
        }
        (void) snprintf(p->proc_path, sizeof p->proc_path, "/proc/self/fd/%i", p->fd);
        if (access(p->proc_path, F_OK) == 0)
                p->path = p->proc_path;
        else
                worker_program_close(p); /* /proc is not available */
}

void worker_program_close(WorkerProgram *p) {
        if (p->fd >= 0)
                close(p->fd);
        p->fd = -1;
}

int worker_program_spawn(const WorkerProgram *p, int job_fd, int control_fd, int changes_fd, int counts_fd,
                         pid_t *ret_pid) {
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        char *arguments[] = { (char *) "sqlipc-worker", NULL };
        sigset_t none, defaults;

        sigemptyset(&none);
        sigemptyset(&defaults);
        sigaddset(&defaults, SIGPIPE);
        int r = posix_spawn_file_actions_init(&actions);
        if (r != 0)
                return -r;
        r = posix_spawnattr_init(&attributes);
        if (r != 0) {
                posix_spawn_file_actions_destroy(&actions);
                return -r;
        }
        r = posix_spawn_file_actions_adddup2(&actions, job_fd, WORKER_JOB_FD);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&actions, control_fd, WORKER_CONTROL_FD);
        if (r == 0 && changes_fd >= 0)
                r = posix_spawn_file_actions_adddup2(&actions, changes_fd, WORKER_CHANGES_FD);
        if (r == 0 && counts_fd >= 0)
                r = posix_spawn_file_actions_adddup2(&actions, counts_fd, WORKER_COUNTS_FD);
        if (r == 0)
                r = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        if (r == 0)
                r = posix_spawnattr_setsigmask(&attributes, &none);
        if (r == 0)
                r = posix_spawnattr_setsigdefault(&attributes, &defaults);
        if (r == 0)
                r = posix_spawn(ret_pid, p->path, &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        return -r;
}
