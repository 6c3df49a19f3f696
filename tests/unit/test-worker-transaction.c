/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/worker/core/transaction: transactions of clients, their statements, and every way in which they end. The engine is
 * a fake one, and so is time (tests/rigs/writing-rig.h).
 */
#include <unistd.h>

#include "tests/rigs/writing-rig.h"

#define MSEC UINT64_C(1000)
#define SEC (1000 * MSEC)
#define LONG (60 * SEC)

/* A worker with a transaction that writes: its number is 1. */
static void begin_to_write(void) {
        writing_begin();
        writing.transaction = writing_open(true, LONG);
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE);
        writing_expect("started 1 to write; ");
}

/* A worker with a transaction that reads: its number is 1. */
static void begin_to_read(void) {
        writing_begin();
        writing.transaction = writing_open(false, LONG);
        writing_expect("started 1; ");
}

static void commit(const char *expected) {
        writing_commit(writing.transaction);
        writing_expect(expected);
}

/* ---- statements that write ---- */

static void test_commit(void) {
        begin_to_write();
        (void) writing_execute("a");
        (void) writing_execute("b");
        writing_expect("ended 2 wrote 3 77; ended 3 wrote 3 77; ");
        writing_expect_durable("");
        commit("committing 1; ended 1 wrote 0 0; ");
        writing_expect_durable("a b | ");
        g_assert_cmpuint(writing.n_begins, ==, 1);
        writing_end();
}

/* COMMIT follows the statements without waiting for their answers. */
static void test_commit_at_once(void) {
        begin_to_write();
        (void) writing_execute("a");
        (void) writing_execute("b");
        commit("ended 2 wrote 3 77; ended 3 wrote 3 77; committing 1; ended 1 wrote 0 0; ");
        writing_expect_durable("a b | ");
        (void) writing_execute("late");
        writing_expect("ended 4 error 40; ");
        writing_end();
}

static void test_rollback(void) {
        begin_to_write();
        (void) writing_execute("a");
        writing_expect("ended 2 wrote 3 77; ");
        writing_cancel(1);
        writing_expect("ended 1 error 30; ");
        writing_expect_durable("");
        g_assert_cmpuint(writing.n_rollbacks, ==, 1);
        writing_end();
}

/* The client's own savepoints are not within that of the statement, which would end them. */
static void test_savepoints(void) {
        begin_to_write();
        g_assert_true(writing.savepoints);
        (void) writing_execute("a savepoint");
        (void) writing_execute("b");
        (void) writing_execute("c savepoint fail");
        (void) writing_execute("d");
        writing_expect("ended 2 wrote 3 77; ended 3 wrote 3 77; ended 4 error 11; ended 5 wrote 3 77; ");
        commit("committing 1; ended 1 wrote 0 0; ");
        writing_expect_durable("a b c d | ");
        writing_end();
}

/* A statement that fails takes back only what it did itself. */
static void test_statement_fails(void) {
        begin_to_write();
        (void) writing_execute("a");
        (void) writing_execute("b fail");
        (void) writing_execute("nonsense");
        (void) writing_execute("c");
        commit("ended 2 wrote 3 77; ended 3 error 11; ended 4 error 11; ended 5 wrote 3 77; committing 1; "
               "ended 1 wrote 0 0; ");
        writing_expect_durable("a c | ");
        writing_end();
}

/* The end of the transaction is reported before the failure: a client that knows of the failure is told why. */
static void test_statement_rolls_back(void) {
        begin_to_write();
        (void) writing_execute("a");
        (void) writing_execute("b rollback");
        (void) writing_execute("c");
        writing_expect("ended 2 wrote 3 77; ended 1 error 40; ended 4 error 40; ended 3 error 11; ");
        writing_expect_durable("");
        writing_end();
}

/* The next report that `number` has ended must contain this. */
static void expect_sentence(uint64_t number, const char *expected) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        bool found = false;

        while (!found && message_receive(writing.rig.control_fd, &m) > 0) {
                found = m.message.kind == MESSAGE_ENDED && m.message.ended.number == number;
                if (found && !strstr(m.message.ended.failure.message, expected))
                        g_error("%s", m.message.ended.failure.message);
                received_message_done(&m);
        }
        g_assert_true(found);
}

/* The statement has its own error, and the statements after it learn of it, too. */
static void test_tells_why_rolled_back(void) {
        begin_to_write();
        (void) writing_execute("b rollback");
        (void) writing_execute("c");
        writing_settle();
        expect_sentence(1, "a statement failed, which has rolled back the transaction: failed");
        expect_sentence(3, "the transaction has ended: a statement failed, which has rolled back the transaction: failed");
        expect_sentence(2, "failed");
        writing_end();
}

/* All rows wait in memory, so that the transaction can go on without their reader. */
static void test_rows(void) {
        int fds[2];
        Outcome o;

        begin_to_write();
        (void) writing_run("a read rows=100", &fds[0]);
        (void) writing_run("b rows=100", &fds[1]);
        commit("started 2; started 3 to write; committing 1; ended 1 wrote 0 0; ");
        writing_expect_durable("b | ");
        o = writing_read(fds[0], 2);
        g_assert_cmpuint(o.n_rows, ==, 100);
        o = writing_read(fds[1], 3);
        g_assert_cmpuint(o.n_rows, ==, 100);
        writing_expect("ended 2; drained 2; ended 3 wrote 3 77; drained 3; ");
        g_assert_cmpuint(writing.loop.context.spooled, ==, 0);
        writing_end();
}

static void test_too_many_rows(void) {
        Outcome o;
        int fd;

        begin_to_write();
        writing.setup->temp_size_max = 0;
        (void) writing_run("a read rows=3000", &fd);
        o = writing_read(fd, 2);
        g_assert_cmpuint(o.error, ==, ERROR_LIMITS_EXCEEDED);
        writing_expect("started 2; ended 2 error 23; ");
        (void) writing_execute("b read");
        commit("ended 3; committing 1; ended 1 wrote 0 0; ");
        writing_end();
}

static void cancel_it(void) {
        writing_cancel(1);
}

/* ROLLBACK inside of a step: the statement is interrupted. */
static void test_rollback_of_running(void) {
        begin_to_write();
        writing.hook = cancel_it;
        (void) writing_execute("a hook hang");
        (void) writing_execute("b");
        writing_expect("ended 2 error 40; ended 1 error 30; ended 3 error 40; ");
        writing_expect_durable("");
        writing_end();
}

