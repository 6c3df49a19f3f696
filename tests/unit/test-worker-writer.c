/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/worker/core/writer: the lease, batches with one commit, and every way in which a statement that writes can fail.
 * The engine is a fake one, and so is time (tests/rigs/writing-rig.h).
 */
#include <inttypes.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/worker/core/change-numbers.h"
#include "tests/rigs/writing-rig.h"

#define MSEC UINT64_C(1000)

/* Gives the worker the lease, for which it has asked. */
static void lease(void) {
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE);
}

/* A worker that has the lease and is idle. */
static void begin_with_lease(void) {
        writing_begin();
        (void) writing_execute("first");
        lease();
        writing_expect("committing 1; ended 1 wrote 3 77; ");
        g_string_truncate(writing.durable, 0);
        writing.n_commits = writing.n_begins = writing.n_compiles = 0;
}

/* ---- one statement ---- */

static void test_execute(void) {
        writing_begin();
        (void) writing_execute("a");
        lease();
        g_assert_cmpuint(writing.n_begins, ==, 0);
        writing_expect("committing 1; ended 1 wrote 3 77; ");
        writing_expect_durable("a | ");
        writing_end();
}

static void test_run(void) {
        uint64_t number;
        Outcome o;
        int fd;

        begin_with_lease();
        number = writing_run("a rows=3", &fd);
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_NONE);
        g_assert_cmpuint(o.n_rows, ==, 3);
        writing_expect("started 2 to write; committing 2; ended 2 wrote 3 77; ");
        writing_expect_durable("a | ");
        number = writing_run("b read rows=2", &fd);
        o = writing_read(fd, number);
        g_assert_cmpuint(o.n_rows, ==, 2);
        writing_expect("started 3; ended 3; ");
        writing_end();
}

/* EXECUTE has no place for rows: what the statement did is undone. */
static void test_execute_with_rows(void) {
        begin_with_lease();
        (void) writing_execute("a rows=1");
        writing_expect("ended 2 error 16; ");
        (void) writing_execute("b read");
        writing_expect("ended 3 error 16; ");
        (void) writing_execute("nonsense");
        writing_expect("ended 4 error 11; ");
        writing_expect_durable("");
        writing_end();
}

/* Rows of many pages wait for the commit in memory; without a reader the worker goes on with other jobs. */
static void test_many_rows(void) {
        uint64_t number;
        Outcome o;
        int fd;

        begin_with_lease();
        number = writing_run("a rows=100", &fd);
        writing_expect("started 2 to write; committing 2; ");
        (void) writing_execute("b");
        writing_expect("committing 3; ended 3 wrote 3 77; ");
        writing_expect_durable("a | b | ");
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_NONE);
        g_assert_cmpuint(o.n_rows, ==, 100);
        writing_expect("ended 2 wrote 3 77; drained 2; ");
        g_assert_cmpuint(writing.loop.context.spooled, ==, 0);
        writing_end();
}

static void test_big_row(void) {
        uint64_t number;
        Outcome o;
        int fd;

        begin_with_lease();
        number = writing_run("a big", &fd);
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_NONE);
        g_assert_cmpuint(o.n_rows, ==, 1);
        writing_expect_durable("a | ");
        writing_end();
}

/* Rows that memory is not for wait in a temporary file, which counts for TempSizeMax= until they are read. */
static void test_rows_in_file(void) {
        uint64_t numbers[2];
        int fds[2];
        Outcome o;

        begin_with_lease();
        writing.rig.result_size_max = UINT64_MAX;
        writing.setup->temp_size_max = 24 << 20;
        numbers[0] = writing_run("a rows=8000", &fds[0]); /* 24 MB, of which 8 MiB stay in memory */
        writing_settle();
        g_assert_cmpuint(writing.loop.context.spooled, <=, WRITE_BATCH_SPOOL_MAX);
        numbers[1] = writing_run("too-many rows=8000", &fds[1]);
        writing_settle();
        g_assert_cmpuint(writing.loop.context.spooled_files, >, 15000000);
        o = writing_read(fds[0], numbers[0]);
        g_assert_cmpuint(o.error, ==, ERROR_NONE);
        g_assert_cmpuint(o.n_rows, ==, 8000);
        g_assert_cmpuint(writing.loop.context.spooled_files, ==, 0);
        o = writing_read(fds[1], numbers[1]);
        g_assert_cmpuint(o.error, ==, ERROR_LIMITS_EXCEEDED);
        numbers[1] = writing_run("b rows=8000", &fds[1]);
        o = writing_read(fds[1], numbers[1]);
        g_assert_cmpuint(o.error, ==, ERROR_NONE);
        g_assert_cmpuint(o.n_rows, ==, 8000);
        writing_expect_durable("a | b | ");
        numbers[0] = writing_run("c rows=8000", &fds[0]);
        writing_settle();
        writing_end(); /* without its reader */
}

/* More rows than temporary files may have, or than a result may have: the statement is undone, and none of its rows is
 * sent. */
static void test_too_many_rows(void) {
        uint64_t number;
        Outcome o;
        int fd;

        begin_with_lease();
        writing.setup->temp_size_max = 0;
        number = writing_run("a rows=3000", &fd);
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_LIMITS_EXCEEDED);
        g_assert_cmpuint(o.n_rows, ==, 0);
        writing.rig.result_size_max = 100000;
        number = writing_run("b rows=100", &fd);
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_LIMITS_EXCEEDED);
        number = writing_run("c rows=2", &fd); /* fits the page, but not the result */
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_NONE);
        writing.rig.result_size_max = 100;
        number = writing_run("d rows=2", &fd);
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_LIMITS_EXCEEDED);
        writing_expect_durable("c | ");
        g_assert_cmpuint(writing.loop.context.spooled, ==, 0);
        writing_end();
}

