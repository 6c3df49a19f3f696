/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's loop on rqlite (its imitation): jobs of several clients in one request, rows of RETURNING, lists, loads, and
 * transactions, which are refused. The worker's time stands still (tests/rigs/writing-rig.h); the server's does not.
 */
#include <unistd.h>

#include "daemon/worker/rqlite/rqlite-engine.h"
#include "tests/rigs/rqlite-rig.h"
#include "tests/rigs/writing-rig.h"

static RqliteNodes nodes;
static char *urls;

static void set_up(const char *const *schema) {
        Setup setup = wide;
        RqliteRig rig;

        rqlite_nodes_start(&nodes, 1, NULL);
        urls = rqlite_nodes_urls(&nodes, NULL);
        rqlite_rig_begin(&rig, g_strdup(urls));
        for (; *schema; schema++)
                g_assert_true(rqlite_rig_execute(&rig, *schema));
        rqlite_rig_end(&rig);
        setup.path = "";
        setup.engine = ENGINE_KIND_RQLITE;
        setup.connection = urls;
        setup.connections_max = 4;
        setup.consistency = CONSISTENCY_WEAK;
        setup.writes = setup.write_schema = true;
        writing_begin_on(&rqlite_engine, &setup);
}

static void tear_down(void) {
        writing_end();
        rqlite_nodes_stop(&nodes);
        g_free(urls);
}

static void expect_rows(const char *sql, const char *expected) {
        g_autofree char *rows = NULL;
        RqliteRig rig;

        rqlite_rig_begin(&rig, g_strdup(urls));
        rows = rqlite_rig_query(&rig, sql, NULL, 0);
        g_assert_cmpstr(rig.error.message, ==, NULL);
        g_assert_cmpstr(rows, ==, expected);
        rqlite_rig_end(&rig);
}

/* The worker takes jobs in any order, so each is in the queue before the next comes. */
static void execute(const char *sql) {
        writing_settle();
        (void) writing_execute(sql);
        writing_settle();
}

static const char *const schema[] = { "CREATE TABLE t(id INTEGER PRIMARY KEY, x)", NULL };

/* Three jobs are one request: one entry of the log. */
static void test_group(void) {
        set_up(schema);
        execute("INSERT INTO t(x) VALUES('a')");
        execute("INSERT INTO t(x) VALUES('b'), ('c')");
        execute("UPDATE t SET x = x || '!'");
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 1 2 3; ended 1 wrote 1 1; ended 2 wrote 2 3; ended 3 wrote 3 0; ");
        expect_rows("SELECT x FROM t", "ta!\ntb!\ntc!\n");
        tear_down();
}

/* One job fails: it alone ends with the error, and the others are carried out. */
static void test_failure_in_group(void) {
        set_up(schema);
        execute("INSERT INTO t VALUES(1, 'a')");
        execute("INSERT INTO t VALUES(1, 'again')");
        execute("INSERT INTO t VALUES(2, 'b')");
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 1 2 3; committing 1; ended 1 wrote 1 1; committing 2; ended 2 error 11; committing 3; "
                       "ended 3 wrote 1 2; ");
        expect_rows("SELECT * FROM t", "i1|ta\ni2|tb\n");
        tear_down();
}

static void test_returning(void) {
        uint64_t number;
        Outcome o;
        int fd;

        set_up(schema);
        number = writing_run("INSERT INTO t(x) VALUES('a'), ('b') RETURNING id, x", &fd);
        writing_expect("started 1 to write; wanted; ");
        writing_say(MESSAGE_LEASE);
        writing_settle();
        o = writing_read(fd, number);
        g_assert_cmpint(o.error, ==, ERROR_NONE);
        g_assert_cmpuint(o.n_rows, ==, 2);
        close(fd);
        tear_down();
}

/* The server carries out a statement that its parser does not understand, and sends no rows: others do not suffer. */
static void test_returning_lost(void) {
        uint64_t number;
        Outcome o;
        int fd;

        set_up(schema);
        execute("INSERT INTO t(x) VALUES('a')");
        number = writing_run("INSERT INTO t(x) VALUES('b') RETURNING id NOTNULL", &fd);
        writing_settle();
        execute("INSERT INTO t(x) VALUES('c')");
        writing_expect("wanted; started 2 to write; ");
        writing_say(MESSAGE_LEASE);
        writing_settle();
        o = writing_read(fd, number);
        g_assert_cmpint(o.error, ==, ERROR_OUTCOME_UNKNOWN);
        writing_expect("committing 1 2 3; ended 1 wrote 1 1; ended 2 error 39; ended 3 wrote 1 3; ");
        expect_rows("SELECT x FROM t", "ta\ntb\ntc\n");
        close(fd);
        tear_down();
}

