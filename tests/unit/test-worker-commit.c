/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/worker/core/writer: statements that write, through the worker program to a real file and back.
 * test-worker-writer.c has the cases that need an engine or a clock of their own.
 */
#include <sqlite3.h>
#include <unistd.h>

#include "tests/rigs/channel-rig.h"

#define MSEC UINT64_C(1000)

static void begin(Rig *rig, const char *journal) {
        g_autofree char *sql = g_strdup_printf("PRAGMA journal_mode = %s; CREATE TABLE w(x UNIQUE)", journal);
        Setup setup = wide;

        setup.writes = true;
        setup.sync_full = true;
        setup.database_size_max = setup.wal_size_max = UINT64_MAX;
        setup.park_rollback_usec = 100 * MSEC;
        rig_init_folder(rig);
        exec_sql(rig->database, sql);
        rig_start(rig, setup);
}

/* The next report of that kind; others pass by. To be freed. */
static ReceivedMessage wait_for_report(Rig *rig, MessageKind kind) {
        for (;;) {
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;

                wait_for(rig->control_fd);
                g_assert_cmpint(message_receive(rig->control_fd, &m), ==, 1);
                if (m.message.kind == kind)
                        return m;
                received_message_done(&m);
        }
}

static void give_lease(Rig *rig) {
        ReceivedMessage m = wait_for_report(rig, MESSAGE_LEASE_WANTED);

        received_message_done(&m);
        g_assert_cmpint(message_send(rig->control_fd, &(Message) { .kind = MESSAGE_LEASE }, -1), ==, 0);
}

static uint64_t send_execute(Rig *rig, const char *sql) {
        Message m = {
                .kind = MESSAGE_EXECUTE,
                .job = {
                        .number = ++rig->next_number, .sql = sql, .sql_size = strlen(sql),
                        .deadline_usec = now_usec() + rig->deadline_in_usec, .lock_wait_usec = UINT64_MAX,
                },
        };

        g_assert_cmpint(message_send(rig->control_fd, &m, -1), ==, 0);
        return m.job.number;
}

static Ended next_ended(Rig *rig) {
        ReceivedMessage m = wait_for_report(rig, MESSAGE_ENDED);
        Ended ended = m.message.ended;

        ended.failure.message = NULL;
        received_message_done(&m);
        return ended;
}

