/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program that workers run, opened once. Supervisor.
 *
 * A package that is unpacked replaces the file some time before the service starts anew. Workers that are started in between
 * are those of this supervisor's version all the same, since another may speak another protocol. (Where the service's
 * sandbox lets only the files execute that were there at its start, a new one could not even be started.)
 */
#ifndef SQLIPC_WORKER_PROGRAM_H
#define SQLIPC_WORKER_PROGRAM_H

typedef struct WorkerProgram {
        const char *path; /* for posix_spawn() */
        int fd;           /* what the path leads to by way of /proc; -1: it is the file's own, looked up each time */
        char proc_path[sizeof "/proc/self/fd/-2147483648"];
} WorkerProgram;

/* `path` is borrowed. A program that cannot be opened is logged, and tried again with each worker. It is no script, whose
 * interpreter would find the descriptor closed. */
void worker_program_open(WorkerProgram *p, const char *path);
void worker_program_close(WorkerProgram *p);

#endif