/* Rows in memory that wait for slow readers have a limit together, and a batch ends after many of them. */
static void test_spools(void) {
        enum { N = 9, N_ROWS = 2700 };
        uint64_t numbers[N];
        unsigned n_refused = 0;
        int fds[N];

        begin_with_lease();
        writing.setup->temp_size_max = 0;
        for (unsigned i = 0; i < N; i++)
                numbers[i] = writing_run("a rows=2700", &fds[i]);
        writing_settle();
        g_assert_cmpuint(writing.n_commits, ==, 4); /* two for each; the last one is over the limit */
        g_assert_cmpuint(writing.loop.context.spooled, <=, WRITE_BATCH_SPOOLS_MAX);
        for (unsigned i = 0; i < N; i++) {
                Outcome o = writing_read(fds[i], numbers[i]);

                n_refused += o.error == ERROR_LIMITS_EXCEEDED;
                g_assert_cmpuint(o.n_rows, ==, o.error == ERROR_NONE ? N_ROWS : 0);
        }
        g_assert_cmpuint(n_refused, ==, 1);
        writing_settle();
        g_assert_cmpuint(writing.loop.context.spooled, ==, 0);
        writing_end();
}

/* The changes are committed: an error must not say that they are not. */
static void test_end_after_commit(void) {
        uint64_t number;
        Outcome o;
        int fd;

        begin_with_lease();
        number = writing_run("a rows=100", &fd);
        writing_settle();
        writing_cancel(number);
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_OUTCOME_UNKNOWN);
        number = writing_run("b rows=8", &fd); /* one page, and all that is left is the END */
        writing_settle();
        writing_cancel(number);
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_NONE);
        g_assert_cmpuint(o.n_rows, ==, 8);
        writing_expect_durable("a | b | ");
        writing_end();
}

/* ---- batches ---- */

static void test_batch(void) {
        uint64_t number;
        Outcome o;
        int fd;

        begin_with_lease();
        (void) writing_execute("a");
        number = writing_run("b rows=1", &fd);
        (void) writing_execute("c");
        writing_settle();
        g_assert_cmpuint(writing.n_commits, ==, 1);
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_NONE);
        writing_expect("started 3 to write; committing 4 3 2; ended 4 wrote 3 77; ended 3 wrote 3 77; ended 2 wrote 3 77; ");
        writing_expect_durable("c b a | ");
        writing_end();
}

/* A batch has a limit of statements, and one of time. */
static void test_batch_limits(void) {
        begin_with_lease();
        for (unsigned i = 0; i < WRITE_BATCH_N_MAX + 1; i++)
                (void) writing_execute("a");
        writing_settle();
        g_assert_cmpuint(writing.n_commits, ==, 2);
        for (unsigned i = 0; i < 3; i++)
                (void) writing_execute("b slow=6");
        writing_settle();
        g_assert_cmpuint(writing.n_commits, ==, 4);
        writing_end();
}

/* A statement that may leave a setting is the last one of its batch. */
static void test_batch_ends(void) {
        begin_with_lease();
        (void) writing_execute("a");
        (void) writing_execute("set");
        (void) writing_execute("b");
        (void) writing_execute("c");
        writing_settle();
        writing_expect_durable("c b set | a | ");
        writing_end();
}

static void test_failure_in_batch(void) {
        begin_with_lease();
        (void) writing_execute("a");
        (void) writing_execute("b fail");
        (void) writing_execute("c");
        writing_expect("committing 4 2; ended 4 wrote 3 77; ended 3 error 11; ended 2 wrote 3 77; ");
        writing_expect_durable("c a | ");
        g_assert_cmpuint(writing.n_commits, ==, 1);
        (void) writing_execute("d fail"); /* alone: nothing is committed */
        writing_expect("ended 5 error 11; ");
        g_assert_cmpuint(writing.n_commits, ==, 1);
        g_assert_cmpuint(writing.n_rollbacks, ==, 1);
        writing_end();
}

/* The statements that ran before run again, once, and are committed without the later ones, which had not begun. */
static void test_rollback_in_batch(void) {
        begin_with_lease();
        (void) writing_execute("d");
        (void) writing_execute("c rollback");
        (void) writing_execute("b");
        (void) writing_execute("a");
        writing_expect("ended 3 error 11; committing 5 4; ended 5 wrote 3 77; ended 4 wrote 3 77; "
                       "committing 2; ended 2 wrote 3 77; ");
        writing_expect_durable("a b | d | ");
        g_assert_cmpuint(writing.n_compiles, ==, 4 + 3 + 2 + 1); /* to check; first batch; again; the last */
        writing_end();
}

/* However many statements roll back, no other one runs more often than twice. */
static void test_many_rollbacks(void) {
        begin_with_lease();
        for (unsigned i = 0; i < 20; i++) {
                (void) writing_execute("b rollback");
                (void) writing_execute("a");
        }
        writing_settle();
        g_free(writing_reports());
        g_assert_cmpuint(writing.n_commits, ==, 20);
        g_assert_cmpuint(writing.n_compiles, ==, 40 + 20 * 3);
        writing_end();
}

static void test_commit_failure(void) {
        begin_with_lease();
        writing.n_commit_results = 0;
        writing.commits[0] = writing.commits[2] = ERROR_SQL;
        (void) writing_execute("c");
        (void) writing_execute("b");
        (void) writing_execute("a");
        writing_expect("committing 4 3 2; committing 4; ended 4 wrote 3 77; committing 3; ended 3 error 11; "
                       "committing 2; ended 2 wrote 3 77; ");
        writing_expect_durable("a | c | ");
        writing_end();
}

/* A server was lost during the commit: nothing runs again, because it may have happened. */
static void test_commit_unknown(void) {
        begin_with_lease();
        writing.n_commit_results = 0;
        writing.commits[0] = ERROR_OUTCOME_UNKNOWN;
        (void) writing_execute("b");
        (void) writing_execute("a");
        writing_expect("committing 3 2; ended 3 error 39; ended 2 error 39; ");
        writing_expect_durable("");
        writing_end();
}

