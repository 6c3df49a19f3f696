/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The process of a worker or observer, of which there are two kinds. Supervisor.
 *
 *      child:   of the supervisor, runs sqlipc-worker, for SQLite (worker-program.h). A signal kills it, and the kernel
 *               tells how it ended.
 *      engine:  runs sqlipc-engine, for servers, in a unit of its own that the service manager starts for a connection. It
 *               has another user, so the supervisor cannot kill it: its keeper does that when the supervisor ends the
 *               connection, and tells how it ended (daemon/protocol/engine-connection.h).
 *
 *      start --(engine: STARTED)--> it runs, `pid` is known --kill, or by itself--> on_ended(), once
 *
 * Messages may be sent as soon as it was started. An engine process that does not report within ten seconds that it runs
 * counts as ended, because its unit is stuck. Nothing that it sends can keep the supervisor from reading on, or from ending
 * it.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_WORKERS_WORKER_PROCESS_H
#define SQLIPC_DAEMON_SUPERVISOR_WORKERS_WORKER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "daemon/protocol/engine-kind.h"

typedef struct Context Context;
typedef struct WorkerProcess WorkerProcess;

typedef struct WorkerProcessEnd {
        int code;   /* CLD_EXITED, CLD_KILLED, CLD_DUMPED; 0: an engine process that did not tell */
        int status; /* exit code or signal */
} WorkerProcessEnd;

/* The process has ended; worker_process_done() may be called inside, and the object freed. */
typedef void (*WorkerProcessHandler)(WorkerProcess *p, const WorkerProcessEnd *end, void *userdata);

struct WorkerProcess {
        pid_t pid;                /* for messages and CPU time; 0: none, or an engine process that has not told */
        bool exists;              /* it was started, and on_ended() was not called */
        bool is_engine;
        int connection_fd;        /* of an engine process; -1: none */
        WorkerProcessEnd end;     /* as an engine process has told it */
        WorkerProcessHandler on_ended;
        void *userdata;
        sd_event_source *source;  /* its end; of an engine process also its reports */
        sd_event_source *timer;   /* of an engine process, until it has told that it runs */
};

#define WORKER_PROCESS_INIT ((WorkerProcess) { .connection_fd = -1 })

/* Starts a process with a control socket, of which the caller gets our end, non-blocking. `job_fd`, `changes_fd` and
 * `counts_fd` are borrowed; -1: it is an observer, which has none. An engine process has no `counts_fd`. -ENOENT,
 * -ECONNREFUSED: there is no unit for engine processes, or it does not run; -EAGAIN; other -errno. */
int worker_process_start(WorkerProcess *p, Context *context, EngineKind engine, int job_fd, int changes_fd,
                         int counts_fd, WorkerProcessHandler on_ended, void *userdata, int *ret_control_fd);

/* Kills it; on_ended() follows. Does nothing if there is none. */
void worker_process_kill(WorkerProcess *p);

/* Kills it, if it exists, without on_ended(). `wait`: until a child is dead and reaped. */
void worker_process_done(WorkerProcess *p, bool wait);

#endif
