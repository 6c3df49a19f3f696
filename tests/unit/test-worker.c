/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The real worker program, driven over its two sockets as the supervisor does, on real database files. What comes down the pipe is
 * read with the page decoder; what it reports is checked message by message. No bus.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sqlite3.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "page-decoder.h"
#include "protocol.h"
#include "sanitized.h"
#include "sqlipc-errors.h"

#define PATIENCE_MSEC 30000 /* only ever waited for when something is broken */
#define ENDLESS "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
#define MANY "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x, 'row ' || x FROM c"

static const char *worker_path;

typedef struct Rig {
        char *folder, *database;
        pid_t pid;
        int job_fd, control_fd;
        uint64_t next_number;
        uint64_t row_size_max, result_size_max, deadline_in_usec;
        uint32_t page_size;
        struct {
                uint64_t number;
                bool parked, filling;
        } seen; /* what passed by while something else was waited for */
} Rig;

static uint64_t now_usec(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

static void exec_sql(const char *path, const char *sql) {
        sqlite3 *db;
        char *message = NULL;

        g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
        if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
                g_error("%s: %s", sql, message);
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
}

/* SETUP with room for everything; a test narrows what it is about. */
static const Setup wide = {
        .heap_size_max = UINT64_C(512) << 20,
        .temp_size_max = UINT64_C(1) << 30,
        .park_usec = 30000000,
        .park_rollback_usec = 30000000,
        .busy_usec = 5000000,
};

static void rig_start(Rig *rig, Setup setup) {
        posix_spawn_file_actions_t actions;
        char *argv[] = { (char *) worker_path, NULL };
        int job[2], control[2];

        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, job), ==, 0);
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), ==, 0);
        posix_spawn_file_actions_init(&actions);
        /* by way of high numbers, so that neither dup2() lands on the other's source */
        posix_spawn_file_actions_adddup2(&actions, job[1], 40);
        posix_spawn_file_actions_adddup2(&actions, control[1], 41);
        posix_spawn_file_actions_adddup2(&actions, 40, WORKER_JOB_FD);
        posix_spawn_file_actions_adddup2(&actions, 41, WORKER_CONTROL_FD);
        posix_spawn_file_actions_addclose(&actions, 40);
        posix_spawn_file_actions_addclose(&actions, 41);
        g_assert_cmpint(posix_spawn(&rig->pid, worker_path, &actions, NULL, argv, environ), ==, 0);
        posix_spawn_file_actions_destroy(&actions);
        close(job[1]);
        close(control[1]);
        rig->job_fd = job[0];
        rig->control_fd = control[0];
        setup.path = rig->database;
        g_assert_cmpint(message_send(rig->control_fd, &(Message) { .kind = MESSAGE_SETUP, .setup = setup }, -1), ==, 0);
}

static void rig_init(Rig *rig, Setup setup) {
        *rig = (Rig) {
                .folder = g_dir_make_tmp("sqlipc-worker-XXXXXX", NULL),
                .next_number = 1000,
                .row_size_max = 64 << 20,
                .result_size_max = UINT64_C(1) << 40,
                .deadline_in_usec = 600000000,
                .page_size = SQLIPC_PAGE_SIZE_DEFAULT,
        };
        rig->database = g_build_filename(rig->folder, "a b?#%.db", NULL); /* what a URI must escape */
        exec_sql(rig->database,
                 "CREATE TABLE t(i INTEGER PRIMARY KEY, r REAL, s TEXT, b BLOB, n);"
                 "INSERT INTO t VALUES(-9223372036854775808, -0.0, '', x'', NULL), (9223372036854775807, 1e308, 'å', x'00ff', 1);");
        rig_start(rig, setup);
}

static void rig_stop(Rig *rig) {
        int status;

        g_assert_cmpint(message_send(rig->control_fd, &(Message) { .kind = MESSAGE_EXIT }, -1), ==, 0);
        g_assert_cmpint(waitpid(rig->pid, &status, 0), ==, rig->pid);
        g_assert_true(WIFEXITED(status));
        g_assert_cmpint(WEXITSTATUS(status), ==, 0);
        close(rig->job_fd);
        close(rig->control_fd);
}

