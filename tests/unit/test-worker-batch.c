/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * EXECUTE_BATCH in the worker: all statements of a list or none, beside other jobs that write, in transactions of clients,
 * and every way in which it can end. The engine is a fake one, and so is time (tests/rigs/writing-rig.h).
 */
#include "tests/rigs/writing-rig.h"

#define MSEC UINT64_C(1000)

/* A worker that has the lease and is idle. Its next job is number 2. */
static void begin_with_lease(void) {
        writing_begin();
        (void) writing_execute("first");
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; committing 1; ended 1 wrote 3 77; ");
        g_string_truncate(writing.durable, 0);
        writing.n_commits = writing.n_begins = writing.n_compiles = 0;
}

/* ---- all or nothing ---- */

static void test_all(void) {
        begin_with_lease();
        (void) writing_execute_batch("a;b;c");
        writing_expect("committing 2; ended 2 wrote 9 77 changes 3 3 3; ");
        writing_expect_durable("a b c | ");
        g_assert_cmpuint(writing.n_begins, ==, 1);
        g_assert_cmpuint(writing.n_compiles, ==, 3); /* none is compiled before those that it may depend on */
        writing_end();
}

static void execute_with(ForeignKeys foreign_keys, const char *sql) {
        writing.foreign_keys = foreign_keys;
        (void) writing_execute(sql);
}

/* Jobs whose clients have different settings share no transaction, also if one of them has them run again. */
static void test_foreign_keys(void) {
        uint64_t transaction;

        begin_with_lease();
        execute_with(FOREIGN_KEYS_OFF, "a");
        execute_with(FOREIGN_KEYS_ON, "b");
        execute_with(FOREIGN_KEYS_CONFIGURED, "c");
        execute_with(FOREIGN_KEYS_ON, "d rollback");
        (void) writing_execute_batch("e;f");
        execute_with(FOREIGN_KEYS_OFF, "g");
        writing_settle();
        writing_expect_durable("g c a | keys e f | keys b | "); /* the worker takes the latest first */
        writing.foreign_keys = FOREIGN_KEYS_ON;
        transaction = writing_open(true, 1000000);
        writing_settle();
        writing.transaction = transaction;
        execute_with(FOREIGN_KEYS_OFF, "h"); /* that of the transaction holds */
        writing_commit(transaction);
        writing_settle();
        writing.transaction = 0;
        execute_with(FOREIGN_KEYS_OFF, "i");
        writing_settle();
        writing_expect_durable("g c a | keys e f | keys b | keys h | i | ");
        g_free(writing_reports());
        writing_end();
}

/* It waits for the lease as any other job that writes, and asks for it although it is not compiled. */
static void test_lease(void) {
        writing_begin();
        (void) writing_execute_batch("a");
        writing_expect("wanted; ");
        g_assert_cmpuint(writing.n_compiles, ==, 0);
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 1; ended 1 wrote 3 77 changes 3; ");
        writing_end();
}

/* Receives the ENDED of a job that failed with this sentence. */
static void expect_failure(const char *sentence) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;

        writing_settle();
        g_assert_cmpint(message_receive(writing.rig.control_fd, &m), ==, 1);
        g_assert_cmpint(m.message.kind, ==, MESSAGE_ENDED);
        g_assert_cmpstr(m.message.ended.failure.message, ==, sentence);
        g_assert_false(m.message.ended.wrote);
        g_assert_cmpuint(m.message.ended.changes.size, ==, 0);
        received_message_done(&m);
        writing_expect("");
}

/* The error names the statement, and nothing is left of those before it. */
static void test_none(void) {
        static const char has_rows[] = "this statement returns rows: use Query or Fetch";
        g_autofree char *sentence = NULL;

        begin_with_lease();
        (void) writing_execute_batch("a;b fail;c");
        expect_failure("statement 2 of 3: failed");
        (void) writing_execute_batch("a;b;nonsense");
        expect_failure("statement 3 of 3: nonsense");
        (void) writing_execute_batch("a;b read");
        sentence = g_strdup_printf("statement 2 of 2: %s", has_rows);
        expect_failure(sentence);
        (void) writing_execute_batch("a;b rows=2"); /* RETURNING */
        expect_failure(sentence);
        (void) writing_execute_batch("a rollback;b");
        expect_failure("statement 1 of 2: failed");
        writing_expect_durable("");
        g_assert_cmpuint(writing.n_commits, ==, 0);
        writing_end();
}