static void cancel_last(void) {
        writing_cancel(writing.rig.next_number);
}

/* The worker reads the message after the commit, and before it goes on with the job. */
static void cancel_in_commit(void) {
        writing.later = cancel_last;
        writing.later_usec = writing.clock_usec + writing.commit_usec / 2;
}

/* A CANCEL that has waited for the end of the commit does not make it one of which nothing was written. */
static void test_commit_unknown_and_cancelled(void) {
        uint64_t number;
        Outcome o;
        int fd;

        begin_with_lease();
        writing.n_commit_results = 0;
        writing.commits[0] = writing.commits[1] = ERROR_OUTCOME_UNKNOWN;
        writing.commit_usec = 10 * MSEC;
        cancel_in_commit();
        (void) writing_execute("a");
        writing_expect("committing 2; ended 2 error 39; ");
        cancel_in_commit();
        number = writing_run("b rows=100", &fd);
        writing_settle();
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_OUTCOME_UNKNOWN);
        writing_expect_durable("");
        writing_end();
}

/* ---- gathering ---- */

/* A worker that has committed two statements together, which took 400 us. Returns the time. */
static uint64_t begin_after_two(void) {
        begin_with_lease();
        writing.commit_usec = 400;
        (void) writing_execute("b");
        (void) writing_execute("a");
        writing_settle();
        writing_expect_durable("a b | ");
        return writing.clock_usec;
}

static void write_later(void) {
        (void) writing_execute("d");
}

/* After a batch of two, the first job waits for the second one. */
static void test_gather(void) {
        uint64_t began = begin_after_two();

        (void) writing_execute("c");
        writing.later = write_later;
        writing.later_usec = began + 150;
        writing_settle();
        writing_expect_durable("a b | c d | ");
        g_assert_cmpuint(writing.clock_usec - began, <, 150 + 400 + 50);
        writing_end();
}

/* It does not wait for longer than half of the time of a commit; the next batch is not expected to have two jobs. */
static void test_gather_in_vain(void) {
        uint64_t began = begin_after_two();

        (void) writing_execute("c");
        writing.later = write_later;
        writing.later_usec = began + 300;
        writing_settle();
        writing_expect_durable("a b | c | d | ");
        began = writing.clock_usec;
        (void) writing_execute("e");
        writing_settle();
        g_assert_cmpuint(writing.clock_usec - began, <, 400 + 50);
        writing_end();
}

/* A commit that took long does not make the next batch wait for long. */
static void test_gather_limit(void) {
        uint64_t began;

        begin_with_lease();
        writing.commit_usec = 100 * MSEC;
        (void) writing_execute("b");
        (void) writing_execute("a");
        writing_settle();
        began = writing.clock_usec;
        (void) writing_execute("c");
        writing_settle();
        g_assert_cmpuint(writing.clock_usec - began, >=, 100 * MSEC + GATHERING_USEC_MAX);
        g_assert_cmpuint(writing.clock_usec - began, <, 100 * MSEC + GATHERING_USEC_MAX + 50);
        writing_end();
}

/* No wait if another worker waits for the lease, and none for a writer that is alone. */
static void test_no_gathering(void) {
        uint64_t began = begin_after_two();

        (void) writing_execute("c");
        writing_say(MESSAGE_LEASE_ASKED);
        writing_settle();
        g_assert_cmpuint(writing.clock_usec - began, <, 400 + 50);
        g_free(writing_reports());
        writing_end();
        begin_with_lease();
        writing.commit_usec = 400;
        for (unsigned i = 0; i < 3; i++) {
                began = writing.clock_usec;
                (void) writing_execute("a");
                writing_settle();
                g_assert_cmpuint(writing.clock_usec - began, <, 400 + 50);
        }
        writing_end();
}

/* Waits that bring nothing become rare; one that brings a job makes them usual again. */
static void test_gather_less(void) {
        Gathering g = {};
        unsigned n_waits = 0;

        for (unsigned i = 0; i < 640; i++) {
                uint64_t now = 1000 * (i + 1);

                gathering_on_commit(&g, 2, 256, 100);
                if (gathering_waits(&g, 1, now)) {
                        n_waits++;
                        g_assert_true(gathering_waits(&g, 1, now + 49));
                        g_assert_false(gathering_waits(&g, 1, now + 50));
                }
                gathering_end(&g, 1);
        }
        g_assert_cmpuint(n_waits, >=, 10);
        g_assert_cmpuint(n_waits, <=, 20);
        while (!gathering_waits(&g, 1, 1))
                gathering_end(&g, 1);
        gathering_end(&g, 2);
        for (unsigned i = 0; i < 5; i++) {
                gathering_on_commit(&g, 2, 256, 100);
                g_assert_true(gathering_waits(&g, 1, 1));
                g_assert_false(gathering_waits(&g, 2, 2));
                gathering_end(&g, 2);
        }
}

/* ---- locks ---- */

static void test_begin_busy(void) {
        begin_with_lease();
        writing.n_begin_busy = 5;
        (void) writing_execute("a");
        writing_expect("");
        g_assert_cmpuint(writing.n_begins, ==, 1);
        writing_pass(100 * MSEC);
        writing_expect("committing 2; ended 2 wrote 3 77; ");
        g_assert_cmpuint(writing.n_begins, ==, 6);
        writing_end();
}

/* While other programs commit one after the other, the lock is free only for moments: the writer tries each millisecond. If
 * one of them has it all the time, less and less often. */