static void rig_done(Rig *rig) {
        g_autofree char *command = g_strdup_printf("rm -rf '%s'", rig->folder);

        rig_stop(rig);
        g_assert_cmpint(system(command), ==, 0);
        g_free(rig->folder);
        g_free(rig->database);
}

static void wait_for(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        g_assert_cmpint(poll(&p, 1, PATIENCE_MSEC), ==, 1);
}

/* The next report of `number`; PARKED and FILLING pass by into rig->seen unless asked for. */
static ReceivedMessage next_report(Rig *rig, uint64_t number, MessageKind kind) {
        for (;;) {
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;

                wait_for(rig->control_fd);
                g_assert_cmpint(message_receive(rig->control_fd, &m), ==, 1);
                if (m.message.kind == MESSAGE_PARKED) {
                        g_assert_cmpuint(m.message.parked.number, ==, number);
                        rig->seen.parked = m.message.parked.parked;
                } else if (m.message.kind == MESSAGE_FILLING)
                        rig->seen.filling = true;
                else
                        g_assert_cmpint(m.message.kind, ==, kind);
                if (m.message.kind == kind)
                        return m;
                received_message_done(&m);
        }
}

static void expect_number(Rig *rig, uint64_t number, MessageKind kind) {
        ReceivedMessage m = next_report(rig, number, kind);

        g_assert_cmpuint(m.message.number, ==, number);
        received_message_done(&m);
}

static void expect_started(Rig *rig, uint64_t number) {
        ReceivedMessage m = next_report(rig, number, MESSAGE_STARTED);

        g_assert_cmpuint(m.message.started.number, ==, number);
        received_message_done(&m);
}

/* Sends a RUN without parameters; returns the read end. */
static int send_run(Rig *rig, const char *sql, uint64_t *ret_number) {
        int fds[2];
        Message m = {
                .kind = MESSAGE_RUN,
                .job = {
                        .number = ++rig->next_number,
                        .sql = sql,
                        .sql_size = strlen(sql),
                        .page_size = rig->page_size,
                        .deadline_usec = now_usec() + rig->deadline_in_usec,
                        .row_size_max = rig->row_size_max,
                        .result_size_max = rig->result_size_max,
                },
        };

        g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
        g_assert_cmpint(fcntl(fds[1], F_SETFL, O_NONBLOCK), ==, 0);
        g_assert_cmpint(message_send(rig->job_fd, &m, fds[1]), ==, 0);
        close(fds[1]);
        *ret_number = m.job.number;
        return fds[0];
}

