/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program that workers run. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/supervisor/high-descriptor.h"
#include "daemon/supervisor/log.h"
#include "daemon/supervisor/worker-program.h"

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
