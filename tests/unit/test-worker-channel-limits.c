/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's channels: conditions that cut an answer short or delay it, namely limits, deadlines, CANCEL, a reader that
 * stalls, a lock, and other runs; and that other channels are served meanwhile.
 */
#include <sqlite3.h>
#include <unistd.h>

#include "tests/rigs/channel-rig.h"

static void test_limits(void) {
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        rig.row_size_max = 1000;
        rig.result_rows_max = 10;
        rig.result_size_max = 5000;
        client_init(&rig, &c);
        c.setup.statements_max = 2;
        client_open(&rig, &c);
        g_assert_cmpint(client_query(&c, "SELECT zeroblob(1001)").error, ==, ERROR_ROW_TOO_LARGE);
        g_assert_cmpint(client_query(&c, MANY " LIMIT 10").error, ==, ERROR_NONE);
        g_assert_cmpint(client_query(&c, MANY " LIMIT 11").error, ==, ERROR_LIMITS_EXCEEDED);
        g_assert_cmpint(client_query(&c, "SELECT zeroblob(900) FROM (" MANY " LIMIT 5)").error, ==, ERROR_NONE);
        g_assert_cmpint(client_query(&c, "SELECT zeroblob(900) FROM (" MANY " LIMIT 6)").error, ==, ERROR_LIMITS_EXCEEDED);
        for (unsigned i = 0; i < 20; i++) /* a limit of each result, not of the channel */
                g_assert_cmpint(client_query(&c, "SELECT zeroblob(900) FROM (" MANY " LIMIT 5)").error, ==, ERROR_NONE);

        for (unsigned i = 0; i < 4; i++)
                (void) client_add_prepare(&c, i == 0 ? "SELECT nonsense" : "SELECT 1");
        client_add_finalize(&c, c.request);
        (void) client_add_prepare(&c, "SELECT 2");
        client_send(&c);
        (void) client_expect(&c, c.request - 4, ERROR_SQL); /* one that did not compile is none */
        (void) client_expect(&c, c.request - 3, ERROR_NONE);
        (void) client_expect(&c, c.request - 2, ERROR_NONE);
        g_assert_nonnull(strstr(client_expect(&c, c.request - 1, ERROR_LIMITS_EXCEEDED).message, "StatementsMax="));
        (void) client_expect(&c, c.request, ERROR_LIMITS_EXCEEDED); /* what was finalized was none, either */
        client_add_finalize(&c, c.request - 2);
        (void) client_add_prepare(&c, "SELECT 2");
        client_send(&c);
        (void) client_expect(&c, c.request, ERROR_NONE);
        client_done(&c);
        rig_done(&rig);
}

/* A result that is too large takes no answer with it that is in the same page, behind or before it. */
static void test_too_much_between(void) {
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        rig.result_size_max = 1000;
        client_start(&rig, &c);
        for (unsigned i = 0; i < 30; i++)
                (void) client_add_query(&c, i % 3 == 1 ? "SELECT zeroblob(2000)" : "SELECT 7", 0, NULL);
        client_send(&c);
        for (unsigned i = 0; i < 30; i++)
                if (i % 3 == 1)
                        (void) client_expect(&c, i + 1, ERROR_LIMITS_EXCEEDED);
                else
                        g_assert_cmpint(client_expect(&c, i + 1, ERROR_NONE).integer, ==, 7);
        client_done(&c);
        rig_done(&rig);
}