static void test_begin_beside_commits(void) {
        unsigned n;

        begin_with_lease();
        writing.n_begin_busy = UINT_MAX;
        (void) writing_execute("a");
        writing_pass(300 * MSEC);
        n = writing.n_begins;
        g_assert_cmpuint(n, <, 20);
        writing.others_commit = true;
        writing_pass(50 * MSEC + 100 * MSEC); /* the pause that has begun, and the others */
        g_assert_cmpuint(writing.n_begins - n, >=, 50);
        writing.others_commit = false;
        writing_pass(300 * MSEC);
        n = writing.n_begins;
        writing_pass(300 * MSEC);
        g_assert_cmpuint(writing.n_begins - n, <=, 6);
        writing.n_begin_busy = 0;
        writing_pass(60 * MSEC);
        writing_expect("committing 2; ended 2 wrote 3 77; ");
        writing_end();
}

/* Beside a program that commits one transaction after the other, and leaves the lock free for 10 us, each statement is
 * written after a few dozen commits of that program. With pauses that grow these are 150 to 250, and up to 1,800. */
static void test_turn_beside_a_program(void) {
        static const uint64_t lengths[] = { 500, 1000, 2000 };
        const unsigned n_statements = 50;

        for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
                begin_with_lease();
                writing.program_usec = lengths[i];
                for (unsigned k = 1; k <= n_statements; k++) {
                        uint64_t before = writing.program_commits;

                        (void) writing_execute("a");
                        while (writing.n_commits < k && writing.program_commits <= before + 400)
                                writing_pass(MSEC);
                        g_assert_cmpuint(writing.n_commits, ==, k);
                }
                g_assert_cmpuint(writing.program_commits, <, 60 * n_statements);
                writing_end();
        }
}

/* Each statement has its own time to wait for another program. */
static void test_begin_stays_busy(void) {
        begin_with_lease();
        writing.setup->busy_usec = 1000 * MSEC;
        writing.n_begin_busy = UINT_MAX;
        (void) writing_execute("a");
        writing_pass(600 * MSEC);
        (void) writing_execute("b");
        writing_pass(300 * MSEC);
        writing_expect("");
        writing_pass(150 * MSEC);
        writing_expect("ended 2 error 27; ");
        writing_pass(400 * MSEC);
        writing_expect("");
        writing.n_begin_busy = 0;
        writing_pass(60 * MSEC);
        writing_expect("committing 3; ended 3 wrote 3 77; ");
        writing_expect_durable("b | ");
        writing_end();
}

static void cancel_second(void) {
        writing_cancel(2);
}

static void cancel_both(void) {
        writing_cancel(2);
        writing_cancel(3);
}

/* Another program had the lock, and a CANCEL came before it gave the lock up: nothing of these jobs is written. */
static void test_begin_cancelled(void) {
        begin_with_lease();
        writing.begin_hook = cancel_second;
        (void) writing_execute("a");
        (void) writing_execute("b");
        writing_expect("ended 2 error 30; committing 3; ended 3 wrote 3 77; ");
        writing_expect_durable("b | ");
        writing_end();
        begin_with_lease();
        writing.begin_hook = cancel_both;
        (void) writing_execute("a");
        (void) writing_execute("b");
        writing_expect("ended 2 error 30; ended 3 error 30; ");
        writing_expect_durable("");
        (void) writing_execute("c");
        writing_expect("committing 4; ended 4 wrote 3 77; ");
        writing_end();
}

static void test_begin_fails(void) {
        begin_with_lease();
        writing.begin_error = ERROR_CANNOT_OPEN;
        (void) writing_execute("a");
        (void) writing_execute("b");
        writing_expect("ended 3 error 19; ended 2 error 19; ");
        writing_end();
}

static void test_commit_busy(void) {
        begin_with_lease();
        writing.n_commit_results = 0;
        writing.commits[0] = writing.commits[1] = ERROR_BUSY;
        (void) writing_execute("a");
        writing_expect("committing 2; ");
        (void) writing_execute("b"); /* waits for the next batch */
        writing_pass(100 * MSEC);
        writing_expect("ended 2 wrote 3 77; committing 3; ended 3 wrote 3 77; ");
        writing_expect_durable("a | b | ");
        writing_end();
}

static void stay_busy(void) {
        writing.n_commit_results = 0;
        for (unsigned i = 0; i < G_N_ELEMENTS(writing.commits); i++)
                writing.commits[i] = ERROR_BUSY;
}

static void test_commit_stays_busy(void) {
        begin_with_lease();
        writing.setup->busy_usec = 1000 * MSEC;
        stay_busy();
        (void) writing_execute("b");
        (void) writing_execute("a");
        writing_pass(990 * MSEC);
        writing_expect("committing 3 2; ");
        writing_pass(60 * MSEC);
        writing_expect("ended 3 error 27; ended 2 error 27; ");
        g_assert_cmpuint(writing.n_rollbacks, ==, 1);
        writing_expect_durable("");
        writing_end();
}

/* A job that ends while the commit waits has written nothing, and the others run again. */
static void test_cancel_while_commit_waits(void) {
        begin_with_lease();
        stay_busy();
        (void) writing_execute("b");
        (void) writing_execute("a");
        writing_expect("committing 3 2; ");
        memset(writing.commits, 0, sizeof writing.commits);
        writing_cancel(3);
        writing_expect("ended 3 error 30; committing 2; ended 2 wrote 3 77; ");
        writing_expect_durable("b | ");
        writing_end();
}

/* A reader of the same worker that keeps the commit out ends before the commit gives up; if it is parked, too. */
static void test_own_reader(void) {
        uint64_t number;
        Outcome o;
        int fd;

        begin_with_lease();
        writing.setup->busy_usec = writing.setup->park_rollback_usec = 1000 * MSEC;
        writing.reader_locks = true;
        number = writing_run("r read rows=1000", &fd);
        writing_settle();
        (void) writing_execute("a");
        writing_expect("started 2; committing 3; ");
        writing_pass(400 * MSEC);
        writing_expect("");
        writing_pass(300 * MSEC);
        writing_expect("ended 2 error 28; ended 3 wrote 3 77; ");
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_TIMED_OUT);
        writing_expect_durable("a | ");
        writing_end();
}