static void end_it_and_look(void) {
        writing_cancel(1);
        for (unsigned i = 0; i < 10; i++) {
                writing.clock_usec += 1000;
                g_assert_cmpint(writing.progress(writing.userdata), ==, 0);
        }
        writing_expect("started 2; ended 1 error 30; ");
        g_assert_false(writing.in_transaction);
}

/* A query beside the transaction that computes for long does not delay its end. */
static void test_rollback_beside_query(void) {
        Outcome o;
        int fd;

        begin_to_write();
        writing.transaction = 0;
        writing.hook = end_it_and_look;
        (void) writing_run("a read hook rows=1", &fd);
        o = writing_read(fd, 2);
        g_assert_cmpuint(o.n_rows, ==, 1);
        writing_expect("ended 2; ");
        writing_end();
}

/* ---- statements that take long, and other jobs ---- */

static void look_for(uint64_t usec) {
        for (uint64_t i = 0; i < usec; i += MSEC) {
                writing.clock_usec += MSEC;
                g_assert_cmpint(writing.progress(writing.userdata), ==, 0);
        }
}

/* Another worker of the group reads the same socket. */
static void take_as_another_worker(void) {
        Message m = { .kind = MESSAGE_EXECUTE, .job = { .number = 77, .sql = "b", .sql_size = 1 } };
        uint64_t number;

        g_assert_cmpint(message_send(writing.rig.job_fd, &m, -1), ==, 0);
        look_for(100 * MSEC);
        g_assert_cmpint(message_withdraw_job(writing.extra_fds[1], &number), ==, 1);
        g_assert_cmpuint(number, ==, 77);
}

/* While a statement of the transaction takes long, the worker leaves the jobs in their socket to others. */
static void test_leaves_jobs_to_others(void) {
        begin_to_write();
        writing.hook = take_as_another_worker;
        (void) writing_execute_until("a hook hang", SEC);
        writing_expect("ended 2 error 28; ");
        writing_end();
}

static void cancel_other(void) {
        writing_cancel(2);
        look_for(10 * MSEC);
        writing_expect("ended 2 error 30; ");
}

/* A job that has waited for the end of the transaction can be cancelled meanwhile: the supervisor does that at the deadline
 * of the job. */
static void test_cancels_job_that_waits(void) {
        uint64_t transaction;

        begin_to_write();
        transaction = writing.transaction;
        writing.transaction = 0;
        (void) writing_execute("b");
        writing_settle();
        writing.transaction = transaction;
        writing.hook = cancel_other;
        (void) writing_execute("a hook");
        writing_expect("ended 3 wrote 3 77; ");
        commit("committing 1; ended 1 wrote 0 0; ");
        writing_expect_durable("a | ");
        writing_end();
}

/* ---- the end ---- */

static void test_commit_fails(void) {
        begin_to_write();
        writing.commits[0] = ERROR_NO_SPACE;
        (void) writing_execute("a");
        commit("ended 2 wrote 3 77; committing 1; ended 1 error 26; ");
        writing_expect_durable("");
        writing_end();
}

static void test_commit_busy(void) {
        begin_to_write();
        writing.commits[0] = ERROR_BUSY;
        (void) writing_execute("a");
        commit("ended 2 wrote 3 77; committing 1; ");
        g_assert_true(writing.loop.context.commit_waits);
        writing_pass(20 * MSEC);
        writing_expect("ended 1 wrote 0 0; ");
        writing_expect_durable("a | ");
        g_assert_false(writing.loop.context.commit_waits);
        writing_end();
}

/* The engine refuses a commit until the client has repaired something. Each one is announced. */
static void test_commit_refused(void) {
        begin_to_write();
        writing.commits[0] = writing.commits[2] = ERROR_COMMIT_REFUSED;
        writing.commits[1] = ERROR_BUSY;
        (void) writing_execute("a");
        writing_try_commit(1);
        writing_expect("ended 2 wrote 3 77; committing 1; refused 1 error 43; ");
        (void) writing_execute("b");
        writing_try_commit(1);
        writing_expect("ended 3 wrote 3 77; committing 1; ");
        g_assert_true(writing.loop.context.commit_waits);
        writing_pass(20 * MSEC);
        writing_expect("refused 1 error 43; ");
        g_assert_false(writing.loop.context.commit_waits);
        writing_expect_durable("");
        (void) writing_execute("c");
        writing_try_commit(1);
        writing_expect("ended 4 wrote 3 77; committing 1; ended 1 wrote 0 0; ");
        writing_expect_durable("a b c | ");
        g_assert_cmpuint(writing.n_rollbacks, ==, 0);
        writing_end();
}

/* After a refusal it ends as any open one. */
static void test_commit_refused_and_ended(void) {
        begin_to_write();
        writing.commits[0] = ERROR_COMMIT_REFUSED;
        writing_try_commit(1);
        writing_expect("committing 1; refused 1 error 43; ");
        writing_cancel(1);
        writing_expect("ended 1 error 30; ");
        g_assert_cmpuint(writing.n_rollbacks, ==, 1);
        writing_end();

        begin_to_write();
        writing.commits[0] = ERROR_COMMIT_REFUSED;
        writing_try_commit(1);
        writing_expect("committing 1; refused 1 error 43; ");
        writing_pass(LONG);
        writing_expect("ended 1 error 40; ");
        g_assert_cmpuint(writing.n_rollbacks, ==, 1);
        writing_end();
}

/* A client that has not asked to keep the transaction, and statements of a batch, which are over. */
static void test_commit_refused_at_the_end(void) {
        begin_to_write();
        writing.commits[0] = ERROR_COMMIT_REFUSED;
        (void) writing_execute("a");
        commit("ended 2 wrote 3 77; committing 1; ended 1 error 11; ");
        g_assert_cmpuint(writing.n_rollbacks, ==, 1);
        writing_end();

        writing_begin();
        writing.commits[0] = ERROR_COMMIT_REFUSED;
        (void) writing_execute("a");
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 1; ended 1 error 11; ");
        g_assert_cmpuint(writing.n_rollbacks, ==, 1);
        writing_expect_durable("");
        writing_end();
}