/* The next event of a stream. */
static int next_event(PageDecoder *d, int fd) {
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

typedef struct Outcome {
        ErrorNumber error; /* of ENDED before STARTED, or of the ERROR frame */
        bool in_stream;
        uint64_t n_rows;
        int32_t sql_offset, extended_code;
        char message[512];
} Outcome;

static Outcome read_stream(int fd, uint64_t number) {
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

/* ENDED or, where ENDED was not drained, DRAINED behind it must be there by the time the stream's end was read. */
static void expect_ended(Rig *rig, uint64_t number, ErrorNumber error) {
        ReceivedMessage m = next_report(rig, number, MESSAGE_ENDED);
        bool drained = m.message.ended.drained;

        g_assert_cmpuint(m.message.ended.number, ==, number);
        g_assert_cmpint(m.message.ended.failure.error, ==, error);
        received_message_done(&m);
        if (!drained)
                expect_number(rig, number, MESSAGE_DRAINED);
}

/* Runs `sql` to its end, whatever that is. */
static Outcome run(Rig *rig, const char *sql) {
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

static void send_cancel(Rig *rig, uint64_t number) {
        Message m = { .kind = MESSAGE_CANCEL, .cancel = { .number = number, .error = ERROR_CANCELLED, .message = "cancelled" } };

        g_assert_cmpint(message_send(rig->control_fd, &m, -1), ==, 0);
}

/* ---- the tests ---- */

static void test_values(void) {
        Rig rig;
        PageDecoder d;
        uint64_t number;
        int fd;

        rig_init(&rig, wide);
        fd = send_run(&rig, "SELECT i, r, s, b, n FROM t ORDER BY i", &number);
        page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, SQLIPC_ROW_SIZE_MAX);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_COLUMNS);
        g_assert_cmpuint(d.n_columns, ==, 5);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_ROW);
        g_assert_cmpint((int64_t) load_le64(page_decoder_value(&d, 0).bytes), ==, INT64_MIN);
        g_assert_true(load_le64(page_decoder_value(&d, 1).bytes) == 0 ||
                      load_le64(page_decoder_value(&d, 1).bytes) == UINT64_C(1) << 63);
        g_assert_cmpint(page_decoder_value(&d, 2).type, ==, VALUE_TEXT);
        g_assert_cmpuint(page_decoder_value(&d, 2).size, ==, 0);
        g_assert_cmpint(page_decoder_value(&d, 3).type, ==, VALUE_BLOB);
        g_assert_cmpint(page_decoder_value(&d, 4).type, ==, VALUE_NULL);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_ROW);
        g_assert_cmpint((int64_t) load_le64(page_decoder_value(&d, 0).bytes), ==, INT64_MAX);
        g_assert_cmpfloat(load_le_double(page_decoder_value(&d, 1).bytes), ==, 1e308);
        g_assert_cmpmem(page_decoder_value(&d, 3).bytes, page_decoder_value(&d, 3).size, "\x00\xff", 2);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_END);
        page_decoder_done(&d);
        close(fd);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        expect_ended(&rig, number, ERROR_NONE);
        rig_done(&rig);
}

static void test_prepare(void) {
        static const char sql[] = "SELECT i AS one, s, i + :a FROM t WHERE s = @b AND i > ?7 ";
        ReceivedMessage m;
        Rig rig;
        const Started *s;

        rig_init(&rig, wide);
        g_assert_cmpint(message_send(rig.job_fd,
                                     &(Message) { .kind = MESSAGE_PREPARE, .job = { .number = 5, .sql = sql, .sql_size = strlen(sql) } }, -1),
                        ==, 0);
        expect_number(&rig, 5, MESSAGE_TAKEN);
        m = next_report(&rig, 5, MESSAGE_STARTED);
        s = &m.message.started;
        g_assert_true(s->described && s->read_only);
        g_assert_cmpuint(s->n_columns, ==, 3);
        g_assert_cmpstr(s->columns[0].data, ==, "one");
        g_assert_cmpstr(s->columns[1].data, ==, "INTEGER");
        g_assert_cmpstr(s->columns[3].data, ==, "TEXT");
        g_assert_null(s->columns[5].data);
        g_assert_cmpuint(s->n_parameters, ==, 7);
        g_assert_cmpstr(s->parameters[0].data, ==, ":a");
        g_assert_cmpstr(s->parameters[1].data, ==, "@b");
        g_assert_null(s->parameters[3].data);
        g_assert_cmpstr(s->parameters[6].data, ==, "?7");
        received_message_done(&m);
        rig_done(&rig);
}

