/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's channels: requests, answers, errors. Answers that are cut short: test-worker-channel-limits.c; ends and
 * moves of channels: test-worker-channel-life.c.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dbus-interfaces/wire/time-zone.h"
#include "tests/rigs/channel-rig.h"

static void test_requests(void) {
        static const int64_t value = 7;
        uint64_t statement, number;
        ChannelProgress sums = {};
        ReceivedMessage m;
        Client c;
        Answer a;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        a = client_query(&c, "SELECT * FROM t");
        g_assert_cmpint(a.error, ==, ERROR_NONE);
        g_assert_cmpuint(a.n_rows, ==, 2);
        g_assert_cmpuint(a.n_columns, ==, 5);
        statement = client_add_prepare(&c, "SELECT ? + 1, 'x'");
        client_send(&c);
        a = client_expect(&c, statement, ERROR_NONE);
        g_assert_true(a.statement);
        g_assert_cmpuint(a.n_columns, ==, 2);
        g_assert_cmpuint(a.n_parameters, ==, 1);
        for (unsigned i = 0; i < 3; i++) {
                number = client_add_fetch(&c, statement, 1, &value);
                client_send(&c);
                a = client_expect(&c, number, ERROR_NONE);
                g_assert_cmpint(a.integer, ==, 8);
                g_assert_cmpuint(a.counters.vm_steps, >, 0);
                g_assert_cmpuint(a.counters.n_bytes, >, 0);
                g_assert_cmpuint(a.counters.n_bytes, <, 200); /* its own, and not all of the channel's */
        }
        client_add_finalize(&c, statement);
        number = client_add_fetch(&c, statement, 1, &value);
        client_send(&c);
        (void) client_expect(&c, number, ERROR_UNKNOWN_STATEMENT);
        client_leave(&c);
        m = client_expect_end(&rig, &c, MESSAGE_CHANNEL_CLOSED, &sums);
        g_assert_cmpuint(sums.n_runs, ==, 4); /* refused requests and PREPAREs are no runs */
        g_assert_cmpuint(sums.n_rows, ==, 5);
        g_assert_cmpuint(sums.n_statements, ==, 0);
        received_message_done(&m);
        client_done(&c);
        rig_done(&rig);
}

/* The description is that of PREPARE over the bus, string by string. */
static void test_statement_frame(void) {
        static const char *const expected[] = { "one", "INTEGER", "s", "TEXT", "i + :a", NULL, ":a", "@b", NULL, "?4" };
        const uint8_t *payload, *strings;
        PageDecoder *d;
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        (void) client_add_prepare(&c, "SELECT i AS one, s, i + :a FROM t WHERE s = @b AND i > ?4 ");
        client_send(&c);
        d = &c.decoder;
        while (d->fill - d->start < FRAME_HEADER_SIZE ||
               d->fill - d->start < FRAME_HEADER_SIZE + load_le32(d->buffer + d->start))
                g_assert_true(client_read(&c));
        payload = d->buffer + d->start + FRAME_HEADER_SIZE;
        g_assert_cmpuint(load_le32(payload), ==, 3);
        g_assert_cmpuint(load_le32(payload + 4), ==, 4);
        g_assert_cmpuint(load_le32(payload + 8), ==, STATEMENT_READ_ONLY);
        strings = payload + CHANNEL_STATEMENT_HEAD_SIZE + 4 * G_N_ELEMENTS(expected);
        for (size_t i = 0, start = 0, end; i < G_N_ELEMENTS(expected); i++, start = end) {
                end = load_le32(payload + CHANNEL_STATEMENT_HEAD_SIZE + 4 * i);
                if (expected[i])
                        g_assert_cmpstr((const char *) strings + start, ==, expected[i]);
                else
                        g_assert_cmpuint(end, ==, start);
        }
        client_done(&c);
        rig_done(&rig);
}