static void test_commit_busy_for_long(void) {
        begin_to_write();
        for (size_t i = 0; i < G_N_ELEMENTS(writing.commits); i++)
                writing.commits[i] = ERROR_BUSY;
        commit("committing 1; ");
        writing_pass(writing.setup->busy_usec - 5 * MSEC);
        writing_expect("");
        writing_pass(20 * MSEC);
        writing_expect("ended 1 error 27; ");
        g_assert_false(writing.loop.context.commit_waits);
        writing_end();
}

static void test_timeout(void) {
        begin_to_write();
        writing_pass(LONG - MSEC);
        writing_expect("");
        writing_pass(2 * MSEC);
        writing_expect("ended 1 error 40; ");
        g_assert_cmpuint(writing.n_rollbacks, ==, 1);
        writing_end();
}

/* If no other one waits, a transaction may be idle. */
static void test_idle(void) {
        begin_to_write();
        writing_pass(WRITING_IDLE_USEC + MSEC);
        writing_expect("");
        (void) writing_execute("a");
        writing_expect("ended 2 wrote 3 77; ");
        writing_pass(WRITING_IDLE_USEC - MSEC);
        writing_say(MESSAGE_LEASE_ASKED);
        writing_expect("kept; ");
        writing_pass(2 * MSEC);
        writing_expect("returned; ended 1 error 40; ");
        writing_end();
}

/* The lease is not returned while a transaction is open. The supervisor has it back before the client knows the end. */
static void test_lease(void) {
        begin_to_write();
        writing_say(MESSAGE_LEASE_ASKED);
        (void) writing_execute("a");
        writing_pass(SEC);
        writing_expect("kept; ended 2 wrote 3 77; ");
        commit("committing 1; returned; ended 1 wrote 0 0; ");
        writing_end();
}

/* A client that leaves: the lease is free again at once, also after it has written. */
static void test_cancel(void) {
        for (unsigned wrote = 0; wrote < 2; wrote++) {
                begin_to_write();
                writing_say(MESSAGE_LEASE_ASKED);
                writing_expect("kept; ");
                if (wrote) {
                        (void) writing_execute("a");
                        writing_expect("ended 2 wrote 3 77; ");
                }
                writing_cancel(1);
                writing_expect("returned; ended 1 error 30; ");
                g_assert_cmpuint(writing.n_rollbacks, ==, 1);
                writing_end();
        }
}

static void test_cancel_while_waiting(void) {
        writing_begin();
        (void) writing_open(true, LONG);
        writing_expect("wanted; ");
        writing_cancel(1);
        writing_expect("ended 1 error 30; ");
        writing_say(MESSAGE_LEASE);
        writing_say(MESSAGE_LEASE_ASKED);
        writing_expect("returned; ");
        g_assert_cmpuint(writing.n_begins, ==, 0);
        writing_end();
}

/* ---- others that write ---- */

/* First come, first served. One that is cancelled, or whose time is over, leaves the queue at once. */
static void test_queue(void) {
        begin_to_write();
        (void) writing_open(true, LONG);
        (void) writing_open(true, LONG);
        (void) writing_open(true, SEC);
        (void) writing_open(true, LONG);
        (void) writing_open(true, LONG);
        writing_expect("");
        writing_cancel(3);
        writing_expect("ended 3 error 30; ");
        writing_pass(SEC);
        writing_expect("ended 4 error 40; ");
        commit("committing 1; ended 1 wrote 0 0; started 2 to write; ");
        writing_cancel(6);
        writing_cancel(2);
        writing_expect("ended 6 error 30; ended 2 error 30; started 5 to write; ");
        writing_commit(5);
        writing_expect("committing 5; ended 5 wrote 0 0; ");
        writing_end();
}

/* Jobs and other transactions of the worker wait, and take turns. */
static void test_turns(void) {
        begin_to_write();
        writing.transaction = 0;
        (void) writing_execute("a");
        (void) writing_open(true, LONG);
        (void) writing_execute("b");
        writing_expect("");
        writing_commit(1);
        writing_expect("committing 1; ended 1 wrote 0 0; committing 4 2; started 3 to write; ended 4 wrote 3 77; "
                       "ended 2 wrote 3 77; ");
        writing_commit(3);
        writing_expect("committing 3; ended 3 wrote 0 0; ");
        writing_end();
}

/* The worker's turn ends with the transaction that was open when its time was over: the next one waits for the next turn. */
static void test_turn_ends(void) {
        begin_to_write();
        (void) writing_open(true, LONG);
        (void) writing_open(true, LONG);
        writing_say(MESSAGE_LEASE_ASKED);
        writing_pass(LEASE_TURN_USEC / 2);
        commit("kept; committing 1; ended 1 wrote 0 0; started 2 to write; ");
        writing_pass(LEASE_TURN_USEC);
        writing_commit(2);
        writing_expect("committing 2; returned; wanted; ended 2 wrote 0 0; ");
        writing_say(MESSAGE_LEASE);
        writing_expect("started 3 to write; ");
        writing_end();
}

/* Another job of the same worker that waits ends an idle transaction, too. */
static void test_idle_for_job(void) {
        begin_to_write();
        writing.transaction = 0;
        (void) writing_execute("a");
        writing_pass(WRITING_IDLE_USEC + 10 * MSEC);
        writing_expect("ended 1 error 40; committing 2; ended 2 wrote 3 77; ");
        writing_end();
}

static void test_foreign_writer(void) {
        writing_begin();
        writing.n_begin_busy = 3;
        (void) writing_open(true, LONG);
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; ");
        writing_pass(50 * MSEC);
        writing_expect("started 1 to write; ");
        writing.n_begin_busy = 1000;
        writing_cancel(1);
        (void) writing_open(true, LONG);
        writing_pass(writing.setup->busy_usec + 20 * MSEC);
        writing_expect("ended 1 error 30; ended 2 error 27; ");
        writing_end();
}

/* BusyTimeoutSec= is for other programs. The time that the transaction has waited for its turn does not count. */
static void test_foreign_writer_after_wait(void) {
        writing_begin();
        (void) writing_open(true, LONG);
        writing_pass(2 * writing.setup->busy_usec);
        writing.n_begin_busy = 3;
        writing_say(MESSAGE_LEASE);
        writing_pass(50 * MSEC);
        writing_expect("wanted; started 1 to write; ");
        writing_end();
}

/* ---- the wait for a lock ---- */

/* Neither the way of the messages nor the turns of others count: a transaction that waits for no lock begins if there is
 * none. */
