/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The worker's channels: requests and answers. */
#include <sys/socket.h>
#include <unistd.h>

#include "channel-rig.h"

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
                g_assert_cmpint(client_expect(&c, number, ERROR_NONE).integer, ==, 8);
        }
        client_add_finalize(&c, statement);
        number = client_add_fetch(&c, statement, 1, &value);
        client_send(&c);
        (void) client_expect(&c, number, ERROR_UNKNOWN_STATEMENT);
        client_leave(&c);
        m = client_expect_end(&rig, &c, MESSAGE_CHANNEL_CLOSED, &sums);
        g_assert_cmpuint(sums.n_rows, ==, 5);
        g_assert_cmpuint(sums.n_statements, ==, 0);
        received_message_done(&m);
        client_done(&c);
        rig_done(&rig);
}

int main(int argc, char **argv) {
        rig_main_init(&argc, &argv);
        g_test_add_func("/channel/requests", test_requests);
        return g_test_run();
}