/* Requests are refused in the same words as runs of a pipe; and the channel is usable as before. */
static void test_errors(void) {
        static const char *const cases[] = {
                "", " ;; -- nothing\n", "SELECT 1; SELECT 2", "SELECT nonsense FROM t", "SELEC 1", "SELECT nofunction(1)",
                "INSERT INTO t(i) VALUES(1)", "ATTACH ':memory:' AS x", "PRAGMA writable_schema = 1", "SELECT ?",
                "SELECT abs(-9223372036854775808)", "SELECT i, abs(i) FROM t ORDER BY i DESC", "SELECT zeroblob(2000000000)",
        };
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                Answer a = client_query(&c, cases[i]);
                ReceivedMessage m;
                Outcome o;

                /* its progress would disturb the reports of a run */
                client_done(&c);
                m = client_expect_end(&rig, &c, MESSAGE_CHANNEL_CLOSED, NULL);
                received_message_done(&m);
                o = run(&rig, cases[i]);
                client_start(&rig, &c);
                g_test_message("%s: %s", cases[i], a.message);
                g_assert_cmpint(a.error, !=, ERROR_NONE);
                g_assert_cmpint(a.error, ==, o.error);
                g_assert_cmpstr(a.message, ==, o.message);
        }
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
                g_assert_cmpint(client_query(&c, cases[i]).error, !=, ERROR_NONE);
        g_assert_cmpuint(client_query(&c, "SELECT * FROM t").n_rows, ==, 2);
        client_done(&c);
        rig_done(&rig);
}

/* Requests that are whole, but wrong inside: an error each, and the channel goes on. */
static void test_wrong_inside(void) {
        uint8_t payload[64] = {};
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        client_add_frame(&c, REQUEST_FETCH, 0, ++c.request, payload, CHANNEL_FETCH_HEAD_SIZE - 1);
        client_add_frame(&c, REQUEST_QUERY, 0, ++c.request, payload, CHANNEL_QUERY_HEAD_SIZE - 1);
        store_le32(payload + 16, 1); /* SQL that is not there */
        client_add_frame(&c, REQUEST_QUERY, 0, ++c.request, payload, CHANNEL_QUERY_HEAD_SIZE);
        store_le32(payload + 16, UINT32_MAX);
        client_add_frame(&c, REQUEST_QUERY, 0, ++c.request, payload, CHANNEL_QUERY_HEAD_SIZE);
        store_le32(payload + 16, 0);
        store_le32(payload + 20, 1);
        client_add_frame(&c, REQUEST_QUERY, 0, ++c.request, payload, CHANNEL_QUERY_HEAD_SIZE);
        store_le32(payload + 20, 0);
        store_le32(payload + 8, 1); /* a parameter that is not there */
        client_add_frame(&c, REQUEST_QUERY, 0, ++c.request, payload, CHANNEL_QUERY_HEAD_SIZE);
        store_le32(payload + 8, UINT32_MAX);
        store_le32(payload + 12, UINT32_MAX);
        client_add_frame(&c, REQUEST_QUERY, 0, ++c.request, payload, CHANNEL_QUERY_HEAD_SIZE);
        store_le32(payload + 8, 0);
        store_le32(payload + 12, 0);
        client_add_frame(&c, REQUEST_QUERY, 0, ++c.request, payload, CHANNEL_QUERY_HEAD_SIZE + 8); /* a row of nothing */
        client_send(&c);
        for (uint64_t i = 1; i <= c.request; i++)
                (void) client_expect(&c, i, ERROR_INVALID_REQUEST);
        g_assert_cmpuint(client_query(&c, "SELECT * FROM t").n_rows, ==, 2);
        client_done(&c);
        rig_done(&rig);
}

/* A thousand requests before the first answer is read, of all kinds, and each is answered in its turn. */
static void test_pipelining(void) {
        uint64_t statement, first;
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        statement = client_add_prepare(&c, "SELECT ?");
        first = c.request + 1;
        for (int64_t i = 0; i < 1000; i++)
                if (i % 10 == 3)
                        (void) client_add_query(&c, "SELECT -?", 1, &i);
                else if (i % 10 == 7)
                        (void) client_add_query(&c, "SELECT nonsense", 0, NULL);
                else
                        (void) client_add_fetch(&c, statement, 1, &i);
        client_send(&c);
        (void) client_expect(&c, statement, ERROR_NONE);
        for (int64_t i = 0; i < 1000; i++) {
                Answer a = client_expect(&c, first + (uint64_t) i, i % 10 == 7 ? ERROR_SQL : ERROR_NONE);

                if (!a.error)
                        g_assert_cmpint(a.integer, ==, i % 10 == 3 ? -i : i);
        }
        client_done(&c);
        rig_done(&rig);
}

