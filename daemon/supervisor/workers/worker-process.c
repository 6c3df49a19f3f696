/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The process of a worker or observer. Supervisor. */
#include "daemon/supervisor/workers/worker-process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/protocol/engine-connection.h"
#include "daemon/supervisor/base/child-source.h"
#include "daemon/supervisor/base/clock.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/high-descriptor.h"
#include "daemon/supervisor/base/log.h"
#include "daemon/supervisor/workers/worker-program.h"

#define SOCKET_BUFFER_SIZE (256 * 1024)
#define START_USEC UINT64_C(10000000) /* for the service manager to start a unit, and for that to tell that it runs */

/* ---- End ---- */

static void forget(WorkerProcess *p) {
        p->exists = false;
        p->source = sd_event_source_disable_unref(p->source);
        p->timer = sd_event_source_disable_unref(p->timer);
        if (p->connection_fd >= 0)
                close(p->connection_fd);
        p->connection_fd = -1;
}

static void on_end(WorkerProcess *p, WorkerProcessEnd end) {
        forget(p);
        p->on_ended(p, &end, p->userdata); /* may free it */
}

void worker_process_kill(WorkerProcess *p) {
        if (!p->exists)
                return;
        if (p->is_engine)
                (void) shutdown(p->connection_fd, SHUT_WR);
        else
                (void) kill(p->pid, SIGKILL);
}

void worker_process_done(WorkerProcess *p, bool wait) {
        worker_process_kill(p);
        if (p->exists && !p->is_engine && wait)
                (void) waitpid(p->pid, NULL, 0);
        forget(p);
        p->pid = 0;
}

/* ---- A child ---- */

static int on_child(sd_event_source *s, const siginfo_t *si, void *userdata) {
        on_end(userdata, (WorkerProcessEnd) { .code = si->si_code, .status = si->si_status });
        return 0;
}

static int start_child(WorkerProcess *p, Context *context, int job_fd, int control_fd, int changes_fd, int counts_fd) {
        int r = worker_program_spawn(context->worker_program, job_fd, control_fd, changes_fd, counts_fd, &p->pid);

        if (r < 0) {
                p->pid = 0;
                return r;
        }
        p->exists = true;
        r = child_source_add(context->event, &p->source, p->pid, on_child, p);
        if (r < 0)
                worker_process_done(p, true);
        return r;
}

/* ---- An engine process ---- */

static int on_report(WorkerProcess *p, const EngineReport *report) {
        if (p->end.code != 0) /* nothing follows the end */
                return -EBADMSG;
        if (report->kind == ENGINE_REPORT_ENDED) {
                p->end = (WorkerProcessEnd) { .code = report->code, .status = report->status };
                return 0;
        }
        if (!p->timer || report->pid <= 0)
                return -EBADMSG;
        p->timer = sd_event_source_disable_unref(p->timer);
        p->pid = report->pid;
        return 0;
}

static int on_connection(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        WorkerProcess *p = userdata;
        EngineReport report;
        int r = engine_report_receive(fd, &report);

        if (r > 0)
                r = on_report(p, &report);
        else if (r == 0)
                r = -ECONNRESET;
        if (r >= 0 || r == -EAGAIN)
                return 0;
        if (r != -ECONNRESET)
                log_warning_limited("The connection to an engine process has failed: %s", strerror(-r));
        on_end(p, p->end);
        return 0;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        WorkerProcess *p = userdata;

        log_warning_limited("An engine process was not started within %u s: see sqlipc-engine.socket and its units.",
                            (unsigned) (START_USEC / 1000000));
        on_end(p, (WorkerProcessEnd) {});
        return 0;
}

/* The socket unit's queue takes the connection and its first message at once, or refuses them. So nothing waits here for the
 * process. */
static int connect_unit(const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd, r;

        if (strlen(path) >= sizeof address.sun_path)
                return -ENAMETOOLONG;
        strcpy(address.sun_path, path);
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        fd = high_descriptor(fd);
        if (fd < 0)
                return fd;
        r = connect(fd, (struct sockaddr *) &address, sizeof address) < 0 ? -errno : engine_report_expect(fd);
        if (r >= 0)
                return fd;
        close(fd);
        return r;
}

static int start_engine(WorkerProcess *p, Context *context, const EngineDescriptors *descriptors) {
        int fd = connect_unit(context->engine_socket), r;

        if (fd < 0)
                return fd;
        p->is_engine = p->exists = true;
        p->connection_fd = fd;
        r = engine_start_send(p->connection_fd, descriptors);
        if (r == -EPIPE) /* the unit has refused it already, which on_connection() handles */
                r = 0;
        if (r >= 0)
                r = sd_event_add_io(context->event, &p->source, p->connection_fd, EPOLLIN, on_connection, p);
        if (r >= 0)
                r = sd_event_add_time(context->event, &p->timer, CLOCK_MONOTONIC, clock_usec() + START_USEC, 0, on_timer, p);
        if (r < 0)
                forget(p);
        return r;
}

/* ---- Start ---- */

int worker_process_start(WorkerProcess *p, Context *context, EngineKind engine, int job_fd, int changes_fd,
                         int counts_fd, WorkerProcessHandler on_ended, void *userdata, int *ret_control_fd) {
        int fds[2], size = SOCKET_BUFFER_SIZE, r;

        *p = WORKER_PROCESS_INIT;
        p->on_ended = on_ended;
        p->userdata = userdata;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
                return -errno;
        int theirs = high_descriptor(fds[1]);
        if (theirs < 0) {
                close(fds[0]);
                return theirs;
        }
        (void) setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size); /* a smaller buffer is only slower */
        (void) setsockopt(theirs, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        if (job_fd < 0)
                job_fd = theirs; /* it has no jobs, but each worker has both sockets */
        if (engine == ENGINE_KIND_SQLITE)
                r = start_child(p, context, job_fd, theirs, changes_fd, counts_fd);
        else
                r = start_engine(p, context, &(EngineDescriptors) { job_fd, theirs, changes_fd });
        close(theirs);
        if (r < 0) {
                close(fds[0]);
                return r;
        }
        *ret_control_fd = fds[0];
        return 0;
}