/* A statement that returns rows has no place for them in an EXECUTE: it must not be carried out. */
static void test_returning_nothing(void) {
        set_up(schema);
        (void) writing_execute("INSERT INTO t(x) VALUES('a') RETURNING id");
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_settle();
        expect_rows("SELECT count(*) FROM t", "i0\n");
        tear_down();
}

static void test_list(void) {
        set_up(schema);
        (void) writing_execute_batch("INSERT INTO t VALUES(1, 'a');UPDATE t SET x = 'b';DELETE FROM t WHERE id = 9");
        execute("INSERT INTO t VALUES(2, 'c')");
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 1 2; ended 1 wrote 2 1 changes 1 1 0; ended 2 wrote 1 2; ");
        (void) writing_execute_batch("INSERT INTO t VALUES(3, 'd');INSERT INTO t VALUES(1, 'again')");
        writing_expect("committing 3; ended 3 error 11; ");
        expect_rows("SELECT * FROM t", "i1|tb\ni2|tc\n");
        tear_down();
}

static void test_transactions(void) {
        set_up(schema);
        (void) writing_open(false, 60000000);
        writing_expect("ended 1 error 16; ");
        (void) writing_open(true, 60000000);
        writing_settle();
        writing_say(MESSAGE_LEASE);
        writing_expect("wanted; ended 2 error 16; ");
        (void) writing_execute("INSERT INTO t VALUES(1, 'a')");
        writing_expect("committing 3; ended 3 wrote 1 1; ");
        tear_down();
}

/* ---- loads ---- */

/* Writes a stream of rows with one TEXT each. */
static void send_rows(int fd, const char *const *values) {
        static uint8_t bytes[16384];
        uint8_t payload[8 + 9] = {};
        PageEncoder e;
        EndCounters end = {};
        size_t size;

        page_encoder_init(&e, bytes, sizeof bytes, 7);
        store_le32(payload, 1);
        store_le32(payload + 4, sizeof bytes);
        store_le32(payload + 8, 1);
        store_le32(payload + 12, 1);
        g_assert_cmpint(page_encoder_begin_part(&e, FRAME_COLUMNS), ==, 1);
        g_assert_cmpuint(page_encoder_append(&e, payload, sizeof payload), ==, sizeof payload);
        page_encoder_end_part(&e, false);
        for (; *values; values++, end.n_rows++) {
                g_assert_cmpint(page_encoder_begin_row(&e, 1), ==, 1);
                page_encoder_add_text(&e, *values, strlen(*values));
                g_assert_cmpint(page_encoder_end_row(&e), ==, 1);
        }
        end.n_bytes = page_encoder_finish(&e);
        g_assert_cmpint(page_encoder_end(&e, &end), ==, 1);
        size = page_encoder_finish(&e);
        g_assert_cmpint(write(fd, bytes, size), ==, (ssize_t) size);
}

static void test_load(void) {
        static const char *const good[] = { "a", "it's", "c", NULL }, *const bad[] = { "d", "a", NULL };
        static const char *const unique[] = { "CREATE TABLE t(x UNIQUE)", NULL };
        int fd;

        set_up(unique);
        (void) writing_load("INSERT INTO t VALUES(?)", &fd);
        writing_expect("started 1 to write; ");
        send_rows(fd, good);
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 1; ended 1 wrote 3 0; ");
        close(fd);
        (void) writing_load("INSERT INTO t VALUES(?)", &fd);
        writing_expect("started 2 to write; ");
        send_rows(fd, bad);
        writing_expect("committing 2; ended 2 error 11; ");
        close(fd);
        expect_rows("SELECT x FROM t", "ta\ntit's\ntc\n");
        tear_down();
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/rqlite/jobs/group", test_group);
        g_test_add_func("/rqlite/jobs/failure-in-group", test_failure_in_group);
        g_test_add_func("/rqlite/jobs/returning", test_returning);
        g_test_add_func("/rqlite/jobs/returning-lost", test_returning_lost);
        g_test_add_func("/rqlite/jobs/returning-nothing", test_returning_nothing);
        g_test_add_func("/rqlite/jobs/list", test_list);
        g_test_add_func("/rqlite/jobs/transactions", test_transactions);
        g_test_add_func("/rqlite/jobs/load", test_load);
        return g_test_run();
}