/* Requests that came together share a transaction, invisibly: each sees all that was committed before it was sent, and after
 * the last answer nothing is locked. In rollback mode, because there a reader locks writers out. */
static void test_batches(void) {
        uint64_t statement;
        int64_t value = 0;
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        statement = client_add_prepare(&c, "SELECT max(n) FROM t WHERE n >= ?");
        client_send(&c);
        (void) client_expect(&c, statement, ERROR_NONE);
        for (int64_t n = 1; n < 100; n++) {
                g_autofree char *update = g_strdup_printf("UPDATE t SET n = %d", (int) n);

                exec_sql(rig.database, update); /* SQLITE_BUSY here would be the end of this test */
                for (unsigned i = 0; i < 20; i++)
                        (void) client_add_fetch(&c, statement, 1, &value);
                client_send(&c);
                for (unsigned i = 0; i < 20; i++)
                        g_assert_cmpint(client_expect(&c, c.request - 19 + i, ERROR_NONE).integer, ==, n);
        }
        client_done(&c);
        rig_done(&rig);
}

/* In WAL mode writers go on while requests wait: those that were sent after a commit see it. */
static void test_batches_are_fresh(void) {
        uint64_t statement, first;
        int64_t value = 0;
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        exec_sql(rig.database, "PRAGMA journal_mode = WAL; UPDATE t SET n = 0");
        client_start(&rig, &c);
        statement = client_add_prepare(&c, "SELECT max(n) FROM t WHERE n >= ?");
        first = c.request + 1;
        for (int n = 1; n <= 50; n++) {
                g_autofree char *update = g_strdup_printf("UPDATE t SET n = %d", n);

                exec_sql(rig.database, update);
                for (unsigned i = 0; i < 10; i++)
                        (void) client_add_fetch(&c, statement, 1, &value);
                client_send(&c);
        }
        (void) client_expect(&c, statement, ERROR_NONE);
        for (unsigned i = 0; i < 500; i++)
                g_assert_cmpint(client_expect(&c, first + i, ERROR_NONE).integer, >=, i / 10 + 1);
        client_done(&c);
        rig_done(&rig);
}

/* Answers of any size behind each other, through small pages and a socket that is full: rows as they were asked for. */
static void test_large_answers(void) {
        static const char *const sql[] = {
                "SELECT 1", "SELECT zeroblob(300000)", "SELECT 5 UNION ALL SELECT x FROM (" MANY " LIMIT 20000)",
                "SELECT 3, hex(zeroblob(2040)), hex(zeroblob(2040))",
        };
        static const uint64_t n_rows[] = { 1, 1, 20001, 1 };
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_init(&rig, &c);
        c.setup.page_size = SQLIPC_PAGE_SIZE_MIN;
        client_open(&rig, &c);
        for (unsigned i = 0; i < 200; i++)
                (void) client_add_query(&c, sql[i % 4], 0, NULL);
        client_send(&c);
        for (unsigned i = 0; i < 200; i++)
                g_assert_cmpuint(client_expect(&c, i + 1, ERROR_NONE).n_rows, ==, n_rows[i % 4]);
        client_done(&c);
        rig_done(&rig);
}

/* Byte by byte: nothing is read that is not there, and nothing waits for more than is needed. */
static void test_pieces(void) {
        static const int64_t value = 41;
        uint64_t statement, number;
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        statement = client_add_prepare(&c, "SELECT ? + 1");
        number = client_add_fetch(&c, statement, 1, &value);
        for (guint i = 0; i < c.output->len; i++) {
                client_send_bytes(&c, c.output->data + i, 1);
                if (i % 8 == 0)
                        g_usleep(500);
        }
        g_byte_array_set_size(c.output, 0);
        (void) client_expect(&c, statement, ERROR_NONE);
        g_assert_cmpint(client_expect(&c, number, ERROR_NONE).integer, ==, 42);
        client_done(&c);
        rig_done(&rig);
}

