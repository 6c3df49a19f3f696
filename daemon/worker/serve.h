/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The life of a worker process, from SETUP to its end, with any engine. The programs of the worker choose
 * engines, and have nothing else of their own.
 */
#ifndef SQLIPC_DAEMON_WORKER_SERVE_H
#define SQLIPC_DAEMON_WORKER_SERVE_H

#include <stdbool.h>

#include "daemon/worker/core/engine.h"

typedef struct WorkerProgramKind {
        const char *name;                               /* for messages */
        const Engine *(*find_engine)(EngineKind kind);  /* NULL: the program has none */
        bool network;                                   /* its engines connect to servers */
} WorkerProgramKind;

/* True if `fd` is a socket. Without its sockets a program was started by hand. */
bool serve_has_socket(int fd);

/* Serves the supervisor on WORKER_JOB_FD and WORKER_CONTROL_FD until it says EXIT, or is gone. Returns the exit code: 0;
 * 1: the worker could not set itself up, or the supervisor sent an invalid message; ENGINE_EXIT_NO_ENGINE. */
int serve(const WorkerProgramKind *program);

#endif
