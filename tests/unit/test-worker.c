/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The worker: statements, limits, start and end. */
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/worker/sandbox/sanitized.h"
#include "tests/rigs/worker-rig.h"

static void test_prepare(void) {
        static const char sql[] = "SELECT i AS one, s, i + :a FROM t WHERE s = @b AND i > ?7 ";
        ReceivedMessage m;
        Rig rig;
        const Started *s;

        rig_init(&rig, wide);
        g_assert_cmpint(message_send(rig.job_fd,
                                     &(Message) {
                                             .kind = MESSAGE_PREPARE,
                                             .job = { .number = 5, .sql = sql, .sql_size = strlen(sql) },
                                     },
                                     -1),
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
                { "CREATE TEMP TABLE x(y)", ERROR_NEEDS_PIN, -1 },
                { "DROP TABLE t", ERROR_READ_ONLY, -1 },
                { "VACUUM", ERROR_READ_ONLY, -1 },
                { "ATTACH ':memory:' AS x", ERROR_NEEDS_PIN, -1 },
                { "BEGIN", ERROR_NOT_ALLOWED, -1 },
                { "PRAGMA journal_mode", ERROR_NONE, -1 },
                { "/* read */ ;pragma main.JOURNAL_MODE ;", ERROR_NONE, -1 },
                { "PRAGMA temp.journal_mode", ERROR_NONE, -1 },
                { "SELECT * FROM pragma_journal_mode", ERROR_NONE, -1 },
                { "PRAGMA journal_mode = WAL", ERROR_NONE, -1 },
                { "PRAGMA journal_mode(DELETE)", ERROR_NONE, -1 },
                { "PRAGMA main.journal_mode = 'off'", ERROR_NONE, -1 },
                { "PRAGMA journal_mode = nonsense", ERROR_NONE, -1 },
                { "EXPLAIN PRAGMA journal_mode = WAL", ERROR_NONE, -1 },
                { "PRAGMA journal_mode; VACUUM", ERROR_SEVERAL_STATEMENTS, -1 },
                { "PRAGMA journal_mode; PRAGMA journal_mode = WAL", ERROR_SEVERAL_STATEMENTS, -1 },
                { "INSERT INTO t(i) SELECT journal_mode FROM pragma_journal_mode", ERROR_READ_ONLY, -1 },
                { "INSERT INTO t(i) VALUES('PRAGMA journal_mode')", ERROR_READ_ONLY, -1 },
                { "PRAGMA cache_size = 100000", ERROR_NONE, -1 },
                { "PRAGMA writable_schema = ON", ERROR_NOT_ALLOWED, -1 },
                { "SELECT * FROM pragma_busy_timeout", ERROR_NOT_ALLOWED, -1 },
                { "DROP TABLE IF EXISTS nowhere", ERROR_NONE, -1 },
                { "DROP TABLE IF EXISTS nowhere; DROP TABLE IF EXISTS nowhere", ERROR_SEVERAL_STATEMENTS, -1 },
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

/* It names the mode of the file, and changes neither the file nor what is beside it. */
static void test_journal_mode(void) {
        static const char *const modes[] = { "wal", "delete" };

        for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
                g_autofree char *set = g_strconcat("PRAGMA journal_mode = ", modes[i],
                                                   "; CREATE TABLE t(i); INSERT INTO t VALUES(1), (2)", NULL);
                g_autofree char *before = NULL, *after = NULL;
                g_autofree char *as_said = g_strdup_printf("SELECT 1 / (journal_mode = '%s') FROM pragma_journal_mode "
                                                           "WHERE journal_mode = '%s'", modes[i], modes[i]);
                gsize before_size, after_size;
                Rig rig;

                rig_init_folder(&rig);
                exec_sql(rig.database, set);
                g_assert_true(g_file_get_contents(rig.database, &before, &before_size, NULL));
                rig_start(&rig, wide);
                g_assert_cmpuint(run(&rig, "PRAGMA journal_mode").n_rows, ==, 1);
                g_assert_cmpuint(run(&rig, as_said).n_rows, ==, 1);
                g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
                g_assert_true(g_file_get_contents(rig.database, &after, &after_size, NULL));
                g_assert_cmpmem(before, before_size, after, after_size);
                rig_done(&rig);
        }
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

/* `head`, `n` times `item`. */
static char *repeated(const char *head, unsigned n, const char *item) {
        GString *sql = g_string_new(head);

        while (n-- > 0)
                g_string_append(sql, item);
        return g_string_free(sql, FALSE);
}

/* SQLite's limits: at each all is well, one past it is LimitsExceeded with the key to turn. */
static void test_limits_of_a_statement(void) {
        static const struct {
                const char *key, *head, *item;
                unsigned n; /* items that are allowed */
        } cases[] = {
                { "ExpressionDepthMax=", "SELECT 1", "+1", 19 },
                { "CompoundSelectsMax=", "SELECT 1", " UNION ALL SELECT 1", 4 },
                { "VariablesMax=", "SELECT 1", ", ?", 3 },
                { "SQLSizeMax=", "SELECT 1", " ", 492 },
        };
        Setup setup = wide;
        Rig rig;

        setup.expression_depth_max = 20;
        setup.compound_selects_max = 5;
        setup.variables_max = 3;
        setup.sql_size_max = 500;
        rig_init(&rig, setup);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                g_autofree char *at = repeated(cases[i].head, cases[i].n, cases[i].item);
                g_autofree char *over = repeated(cases[i].head, cases[i].n + 1, cases[i].item);
                Outcome o = run(&rig, at);

                /* no parameters come with it: that is found once it is compiled */
                g_assert_cmpint(o.error, ==, i == 2 ? ERROR_PARAMETER_COUNT : ERROR_NONE);
                o = run(&rig, over);
                g_assert_cmpint(o.error, ==, ERROR_LIMITS_EXCEEDED);
                g_assert_nonnull(strstr(o.message, cases[i].key));
        }
        g_assert_cmpint(run(&rig, "SELECT ?3").error, ==, ERROR_PARAMETER_COUNT);
        g_assert_cmpint(run(&rig, "SELECT ?4").error, ==, ERROR_LIMITS_EXCEEDED);
        rig_done(&rig);
}

static void test_steps_of_a_statement(void) {
        g_autofree char *few = repeated("SELECT 1", 3, " UNION ALL SELECT 1");
        g_autofree char *many = repeated("SELECT 1", 490, " UNION ALL SELECT 1");
        Setup setup = wide;
        Rig rig;

        setup.vdbe_ops_max = 1000;
        rig_init(&rig, setup);
        g_assert_cmpint(run(&rig, few).error, ==, ERROR_NONE);
        Outcome o = run(&rig, many);
        g_assert_cmpint(o.error, ==, ERROR_LIMITS_EXCEEDED);
        g_assert_nonnull(strstr(o.message, "VdbeOpsMax="));
        rig_done(&rig);
}

/* A schema that passes them is read all the same, also after a change: they are about a client's statement. */
static void test_limits_spare_the_schema(void) {
        g_autofree char *deep = repeated("CREATE VIEW deep AS SELECT i", 50, "+1");
        g_autofree char *view = g_strconcat(deep, " FROM t", NULL);
        Setup setup = wide;
        Rig rig;

        setup.expression_depth_max = 3;
        setup.compound_selects_max = 1;
        setup.variables_max = 1;
        setup.sql_size_max = 40;
        rig_init(&rig, setup);
        exec_sql(rig.database, view);
        exec_sql(rig.database, "CREATE VIEW long AS SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4");
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        exec_sql(rig.database, "ALTER TABLE t ADD COLUMN more");
        g_assert_cmpuint(run(&rig, "SELECT i FROM t").n_rows, ==, 2);
        g_assert_cmpuint(run(&rig, "SELECT * FROM long").n_rows, ==, 4);
        exec_sql(rig.database, "ALTER TABLE t ADD COLUMN other");
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        g_assert_cmpint(run(&rig, "SELECT * FROM deep").error, ==, ERROR_LIMITS_EXCEEDED); /* what it needs is its own */
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

/* "VmHWM", in bytes. */
static uint64_t most_resident(const Rig *rig) {
        g_autofree char *name = g_strdup_printf("/proc/%d/status", rig->pid), *status = NULL;
        const char *line;

        g_assert_true(g_file_get_contents(name, &status, NULL, NULL));
        line = strstr(status, "VmHWM:");
        g_assert_nonnull(line);
        return g_ascii_strtoull(line + strlen("VmHWM:"), NULL, 10) * 1024;
}

/* A statement that compiles into a million small blocks: what the C library needs for each counts as SQLite's memory. */
static void test_small_blocks(void) {
        const uint64_t heap_size_max = 32 << 20;
        g_autoptr(GString) sql = g_string_new("WITH c0(x) AS (SELECT 1)");
        uint64_t before;
        Setup setup = wide;
        Rig rig;

        for (unsigned i = 1; i < 21; i++)
                g_string_append_printf(sql, ", c%u(x) AS (SELECT x FROM c%u UNION ALL SELECT x FROM c%u)", i, i - 1, i - 1);
        g_string_append(sql, " SELECT count(*) FROM c20");
        setup.heap_size_max = heap_size_max;
        rig_init(&rig, setup);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        before = most_resident(&rig);
        g_assert_cmpint(run(&rig, sql->str).error, ==, ERROR_OUT_OF_MEMORY);
        if (SANITIZED)
                g_test_message("Sanitizers keep freed memory, so the size of the process says nothing.");
        else
                g_assert_cmpuint(most_resident(&rig) - before, <, heap_size_max + (heap_size_max / 16));
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        rig_done(&rig);
}

/* The limits of the worker as the kernel reports them. Sanitizers need more rights, so there is no filter with them. */
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
                g_assert_true(
                        g_regex_match_simple("^Max address space +1073741824 +1073741824 ", limits, G_REGEX_MULTILINE, 0));
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

/* Reports that are not read for a while: the worker waits, and loses none. */
static void test_reports_wait(void) {
        struct pollfd p;
        uint64_t number, first;
        Rig rig;

        rig_init(&rig, wide);
        first = rig.next_number + 1;
        p = (struct pollfd) { .fd = rig.job_fd, .events = POLLOUT };
        do
                while (send_prepare(&rig, "nonsense", &number))
                        ;
        while (poll(&p, 1, 500) > 0);
        for (uint64_t n = first; n < number; n++) { /* the last one was not sent */
                expect_number(&rig, n, MESSAGE_TAKEN);
                expect_ended(&rig, n, ERROR_SQL);
        }
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        rig_done(&rig);
}

/* A worker whose service is gone says so to the reader of a run inside a step: it was not the reader who ended it. */
static void test_exit_in_step(void) {
        uint64_t number;
        Rig rig;
        int fd;

        rig_init(&rig, wide);
        fd = send_run(&rig, ENDLESS, &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        rig_wait_computing(&rig, rig_cpu_usec(&rig));
        rig_stop(&rig);
        g_assert_cmpint(read_stream(fd, number).error, ==, ERROR_DAEMON_LOST);
        close(fd);
        rig_done_folder(&rig);
}

/* Statements of other clients that share the connection are not visible. */
static void test_statements_are_private(void) {
        Rig rig;

        rig_init(&rig, wide);
        g_assert_cmpuint(run(&rig, "SELECT 'a secret' FROM t").n_rows, ==, 2);
        g_assert_cmpint(run(&rig, "SELECT sql FROM sqlite_stmt").error, ==, ERROR_SQL);
        rig_done(&rig);
}

int main(int argc, char **argv) {
        rig_main_init(&argc, &argv);
        g_test_add_func("/worker/prepare", test_prepare);
        g_test_add_func("/worker/errors", test_errors);
        g_test_add_func("/worker/journal-mode", test_journal_mode);
        g_test_add_func("/worker/cancel-long-step", test_cancel_long_step);
        g_test_add_func("/worker/deadline", test_deadline);
        g_test_add_func("/worker/temporary-space", test_temporary_space);
        g_test_add_func("/worker/heap", test_heap);
        g_test_add_func("/worker/exhausting-prepare", test_exhausting_prepare);
        g_test_add_func("/worker/long-sql", test_long_sql);
        g_test_add_func("/worker/small-blocks", test_small_blocks);
        g_test_add_func("/worker/sandbox", test_sandbox);
        g_test_add_func("/worker/goes-with-supervisor", test_goes_with_supervisor);
        g_test_add_func("/worker/reports-wait", test_reports_wait);
        g_test_add_func("/worker/exit-in-step", test_exit_in_step);
        g_test_add_func("/worker/limits-of-a-statement", test_limits_of_a_statement);
        g_test_add_func("/worker/steps-of-a-statement", test_steps_of_a_statement);
        g_test_add_func("/worker/limits-spare-the-schema", test_limits_spare_the_schema);
        g_test_add_func("/worker/statements-are-private", test_statements_are_private);
        return g_test_run();
}