/* Bytes that are no request: InvalidRequest, and the end. Requests before them are answered. */
static void test_garbage(void) {
        static const struct {
                unsigned kind, flags;
                uint64_t number;
                size_t size; /* as the header says */
                uint8_t version;
        } cases[] = {
                { REQUEST_QUERY, 0, 1, 0, SQLIPC_PAGE_VERSION },          /* not larger than the one before */
                { REQUEST_PREPARE, 0, 0, 0, SQLIPC_PAGE_VERSION },
                { REQUEST_QUERY, FRAME_MORE, 2, 0, SQLIPC_PAGE_VERSION },
                { REQUEST_FETCH, 1 << 15, 2, 24, SQLIPC_PAGE_VERSION },   /* our own marks */
                { REQUEST_FETCH, 1 << 14, 2, 0, SQLIPC_PAGE_VERSION },
                { REQUEST_QUERY, 0, 2, 0, SQLIPC_PAGE_VERSION + 1 },
                { REQUEST_CANCEL, 0, 1, 1, SQLIPC_PAGE_VERSION },
                { REQUEST_FINALIZE, 0, 1, 8, SQLIPC_PAGE_VERSION },
                { REQUEST_FOREIGN_KEYS, 0, FOREIGN_KEYS_MAX_, 0, SQLIPC_PAGE_VERSION },
                { REQUEST_FOREIGN_KEYS, 0, FOREIGN_KEYS_ON, 8, SQLIPC_PAGE_VERSION },
                { REQUEST_TIME_ZONE, 0, 1, 0, SQLIPC_PAGE_VERSION },
                { REQUEST_LOCK_WAIT, 0, 0, 8, SQLIPC_PAGE_VERSION },
                { REQUEST_TIME_ZONE, 0, 0, TIME_ZONE_SIZE_MAX + 1, SQLIPC_PAGE_VERSION },
                { REQUEST_TIME_ZONE, 0, 0, 8, SQLIPC_PAGE_VERSION }, /* the header of the next request */
                { FRAME_END, 0, 2, 0, SQLIPC_PAGE_VERSION },
                { 0, 0, 2, 0, SQLIPC_PAGE_VERSION },
                { REQUEST_PREPARE, 0, 2, CHANNEL_REQUEST_SIZE_MAX + 1, SQLIPC_PAGE_VERSION },
                { REQUEST_PREPARE, 0, 2, UINT32_MAX, SQLIPC_PAGE_VERSION },
        };
        Rig rig;

        rig_init(&rig, wide);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                ReceivedMessage m;
                guint header;
                Answer a;
                Client c;

                client_start(&rig, &c);
                (void) client_add_query(&c, "SELECT * FROM t", 0, NULL);
                header = c.output->len;
                client_add_frame(&c, cases[i].kind, cases[i].flags, cases[i].number, NULL, 0);
                store_le32(c.output->data + header, (uint32_t) cases[i].size);
                c.output->data[header + 5] = cases[i].version;
                (void) client_add_query(&c, "SELECT * FROM t", 0, NULL); /* never checked */
                client_send(&c);
                g_assert_cmpuint(client_expect(&c, 1, ERROR_NONE).n_rows, ==, 2);
                (void) client_expect(&c, cases[i].number, ERROR_INVALID_REQUEST);
                m = client_expect_end(&rig, &c, MESSAGE_CHANNEL_CLOSED, NULL);
                received_message_done(&m);
                close(c.kept_fd); /* as the supervisor does */
                c.kept_fd = -1;
                g_assert_false(client_receive(&c, &a));
                client_done(&c);
        }
        rig_done(&rig);
}

