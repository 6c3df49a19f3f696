/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See worker-rig.h. Tests only. */
#include "tests/rigs/worker-rig.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMPUTING_USEC 30000 /* more than it takes to read a request, also under sanitizers */
#define PATIENCE_MSEC 120000 /* only ever waited for when something is broken */

static const char *worker_path;

const Setup wide = {
        .heap_size_max = UINT64_C(512) << 20,
        .temp_size_max = UINT64_C(1) << 30,
        .park_usec = 30000000,
        .park_rollback_usec = 30000000,
        .wal_size_max = UINT64_MAX,
        .busy_usec = 5000000,
        .drain_usec = UINT64_MAX, /* the rig takes nothing over unless a test asks for it */
        .sql_size_max = 1000000,
        .expression_depth_max = 1000,
        .compound_selects_max = 500,
        .vdbe_ops_max = 1000000,
        .variables_max = 32766,
};

uint64_t now_usec(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

void exec_sql(const char *path, const char *sql) {
        sqlite3 *db;
        char *message = NULL;

        g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
        /* a worker that opens the file at this moment may lock it to recover the log */
        g_assert_cmpint(sqlite3_busy_timeout(db, 60000), ==, SQLITE_OK);
        if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
                g_error("%s: %s", sql, message);
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
}

/* In the child: moves the sockets to the numbers that a worker expects, by way of high numbers, so that neither dup2() lands
 * on the other's source. The program is opened before the uid changes: the build folder need not be open to that user. */
static _Noreturn void become_worker(uid_t uid, int job_fd, int control_fd, int counts_fd) {
        char *arguments[] = { (char *) worker_path, NULL };
        int program_fd = fcntl(open(worker_path, O_RDONLY | O_CLOEXEC), F_DUPFD_CLOEXEC, 50);

        if (dup2(job_fd, 40) < 0 || dup2(control_fd, 41) < 0 || dup2(counts_fd, 42) < 0 || dup2(40, WORKER_JOB_FD) < 0 ||
            dup2(41, WORKER_CONTROL_FD) < 0 || dup2(42, WORKER_COUNTS_FD) < 0)
                _exit(126);
        close(40);
        close(41);
        close(42);
        if (uid != geteuid() && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
                _exit(126);
        fexecve(program_fd, arguments, environ);
        _exit(127);
}

void rig_start(Rig *rig, Setup setup) {
        int job[2], control[2], counts_fd = memfd_create("counts", MFD_CLOEXEC);

        g_assert_cmpint(ftruncate(counts_fd, COUNTS_N_SLOTS * sizeof(CountsSlot)), ==, 0);
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, job), ==, 0);
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), ==, 0);
        rig->pid = fork();
        g_assert_cmpint(rig->pid, >=, 0);
        if (rig->pid == 0)
                become_worker(rig->uid, job[1], control[1], counts_fd);
        close(job[1]);
        close(control[1]);
        close(counts_fd);
        rig->job_fd = job[0];
        rig->control_fd = control[0];
        setup.path = rig->database;
        g_assert_cmpint(message_send(rig->control_fd, &(Message) { .kind = MESSAGE_SETUP, .setup = setup }, -1), ==, 0);
}

bool rig_can_change_uid(void) {
        if (geteuid() == 0)
                return true;
        g_test_skip("needs root, to start a worker as another user");
        return false;
}

void rig_init_folder(Rig *rig) {
        *rig = (Rig) {
                .folder = g_dir_make_tmp("sqlipc-worker-XXXXXX", NULL),
                .uid = geteuid(),
                .next_number = 1000,
                .row_size_max = 64 << 20,
                .result_rows_max = UINT64_MAX,
                .result_size_max = UINT64_C(1) << 40,
                .deadline_in_usec = 600000000,
                .page_size = SQLIPC_PAGE_SIZE_DEFAULT,
        };
        rig->database = g_build_filename(rig->folder, "a b?#%.db", NULL); /* what a URI must escape */
}