/* A reader that is parked, and so keeps the log of other programs from being written back: the same, when the log is too
 * large. */
static void test_reader_keeps_log(void) {
        uint64_t number;
        Outcome o;
        int fd;

        writing_begin();
        writing.setup->park_usec = 60000 * MSEC;
        writing.setup->park_rollback_usec = 5000 * MSEC;
        writing.reader_logs = true;
        number = writing_run("r read rows=1000", &fd);
        writing_settle();
        writing_pass(10000 * MSEC);
        writing.foreign_writer = true;
        writing_pass(4900 * MSEC);
        writing_expect("started 1; ");
        writing_pass(1200 * MSEC); /* it looks each second */
        writing_expect("ended 1 error 28; ");
        o = writing_read(fd, number);
        g_assert_cmpuint(o.error, ==, ERROR_TIMED_OUT);
        writing_end();
}

/* ---- jobs that end before they write ---- */

static void test_end_while_queued(void) {
        uint64_t number;
        int fd;

        writing_begin();
        (void) writing_execute("a");
        (void) writing_execute_until("b", 50 * MSEC);
        number = writing_run("c rows=1", &fd);
        writing_expect("started 3 to write; wanted; ");
        writing_cancel(1);
        writing_pass(40 * MSEC);
        writing_expect("ended 1 error 30; ");
        writing_pass(20 * MSEC);
        writing_expect("ended 2 error 28; ");
        g_assert_cmpuint(number, ==, 3);
        close(fd);
        (void) writing_execute("d");
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 4; ended 3 error 31; ended 4 wrote 3 77; ");
        writing_expect_durable("d | ");
        writing_end();
}

static void cancel_current(void) {
        writing_cancel(writing.rig.next_number);
        writing.clock_usec += 20 * MSEC; /* the progress handler reads its sockets now */
}

/* CANCEL finds a statement that steps; its deadline, too. Its mates do not notice. */
static void test_interrupt(void) {
        begin_with_lease();
        writing.hook = cancel_current;
        (void) writing_execute("b");
        (void) writing_execute("a hook hang");
        writing_expect("ended 3 error 30; committing 2; ended 2 wrote 3 77; ");
        (void) writing_execute_until("c hang", 30 * MSEC);
        writing_expect("ended 4 error 28; ");
        writing_expect_durable("b | ");
        writing_end();
}

/* A long statement does not delay the commit of those that ran before it. With SQLite its interrupt rolls back the
 * transaction. */
static void test_long_statement(void) {
        begin_with_lease();
        (void) writing_execute("c");
        (void) writing_execute_until("b hang", 100 * MSEC);
        (void) writing_execute("a");
        writing_expect("committing 4; ended 4 wrote 3 77; ended 3 error 28; committing 2; ended 2 wrote 3 77; ");
        (void) writing_execute("f");
        (void) writing_execute_until("e hang rollback", 100 * MSEC);
        (void) writing_execute("d");
        writing_expect("committing 7; ended 7 wrote 3 77; ended 6 error 28; committing 5; ended 5 wrote 3 77; ");
        writing_expect_durable("a | c | d | f | ");
        writing_end();
}

static uint64_t mate;

static void no_hook(void) {
}

static void cancel_mate(void) {
        writing.hook = no_hook;
        writing_cancel(mate);
        writing.clock_usec += 6 * MSEC;
        g_assert_cmpint(writing.progress(writing.userdata), ==, 0);
}

/* While a statement steps, one that waits after it is cancelled, or one that ran before it: then the others run again. */
static void test_cancel_mates(void) {
        begin_with_lease();
        mate = 2;
        writing.hook = cancel_mate;
        (void) writing_execute("c");
        (void) writing_execute("b hook"); /* the worker takes the latest first */
        (void) writing_execute("a");
        writing_expect("ended 2 error 30; committing 4 3; ended 4 wrote 3 77; ended 3 wrote 3 77; ");
        mate = 7;
        writing.hook = cancel_mate;
        (void) writing_execute("f");
        (void) writing_execute("e hook");
        (void) writing_execute("d");
        writing_expect("ended 7 error 30; committing 6; ended 6 wrote 3 77; committing 5; ended 5 wrote 3 77; ");
        writing_expect_durable("a b | e | f | ");
        g_assert_cmpuint(writing.n_rollbacks, ==, 1);
        writing_end();
}

/* ---- the lease ---- */

static void test_lease_stays(void) {
        begin_with_lease();
        (void) writing_execute("a");
        writing_pass(1000 * MSEC);
        (void) writing_execute("b");
        writing_expect("committing 2; ended 2 wrote 3 77; committing 3; ended 3 wrote 3 77; ");
        writing_end();
}

static void test_lease_asked(void) {
        begin_with_lease();
        writing_say(MESSAGE_LEASE_ASKED);
        writing_expect("returned; ");
        writing_say(MESSAGE_LEASE_ASKED); /* crossed it */
        (void) writing_execute("a");
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE);
        writing_say(MESSAGE_LEASE_ASKED);
        writing_expect("committing 2; returned; ended 2 wrote 3 77; ");
        writing_end();
}

/* With more to write the worker returns the lease at the end of its turn, and asks again. */
static void test_lease_turn(void) {
        begin_with_lease();
        writing_pass(1000 * MSEC);
        for (unsigned i = 0; i < 3; i++)
                (void) writing_execute("a slow=11");
        writing_say(MESSAGE_LEASE_ASKED); /* its turn has been over for long */
        writing_expect("committing 4; returned; wanted; ended 4 wrote 3 77; ");
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 3; ended 3 wrote 3 77; committing 2; ended 2 wrote 3 77; ");
        for (unsigned i = 0; i < 3; i++)
                (void) writing_execute("b slow=11");
        writing_end();
}