static void test_errors(void) {
        static const struct {
                const char *sql;
                ErrorNumber error;
                int32_t offset;
        } cases[] = {
                { "", ERROR_EMPTY_STATEMENT, -1 },
                { " ;; -- nothing\n /* here */ ;", ERROR_EMPTY_STATEMENT, -1 },
                { "SELECT 1; SELECT 2", ERROR_SEVERAL_STATEMENTS, -1 },
                { "SELECT 1; nonsense", ERROR_SEVERAL_STATEMENTS, -1 },
                { "SELECT 1 ; /* rest */ -- \n ;", ERROR_NONE, -1 },
                { ";; SELECT 1", ERROR_NONE, -1 },
                { "SELECT nonsense FROM t", ERROR_SQL, 7 },
                { ";;SELECT nonsense FROM t", ERROR_SQL, 9 },
                { "SELEC 1", ERROR_SQL, 0 },
                { "SELECT * FROM nowhere", ERROR_SQL, -1 },
                { "SELECT nofunction(1)", ERROR_MISSING_FUNCTION, 7 },
                { "SELECT 1 ORDER BY 1 COLLATE nowhere", ERROR_MISSING_COLLATION, -1 },
                { "INSERT INTO t(i) VALUES(1)", ERROR_READ_ONLY, -1 },
                { "CREATE TEMP TABLE x(y)", ERROR_READ_ONLY, -1 },
                { "DROP TABLE t", ERROR_READ_ONLY, -1 },
                { "VACUUM", ERROR_READ_ONLY, -1 },
                { "ATTACH ':memory:' AS x", ERROR_NOT_ALLOWED, -1 },
                { "BEGIN", ERROR_NOT_ALLOWED, -1 },
                { "PRAGMA journal_mode = WAL", ERROR_NOT_ALLOWED, -1 },
                { "PRAGMA cache_size = 100000", ERROR_NOT_ALLOWED, -1 },
                { "PRAGMA user_version", ERROR_NONE, -1 },
                { "PRAGMA table_info(t)", ERROR_NONE, -1 },
                { "SELECT * FROM pragma_table_info('t')", ERROR_NONE, -1 },
                { "SELECT load_extension('x')", ERROR_NOT_ALLOWED, -1 },
                { "SELECT ?", ERROR_PARAMETER_COUNT, -1 },
                { "EXPLAIN SELECT 1", ERROR_NONE, -1 },
        };
        Rig rig;

        rig_init(&rig, wide);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                Outcome o = run(&rig, cases[i].sql);

                g_test_message("%s: %s", cases[i].sql, o.message);
                g_assert_cmpint(o.error, ==, cases[i].error);
                if (cases[i].offset >= 0)
                        g_assert_cmpint(o.sql_offset, ==, cases[i].offset);
        }
        /* and the worker is as good as before */
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        rig_done(&rig);
}

/* An error in the middle: rows first, then the ERROR frame. */
static void test_error_after_rows(void) {
        Rig rig;
        Outcome o;

        rig_init(&rig, wide);
        o = run(&rig, "SELECT abs(i) FROM t ORDER BY i DESC");
        g_assert_true(o.in_stream);
        g_assert_cmpint(o.error, ==, ERROR_SQL);
        g_assert_cmpuint(o.n_rows, ==, 1);
        g_assert_cmpstr(o.message, ==, "integer overflow");
        rig_done(&rig);
}

static void test_cancel_long_step(void) {
        Rig rig;
        uint64_t number;
        int fd;
        Outcome o;

        rig_init(&rig, wide);
        fd = send_run(&rig, ENDLESS, &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        send_cancel(&rig, number);
        o = read_stream(fd, number);
        g_assert_cmpint(o.error, ==, ERROR_CANCELLED);
        expect_ended(&rig, number, ERROR_CANCELLED);
        close(fd);
        rig_done(&rig);
}

static void test_deadline(void) {
        Rig rig;
        Outcome o;

        rig_init(&rig, wide);
        rig.deadline_in_usec = 50000;
        o = run(&rig, ENDLESS);
        g_assert_cmpint(o.error, ==, ERROR_TIMED_OUT);
        rig_done(&rig);
}

/* A row that is found before a long step arrives before that step ends: it never ends here. */
static void test_row_before_long_step(void) {
        Rig rig;
        PageDecoder d;
        uint64_t number;
        int fd;

        rig_init(&rig, wide);
        fd = send_run(&rig, "SELECT 'early' UNION ALL SELECT * FROM (" ENDLESS ")", &number);
        page_decoder_init(&d, SQLIPC_PAGE_SIZE_MAX, SQLIPC_ROW_SIZE_MAX);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_COLUMNS);
        g_assert_cmpint(next_event(&d, fd), ==, PAGE_ROW);
        page_decoder_done(&d);
        close(fd); /* and the worker notices, in the middle of that step */
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        expect_ended(&rig, number, ERROR_PIPE_CLOSED);
        rig_done(&rig);
}