static void test_lock_wait_without_lock(void) {
        writing_begin();
        writing.lock_wait_usec = 0;
        (void) writing_open(true, LONG);
        writing_pass(SEC);
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE);
        writing_expect("started 1 to write; ");
        writing_end();
}

/* Another worker keeps the lease for a transaction. */
static void test_lock_wait_of_worker(void) {
        writing_begin();
        writing.lock_wait_usec = 0;
        (void) writing_open(true, LONG);
        writing.lock_wait_usec = 50 * MSEC;
        (void) writing_open(true, LONG);
        writing.lock_wait_usec = UINT64_MAX;
        (void) writing_open(true, LONG);
        writing_pass(SEC);
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE_TAKEN);
        writing_expect("ended 1 error 27; ");
        writing_pass(50 * MSEC - 1);
        writing_expect("");
        writing_pass(1);
        writing_expect("ended 2 error 27; ");
        writing.lock_wait_usec = 0;
        (void) writing_open(true, LONG);
        writing_expect("ended 4 error 27; ");
        writing_pass(SEC);
        writing_say(MESSAGE_LEASE);
        writing_expect("started 3 to write; ");
        writing_commit(3);
        writing_expect("committing 3; ended 3 wrote 0 0; ");
        (void) writing_open(true, LONG);
        writing_expect("started 5 to write; ");
        writing_end();
}

/* The time ends while it waits, even if the lock is free after that. */
static void test_lock_wait_is_enough(void) {
        writing_begin();
        writing.lock_wait_usec = 50 * MSEC;
        (void) writing_open(true, LONG);
        writing_settle();
        writing_say(MESSAGE_LEASE_TAKEN);
        writing_pass(49 * MSEC);
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; started 1 to write; ");
        writing_pass(SEC);
        writing_expect("");
        writing_end();
}

/* Another transaction of the same worker is open. */
static void test_lock_wait_of_own(void) {
        begin_to_write();
        writing.lock_wait_usec = 0;
        (void) writing_open(true, LONG);
        writing_expect("ended 2 error 27; ");
        writing.lock_wait_usec = 20 * MSEC;
        (void) writing_open(true, LONG);
        writing_pass(20 * MSEC - 1);
        writing_expect("");
        writing_pass(1);
        writing_expect("ended 3 error 27; ");
        commit("committing 1; ended 1 wrote 0 0; ");
        writing.lock_wait_usec = 0;
        (void) writing_open(true, LONG);
        writing_expect("started 4 to write; ");
        writing_end();
}

/* A statement of another client has the lock: while it takes long, and while its commit waits for readers. */
static void ask_and_look(void) {
        writing_say(MESSAGE_LEASE_ASKED);
        look_for(10 * MSEC);
        writing_expect_last("kept; ");
}

static void test_lock_wait_of_batch(void) {
        writing_begin();
        writing.lock_wait_usec = 0;
        for (size_t i = 0; i < G_N_ELEMENTS(writing.commits); i++)
                writing.commits[i] = ERROR_BUSY;
        (void) writing_execute("a");
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; committing 1; ");
        (void) writing_open(true, LONG);
        writing_expect("ended 2 error 27; ");
        memset(writing.commits, 0, sizeof writing.commits);
        writing_pass(100 * MSEC);
        writing_expect("ended 1 wrote 3 77; ");
        (void) writing_open(true, LONG);
        writing_expect("started 3 to write; ");
        writing_cancel(3);
        writing_expect("ended 3 error 30; ");
        writing.hook = ask_and_look;
        (void) writing_execute("b hook");
        writing_expect("committing 4; returned; ended 4 wrote 3 77; ");
        writing_end();
}

/* Another program has the lock. The pauses between attempts are no longer than the wait. */
static void test_lock_wait_of_program(void) {
        writing_begin();
        writing.n_begin_busy = UINT_MAX;
        writing.lock_wait_usec = 0;
        (void) writing_open(true, LONG);
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; ended 1 error 27; ");
        g_assert_cmpuint(writing.n_begins, ==, 1);
        writing.lock_wait_usec = 3 * MSEC;
        (void) writing_open(true, LONG);
        writing_pass(3 * MSEC - 1);
        writing_expect("");
        writing_pass(1);
        writing_expect("ended 2 error 27; ");
        writing.lock_wait_usec = 2 * writing.setup->busy_usec; /* BusyTimeoutSec= holds all the same */
        (void) writing_open(true, LONG);
        writing_pass(writing.setup->busy_usec + 20 * MSEC);
        writing_expect("ended 3 error 27; ");
        writing.n_begin_busy = 0;
        writing.lock_wait_usec = 0;
        (void) writing_open(true, LONG);
        writing_expect("started 4 to write; ");
        writing_end();
}

/* A deferred transaction waits when it begins to read, and when it begins to write. */
static void test_lock_wait_deferred(void) {
        int fd;

        writing_begin();
        writing.lock_wait_usec = 0;
        writing.transaction = writing_open_deferred(LONG);
        writing_expect("started 1 to write; ");
        writing.n_begin_busy = 1;
        (void) writing_run("r read rows=1", &fd);
        writing_expect("ended 2 error 27; ");
        close(fd);
        (void) writing_execute("a");
        writing_pass(SEC);
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE_TAKEN);
        writing_expect("ended 3 error 27; ");
        writing_say(MESSAGE_LEASE);
        writing_expect("");
        writing.n_begin_busy = 2; /* the snapshot is one, too */
        (void) writing_execute("a");
        writing_expect("ended 4 error 27; ");
        writing.n_begin_busy = 0;
        (void) writing_execute("a");
        writing_expect("ended 5 wrote 3 77; ");
        commit("committing 1; ended 1 wrote 0 0; ");
        writing_end();
}

/* BusyTimeoutSec= is for the commit. */
static void test_lock_wait_commit(void) {
        writing_begin();
        writing.lock_wait_usec = 0;
        writing.commits[0] = ERROR_BUSY;
        (void) writing_open(true, LONG);
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; started 1 to write; ");
        writing_commit(1);
        writing_pass(20 * MSEC);
        writing_expect("committing 1; ended 1 wrote 0 0; ");
        writing_end();
}