void rig_init(Rig *rig, Setup setup) {
        rig_init_folder(rig);
        exec_sql(rig->database,
                 "CREATE TABLE t(i INTEGER PRIMARY KEY, r REAL, s TEXT, b BLOB, n);"
                 "INSERT INTO t VALUES(-9223372036854775808, -0.0, '', x'', NULL), "
                 "(9223372036854775807, 1e308, 'å', x'00ff', 1);");
        rig_start(rig, setup);
}

void rig_stop(Rig *rig) {
        g_assert_cmpint(message_send(rig->control_fd, &(Message) { .kind = MESSAGE_EXIT }, -1), ==, 0);
        rig_gone(rig);
}

void rig_gone(Rig *rig) {
        int status;

        g_assert_cmpint(waitpid(rig->pid, &status, 0), ==, rig->pid);
        g_assert_true(WIFEXITED(status));
        g_assert_cmpint(WEXITSTATUS(status), ==, 0);
        close(rig->job_fd);
        close(rig->control_fd);
}

void rig_done_folder(Rig *rig) {
        g_autofree char *command = g_strdup_printf("rm -rf '%s'", rig->folder);

        g_assert_cmpint(system(command), ==, 0);
        g_free(rig->folder);
        g_free(rig->database);
}

void rig_done(Rig *rig) {
        rig_stop(rig);
        rig_done_folder(rig);
}

void wait_for(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        g_assert_cmpint(poll(&p, 1, PATIENCE_MSEC), ==, 1);
}

uint64_t rig_cpu_usec(const Rig *rig) {
        struct timespec ts;
        clockid_t clock;

        g_assert_cmpint(clock_getcpuclockid(rig->pid, &clock), ==, 0);
        g_assert_cmpint(clock_gettime(clock, &ts), ==, 0);
        return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

void rig_wait_computing(const Rig *rig, uint64_t before_usec) {
        while (rig_cpu_usec(rig) < before_usec + COMPUTING_USEC)
                g_usleep(1000);
}

ReceivedMessage next_report(Rig *rig, uint64_t number, MessageKind kind) {
        for (;;) {
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;

                wait_for(rig->control_fd);
                g_assert_cmpint(message_receive(rig->control_fd, &m), ==, 1);
                if (m.message.kind == MESSAGE_PARKED) {
                        g_assert_cmpuint(m.message.parked.number, ==, number);
                        rig->seen.parked = m.message.parked.parked;
                } else if (m.message.kind == MESSAGE_FILLING)
                        rig->seen.filling = true;
                else if (m.message.kind == MESSAGE_PROGRESS) {
                        g_assert_cmpuint(m.message.progress.number, ==, number);
                        rig->seen.progress = m.message.progress;
                        rig->seen.n_progress++;
                } else
                        g_assert_cmpint(m.message.kind, ==, kind);
                if (m.message.kind == kind)
                        return m;
                received_message_done(&m);
        }
}

void expect_number(Rig *rig, uint64_t number, MessageKind kind) {
        ReceivedMessage m = next_report(rig, number, kind);

        g_assert_cmpuint(m.message.number, ==, number);
        received_message_done(&m);
}

void expect_started(Rig *rig, uint64_t number) {
        ReceivedMessage m = next_report(rig, number, MESSAGE_STARTED);

        g_assert_cmpuint(m.message.started.number, ==, number);
        received_message_done(&m);
}

bool send_prepare(Rig *rig, const char *sql, uint64_t *ret_number) {
        Message m = {
                .kind = MESSAGE_PREPARE,
                .job = { .number = ++rig->next_number, .sql = sql, .sql_size = strlen(sql), .lock_wait_usec = UINT64_MAX },
        };
        int r = message_send(rig->job_fd, &m, -1);

        g_assert_true(r == 0 || r == -EAGAIN);
        *ret_number = m.job.number;
        return r == 0;
}

uint64_t send_run_into(Rig *rig, const char *sql, int write_fd) {
        Message m = {
                .kind = MESSAGE_RUN,
                .job = {
                        .number = ++rig->next_number,
                        .sql = sql,
                        .sql_size = strlen(sql),
                        .describe = rig->describe,
                        .page_size = rig->page_size,
                        .deadline_usec = now_usec() + rig->deadline_in_usec,
                        .lock_wait_usec = UINT64_MAX,
                        .row_size_max = rig->row_size_max,
                        .result_rows_max = rig->result_rows_max,
                        .result_size_max = rig->result_size_max,
                },
        };

        g_assert_cmpint(fcntl(write_fd, F_SETFL, O_NONBLOCK), ==, 0);
        g_assert_cmpint(message_send(rig->job_fd, &m, write_fd), ==, 0);
        return m.job.number;
}

int send_run(Rig *rig, const char *sql, uint64_t *ret_number) {
        int fds[2];

        g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
        *ret_number = send_run_into(rig, sql, fds[1]);
        close(fds[1]);
        return fds[0];
}

int next_event(PageDecoder *d, int fd) {
        for (;;) {
                int r = page_decoder_next(d);
                uint8_t *room;
                size_t size;
                ssize_t n;

                if (r != PAGE_MORE)
                        return r;
                g_assert_cmpint(page_decoder_reserve(d, &room, &size), ==, 0);
                wait_for(fd);
                n = read(fd, room, size);
                g_assert_cmpint(n, >=, 0);
                if (n == 0)
                        return -ECONNRESET;
                page_decoder_commit(d, (size_t) n);
        }
}

Outcome read_stream(int fd, uint64_t number) {
        Outcome o = { .in_stream = true, .sql_offset = -1 };
        PageDecoder d;
        int r;

        page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, SQLIPC_ROW_SIZE_MAX);
        while ((r = next_event(&d, fd)) == PAGE_COLUMNS || r == PAGE_ROW)
                o.n_rows += r == PAGE_ROW;
        g_assert_cmpint(r, >, 0);
        g_assert_cmpuint(d.run, ==, number);
        if (r == PAGE_END)
                g_assert_cmpuint(d.end_counters.n_rows, ==, o.n_rows);
        else {
                o.error = d.error_number;
                o.sql_offset = d.error_sql_offset;
                o.extended_code = d.error_extended_code;
                g_strlcpy(o.message, d.error_message, sizeof o.message);
        }
        page_decoder_done(&d);
        return o;
}