/* A reader that stalls: parked, told so, ended; meanwhile others are answered. What was under way is still whole. */
static void test_stalled_reader(void) {
        Setup setup = wide;
        Rig rig;
        uint64_t number;
        int fd;
        Outcome o;

        setup.park_usec = setup.park_rollback_usec = 300000;
        rig_init(&rig, setup);
        fd = send_run(&rig, MANY, &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        {
                ReceivedMessage m = next_report(&rig, number, MESSAGE_PARKED);
                g_assert_true(m.message.parked.parked);
                received_message_done(&m);
        }
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        {
                ReceivedMessage m = next_report(&rig, number, MESSAGE_ENDED);
                g_assert_cmpint(m.message.ended.failure.error, ==, ERROR_READER_TOO_SLOW);
                g_assert_false(m.message.ended.drained);
                received_message_done(&m);
        }
        o = read_stream(fd, number);
        g_assert_cmpint(o.error, ==, ERROR_READER_TOO_SLOW);
        g_assert_cmpuint(o.n_rows, >, 0);
        expect_number(&rig, number, MESSAGE_DRAINED);
        close(fd);
        rig_done(&rig);
}

static void test_rows_of_any_size(void) {
        static const size_t sizes[] = { 1, 4000, 4096, 4097, 65536, 1 << 20, 5 << 20 };
        static const uint32_t page_sizes[] = { 4096, 65536, 1 << 20 };
        Rig rig;

        rig_init(&rig, wide);
        for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++)
                for (size_t k = 0; k < G_N_ELEMENTS(page_sizes); k++) {
                        g_autofree char *sql = g_strdup_printf("SELECT 1, zeroblob(%zu), 'x', hex(zeroblob(%zu)) UNION ALL SELECT 2, 3, 4, 5",
                                                               sizes[i], sizes[i]);
                        Outcome o;

                        rig.page_size = page_sizes[k];
                        o = run(&rig, sql);
                        g_assert_cmpint(o.error, ==, ERROR_NONE);
                        g_assert_cmpuint(o.n_rows, ==, 2);
                }
        rig_done(&rig);
}

static void test_row_limit(void) {
        Rig rig;

        rig_init(&rig, wide);
        for (size_t limit = 1000; limit <= 1000000; limit *= 1000) {
                /* one blob and its five bytes of type and end */
                g_autofree char *at = g_strdup_printf("SELECT zeroblob(%zu)", limit - 5);
                g_autofree char *over = g_strdup_printf("SELECT zeroblob(%zu)", limit - 4);

                rig.row_size_max = limit;
                g_assert_cmpuint(run(&rig, at).n_rows, ==, 1);
                g_assert_cmpint(run(&rig, over).error, ==, ERROR_ROW_TOO_LARGE);
        }
        rig_done(&rig);
}

static void test_result_limit(void) {
        Rig rig;

        rig_init(&rig, wide);
        rig.result_size_max = 1000000;
        g_assert_cmpint(run(&rig, MANY).error, ==, ERROR_LIMITS_EXCEEDED);
        rig_done(&rig);
}

static void test_temporary_space(void) {
        Setup setup = wide;
        Rig rig;
        Outcome o;

        setup.temp_size_max = 1 << 20;
        rig_init(&rig, setup);
        o = run(&rig, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100000) "
                      "SELECT hex(randomblob(100)) FROM c ORDER BY 1");
        g_assert_cmpint(o.error, ==, ERROR_LIMITS_EXCEEDED);
        g_assert_nonnull(strstr(o.message, "TempSizeMax="));
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        rig_done(&rig);
}

static void test_heap(void) {
        Setup setup = wide;
        Rig rig;

        setup.heap_size_max = 16 << 20;
        rig_init(&rig, setup);
        g_assert_cmpint(run(&rig, "SELECT zeroblob(30000000) || 'x'").error, ==, ERROR_OUT_OF_MEMORY);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        rig_done(&rig);
}