/* Statements outside of transactions: a transaction of this worker is open, and then one of another worker. */
static void test_lock_wait_of_jobs(void) {
        begin_to_write();
        writing.transaction = 0;
        writing.job_lock_wait_usec = 0;
        (void) writing_execute("a");
        writing_expect("ended 2 error 27; ");
        writing.job_lock_wait_usec = 20 * MSEC;
        (void) writing_execute("b");
        (void) writing_execute_batch("c;d");
        writing.job_lock_wait_usec = UINT64_MAX;
        (void) writing_execute("e");
        writing_pass(19 * MSEC);
        writing_expect("");
        writing_pass(2 * MSEC);
        writing_expect("ended 4 error 27; ended 3 error 27; ");
        g_assert_cmpstr(writing.pending->str, ==, "");
        writing_commit(1);
        writing_expect("committing 1; ended 1 wrote 0 0; committing 5; ended 5 wrote 3 77; ");
        writing_say(MESSAGE_LEASE_ASKED);
        writing_expect("returned; ");
        writing.job_lock_wait_usec = 20 * MSEC;
        (void) writing_execute("f");
        writing_pass(SEC); /* no lock is known */
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE_TAKEN);
        writing_pass(19 * MSEC);
        (void) writing_execute("g");
        writing_expect("");
        writing_pass(2 * MSEC);
        writing_expect("ended 6 error 27; ");
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 7; ended 7 wrote 3 77; ");
        g_assert_cmpstr(writing.durable->str, ==, "| e | g | ");
        writing_end();
}

/* A load waits for its turn only when its first row is there. */
static void test_lock_wait_of_load(void) {
        int fd;

        begin_to_write();
        writing.transaction = 0;
        writing.job_lock_wait_usec = 0;
        (void) writing_load("l", &fd);
        writing_expect("started 2 to write; ");
        writing_pass(SEC);
        writing_expect("");
        writing_commit(1);
        writing_expect("committing 1; ended 1 wrote 0 0; ");
        close(fd);
        writing_expect("ended 2 error 30; ");
        writing_end();
}

/* The wait of a statement ends when the transaction that does nothing is rolled back for its sake: it runs. */
static void test_lock_wait_of_idle(void) {
        begin_to_write();
        writing.transaction = 0;
        writing.job_lock_wait_usec = WRITING_IDLE_USEC;
        (void) writing_execute("a");
        writing_pass(2 * WRITING_IDLE_USEC);
        writing_expect("ended 1 error 40; committing 2; ended 2 wrote 3 77; ");
        writing_end();
}

/* The commit of other jobs waits for readers: their own wait for locks is not about that. */
static void test_lock_wait_of_jobs_of_batch(void) {
        writing_begin();
        for (size_t i = 0; i < G_N_ELEMENTS(writing.commits); i++)
                writing.commits[i] = ERROR_BUSY;
        writing.job_lock_wait_usec = 0;
        (void) writing_execute("a");
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; committing 1; ");
        (void) writing_execute("b");
        writing_expect("ended 2 error 27; ");
        memset(writing.commits, 0, sizeof writing.commits);
        writing_pass(100 * MSEC);
        writing_expect("ended 1 wrote 3 77; ");
        writing_end();
}

/* Another program has the lock. */
static void test_lock_wait_of_jobs_of_program(void) {
        writing_begin();
        writing.n_begin_busy = UINT_MAX;
        writing.job_lock_wait_usec = 0;
        (void) writing_execute("a");
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; ended 1 error 27; ");
        writing.job_lock_wait_usec = 3 * MSEC;
        (void) writing_execute("b");
        writing.job_lock_wait_usec = 2 * writing.setup->busy_usec; /* BusyTimeoutSec= holds all the same */
        (void) writing_execute("c");
        writing_pass(2 * MSEC);
        writing_expect("");
        writing_pass(2 * MSEC);
        writing_expect("ended 2 error 27; ");
        writing_pass(writing.setup->busy_usec + 20 * MSEC);
        writing_expect("ended 3 error 27; ");
        writing.n_begin_busy = 0;
        writing.job_lock_wait_usec = 0;
        (void) writing_execute("d");
        writing_expect("committing 4; ended 4 wrote 3 77; ");
        writing_end();
}

/* ---- transactions that read ---- */

static void test_snapshot(void) {
        Outcome o;
        int fds[2];

        begin_to_read();
        g_assert_cmpint(writing.n_connections, ==, 1);
        (void) writing_run("a read rows=100", &fds[0]);
        (void) writing_run("b read rows=1", &fds[1]);
        writing_expect("started 2; "); /* 3 waits until the rows of 2 are sent */
        o = writing_read(fds[0], 2);
        g_assert_cmpuint(o.n_rows, ==, 100);
        o = writing_read(fds[1], 3);
        g_assert_cmpuint(o.n_rows, ==, 1);
        writing_expect("ended 2; started 3; ended 3; drained 2; ");
        g_assert_cmpint(writing.n_connections, ==, 1);
        g_assert_cmpint(writing.n_snapshots, ==, 1);
        commit("ended 1; ");
        g_assert_cmpint(writing.n_connections, ==, 0);
        writing_end();
}

static void test_snapshot_writes(void) {
        begin_to_read();
        (void) writing_execute("a");
        writing_expect("ended 2 error 15; ");
        commit("ended 1; ");
        writing_end();
}

static void test_snapshot_cancelled(void) {
        Outcome o;
        int fds[2];

        begin_to_read();
        (void) writing_run("a read rows=100", &fds[0]);
        (void) writing_run("b read rows=1", &fds[1]);
        writing_expect("started 2; ");
        writing_cancel(1);
        writing_expect("ended 3 error 40; ended 2 error 40; ended 1 error 30; ");
        g_assert_cmpint(writing.n_snapshots, ==, 0);
        o = writing_read(fds[0], 2);
        g_assert_cmpuint(o.error, ==, ERROR_TRANSACTION_ENDED);
        close(fds[1]);
        writing_end();
}

static void test_snapshot_lost(void) {
        begin_to_read();
        writing.loses_snapshots = true;
        (void) writing_execute("a read");
        writing_expect("ended 2 error 16; ended 1 error 40; ");
        writing_end();
}

static void test_snapshot_busy(void) {
        writing_begin();
        writing.n_begin_busy = 2;
        (void) writing_open(false, LONG);
        writing_pass(30 * MSEC);
        writing_expect("started 1; ");
        writing_end();
}

static void test_snapshot_in_the_way(void) {
        writing_begin();
        writing.reader_locks = true;
        (void) writing_open(false, LONG);
        writing_pass(SEC);
        writing.foreign_writer = true;
        writing_pass(writing.setup->park_rollback_usec - 100 * MSEC);
        writing_expect("started 1; ");
        writing_pass(200 * MSEC);
        writing_expect("ended 1 error 40; ");
        writing_end();
}

