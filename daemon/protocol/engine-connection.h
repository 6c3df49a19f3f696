/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The connection by which the supervisor has an engine process, since that is no child of it (docs/design/engines.md). Used
 * by the supervisor and by sqlipc-engine. Each function makes one system call, and does not block.
 *
 *   supervisor                               sqlipc-engine, started by its socket unit for this connection
 *      start + descriptors ---------------->    its keeper makes the worker process
 *                   <--------------------    STARTED, sent by the worker process: so the kernel tells its pid
 *                                               ... SETUP and all else goes over the worker's own sockets ...
 *      end of writing --------------------->    the keeper kills the worker process, as it does if the supervisor is gone
 *                   <--------------------    ENDED: how the worker process has ended
 *                   <--------------------    end-of-file
 */
#ifndef SQLIPC_DAEMON_PROTOCOL_ENGINE_CONNECTION_H
#define SQLIPC_DAEMON_PROTOCOL_ENGINE_CONNECTION_H

#include <stdint.h>
#include <sys/types.h>

/* As the service manager passes it: SD_LISTEN_FDS_START. */
#define ENGINE_CONNECTION_FD 3

/* Exit codes of the worker process, beside those of sqlipc-worker. */
#define ENGINE_EXIT_OTHER_VERSION 3 /* the supervisor is of another version */
#define ENGINE_EXIT_NO_ENGINE 4     /* sqlipc-engine was built without the engine that SETUP names */

typedef enum EngineReportKind {
        ENGINE_REPORT_STARTED = 1,
        ENGINE_REPORT_ENDED,
} EngineReportKind;

typedef struct EngineReport {
        EngineReportKind kind;
        int code, status; /* ENDED: as waitid() tells them, CLD_EXITED and so on */
        pid_t pid;        /* of the sender, from the kernel; 0: not known */
} EngineReport;

/* The descriptors of a worker process. -1: the process has none. */
typedef struct EngineDescriptors {
        int job_fd, control_fd, changes_fd;
} EngineDescriptors;

/* Sends the descriptors, which are borrowed. -EAGAIN, -ETOOMANYREFS, -EPIPE, other -errno. */
int engine_start_send(int connection_fd, const EngineDescriptors *descriptors);

/* Receives them. The caller owns them. 1: there they are; 0: the supervisor is gone; -EAGAIN; -EPROTO: the supervisor is of
 * another version; -EBADMSG; other -errno. */
int engine_start_receive(int connection_fd, EngineDescriptors *ret);

/* Sends a report. -errno. */
int engine_report_send(int connection_fd, const EngineReport *report);

/* Has the kernel tell the sender of each report from now on. -errno. */
int engine_report_expect(int connection_fd);

/* Receives a report. 1: there it is; 0: end-of-file; -EAGAIN; -EBADMSG; other -errno. */
int engine_report_receive(int connection_fd, EngineReport *ret);

#endif