/* The client's own limit of time, and the service's; whichever is shorter. */
static void test_deadlines(void) {
        uint8_t payload[CHANNEL_QUERY_HEAD_SIZE + sizeof ENDLESS] = {};
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        store_le64(payload, 50000);
        store_le32(payload + 16, strlen(ENDLESS));
        memcpy(payload + CHANNEL_QUERY_HEAD_SIZE, ENDLESS, strlen(ENDLESS));
        client_add_frame(&c, REQUEST_QUERY, 0, ++c.request, payload, CHANNEL_QUERY_HEAD_SIZE + strlen(ENDLESS));
        client_send(&c);
        (void) client_expect(&c, c.request, ERROR_TIMED_OUT);
        client_done(&c);
        rig_stop(&rig);

        rig_start(&rig, wide);
        client_init(&rig, &c);
        c.setup.run_timeout_usec = 50000;
        client_open(&rig, &c);
        store_le64(payload, UINT64_MAX);
        client_add_frame(&c, REQUEST_QUERY, 0, ++c.request, payload, CHANNEL_QUERY_HEAD_SIZE + strlen(ENDLESS));
        client_send(&c);
        (void) client_expect(&c, c.request, ERROR_TIMED_OUT);
        g_assert_cmpint(client_query(&c, ENDLESS).error, ==, ERROR_TIMED_OUT);
        client_done(&c);
        rig_done(&rig);
}

/* CANCEL of a running, a waiting, an ended and an unknown request. */
static void test_cancel(void) {
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        (void) client_add_query(&c, "SELECT 1", 0, NULL); /* 1: over by the time */
        (void) client_add_query(&c, ENDLESS, 0, NULL);    /* 2: runs */
        (void) client_add_query(&c, "SELECT 3", 0, NULL); /* 3: waits */
        (void) client_add_query(&c, "SELECT 4", 0, NULL);
        (void) client_add_prepare(&c, "SELECT 5");
        client_send(&c);
        g_assert_cmpint(client_expect(&c, 1, ERROR_NONE).integer, ==, 1);
        client_add_cancel(&c, 1);
        client_add_cancel(&c, 3);
        client_add_cancel(&c, 5);
        client_add_cancel(&c, 0);
        client_add_cancel(&c, 4711);
        client_add_cancel(&c, 3);
        client_add_cancel(&c, 2);
        client_send(&c);
        (void) client_expect(&c, 2, ERROR_CANCELLED);
        (void) client_expect(&c, 3, ERROR_CANCELLED);
        g_assert_cmpint(client_expect(&c, 4, ERROR_NONE).integer, ==, 4);
        (void) client_expect(&c, 5, ERROR_CANCELLED);
        (void) client_add_fetch(&c, 5, 0, NULL); /* it was not prepared */
        client_send(&c);
        (void) client_expect(&c, 6, ERROR_UNKNOWN_STATEMENT);
        client_done(&c);
        rig_done(&rig);
}

/* All in one write, the CANCEL after its request: no request runs that was cancelled before its turn. */
static void test_cancel_at_once(void) {
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        for (unsigned i = 0; i < 100; i++) {
                uint64_t number = client_add_query(&c, ENDLESS, 0, NULL);

                client_add_cancel(&c, number);
        }
        client_send(&c);
        for (unsigned i = 0; i < 100; i++)
                (void) client_expect(&c, i + 1, ERROR_CANCELLED);
        g_assert_cmpuint(client_query(&c, "SELECT * FROM t").n_rows, ==, 2);
        client_done(&c);
        rig_done(&rig);
}

/* One that is parked, because its answer is not read. */
static void test_cancel_parked(void) {
        uint64_t number;
        Client c;
        Answer a;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        number = client_add_query(&c, MANY, 0, NULL);
        client_send(&c);
        while (!client_next_progress(&rig).parked)
                ;
        client_add_cancel(&c, number);
        client_send(&c);
        while (!client_next_progress(&rig).draining)
                ;
        g_assert_true(client_receive(&c, &a));
        g_assert_cmpint(a.error, ==, ERROR_CANCELLED);
        g_assert_cmpuint(a.n_rows, >, 0);
        g_assert_cmpuint(client_query(&c, "SELECT * FROM t").n_rows, ==, 2);
        client_done(&c);
        rig_done(&rig);
}