/* With a log the same rule ends it; but only if the log is too large all the time. */
static void test_snapshot_keeps_log(void) {
        writing_begin();
        writing.reader_logs = true;
        (void) writing_open(false, LONG);
        writing_pass(SEC);
        writing.foreign_writer = true;
        writing_pass(writing.setup->park_rollback_usec / 2);
        writing.foreign_writer = false;
        writing_pass(2 * SEC);
        writing.foreign_writer = true;
        writing_pass(writing.setup->park_rollback_usec - 100 * MSEC);
        writing_expect("started 1; ");
        writing_pass(SEC + 200 * MSEC); /* it looks each second */
        writing_expect("ended 1 error 40; ");
        writing_end();
}

/* ---- transactions that read until they write ---- */

/* A worker with such a transaction: its number is 1. */
static void begin_deferred(void) {
        writing_begin();
        writing.transaction = writing_open_deferred(LONG);
        writing_expect("started 1 to write; ");
        g_assert_cmpint(writing.n_connections, ==, 0);
}

/* The same after it has read; 2 was the number of that. */
static void begin_and_read(void) {
        int fd;

        begin_deferred();
        (void) writing_run("r read rows=1", &fd);
        g_assert_cmpuint(writing_read(fd, 2).n_rows, ==, 1);
        writing_expect("started 2; ended 2; ");
        g_assert_cmpint(writing.n_snapshots, ==, 1);
}

static void lease(const char *expected) {
        writing_say(MESSAGE_LEASE);
        writing_expect(expected);
}

/* Until it writes it does not ask for the lease. Its rows do not wait in memory. */
static void test_deferred_reads(void) {
        Outcome o;
        int fd;

        begin_and_read();
        (void) writing_run("r read rows=1000", &fd);
        writing_expect("started 3; ");
        o = writing_read(fd, 3);
        g_assert_cmpuint(o.n_rows, ==, 1000);
        writing_expect("ended 3; drained 3; ");
        commit("ended 1; ");
        g_assert_cmpuint(writing.n_begins, ==, 0);
        writing_end();
}

static void test_deferred_writes_after_read(void) {
        int fd;

        begin_and_read();
        (void) writing_execute("a");
        writing_expect("wanted; ");
        g_assert_cmpint(writing.n_snapshots, ==, 1);
        lease("ended 3 wrote 3 77; ");
        g_assert_cmpint(writing.n_snapshots, ==, 0);
        (void) writing_run("r read rows=1", &fd);
        g_assert_cmpuint(writing_read(fd, 4).n_rows, ==, 1);
        writing_expect("started 4; ended 4; ");
        writing_end();
}

/* The first statement writes: it waits for its turn as a transaction does that begins to write, and nothing can be old. */
static void test_deferred_writes_first(void) {
        begin_deferred();
        (void) writing_execute("a");
        writing_expect("wanted; ");
        g_assert_cmpint(writing.n_snapshots, ==, 0);
        writing.file_counter++;
        writing_pass(2 * writing.setup->busy_usec);
        lease("ended 2 wrote 3 77; ");
        commit("committing 1; ended 1 wrote 0 0; ");
        writing_expect_durable("a | ");
        writing_end();
}

/* Another program has committed after the read. The statement fails, and the transaction goes on reading. */
static void test_deferred_is_old(void) {
        int fd;

        begin_and_read();
        writing.file_counter++;
        (void) writing_execute("a");
        writing_expect("wanted; ended 3 error 27 old; ");
        (void) writing_run("r read rows=1", &fd);
        g_assert_cmpuint(writing_read(fd, 4).n_rows, ==, 1);
        writing_expect("started 4; ended 4; ");
        (void) writing_execute("b");
        writing_expect("ended 5 error 27 old; ");
        commit("ended 1; ");
        writing_expect_durable("");
        writing_end();
}

/* The commit comes while the transaction waits for its turn, or between that and its begin. */
static void become_old(void) {
        writing.file_counter++;
}

static void test_deferred_becomes_old(void) {
        begin_and_read();
        (void) writing_execute("a");
        writing_expect("wanted; ");
        writing.file_counter++;
        writing_pass(60 * MSEC);
        writing_expect("ended 3 error 27 old; ");
        lease("");
        writing.transaction = 0;
        (void) writing_execute("b");
        writing_expect("committing 4; ended 4 wrote 3 77; ");
        writing_end();

        begin_and_read();
        (void) writing_execute("a");
        writing_expect("wanted; ");
        writing.begin_hook = become_old;
        lease("ended 3 error 27 old; ");
        g_assert_cmpuint(writing.n_rollbacks, ==, 1);
        g_assert_cmpint(writing.n_snapshots, ==, 1);
        commit("ended 1; ");
        writing_end();
}

/* A batch of other clients of the same worker counts, too. */
static void test_deferred_beside_batch(void) {
        begin_and_read();
        writing.transaction = 0;
        (void) writing_execute("b");
        writing_expect("wanted; ");
        lease("committing 3; ended 3 wrote 3 77; ");
        writing.transaction = 1;
        (void) writing_execute("a");
        writing_expect("ended 4 error 27 old; ");
        commit("ended 1; ");
        writing_expect_durable("b | ");
        writing_end();
}

/* Two have read. The one that writes first keeps its changes, and the other one does not wait for it, as in SQLite. */
static void test_deferred_beside_another(void) {
        uint64_t other;
        int fd;

        begin_and_read();
        writing.transaction = other = writing_open_deferred(LONG);
        writing_expect("started 3 to write; ");
        (void) writing_run("r read rows=1", &fd);
        g_assert_cmpuint(writing_read(fd, 4).n_rows, ==, 1);
        writing_expect("started 4; ended 4; ");
        (void) writing_execute("a");
        writing_expect("wanted; ");
        lease("ended 5 wrote 3 77; ");
        writing.transaction = 1;
        (void) writing_execute("b");
        writing_expect("ended 6 error 27; ");
        writing_commit(other);
        writing_expect("committing 3; ended 3 wrote 0 0; ");
        (void) writing_execute("b");
        writing_expect("ended 7 error 27 old; ");
        commit("ended 1; ");
        writing_expect_durable("a | ");
        writing_end();
}