/* A worker that cannot write because of another program does not keep the lease. */
static void test_lease_while_busy(void) {
        begin_with_lease();
        writing_pass(1000 * MSEC);
        writing.n_begin_busy = UINT_MAX;
        (void) writing_execute("a");
        writing_settle();
        writing_say(MESSAGE_LEASE_ASKED);
        writing_expect("returned; wanted; ");
        writing.n_begin_busy = 0;
        writing_pass(1000 * MSEC);
        writing_expect("");
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 2; ended 2 wrote 3 77; ");
        writing_end();
}

/* It keeps the lease as long as its transaction is under way. */
static void test_lease_while_commit_waits(void) {
        begin_with_lease();
        writing_pass(1000 * MSEC);
        stay_busy();
        (void) writing_execute("a");
        writing_settle();
        writing_say(MESSAGE_LEASE_ASKED);
        writing_pass(100 * MSEC);
        writing_expect("committing 2; kept; ");
        memset(writing.commits, 0, sizeof writing.commits);
        writing_pass(100 * MSEC);
        writing_expect("returned; ended 2 wrote 3 77; ");
        writing_end();
}

/* The lease comes after all that waited for it has ended. */
static void test_lease_too_late(void) {
        writing_begin();
        (void) writing_execute("a");
        writing_settle();
        writing_cancel(1);
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; ended 1 error 30; ");
        g_assert_cmpuint(writing.n_begins, ==, 0);
        writing_say(MESSAGE_LEASE_ASKED);
        writing_expect("returned; ");
        writing_say(MESSAGE_LEASE); /* it has not asked for it */
        g_assert_cmpint(worker_loop_run(&writing.loop), ==, -EBADMSG);
        writing_end();
}

/* ---- the end of the worker ---- */

static void test_exit(void) {
        writing_begin();
        (void) writing_execute("a");
        writing_say(MESSAGE_EXIT);
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE);
        g_assert_cmpint(worker_loop_run(&writing.loop), ==, 0);
        writing_expect_last("committing 1; ended 1 wrote 3 77; ");
        writing_end();
}

/* The time to leave is over: a transaction under way is rolled back. */
static void test_exit_while_commit_waits(void) {
        begin_with_lease();
        stay_busy();
        (void) writing_execute("a");
        writing_settle();
        writing_say(MESSAGE_EXIT);
        writing.until_usec = UINT64_MAX;
        g_assert_cmpint(worker_loop_run(&writing.loop), ==, 0);
        writing_expect_last("committing 2; ");
        writing_end();
        writing_begin(); /* whatever is left is freed */
        (void) writing_execute("a");
        writing_settle();
        writing_end();
}

/* ---- channels ---- */

static Client client;

static void open_channel(void) {
        begin_with_lease();
        client_start(&writing.rig, &client);
        writing_settle();
        g_free(writing_reports());
}

static void close_channel(void) {
        client_done(&client);
        writing_settle();
        writing_end();
}

static Answer expect(uint64_t number, ErrorNumber error) {
        writing_settle();
        return client_expect(&client, number, error);
}

static void test_channel(void) {
        uint64_t a, b, c;
        Answer answer;

        open_channel();
        a = client_add_query(&client, "a", 0, NULL);
        b = client_add_query(&client, "r read rows=2", 0, NULL);
        c = client_add_query(&client, "b rows=2", 0, NULL);
        client_send(&client);
        (void) expect(a, ERROR_NONE);
        answer = expect(b, ERROR_NONE);
        g_assert_cmpuint(answer.n_rows, ==, 2);
        answer = expect(c, ERROR_NONE);
        g_assert_cmpuint(answer.n_rows, ==, 2);
        writing_expect_durable("a | b | ");
        a = client_add_query(&client, "c fail", 0, NULL);
        client_send(&client);
        (void) expect(a, ERROR_SQL);
        close_channel();
}

static int orders_fd;

/* As the supervisor closes a channel, and its client asks after that. */
static void close_and_ask(void) {
        g_assert_cmpint(message_send(writing.rig.control_fd, &(Message) {
                .kind = MESSAGE_CHANNEL_CLOSE, .channel_close = { .number = client.number, .drain = true },
        }, -1), ==, 0);
        g_assert_cmpint(pwrite(orders_fd, &(uint64_t) { 1 }, sizeof(uint64_t), 0), ==, sizeof(uint64_t));
        (void) client_add_query(&client, "b", 0, NULL);
        client_send(&client);
}

/* The worker finds the request in memory before it looks at its socket. */
static void test_closed_before_request(void) {
        uint64_t number;

        orders_fd = memfd_create("orders", MFD_CLOEXEC);
        g_assert_cmpint(ftruncate(orders_fd, 4096), ==, 0);
        change_numbers_open(orders_fd);
        rig_has_memory = true;
        open_channel();
        writing.polls = close_and_ask;
        number = client_add_query(&client, "a", 0, NULL);
        client_send(&client);
        (void) expect(number, ERROR_NONE);
        g_assert_null(writing.polls);
        writing_expect_durable("a | ");
        close_channel();
        rig_has_memory = false;
        close(orders_fd);
}

static void ask(const char *sql) {
        uint64_t number = client_add_query(&client, sql, 0, NULL);

        client_send(&client);
        (void) expect(number, ERROR_NONE);
}

/* A commit for clients of channels only does not wake the supervisor, except from time to time. */
static void test_channel_is_announced(void) {
        g_autofree char *announced = NULL, *both = NULL;
        uint64_t number, d;

        open_channel();
        writing_pass(WRITE_BATCH_ANNOUNCE_USEC);
        announced = g_strdup_printf("committing %" PRIu64 "; ", client.number);
        ask("a");
        writing_expect(announced);
        ask("b");
        ask("c");
        writing_expect("");
        d = client_add_query(&client, "d", 0, NULL);
        client_send(&client);
        number = writing_execute("e");
        both = g_strdup_printf("committing %" PRIu64 " %" PRIu64 "; ended %" PRIu64 " wrote 3 77; ", number, client.number,
                               number);
        (void) expect(d, ERROR_NONE);
        writing_expect(both);
        writing_pass(WRITE_BATCH_ANNOUNCE_USEC);
        ask("f");
        writing_expect(announced);
        close_channel();
}