/* A client that reads nothing for longer than ParkTimeoutSec=: its run ends, and it learns why once it reads. */
static void test_slow_reader(void) {
        Setup setup = wide;
        ChannelProgress p;
        uint64_t number;
        Client c;
        Answer a;
        Rig rig;

        setup.park_usec = setup.park_rollback_usec = 50000;
        rig_init(&rig, setup);
        client_start(&rig, &c);
        number = client_add_query(&c, MANY, 0, NULL);
        client_send(&c);
        do /* its end is news, too: then it holds up writers no more; parked it may be too shortly to be told */
                p = client_next_progress(&rig);
        while (!p.draining);
        exec_sql(rig.database, "INSERT INTO t(i) VALUES(77)");
        g_assert_true(client_receive(&c, &a));
        g_assert_cmpuint(a.number, ==, number);
        g_assert_cmpint(a.error, ==, ERROR_READER_TOO_SLOW);
        g_assert_cmpuint(client_query(&c, "SELECT * FROM t").n_rows, ==, 3);
        client_done(&c);
        rig_done(&rig);
}

/* The same with a supervisor that takes the answer over: the channel leaves the worker, and goes on at the next. */
static void test_slow_reader_leaves(void) {
        Setup setup = wide;
        g_autofree uint8_t *unread = NULL;
        size_t size;
        Client c;
        Rig rig;

        setup.park_usec = setup.park_rollback_usec = 50000;
        setup.drain_usec = 1000;
        rig_init(&rig, setup);
        client_start(&rig, &c);
        (void) client_add_query(&c, MANY, 0, NULL);
        (void) client_add_query(&c, "SELECT 7", 0, NULL);
        client_send(&c);
        ReceivedMessage m = client_expect_end(&rig, &c, MESSAGE_CHANNEL_RESTED, NULL);
        size = m.message.channel_end.unread.size;
        g_assert_cmpuint(size, >, 0);
        g_assert_cmpuint(size, <=, unread_size_max(SQLIPC_PAGE_SIZE_DEFAULT));
        g_assert_true(m.message.channel_end.waiting); /* the second request was read, or is still in the socket */
        unread = g_memdup2(m.message.channel_end.unread.data, size);
        for (size_t sent = 0; sent < size;) {
                size_t n = client_write_unread(&c, unread + sent, size - sent);

                sent += n;
                if (n == 0)
                        g_assert_true(client_read(&c));
        }
        (void) client_expect(&c, 1, ERROR_READER_TOO_SLOW);
        client_take_up(&rig, &c, &m);
        received_message_done(&m);
        g_assert_cmpint(client_expect(&c, 2, ERROR_NONE).integer, ==, 7);
        client_done(&c);
        rig_done(&rig);
}

/* While a writer has the database locked the request waits, and so does nothing else. */
static void test_busy(void) {
        sqlite3 *writer;
        Client c, other;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        client_start(&rig, &other);
        g_assert_cmpint(sqlite3_open(rig.database, &writer), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(writer, "BEGIN EXCLUSIVE", NULL, NULL, NULL), ==, SQLITE_OK);
        (void) client_add_query(&c, "SELECT * FROM t", 0, NULL);
        client_send(&c);
        client_add_frame(&other, REQUEST_FETCH, 0, ++other.request, "", 0);
        client_send(&other);
        (void) client_expect(&other, other.request, ERROR_INVALID_REQUEST);
        g_assert_cmpint(sqlite3_exec(writer, "COMMIT", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpuint(client_expect(&c, c.request, ERROR_NONE).n_rows, ==, 2);
        sqlite3_close(writer);
        client_done(&c);
        client_done(&other);
        rig_done(&rig);
}

int main(int argc, char **argv) {
        rig_main_init(&argc, &argv);
        g_test_add_func("/channel/limits", test_limits);
        g_test_add_func("/channel/too-much-between", test_too_much_between);
        g_test_add_func("/channel/deadlines", test_deadlines);
        g_test_add_func("/channel/cancel", test_cancel);
        g_test_add_func("/channel/cancel-at-once", test_cancel_at_once);
        g_test_add_func("/channel/cancel-parked", test_cancel_parked);
        g_test_add_func("/channel/slow-reader", test_slow_reader);
        g_test_add_func("/channel/slow-reader-leaves", test_slow_reader_leaves);
        g_test_add_func("/channel/busy", test_busy);
        return g_test_run();
}
