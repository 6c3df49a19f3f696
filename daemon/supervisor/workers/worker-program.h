/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program that workers run, opened once. Supervisor.
 *
 * When a package is upgraded, its program file is replaced some time before the service restarts. Workers that are started
 * in between must still be of the supervisor's version, since another version may speak another protocol. (If the service's
 * sandbox allows only files to be executed that existed at its start, a new one could not even be started.)
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_WORKER_PROGRAM_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_WORKER_PROGRAM_H

#include <sys/types.h>

typedef struct WorkerProgram {
        const char *path; /* for posix_spawn() */
        int fd;           /* `path` leads to it through /proc; -1: `path` is looked up for each worker */
        char proc_path[sizeof "/proc/self/fd/-2147483648"];
} WorkerProgram;

/* `path` is borrowed. If the program cannot be opened this is logged, and the file is opened by name for each worker. The
 * program must not be a script, because its interpreter would find the descriptor closed. */
void worker_program_open(WorkerProgram *p, const char *path);
void worker_program_close(WorkerProgram *p);

/* Starts a process with the two sockets as WORKER_JOB_FD and WORKER_CONTROL_FD, and with WORKER_CHANGES_FD and
 * WORKER_COUNTS_FD (-1: without). They are borrowed. The caller reaps it. -errno. */
int worker_program_spawn(const WorkerProgram *p, int job_fd, int control_fd, int changes_fd, int counts_fd,
                         pid_t *ret_pid);

#endif
