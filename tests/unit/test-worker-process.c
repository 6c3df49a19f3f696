/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Engine processes as the supervisor has them: start, reports, kill and end, with a socket of the test in place of the
 * unit's, and with processes that lie. The test's clock does not advance by itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/protocol/datagram.h"
#include "daemon/protocol/engine-connection.h"
#include "daemon/supervisor/workers/worker-process.h"
#include "tests/fuzz/descriptors.h"
#include "tests/rigs/bus-rig.h"
#include "tests/unit/test.h"

#define SECOND UINT64_C(1000000)

static char socket_path[64];
static int listen_fd = -1;
static WorkerProcess process;
static int control_fd;
static unsigned n_ends;
static WorkerProcessEnd last_end;

static void on_ended(WorkerProcess *p, const WorkerProcessEnd *end, void *userdata) {
        CHECK(p == &process && userdata == &n_ends && !p->exists);
        n_ends++;
        last_end = *end;
}

static void begin(void) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        rig_begin_users();
        (void) snprintf(socket_path, sizeof socket_path, "/tmp/sqlipc-test-%i.socket", (int) getpid());
        strcpy(address.sun_path, socket_path);
        (void) unlink(socket_path);
        listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        CHECK(listen_fd >= 0 && bind(listen_fd, (struct sockaddr *) &address, sizeof address) == 0);
        CHECK(listen(listen_fd, 1) == 0);
        rig.manager->context.engine_socket = socket_path;
        n_ends = 0;
}

static void end(void) {
        (void) unlink(socket_path);
        if (listen_fd >= 0)
                close(listen_fd);
        listen_fd = -1;
        rig_check_nothing_left();
}

static int start(void) {
        return worker_process_start(&process, &rig.manager->context, ENGINE_KIND_POSTGRESQL, -1, -1, -1, on_ended, &n_ends,
                                    &control_fd);
}

/* Returns the other end of the connection, as the keeper has it. */
static int start_and_accept(void) {
        CHECK_INT(start(), 0);
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        CHECK(fd >= 0 && process.exists && process.pid == 0);
        return fd;
}

static void report(int fd, EngineReportKind kind, int code, int status) {
        CHECK_INT(engine_report_send(fd, &(EngineReport) { .kind = kind, .code = code, .status = status }), 0);
        rig_pump();
}

static void check_end(int code, int status) {
        CHECK_INT(n_ends, 1);
        CHECK_INT(last_end.code, code);
        CHECK_INT(last_end.status, status);
        CHECK(!process.exists);
        close(control_fd);
}

static void test_starts(void) {
        EngineDescriptors d;

        begin();
        int fd = start_and_accept();
        CHECK_INT(engine_start_receive(fd, &d), 1);
        CHECK(d.job_fd >= 0 && d.control_fd >= 0 && d.changes_fd == -1);
        close(d.job_fd);
        close(d.control_fd);
        report(fd, ENGINE_REPORT_STARTED, 0, 0);
        CHECK_INT(process.pid, getpid()); /* as the kernel tells */
        rig_pass_time(1000 * SECOND);
        CHECK(process.exists);
        report(fd, ENGINE_REPORT_ENDED, CLD_KILLED, SIGSEGV);
        CHECK_INT(n_ends, 0); /* until the keeper has ended, too */
        close(fd);
        rig_pump();
        check_end(CLD_KILLED, SIGSEGV);
        end();
}

static void test_never_starts(void) {
        begin();
        int fd = start_and_accept();
        rig_pass_time(9 * SECOND);
        CHECK_INT(n_ends, 0);
        rig_pass_time(2 * SECOND);
        check_end(0, 0);
        EngineDescriptors d;
        CHECK_INT(engine_start_receive(fd, &d), 1);
        close(d.job_fd);
        close(d.control_fd);
        CHECK_INT(engine_start_receive(fd, &d), 0); /* its keeper ends */
        close(fd);
        end();
}

static void test_kill(void) {
        struct pollfd p;

        begin();
        int fd = start_and_accept();
        report(fd, ENGINE_REPORT_STARTED, 0, 0);
        worker_process_kill(&process);
        worker_process_kill(&process);
        p = (struct pollfd) { .fd = fd, .events = POLLRDHUP };
        CHECK(poll(&p, 1, 0) == 1 && (p.revents & POLLRDHUP));
        rig_pump();
        CHECK_INT(n_ends, 0);
        report(fd, ENGINE_REPORT_ENDED, CLD_KILLED, SIGKILL);
        close(fd);
        rig_pump();
        check_end(CLD_KILLED, SIGKILL);
        worker_process_kill(&process);
        end();
}