/* Another worker keeps the lease. The wait ends before that one would be ended for its sake. */
static void test_deferred_waits(void) {
        begin_and_read();
        (void) writing_execute("a");
        writing_pass(WRITING_IDLE_USEC / 2 - MSEC);
        writing_expect("wanted; ");
        writing_pass(60 * MSEC);
        writing_expect("ended 3 error 27; ");
        lease("");
        (void) writing_execute("b");
        writing_expect("ended 4 wrote 3 77; ");
        commit("committing 1; ended 1 wrote 0 0; ");
        writing_expect_durable("b | ");
        writing_end();
}

/* In rollback mode a writer waits for the snapshot, which must not wait for that writer. */
static void test_deferred_in_the_way(void) {
        begin_and_read();
        writing.n_locks = 1;
        writing.foreign_writer = true;
        (void) writing_execute("a");
        writing_expect("wanted; ended 3 error 27; ");
        writing.n_locks = 0;
        writing_cancel(1);
        writing_expect("ended 1 error 30; ");
        writing_end();
}

/* Savepoints do not write. Those that were made while the transaction read are there when it writes. */
static void test_deferred_savepoints(void) {
        begin_deferred();
        (void) writing_execute("s savepoint");
        writing_expect("ended 2 wrote 3 77; ");
        g_assert_cmpint(writing.n_snapshots, ==, 0); /* nothing was read */
        writing.file_counter++;
        (void) writing_execute("a");
        writing_expect("wanted; ");
        lease("ended 3 wrote 3 77; ");
        commit("committing 1; ended 1 wrote 0 0; ");
        writing_expect_durable("s a | ");
        writing_end();

        begin_and_read();
        (void) writing_execute("s savepoint");
        (void) writing_execute("t savepoint fail");
        writing_expect("ended 3 wrote 3 77; ended 4 error 11; ");
        g_assert_cmpint(writing.n_snapshots, ==, 1);
        (void) writing_execute("a");
        (void) writing_execute("u savepoint");
        writing_expect("wanted; ");
        lease("ended 5 wrote 3 77; ended 6 wrote 3 77; ");
        commit("committing 1; ended 1 wrote 0 0; ");
        writing_expect_durable("s a u | ");
        writing_end();
}

/* A statement that fails while it is compiled has read nothing. */
static void test_deferred_nonsense(void) {
        begin_deferred();
        (void) writing_execute("nonsense");
        writing_expect("ended 2 error 11; ");
        g_assert_cmpint(writing.n_connections, ==, 0);
        writing.file_counter++;
        (void) writing_execute("a");
        writing_expect("wanted; ");
        lease("ended 3 wrote 3 77; ");
        commit("committing 1; ended 1 wrote 0 0; ");
        writing_end();
}

/* Lists and loads write, too. */
static void test_deferred_list(void) {
        begin_and_read();
        (void) writing_execute_batch("a;b");
        writing_expect("wanted; ");
        lease("ended 3 wrote 6 77 changes 3 3; ");
        commit("committing 1; ended 1 wrote 0 0; ");
        writing_expect_durable("a b | ");
        writing_end();

        begin_and_read();
        writing.file_counter++;
        (void) writing_execute_batch("a;b");
        writing_expect("wanted; ended 3 error 27 old; ");
        commit("ended 1; ");
        writing_end();
}

static void test_deferred_load(void) {
        int fd;

        begin_and_read();
        writing.file_counter++;
        (void) writing_load("a", &fd);
        writing_expect("wanted; ended 3 error 27 old; ");
        close(fd);
        commit("ended 1; ");
        writing_end();
}

/* COMMIT follows the statement, which waits for its turn. */
static void test_deferred_commit_at_once(void) {
        begin_and_read();
        (void) writing_execute("a");
        commit("wanted; ");
        lease("ended 3 wrote 3 77; committing 1; ended 1 wrote 0 0; ");
        writing_expect_durable("a | ");
        writing_end();
}

/* The transaction, or its statement, ends while it waits for its turn. */
static void test_deferred_cancelled(void) {
        begin_and_read();
        (void) writing_execute("a");
        writing_expect("wanted; ");
        writing_cancel(3);
        writing_expect("ended 3 error 30; ");
        lease("");
        (void) writing_execute("b");
        writing_expect("ended 4 wrote 3 77; ");
        commit("committing 1; ended 1 wrote 0 0; ");
        writing_end();

        begin_and_read();
        (void) writing_execute("a");
        writing_expect("wanted; ");
        writing_cancel(1);
        writing_expect("ended 1 error 30; ended 3 error 40; ");
        lease("");
        g_assert_cmpuint(writing.n_begins, ==, 0);
        writing_end();
}

/* Another program writes. A transaction that has read waits for it for a while, and then only the statement fails. */
static void test_deferred_foreign_writer(void) {
        begin_and_read();
        writing.n_begin_busy = 3;
        (void) writing_execute("a");
        writing_settle();
        lease("wanted; ");
        writing_pass(50 * MSEC);
        writing_expect("ended 3 wrote 3 77; ");
        commit("committing 1; ended 1 wrote 0 0; ");
        writing_end();

        begin_and_read();
        writing.n_begin_busy = 100000;
        (void) writing_execute("a");
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_pass(writing.setup->busy_usec + 20 * MSEC);
        writing_expect("wanted; ended 3 error 27; ");
        commit("ended 1; ");
        writing_end();
}

/* An engine that cannot tell if a snapshot is old has the transaction write from its beginning. */
static void test_deferred_on_server(void) {
        static Engine server;
        Setup setup = wide;

        server = writing_engine;
        server.is_current = NULL;
        setup.writes = true;
        writing_begin_on(&server, &setup);
        (void) writing_open_deferred(LONG);
        writing_expect("wanted; ");
        lease("started 1 to write; ");
        writing_cancel(1);
        writing_expect("ended 1 error 30; ");
        writing_end();

        server.allow_savepoints = NULL;
        writing_begin_on(&server, &setup);
        writing.transaction = writing_open_deferred(LONG);
        writing_expect("started 1; ");
        (void) writing_execute("a");
        writing_expect("ended 2 error 15; ");
        commit("ended 1; ");
        writing_end();
}