/* Only the first run of a prepared statement compiles it on a connection that reads. */
static void test_channel_statement(void) {
        uint64_t prepared, number;
        Answer answer;

        open_channel();
        prepared = client_add_prepare(&client, "a rows=1");
        client_send(&client);
        answer = expect(prepared, ERROR_NONE);
        g_assert_true(answer.statement);
        g_assert_cmpuint(writing.n_compiles, ==, 1);
        for (unsigned i = 0; i < 3; i++) {
                number = client_add_fetch(&client, prepared, 0, NULL);
                client_send(&client);
                answer = expect(number, ERROR_NONE);
                g_assert_cmpuint(answer.n_rows, ==, 1);
                g_assert_cmpuint(writing.n_compiles, ==, 2 + i);
        }
        number = client_add_fetch(&client, prepared, 1, &(int64_t) { 1 });
        client_send(&client);
        (void) expect(number, ERROR_PARAMETER_COUNT);
        writing_expect_durable("a | a | a | ");
        close_channel();
}

/* Answers to earlier requests do not wait for the lease. */
static void test_channel_answers_first(void) {
        uint64_t r, a;

        open_channel();
        writing_say(MESSAGE_LEASE_ASKED);
        writing_settle();
        r = client_add_query(&client, "r read rows=1", 0, NULL);
        a = client_add_query(&client, "a", 0, NULL);
        client_send(&client);
        (void) expect(r, ERROR_NONE);
        g_assert_cmpint(writing.n_connections, ==, 0); /* nor does it keep what it read */
        writing_expect("returned; wanted; ");
        client_add_cancel(&client, a);
        client_send(&client);
        (void) expect(a, ERROR_CANCELLED);
        a = client_add_query(&client, "b", 0, NULL);
        client_send(&client);
        writing_say(MESSAGE_LEASE);
        (void) expect(a, ERROR_NONE);
        writing_expect_durable("b | ");
        close_channel();
}

/* A client that has not read earlier answers: its statement does not begin before they are on their way. */
static void test_channel_slow_client(void) {
        Answer answer;
        uint64_t r, a;

        begin_with_lease();
        client_init(&writing.rig, &client);
        g_assert_cmpint(setsockopt(client.kept_fd, SOL_SOCKET, SO_SNDBUF, &(int) { 1 }, sizeof(int)), ==, 0);
        client_open(&writing.rig, &client);
        r = client_add_query(&client, "r read rows=5", 0, NULL);
        a = client_add_query(&client, "a", 0, NULL);
        client_send(&client);
        writing_settle();
        g_assert_cmpuint(writing.n_begins, ==, 0);
        g_assert_cmpint(writing.n_connections, ==, 0);
        for (unsigned n = 0; n < 10; n++) { /* the answer is larger than the buffer, but less than that often */
                struct pollfd p = { .fd = client.fd, .events = POLLIN };

                writing_settle();
                if (poll(&p, 1, 0) > 0)
                        g_assert_true(client_read(&client));
        }
        answer = client_expect(&client, r, ERROR_NONE);
        g_assert_cmpuint(answer.n_rows, ==, 5);
        (void) expect(a, ERROR_NONE);
        writing_expect_durable("a | ");
        close_channel();
}

/* A request waits for the lease for as long as it may take. */
static void test_channel_deadline(void) {
        uint64_t a;

        begin_with_lease();
        writing_say(MESSAGE_LEASE_ASKED);
        client_init(&writing.rig, &client);
        client.setup.run_timeout_usec = 50 * MSEC;
        client_open(&writing.rig, &client);
        writing_settle();
        a = client_add_query(&client, "a", 0, NULL);
        client_send(&client);
        writing_pass(60 * MSEC);
        (void) expect(a, ERROR_TIMED_OUT);
        close_channel();
}

/* The client leaves while its statement waits for the lease, or while its commit waits. */
static void test_channel_client_leaves(void) {
        open_channel();
        writing_say(MESSAGE_LEASE_ASKED);
        writing_settle();
        (void) client_add_query(&client, "a", 0, NULL);
        client_send(&client);
        writing_settle();
        client_leave(&client);
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_settle();
        g_assert_cmpuint(writing.n_begins, ==, 0);
        client_done(&client);
        client_start(&writing.rig, &client);
        stay_busy();
        (void) client_add_query(&client, "b", 0, NULL);
        client_send(&client);
        writing_settle();
        client_leave(&client);
        writing_settle();
        g_assert_cmpuint(writing.n_rollbacks, ==, 1);
        writing_expect_durable("");
        close_channel();
}

/* Another channel than that of the writer reads after each commit. Returns what was reported. */
static char *read_beside(Client *reader, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                uint64_t number;

                ask("a");
                number = client_add_query(reader, "r read rows=1", 0, NULL);
                client_send(reader);
                writing_settle();
                (void) client_expect(reader, number, ERROR_NONE);
        }
        writing_settle();
        return writing_reports();
}

/* A channel that only reads leaves a worker that writes. One that the supervisor takes for such a one leaves when it has
 * written. */