/* ---- beside other jobs ---- */

/* It shares a commit with others, and its failure takes back its own statements alone. */
static void test_mates(void) {
        begin_with_lease();
        (void) writing_execute("d");
        (void) writing_execute_batch("b;c");
        (void) writing_execute("a"); /* the worker takes the latest first */
        writing_expect("committing 4 3 2; ended 4 wrote 3 77; ended 3 wrote 6 77 changes 3 3; ended 2 wrote 3 77; ");
        writing_expect_durable("a b c d | ");
        (void) writing_execute("h");
        (void) writing_execute_batch("f;g fail");
        (void) writing_execute("e");
        writing_expect("committing 7 5; ended 7 wrote 3 77; ended 6 error 11; ended 5 wrote 3 77; ");
        writing_expect_durable("a b c d | e h | ");
        writing_end();
}

/* A statement that rolls back the transaction ends its batch; a batch that ran before it runs again, and has its changes
 * once. */
static void test_rollback(void) {
        begin_with_lease();
        (void) writing_execute_batch("c;d rollback;e");
        (void) writing_execute_batch("a;b");
        writing_expect("ended 2 error 11; committing 3; ended 3 wrote 6 77 changes 3 3; ");
        writing_expect_durable("a b | ");
        (void) writing_execute("h rollback");
        (void) writing_execute_batch("f;g");
        writing_expect("ended 4 error 11; committing 5; ended 5 wrote 6 77 changes 3 3; ");
        writing_expect_durable("a b | f g | ");
        writing_end();
}

/* If the commit fails, each job runs again alone. */
static void test_commit_failure(void) {
        begin_with_lease();
        writing.n_commit_results = 0;
        writing.commits[0] = writing.commits[1] = ERROR_SQL;
        (void) writing_execute("c");
        (void) writing_execute_batch("a;b");
        writing_expect("committing 3 2; committing 3; ended 3 error 11; committing 2; ended 2 wrote 3 77; ");
        writing_expect_durable("c | ");
        writing_end();
}

/* After 10 ms it does not delay the commit of those that ran before it, even if none of its statements takes long. It runs
 * again after them, alone, for as long as it takes. */
static void test_long(void) {
        begin_with_lease();
        (void) writing_execute("f");
        (void) writing_execute_batch("b slow=4;c slow=4;d slow=4;e slow=4");
        (void) writing_execute("a");
        writing_expect("committing 4; ended 4 wrote 3 77; committing 3; ended 3 wrote 12 77 changes 3 3 3 3; committing 2; "
                       "ended 2 wrote 3 77; ");
        writing_expect_durable("a | b c d e | f | ");
        writing_end();
}

/* ---- its end before the commit ---- */

static void test_end_while_queued(void) {
        writing_begin();
        (void) writing_execute_batch("a;b");
        (void) writing_execute_batch_until("c", 50 * MSEC);
        writing_expect("wanted; ");
        writing_cancel(1);
        writing_pass(40 * MSEC);
        writing_expect("ended 1 error 30; ");
        writing_pass(20 * MSEC);
        writing_expect("ended 2 error 28; ");
        writing_say(MESSAGE_LEASE);
        writing_settle();
        writing_expect_durable("");
        writing_end();
}

static void cancel_current(void) {
        writing_cancel(writing.rig.next_number);
        writing.clock_usec += 6 * MSEC; /* the worker reads its sockets before the next statement */
}

/* CANCEL and the deadline are noticed between two short statements, too. */
static void test_interrupt(void) {
        begin_with_lease();
        writing.hook = cancel_current;
        (void) writing_execute("c");
        (void) writing_execute_batch("a hook;b");
        writing_expect("committing 2; ended 3 error 30; ended 2 wrote 3 77; ");
        (void) writing_execute_batch_until("d slow=20;e slow=20;f", 30 * MSEC);
        writing_expect("ended 4 error 28; ");
        (void) writing_execute_batch_until("g;h hang", 30 * MSEC);
        writing_expect("ended 5 error 28; ");
        writing_expect_durable("c | ");
        writing_end();
}