void expect_ended(Rig *rig, uint64_t number, ErrorNumber error) {
        ReceivedMessage m = next_report(rig, number, MESSAGE_ENDED);
        bool drained = m.message.ended.drained;

        g_assert_cmpuint(m.message.ended.number, ==, number);
        g_assert_cmpint(m.message.ended.failure.error, ==, error);
        received_message_done(&m);
        if (!drained)
                expect_number(rig, number, MESSAGE_DRAINED);
}

Outcome run(Rig *rig, const char *sql) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        Outcome o = {};
        uint64_t number;
        int fd = send_run(rig, sql, &number);

        expect_number(rig, number, MESSAGE_TAKEN);
        wait_for(rig->control_fd);
        g_assert_cmpint(message_receive(rig->control_fd, &m), ==, 1);
        if (m.message.kind == MESSAGE_ENDED) {
                char byte;

                g_assert_true(m.message.ended.drained);
                o.error = m.message.ended.failure.error;
                o.sql_offset = m.message.ended.failure.sql_offset;
                o.extended_code = m.message.ended.failure.extended_code;
                g_strlcpy(o.message, m.message.ended.failure.message, sizeof o.message);
                g_assert_cmpint(read(fd, &byte, 1), ==, 0); /* nothing went down the pipe */
        } else {
                g_assert_cmpint(m.message.kind, ==, MESSAGE_STARTED);
                o = read_stream(fd, number);
                expect_ended(rig, number, o.error);
        }
        received_message_done(&m);
        close(fd);
        return o;
}

void send_cancel(Rig *rig, uint64_t number) {
        Message m = {
                .kind = MESSAGE_CANCEL,
                .cancel = { .number = number, .error = ERROR_CANCELLED, .message = "cancelled" },
        };

        g_assert_cmpint(message_send(rig->control_fd, &m, -1), ==, 0);
}

bool rig_has_memory;

void rig_main_init(int *argc, char ***argv) {
        rig_has_memory = *argc > 1 && g_str_equal((*argv)[1], "--memory");
        g_test_init(argc, argv, NULL);
        worker_path = g_getenv("SQLIPC_WORKER_PATH");
        g_assert_nonnull(worker_path);
}