/* Nested CTEs, each twice the one before: SQLite cannot be interrupted while it compiles them. */
static void test_exhausting_prepare(void) {
        g_autoptr(GString) sql = g_string_new("WITH c0 AS (SELECT 1 AS x)");
        Rig rig;

        for (unsigned i = 1; i <= 24; i++)
                g_string_append_printf(sql, ", c%u AS (SELECT * FROM c%u UNION ALL SELECT * FROM c%u)", i, i - 1, i - 1);
        g_string_append(sql, " SELECT count(*) FROM c24");
        rig_init(&rig, wide);
        g_assert_cmpint(run(&rig, sql->str).error, ==, ERROR_OUT_OF_MEMORY);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        rig_done(&rig);
}

/* Another program changes the schema between two runs of a compiled statement, and its column count. */
static void test_schema_change(void) {
        Rig rig;

        rig_init(&rig, wide);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        exec_sql(rig.database, "ALTER TABLE t ADD COLUMN extra; INSERT INTO t(i, extra) VALUES(5, 6)");
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 3);
        exec_sql(rig.database, "DROP TABLE t; CREATE TABLE t(only)");
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 0);
        exec_sql(rig.database, "DROP TABLE t");
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_SQL);
        rig_done(&rig);
}

static void test_file_replaced(void) {
        Rig rig;
        g_autofree char *other = NULL;

        rig_init(&rig, wide);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        other = g_build_filename(rig.folder, "other.db", NULL);
        exec_sql(other, "CREATE TABLE t(i); INSERT INTO t VALUES(1), (2), (3)");
        g_assert_cmpint(g_rename(other, rig.database), ==, 0);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 3);
        g_assert_cmpint(g_unlink(rig.database), ==, 0);
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_FILE_MISSING);
        g_assert_cmpint(g_mkdir(rig.database, 0700), ==, 0);
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_CANNOT_OPEN);
        g_assert_cmpint(g_rmdir(rig.database), ==, 0);
        g_assert_true(g_file_set_contents(rig.database, "this is no database, and long enough to be seen as none.....", -1, NULL));
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_CORRUPT);
        rig_done(&rig);
}