static void no_hook(void) {
}

static void cancel_mate(void) {
        writing.hook = no_hook;
        cancel_current();
}

/* A mate that ran before it is cancelled between two of its statements: it runs again, without the mate. */
static void test_mate_leaves(void) {
        begin_with_lease();
        writing.hook = cancel_mate;
        (void) writing_execute_batch("b hook;c");
        (void) writing_execute("a");
        writing_expect("ended 3 error 30; committing 2; ended 2 wrote 6 77 changes 3 3; ");
        writing_expect_durable("b c | ");
        g_assert_cmpuint(writing.n_rollbacks, ==, 1);
        writing_end();
}

static void test_exit(void) {
        writing_begin();
        (void) writing_execute_batch("a;b");
        writing_expect("wanted; ");
        writing_end();
}

/* ---- limits ---- */

/* The longest list; one statement more is no message (tests/unit/test-protocol.c). */
static void test_longest(void) {
        g_autoptr(GString) list = g_string_new("a");
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;

        begin_with_lease();
        for (unsigned i = 1; i < STATEMENT_LIST_N_MAX; i++)
                g_string_append(list, ";a");
        (void) writing_execute_batch(list->str);
        writing_settle();
        g_assert_cmpint(message_receive(writing.rig.control_fd, &m), ==, 1);
        g_assert_cmpint(m.message.kind, ==, MESSAGE_COMMITTING);
        received_message_done(&m);
        g_assert_cmpint(message_receive(writing.rig.control_fd, &m), ==, 1);
        g_assert_cmpint(m.message.ended.n_changes, ==, 3 * STATEMENT_LIST_N_MAX);
        g_assert_cmpuint(m.message.ended.changes.size, ==, STATEMENT_LIST_N_MAX * sizeof(int64_t));
        received_message_done(&m);
        writing_end();
}

/* The user of the worker could not write when it was started. */
static void test_without_right(void) {
        writing_begin();
        writing.setup->writes = false;
        (void) writing_execute_batch("a");
        writing_expect("ended 1 error 15; ");
        writing_end();
}

/* ---- transactions of clients ---- */

static void test_transaction(void) {
        begin_with_lease();
        writing.transaction = writing_open(true, LATER);
        writing_expect("started 2 to write; ");
        (void) writing_execute_batch("a;b");
        (void) writing_execute_batch("c;d fail");
        (void) writing_execute_batch("e;f read");
        writing_expect("ended 3 wrote 6 77 changes 3 3; ended 4 error 11; ended 5 error 16; ");
        writing_expect_durable("");
        writing_commit(2);
        writing_expect("committing 2; ended 2 wrote 0 0; ");
        writing_expect_durable("a b | ");
        writing_end();
}

static void test_transaction_that_reads(void) {
        begin_with_lease();
        writing.transaction = writing_open(false, LATER);
        writing_expect("started 2; ");
        (void) writing_execute_batch("a;b");
        writing_expect("ended 3 error 15; ");
        writing_end();
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/batch/all", test_all);
        g_test_add_func("/batch/foreign-keys", test_foreign_keys);
        g_test_add_func("/batch/lease", test_lease);
        g_test_add_func("/batch/none", test_none);
        g_test_add_func("/batch/mates", test_mates);
        g_test_add_func("/batch/rollback", test_rollback);
        g_test_add_func("/batch/commit-failure", test_commit_failure);
        g_test_add_func("/batch/long", test_long);
        g_test_add_func("/batch/end-while-queued", test_end_while_queued);
        g_test_add_func("/batch/interrupt", test_interrupt);
        g_test_add_func("/batch/mate-leaves", test_mate_leaves);
        g_test_add_func("/batch/exit", test_exit);
        g_test_add_func("/batch/longest", test_longest);
        g_test_add_func("/batch/without-right", test_without_right);
        g_test_add_func("/batch/transaction", test_transaction);
        g_test_add_func("/batch/transaction-that-reads", test_transaction_that_reads);
        return g_test_run();
}