/* A request that is too large is thrown away as it arrives: the next is as good as ever. */
static void test_too_large(void) {
        g_autofree uint8_t *payload = g_malloc0(10 << 20);
        uint64_t large, cancelled, number;
        Setup setup = wide;
        Client c;
        Rig rig;

        setup.sql_size_max = 100000;
        rig_init(&rig, setup);
        rig.row_size_max = 1 << 20;
        client_start(&rig, &c);
        (void) client_add_query(&c, "SELECT 1", 0, NULL);
        large = ++c.request;
        client_add_frame(&c, REQUEST_PREPARE, 0, large, payload, 10 << 20);
        number = client_add_query(&c, "SELECT 2", 0, NULL);
        client_send(&c);
        g_assert_cmpint(client_expect(&c, 1, ERROR_NONE).integer, ==, 1);
        (void) client_expect(&c, large, ERROR_LIMITS_EXCEEDED);
        g_assert_cmpint(client_expect(&c, number, ERROR_NONE).integer, ==, 2);

        /* within that, but more SQL than is allowed */
        large = ++c.request;
        client_add_frame(&c, REQUEST_PREPARE, 0, large, payload, 100001);
        client_send(&c);
        g_assert_nonnull(strstr(client_expect(&c, large, ERROR_LIMITS_EXCEEDED).message, "SQLSizeMax="));

        /* as large as allowed: it is a NUL too much, not a byte */
        large = ++c.request;
        client_add_frame(&c, REQUEST_PREPARE, 0, large, payload, 100000);
        cancelled = client_add_query(&c, "SELECT 3", 0, NULL);
        client_send(&c);
        (void) client_expect(&c, large, ERROR_SQL);
        g_assert_cmpint(client_expect(&c, cancelled, ERROR_NONE).integer, ==, 3);
        client_done(&c);
        rig_done(&rig);
}

/* Another program changes the schema between two runs: rows and columns are the new ones. */
static void test_schema_change(void) {
        uint64_t statement;
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        statement = client_add_prepare(&c, "SELECT * FROM t");
        client_send(&c);
        (void) client_expect(&c, statement, ERROR_NONE);
        for (unsigned i = 0; i < 5; i++) {
                uint64_t number = client_add_fetch(&c, statement, 0, NULL);
                Answer a;

                client_send(&c);
                a = client_expect(&c, number, ERROR_NONE);
                g_assert_cmpuint(a.n_columns, ==, 5 + i / 2);
                if (i % 2)
                        exec_sql(rig.database, i == 1 ? "ALTER TABLE t ADD COLUMN x" : "ALTER TABLE t ADD COLUMN y");
        }
        client_done(&c);
        rig_done(&rig);
}

/* A file in the place of the other is seen, if not at once. */
static void test_replaced_file(void) {
        g_autofree char *other = NULL;
        uint64_t statement, number;
        Client c;
        Answer a;
        Rig rig;

        rig_init(&rig, wide);
        other = g_strconcat(rig.database, ".new", NULL);
        exec_sql(other, "CREATE TABLE t(i); INSERT INTO t VALUES(4711)");
        client_start(&rig, &c);
        statement = client_add_prepare(&c, "SELECT max(i) FROM t");
        number = client_add_fetch(&c, statement, 0, NULL);
        client_send(&c);
        (void) client_expect(&c, statement, ERROR_NONE);
        g_assert_cmpint(client_expect(&c, number, ERROR_NONE).integer, ==, INT64_MAX);
        g_assert_cmpint(rename(other, rig.database), ==, 0);
        do {
                number = client_add_fetch(&c, statement, 0, NULL);
                client_send(&c);
                a = client_expect(&c, number, ERROR_NONE);
        } while (a.integer != 4711);
        client_done(&c);
        rig_done(&rig);
}

int main(int argc, char **argv) {
        rig_main_init(&argc, &argv);
        g_test_add_func("/channel/requests", test_requests);
        g_test_add_func("/channel/statement-frame", test_statement_frame);
        g_test_add_func("/channel/errors", test_errors);
        g_test_add_func("/channel/wrong-inside", test_wrong_inside);
        g_test_add_func("/channel/pipelining", test_pipelining);
        g_test_add_func("/channel/batches", test_batches);
        g_test_add_func("/channel/batches-are-fresh", test_batches_are_fresh);
        g_test_add_func("/channel/large-answers", test_large_answers);
        g_test_add_func("/channel/pieces", test_pieces);
        g_test_add_func("/channel/garbage", test_garbage);
        g_test_add_func("/channel/too-large", test_too_large);
        g_test_add_func("/channel/schema-change", test_schema_change);
        g_test_add_func("/channel/replaced-file", test_replaced_file);
        return g_test_run();
}