static void test_done(void) {
        char byte;

        begin();
        int fd = start_and_accept();
        worker_process_done(&process, true);
        CHECK(!process.exists);
        close(control_fd);
        EngineDescriptors d;
        CHECK_INT(engine_start_receive(fd, &d), 1);
        close(d.job_fd);
        close(d.control_fd);
        CHECK_INT(recv(fd, &byte, 1, 0), 0);
        close(fd);
        rig_pump();
        CHECK_INT(n_ends, 0);
        end();
}

/* MaxConnections= is reached: the connection is accepted, and closed. */
static void test_refused(void) {
        begin();
        close(start_and_accept());
        rig_pump();
        check_end(0, 0);
        end();
}

static void test_no_unit(void) {
        begin();
        close(listen_fd);
        listen_fd = -1;
        CHECK_INT(start(), -ECONNREFUSED);
        (void) unlink(socket_path);
        CHECK_INT(start(), -ENOENT);
        CHECK(!process.exists);
        end();
}

/* The unit does not accept. Nothing waits for it. */
static void test_full_queue(void) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fds[8];
        size_t n = 0;

        begin();
        strcpy(address.sun_path, socket_path);
        while (n < N_ELEMENTS(fds)) {
                fds[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
                if (connect(fds[n++], (struct sockaddr *) &address, sizeof address) < 0)
                        break;
        }
        CHECK_INT(start(), -EAGAIN);
        while (n > 0)
                close(fds[--n]);
        end();
}

static void test_lies(void) {
        static const char nonsense[64] = "nonsense";

        for (unsigned lie = 0; lie < 6; lie++) {
                begin();
                int fd = start_and_accept();
                if (lie == 0)
                        CHECK(send(fd, nonsense, sizeof nonsense, 0) > 0);
                if (lie == 1)
                        CHECK(send(fd, nonsense, 3, 0) > 0);
                if (lie == 2)
                        report(fd, 7, 0, 0);
                if (lie == 3) {
                        report(fd, ENGINE_REPORT_STARTED, 0, 0);
                        report(fd, ENGINE_REPORT_STARTED, 0, 0);
                }
                if (lie == 4) {
                        report(fd, ENGINE_REPORT_ENDED, CLD_EXITED, 1);
                        report(fd, ENGINE_REPORT_ENDED, CLD_EXITED, 0);
                }
                if (lie == 5) {
                        report(fd, ENGINE_REPORT_ENDED, CLD_EXITED, 1);
                        report(fd, ENGINE_REPORT_STARTED, 0, 0);
                }
                rig_pump();
                check_end(lie >= 4 ? CLD_EXITED : 0, lie >= 4);
                close(fd);
                end();
        }
}

/* Descriptors that come with a report, or with an empty message, are closed. */
static void test_descriptors(void) {
        const uint32_t bytes[3] = { ENGINE_REPORT_STARTED };

        begin();
        int fd = start_and_accept();
        unsigned before = count_descriptors();
        CHECK_INT(datagram_send(fd, bytes, sizeof bytes, (int[]) { fd, fd }, 2), 0);
        rig_pump();
        CHECK_INT(process.pid, getpid());
        CHECK_INT(count_descriptors(), before);
        CHECK_INT(datagram_send(fd, "", 0, (int[]) { fd, fd }, 2), 0);
        rig_pump();
        CHECK_INT(count_descriptors(), before - 1); /* the connection has ended */
        close(fd);
        check_end(0, 0);
        end();
}

static void test_other_version(void) {
        char bytes[64] = "0.0.0";
        EngineDescriptors d;
        int fds[2];

        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        CHECK_INT(engine_start_receive(fds[1], &d), -EAGAIN);
        for (size_t size = 1; size <= sizeof bytes; size++) {
                CHECK(send(fds[0], bytes, size, 0) == (ssize_t) size);
                int r = engine_start_receive(fds[1], &d);
                CHECK(r == -EPROTO || r == -EBADMSG);
        }
        CHECK_INT(engine_start_send(fds[0], &(EngineDescriptors) { -1, fds[0], -1 }), 0);
        CHECK_INT(engine_start_receive(fds[1], &d), 1);
        CHECK(d.job_fd == -1 && d.control_fd >= 0 && d.changes_fd == -1);
        close(d.control_fd);
        close(fds[0]);
        CHECK_INT(engine_start_receive(fds[1], &d), 0);
        close(fds[1]);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_starts), TEST(test_never_starts), TEST(test_kill), TEST(test_done), TEST(test_refused),
                TEST(test_no_unit), TEST(test_full_queue), TEST(test_lies), TEST(test_descriptors), TEST(test_other_version),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