static void test_channel_that_reads(void) {
        g_autofree char *before = NULL, *after = NULL, *stayed = NULL;
        Client reader;
        uint64_t number;

        open_channel();
        client_start(&writing.rig, &reader);
        before = read_beside(&reader, 60);
        g_assert_null(strstr(before, "rested"));
        after = read_beside(&reader, 5);
        g_assert_nonnull(strstr(after, "rested reads; "));
        client_done(&reader);

        client_init(&writing.rig, &reader);
        reader.setup.reads = true;
        client_open(&writing.rig, &reader);
        stayed = read_beside(&reader, 100); /* there is no other worker for it */
        g_assert_null(strstr(stayed, "rested"));
        number = client_add_query(&reader, "b", 0, NULL);
        client_send(&reader);
        writing_settle();
        (void) client_expect(&reader, number, ERROR_NONE);
        writing_expect("rested; ");
        client_done(&reader);
        close_channel();
}

/* Without a WAL a reader of another worker would be in the way of commits. */
static void test_channel_that_reads_without_wal(void) {
        g_autofree char *reports = NULL;
        Client reader;

        open_channel();
        writing.has_no_wal = true;
        client_start(&writing.rig, &reader);
        reports = read_beside(&reader, 100);
        g_assert_null(strstr(reports, "rested"));
        client_done(&reader);
        close_channel();
}

/* Several channels share a commit. */
static void test_channels(void) {
        Client others[10];
        uint64_t numbers[10];

        open_channel();
        for (unsigned i = 0; i < 10; i++)
                client_start(&writing.rig, &others[i]);
        writing_settle();
        for (unsigned i = 0; i < 10; i++) {
                numbers[i] = client_add_query(&others[i], "a", 0, NULL);
                client_send(&others[i]);
        }
        writing_settle();
        g_assert_cmpuint(writing.n_commits, ==, 1);
        for (unsigned i = 0; i < 10; i++) {
                (void) client_expect(&others[i], numbers[i], ERROR_NONE);
                client_done(&others[i]);
        }
        close_channel();
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/writer/execute", test_execute);
        g_test_add_func("/writer/run", test_run);
        g_test_add_func("/writer/execute-with-rows", test_execute_with_rows);
        g_test_add_func("/writer/many-rows", test_many_rows);
        g_test_add_func("/writer/big-row", test_big_row);
        g_test_add_func("/writer/too-many-rows", test_too_many_rows);
        g_test_add_func("/writer/rows-in-file", test_rows_in_file);
        g_test_add_func("/writer/spools", test_spools);
        g_test_add_func("/writer/end-after-commit", test_end_after_commit);
        g_test_add_func("/writer/batch", test_batch);
        g_test_add_func("/writer/batch-limits", test_batch_limits);
        g_test_add_func("/writer/batch-ends", test_batch_ends);
        g_test_add_func("/writer/failure-in-batch", test_failure_in_batch);
        g_test_add_func("/writer/rollback-in-batch", test_rollback_in_batch);
        g_test_add_func("/writer/many-rollbacks", test_many_rollbacks);
        g_test_add_func("/writer/commit-failure", test_commit_failure);
        g_test_add_func("/writer/commit-unknown", test_commit_unknown);
        g_test_add_func("/writer/commit-unknown-and-cancelled", test_commit_unknown_and_cancelled);
        g_test_add_func("/writer/gather", test_gather);
        g_test_add_func("/writer/gather-in-vain", test_gather_in_vain);
        g_test_add_func("/writer/gather-limit", test_gather_limit);
        g_test_add_func("/writer/gather-less", test_gather_less);
        g_test_add_func("/writer/no-gathering", test_no_gathering);
        g_test_add_func("/writer/begin-busy", test_begin_busy);
        g_test_add_func("/writer/begin-beside-commits", test_begin_beside_commits);
        g_test_add_func("/writer/turn-beside-a-program", test_turn_beside_a_program);
        g_test_add_func("/writer/begin-stays-busy", test_begin_stays_busy);
        g_test_add_func("/writer/begin-cancelled", test_begin_cancelled);
        g_test_add_func("/writer/begin-fails", test_begin_fails);
        g_test_add_func("/writer/commit-busy", test_commit_busy);
        g_test_add_func("/writer/commit-stays-busy", test_commit_stays_busy);
        g_test_add_func("/writer/cancel-while-commit-waits", test_cancel_while_commit_waits);
        g_test_add_func("/writer/own-reader", test_own_reader);
        g_test_add_func("/writer/reader-keeps-log", test_reader_keeps_log);
        g_test_add_func("/writer/end-while-queued", test_end_while_queued);
        g_test_add_func("/writer/interrupt", test_interrupt);
        g_test_add_func("/writer/long-statement", test_long_statement);
        g_test_add_func("/writer/cancel-mates", test_cancel_mates);
        g_test_add_func("/writer/lease-stays", test_lease_stays);
        g_test_add_func("/writer/lease-asked", test_lease_asked);
        g_test_add_func("/writer/lease-turn", test_lease_turn);
        g_test_add_func("/writer/lease-while-busy", test_lease_while_busy);
        g_test_add_func("/writer/lease-while-commit-waits", test_lease_while_commit_waits);
        g_test_add_func("/writer/lease-too-late", test_lease_too_late);
        g_test_add_func("/writer/exit", test_exit);
        g_test_add_func("/writer/exit-while-commit-waits", test_exit_while_commit_waits);
        g_test_add_func("/writer/channel", test_channel);
        g_test_add_func("/writer/closed-before-request", test_closed_before_request);
        g_test_add_func("/writer/channel-is-announced", test_channel_is_announced);
        g_test_add_func("/writer/channel-statement", test_channel_statement);
        g_test_add_func("/writer/channel-answers-first", test_channel_answers_first);
        g_test_add_func("/writer/channel-slow-client", test_channel_slow_client);
        g_test_add_func("/writer/channel-deadline", test_channel_deadline);
        g_test_add_func("/writer/channel-client-leaves", test_channel_client_leaves);
        g_test_add_func("/writer/channels", test_channels);
        g_test_add_func("/writer/channel-that-reads", test_channel_that_reads);
        g_test_add_func("/writer/channel-that-reads-without-wal", test_channel_that_reads_without_wal);
        return g_test_run();
}