/* Only a worker for writers may begin to write. */
static void test_may_not(void) {
        writing_begin();
        writing.setup->writes = false;
        (void) writing_open(true, LONG);
        (void) writing_open_deferred(LONG);
        writing_expect("ended 1 error 15; ended 2 error 15; ");
        writing_end();
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/worker/transaction/commit", test_commit);
        g_test_add_func("/worker/transaction/commit-at-once", test_commit_at_once);
        g_test_add_func("/worker/transaction/rollback", test_rollback);
        g_test_add_func("/worker/transaction/savepoints", test_savepoints);
        g_test_add_func("/worker/transaction/statement-fails", test_statement_fails);
        g_test_add_func("/worker/transaction/statement-rolls-back", test_statement_rolls_back);
        g_test_add_func("/worker/transaction/tells-why-rolled-back", test_tells_why_rolled_back);
        g_test_add_func("/worker/transaction/rows", test_rows);
        g_test_add_func("/worker/transaction/too-many-rows", test_too_many_rows);
        g_test_add_func("/worker/transaction/rollback-of-running", test_rollback_of_running);
        g_test_add_func("/worker/transaction/rollback-beside-query", test_rollback_beside_query);
        g_test_add_func("/worker/transaction/leaves-jobs-to-others", test_leaves_jobs_to_others);
        g_test_add_func("/worker/transaction/cancels-job-that-waits", test_cancels_job_that_waits);
        g_test_add_func("/worker/transaction/commit-fails", test_commit_fails);
        g_test_add_func("/worker/transaction/commit-busy", test_commit_busy);
        g_test_add_func("/worker/transaction/commit-refused", test_commit_refused);
        g_test_add_func("/worker/transaction/commit-refused-and-ended", test_commit_refused_and_ended);
        g_test_add_func("/worker/transaction/commit-refused-at-the-end", test_commit_refused_at_the_end);
        g_test_add_func("/worker/transaction/commit-busy-for-long", test_commit_busy_for_long);
        g_test_add_func("/worker/transaction/timeout", test_timeout);
        g_test_add_func("/worker/transaction/idle", test_idle);
        g_test_add_func("/worker/transaction/lease", test_lease);
        g_test_add_func("/worker/transaction/cancel", test_cancel);
        g_test_add_func("/worker/transaction/cancel-while-waiting", test_cancel_while_waiting);
        g_test_add_func("/worker/transaction/queue", test_queue);
        g_test_add_func("/worker/transaction/turns", test_turns);
        g_test_add_func("/worker/transaction/turn-ends", test_turn_ends);
        g_test_add_func("/worker/transaction/idle-for-job", test_idle_for_job);
        g_test_add_func("/worker/transaction/foreign-writer", test_foreign_writer);
        g_test_add_func("/worker/transaction/foreign-writer-after-wait", test_foreign_writer_after_wait);
        g_test_add_func("/worker/transaction/lock-wait-without-lock", test_lock_wait_without_lock);
        g_test_add_func("/worker/transaction/lock-wait-of-worker", test_lock_wait_of_worker);
        g_test_add_func("/worker/transaction/lock-wait-is-enough", test_lock_wait_is_enough);
        g_test_add_func("/worker/transaction/lock-wait-of-own", test_lock_wait_of_own);
        g_test_add_func("/worker/transaction/lock-wait-of-batch", test_lock_wait_of_batch);
        g_test_add_func("/worker/transaction/lock-wait-of-program", test_lock_wait_of_program);
        g_test_add_func("/worker/transaction/lock-wait-deferred", test_lock_wait_deferred);
        g_test_add_func("/worker/transaction/lock-wait-commit", test_lock_wait_commit);
        g_test_add_func("/worker/transaction/lock-wait-of-jobs", test_lock_wait_of_jobs);
        g_test_add_func("/worker/transaction/lock-wait-of-load", test_lock_wait_of_load);
        g_test_add_func("/worker/transaction/lock-wait-of-idle", test_lock_wait_of_idle);
        g_test_add_func("/worker/transaction/lock-wait-of-jobs-of-batch", test_lock_wait_of_jobs_of_batch);
        g_test_add_func("/worker/transaction/lock-wait-of-jobs-of-program", test_lock_wait_of_jobs_of_program);
        g_test_add_func("/worker/transaction/snapshot", test_snapshot);
        g_test_add_func("/worker/transaction/snapshot-writes", test_snapshot_writes);
        g_test_add_func("/worker/transaction/snapshot-cancelled", test_snapshot_cancelled);
        g_test_add_func("/worker/transaction/snapshot-lost", test_snapshot_lost);
        g_test_add_func("/worker/transaction/snapshot-busy", test_snapshot_busy);
        g_test_add_func("/worker/transaction/snapshot-in-the-way", test_snapshot_in_the_way);
        g_test_add_func("/worker/transaction/snapshot-keeps-log", test_snapshot_keeps_log);
        g_test_add_func("/worker/transaction/deferred-reads", test_deferred_reads);
        g_test_add_func("/worker/transaction/deferred-writes-after-read", test_deferred_writes_after_read);
        g_test_add_func("/worker/transaction/deferred-writes-first", test_deferred_writes_first);
        g_test_add_func("/worker/transaction/deferred-is-old", test_deferred_is_old);
        g_test_add_func("/worker/transaction/deferred-becomes-old", test_deferred_becomes_old);
        g_test_add_func("/worker/transaction/deferred-beside-batch", test_deferred_beside_batch);
        g_test_add_func("/worker/transaction/deferred-beside-another", test_deferred_beside_another);
        g_test_add_func("/worker/transaction/deferred-waits", test_deferred_waits);
        g_test_add_func("/worker/transaction/deferred-in-the-way", test_deferred_in_the_way);
        g_test_add_func("/worker/transaction/deferred-savepoints", test_deferred_savepoints);
        g_test_add_func("/worker/transaction/deferred-nonsense", test_deferred_nonsense);
        g_test_add_func("/worker/transaction/deferred-list", test_deferred_list);
        g_test_add_func("/worker/transaction/deferred-load", test_deferred_load);
        g_test_add_func("/worker/transaction/deferred-commit-at-once", test_deferred_commit_at_once);
        g_test_add_func("/worker/transaction/deferred-cancelled", test_deferred_cancelled);
        g_test_add_func("/worker/transaction/deferred-foreign-writer", test_deferred_foreign_writer);
        g_test_add_func("/worker/transaction/deferred-on-server", test_deferred_on_server);
        g_test_add_func("/worker/transaction/may-not", test_may_not);
        return g_test_run();
}