static int64_t count(const Rig *rig) {
        sqlite3 *db;
        sqlite3_stmt *stmt;
        int64_t n;

        g_assert_cmpint(sqlite3_open(rig->database, &db), ==, SQLITE_OK);
        (void) sqlite3_busy_timeout(db, 60000);
        g_assert_cmpint(sqlite3_prepare_v2(db, "SELECT count(*) FROM w", -1, &stmt, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
        n = sqlite3_column_int64(stmt, 0);
        (void) sqlite3_finalize(stmt);
        (void) sqlite3_close(db);
        return n;
}

/* Requests that were sent together: each sees what those before it have written. */
static void test_channel(const void *journal) {
        uint64_t insert, counts, returning, numbers[4];
        int64_t value = 7;
        Client c;
        Answer a;
        Rig rig;

        begin(&rig, journal);
        client_start(&rig, &c);
        insert = client_add_prepare(&c, "INSERT INTO w VALUES(?)");
        counts = client_add_prepare(&c, "SELECT count(*) FROM w");
        returning = client_add_prepare(&c, "INSERT INTO w VALUES('a'), ('b') RETURNING rowid");
        numbers[0] = client_add_fetch(&c, insert, 1, &value);
        numbers[1] = client_add_fetch(&c, counts, 0, NULL);
        numbers[2] = client_add_fetch(&c, returning, 0, NULL);
        numbers[3] = client_add_fetch(&c, counts, 0, NULL);
        client_send(&c);
        give_lease(&rig);
        (void) client_expect(&c, insert, ERROR_NONE);
        (void) client_expect(&c, counts, ERROR_NONE);
        (void) client_expect(&c, returning, ERROR_NONE);
        a = client_expect(&c, numbers[0], ERROR_NONE);
        g_assert_true(a.counters.wrote);
        g_assert_cmpint(a.counters.n_changes, ==, 1);
        g_assert_cmpint(a.counters.last_rowid, ==, 1);
        g_assert_cmpint(count(&rig), >=, 1);
        a = client_expect(&c, numbers[1], ERROR_NONE);
        g_assert_false(a.counters.wrote);
        g_assert_cmpint(a.integer, ==, 1);
        a = client_expect(&c, numbers[2], ERROR_NONE);
        g_assert_cmpuint(a.n_rows, ==, 2);
        g_assert_cmpint(a.integer, ==, 3);
        g_assert_cmpint(a.counters.n_changes, ==, 2);
        a = client_expect(&c, numbers[3], ERROR_NONE);
        g_assert_cmpint(a.integer, ==, 3);
        numbers[0] = client_add_fetch(&c, insert, 1, &value); /* it is unique */
        numbers[1] = client_add_fetch(&c, insert, 0, NULL);
        client_send(&c);
        (void) client_expect(&c, numbers[0], ERROR_SQL);
        (void) client_expect(&c, numbers[1], ERROR_PARAMETER_COUNT);
        client_done(&c);
        rig_done(&rig);
}

/* One statement of a batch rolls back the transaction. */
static void test_rollback(const void *journal) {
        static const char *const sql[] = {
                "INSERT INTO w VALUES(1)", "INSERT INTO w VALUES(2)", "INSERT OR ROLLBACK INTO w VALUES(1)",
                "INSERT INTO w VALUES(1)", "INSERT INTO w VALUES(3)",
        };
        unsigned n_failed = 0;
        Rig rig;

        begin(&rig, journal);
        for (unsigned i = 0; i < G_N_ELEMENTS(sql); i++)
                (void) send_execute(&rig, sql[i]);
        give_lease(&rig);
        for (unsigned i = 0; i < G_N_ELEMENTS(sql); i++) {
                Ended e = next_ended(&rig);

                n_failed += e.failure.error == ERROR_SQL;
                g_assert_true(e.wrote == (e.failure.error == ERROR_NONE));
        }
        g_assert_cmpuint(n_failed, ==, 2);
        g_assert_cmpint(count(&rig), ==, 3);
        rig_done(&rig);
}

/* A statement that takes long is interrupted for the one before it, and runs again. */
static void test_long_statement(const void *journal) {
        ReceivedMessage m;
        uint64_t before;
        Rig rig;
        Ended e;

        begin(&rig, journal);
        before = send_execute(&rig, "INSERT INTO w VALUES('before')");
        m = wait_for_report(&rig, MESSAGE_LEASE_WANTED);
        received_message_done(&m);
        (void) send_execute(&rig, "INSERT INTO w WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c "
                                  "LIMIT 200000) SELECT x FROM c");
        g_assert_cmpint(message_send(rig.control_fd, &(Message) { .kind = MESSAGE_LEASE }, -1), ==, 0);
        e = next_ended(&rig);
        g_assert_cmpuint(e.number, ==, before);
        g_assert_true(e.wrote);
        e = next_ended(&rig);
        g_assert_true(e.wrote);
        g_assert_cmpint(e.n_changes, ==, 200000);
        g_assert_cmpint(count(&rig), ==, 200001);
        rig_done(&rig);
}

/* A reader of the same worker that is parked keeps the commit out, and gives way. The system does not tell of its lock. */
static void test_own_reader(void) {
        uint64_t number;
        Outcome o;
        Ended e;
        Rig rig;
        int fd;

        begin(&rig, "delete");
        exec_sql(rig.database, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 100000) "
                               "INSERT INTO w SELECT 'row ' || x FROM c");
        fd = send_run(&rig, "SELECT * FROM w", &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        expect_started(&rig, number);
        (void) send_execute(&rig, "INSERT INTO w VALUES(1)");
        give_lease(&rig);
        e = next_ended(&rig);
        g_assert_cmpuint(e.number, ==, number);
        o = read_stream(fd, number);
        g_assert_cmpint(o.error, !=, ERROR_NONE);
        e = next_ended(&rig);
        g_assert_cmpint(e.failure.error, ==, ERROR_NONE);
        g_assert_true(e.wrote);
        close(fd);
        rig_done(&rig);
}

/* Another program writes for a while. */
static void test_foreign_writer(const void *journal) {
        sqlite3 *db;
        Rig rig;
        Ended e;

        begin(&rig, journal);
        g_assert_cmpint(sqlite3_open(rig.database, &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(db, "BEGIN IMMEDIATE; INSERT INTO w VALUES(1)", NULL, NULL, NULL), ==, SQLITE_OK);
        (void) send_execute(&rig, "INSERT INTO w VALUES(2)");
        give_lease(&rig);
        g_usleep(10 * MSEC); /* the worker has tried by then, if the machine is not overloaded */
        g_assert_cmpint(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), ==, SQLITE_OK);
        e = next_ended(&rig);
        g_assert_cmpint(e.failure.error, ==, ERROR_NONE);
        g_assert_cmpint(sqlite3_close(db), ==, SQLITE_OK);
        g_assert_cmpint(count(&rig), ==, 2);
        rig_done(&rig);
}

int main(int argc, char **argv) {
        rig_main_init(&argc, &argv);
        g_test_add_data_func("/commit/channel/wal", "wal", test_channel);
        g_test_add_data_func("/commit/channel/rollback-mode", "delete", test_channel);
        g_test_add_data_func("/commit/rollback/wal", "wal", test_rollback);
        g_test_add_data_func("/commit/rollback/rollback-mode", "delete", test_rollback);
        g_test_add_data_func("/commit/long-statement/wal", "wal", test_long_statement);
        g_test_add_data_func("/commit/long-statement/rollback-mode", "delete", test_long_statement);
        g_test_add_func("/commit/own-reader", test_own_reader);
        g_test_add_data_func("/commit/foreign-writer/wal", "wal", test_foreign_writer);
        g_test_add_data_func("/commit/foreign-writer/rollback-mode", "delete", test_foreign_writer);
        return g_test_run();
}