/* A writer holds the file: tried again until it lets go, or the time for that is over. */
static void test_busy(void) {
        Setup setup = wide;
        Rig rig;
        sqlite3 *writer;
        uint64_t number;
        int fd;

        setup.busy_usec = 200000;
        rig_init(&rig, setup);
        g_assert_cmpint(sqlite3_open(rig.database, &writer), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(writer, "BEGIN EXCLUSIVE", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_BUSY);
        fd = send_run(&rig, "SELECT * FROM t", &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        g_assert_cmpint(sqlite3_exec(writer, "COMMIT", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpuint(read_stream(fd, number).n_rows, ==, 2);
        expect_started(&rig, number);
        expect_ended(&rig, number, ERROR_NONE);
        close(fd);
        sqlite3_close(writer);
        rig_done(&rig);
}

/* Whoever has read the end may ask for the next run at once: the report of the end must be there already. */
static void test_end_is_reported_first(void) {
        Rig rig;

        rig_init(&rig, wide);
        for (unsigned i = 0; i < 3000; i++) {
                uint64_t number;
                bool free_again = false;
                int fd = send_run(&rig, "SELECT * FROM t", &number);

                g_assert_cmpuint(read_stream(fd, number).n_rows, ==, 2);
                for (;;) {
                        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
                        int r = message_receive(rig.control_fd, &m);

                        if (r == -EAGAIN)
                                break;
                        g_assert_cmpint(r, ==, 1);
                        free_again |= (m.message.kind == MESSAGE_ENDED && m.message.ended.drained) || m.message.kind == MESSAGE_DRAINED;
                        received_message_done(&m);
                }
                g_assert_true(free_again);
                close(fd);
        }
        rig_done(&rig);
}

/* SQL that is too large for a datagram goes through a memfd. */
static void test_long_sql(void) {
        g_autoptr(GString) sql = g_string_new("SELECT i FROM t WHERE i IN (0");
        Rig rig;

        for (unsigned i = 0; i < 30000; i++)
                g_string_append_printf(sql, ", %u", i);
        g_string_append(sql, ") OR i < 0");
        rig_init(&rig, wide);
        g_assert_cmpuint(sql->len, >, MESSAGE_SIZE_MAX);
        g_assert_cmpuint(run(&rig, sql->str).n_rows, ==, 1);
        rig_done(&rig);
}

/* The kernel's word on what the worker may do. Sanitizers need more than that, so there is no filter with them. */
static void test_sandbox(void) {
        g_autofree char *status = NULL, *limits = NULL, *name = NULL;
        Rig rig;

        rig_init(&rig, wide);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2); /* it is set up by then */
        name = g_strdup_printf("/proc/%d/status", rig.pid);
        g_assert_true(g_file_get_contents(name, &status, NULL, NULL));
        g_assert_nonnull(strstr(status, "NoNewPrivs:\t1\n"));
        g_free(name);
        name = g_strdup_printf("/proc/%d/limits", rig.pid);
        g_assert_true(g_file_get_contents(name, &limits, NULL, NULL));
        g_assert_true(g_regex_match_simple("^Max core file size +0 +0 ", limits, G_REGEX_MULTILINE, 0));
        if (SANITIZED)
                g_assert_nonnull(strstr(status, "Seccomp:\t0\n"));
        else {
                g_assert_nonnull(strstr(status, "Seccomp:\t2\n"));
                g_assert_true(g_regex_match_simple("^Max address space +1073741824 +1073741824 ", limits, G_REGEX_MULTILINE, 0));
        }
        rig_done(&rig);
}

/* A worker whose supervisor is gone goes too; one that is told nonsense gives up. */
static void test_goes_with_supervisor(void) {
        Rig rig;
        int status;

        rig_init(&rig, wide);
        close(rig.control_fd);
        close(rig.job_fd);
        g_assert_cmpint(waitpid(rig.pid, &status, 0), ==, rig.pid);
        g_assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);

        rig_start(&rig, wide);
        g_assert_cmpint(send(rig.job_fd, "nonsense", 8, 0), ==, 8);
        g_assert_cmpint(waitpid(rig.pid, &status, 0), ==, rig.pid);
        g_assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        close(rig.control_fd);
        close(rig.job_fd);

        rig_start(&rig, wide);
        rig_done(&rig);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        worker_path = g_getenv("SQLIPC_WORKER_PATH");
        g_assert_nonnull(worker_path);

        g_test_add_func("/worker/values", test_values);
        g_test_add_func("/worker/prepare", test_prepare);
        g_test_add_func("/worker/errors", test_errors);
        g_test_add_func("/worker/error-after-rows", test_error_after_rows);
        g_test_add_func("/worker/cancel-long-step", test_cancel_long_step);
        g_test_add_func("/worker/deadline", test_deadline);
        g_test_add_func("/worker/row-before-long-step", test_row_before_long_step);
        g_test_add_func("/worker/stalled-reader", test_stalled_reader);
        g_test_add_func("/worker/rows-of-any-size", test_rows_of_any_size);
        g_test_add_func("/worker/row-limit", test_row_limit);
        g_test_add_func("/worker/result-limit", test_result_limit);
        g_test_add_func("/worker/temporary-space", test_temporary_space);
        g_test_add_func("/worker/heap", test_heap);
        g_test_add_func("/worker/exhausting-prepare", test_exhausting_prepare);
        g_test_add_func("/worker/schema-change", test_schema_change);
        g_test_add_func("/worker/file-replaced", test_file_replaced);
        g_test_add_func("/worker/busy", test_busy);
        g_test_add_func("/worker/end-is-reported-first", test_end_is_reported_first);
        g_test_add_func("/worker/long-sql", test_long_sql);
        g_test_add_func("/worker/sandbox", test_sandbox);
        g_test_add_func("/worker/goes-with-supervisor", test_goes_with_supervisor);
        return g_test_run();
}
