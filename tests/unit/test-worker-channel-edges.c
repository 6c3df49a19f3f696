/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's channels under adverse conditions: a socket that is full at the wrong moment, or half closed, a request that
 * fails among others, EXIT, a compilation that does not end.
 */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/rigs/channel-rig.h"

/* It begins to be sent while what follows is computed, and does not fit a narrow socket. */
#define BLOB "SELECT zeroblob(12000)"
#define SLOW "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 300000) SELECT count(*) FROM c"

/* A channel whose socket takes a few KiB, or its memory. */
static void start_narrow(Rig *rig, Client *c, uint32_t page_size) {
        int least = 1;

        client_init(rig, c);
        c->setup.page_size = page_size;
        g_assert_cmpint(setsockopt(c->kept_fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof least), ==, 0);
        client_narrow(c, 4096);
        client_open(rig, c);
}

static void expect_closed(Rig *rig, Client *c) {
        ReceivedMessage m = client_expect_end(rig, c, MESSAGE_CHANNEL_CLOSED, NULL);

        received_message_done(&m);
}

static void expect_parked(Rig *rig) {
        while (!client_next_progress(rig).parked) {
        }
}

/* Unread descriptions wait as rows do, although they have no open statement. */
static void test_prepare_parked(void) {
        g_autofree char *name = g_strnfill(30000, 'n');
        g_autofree char *sql = g_strdup_printf("SELECT 1 AS %s", name);
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        start_narrow(&rig, &c, SQLIPC_PAGE_SIZE_MIN);
        for (unsigned i = 0; i < 3; i++)
                (void) client_add_prepare(&c, sql);
        client_send(&c);
        expect_parked(&rig);
        for (uint64_t i = 1; i <= 3; i++)
                g_assert_cmpuint(client_expect(&c, i, ERROR_NONE).n_columns, ==, 1);
        client_done(&c);
        rig_done(&rig);
}

/* CHANNEL_CLOSE inside a step, while the answer before it waits for a reader. */
static void test_closed_in_step(void) {
        Setup setup = wide;
        Message close = { .kind = MESSAGE_CHANNEL_CLOSE };
        Client c;
        Rig rig;

        setup.park_usec = LATER;
        rig_init(&rig, setup);
        start_narrow(&rig, &c, SQLIPC_PAGE_SIZE_DEFAULT);
        (void) client_add_query(&c, BLOB, 0, NULL);
        (void) client_add_query(&c, ENDLESS, 0, NULL);
        client_send(&c);
        client_wait(&c);
        close.channel_close.number = c.number;
        g_assert_cmpint(message_send(rig.control_fd, &close, -1), ==, 0);
        expect_closed(&rig, &c);
        client_done(&c);
        rig_done(&rig);
}

/* SQLite ends the transaction of a run that found no memory. Those behind it, which came with it, read in another, and not
 * in none: all of a run is of one state of the file. */
static void test_batch_with_failure(void) {
        static const char failing[] = "SELECT length(b || 'x') FROM big";
        Bytes exposed[] = { { "t", 1 }, { "big", 3 } };
        Setup setup = wide;
        Client c;
        Rig rig;

        setup.heap_size_max = 16 << 20;
        setup.exposed = exposed;
        setup.n_exposed = G_N_ELEMENTS(exposed);
        rig_init(&rig, setup);
        exec_sql(rig.database, "PRAGMA journal_mode = WAL; CREATE TABLE big(b); INSERT INTO big VALUES(zeroblob(30000000))");
        client_start(&rig, &c);
        g_assert_cmpint(client_query(&c, failing).error, ==, ERROR_OUT_OF_MEMORY); /* from now on it is quick */
        for (unsigned round = 0; round < 5; round++) {
                (void) client_add_query(&c, failing, 0, NULL);
                (void) client_add_query(&c, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c "
                                            "WHERE x < 50000) SELECT count(DISTINCT (SELECT max(n) + 0 * x FROM t)) FROM c",
                                        0, NULL);
                (void) client_add_query(&c, "SELECT 1", 0, NULL);
                client_send(&c);
                for (unsigned i = 0; i < 20; i++)
                        exec_sql(rig.database, "UPDATE t SET n = coalesce(n, 0) + 1");
                (void) client_expect(&c, c.request - 2, ERROR_OUT_OF_MEMORY);
                g_assert_cmpint(client_expect(&c, c.request - 1, ERROR_NONE).integer, ==, 1);
                (void) client_expect(&c, c.request, ERROR_NONE);
        }
        client_done(&c);
        rig_done(&rig);
}

/* EXIT while rows go out: the answer is whole, and later requests go on elsewhere; other channels go there at once. */
static void test_exit_is_unseen(void) {
        static const char rows[] = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 300000) "
                                   "SELECT x FROM c WHERE x % 10000 = 0 OR x = 1";
        Client c, idle;
        ReceivedMessage m;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        client_start(&rig, &idle);
        g_assert_cmpuint(client_query(&idle, "SELECT * FROM t").n_rows, ==, 2);
        (void) client_add_query(&c, rows, 0, NULL);
        (void) client_add_query(&c, "SELECT 2", 0, NULL);
        client_send(&c);
        client_wait(&c);
        g_assert_cmpint(message_send(rig.control_fd, &(Message) { .kind = MESSAGE_EXIT }, -1), ==, 0);
        m = client_expect_end(&rig, &idle, MESSAGE_CHANNEL_RESTED, NULL);
        received_message_done(&m);
        m = client_expect_end(&rig, &c, MESSAGE_CHANNEL_RESTED, NULL);
        g_assert_cmpuint(client_expect(&c, 1, ERROR_NONE).n_rows, ==, 31);
        rig_gone(&rig);
        rig_start(&rig, wide);
        client_take_up(&rig, &c, &m);
        received_message_done(&m);
        g_assert_cmpint(client_expect(&c, 2, ERROR_NONE).integer, ==, 2);
        client_done(&c);
        client_done(&idle);
        rig_done(&rig);
}

/* The client sends no more, but reads on: all of its requests are answered, a part of a request is dropped. The end comes
 * alone, or together with the bytes before it. */
static void test_half_closed(void) {
        Setup setup = wide;
        Client c;
        Rig rig;

        setup.park_usec = LATER; /* half a request is not waited for either */
        rig_init(&rig, setup);
        for (unsigned round = 0; round < 6; round++) {
                unsigned n = round / 2;

                client_start(&rig, &c);
                g_assert_cmpuint(client_query(&c, "SELECT 1").n_rows, ==, 1);
                for (unsigned i = 0; i < n; i++)
                        (void) client_add_query(&c, i == 0 ? SLOW : "SELECT 1", 0, NULL);
                client_add_frame(&c, REQUEST_QUERY, 0, n + 2, "", 1);
                g_byte_array_set_size(c.output, c.output->len - n);
                if (round % 2 == 0)
                        g_assert_cmpint(kill(rig.pid, SIGSTOP), ==, 0);
                client_send(&c);
                g_assert_cmpint(shutdown(c.fd, SHUT_WR), ==, 0);
                g_assert_cmpint(kill(rig.pid, SIGCONT), ==, 0);
                for (unsigned i = 0; i < n; i++)
                        g_assert_cmpuint(client_expect(&c, i + 2, ERROR_NONE).n_rows, ==, 1);
                if (n == 0)
                        (void) client_expect(&c, 2, ERROR_INVALID_REQUEST);
                expect_closed(&rig, &c);
                client_done(&c);
        }
        rig_done(&rig);
}

/* Requests with and without descriptors in a row: each sendmsg() with some is read by itself, and told by one event. */
static void test_descriptors(void) {
        union {
                char bytes[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } control = {};
        struct iovec part;
        struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
        struct cmsghdr *header = CMSG_FIRSTHDR(&m);
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        g_assert_cmpuint(client_query(&c, "SELECT 1").n_rows, ==, 1);
        *header = (struct cmsghdr) { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) };
        memcpy(CMSG_DATA(header), &c.fd, sizeof c.fd);
        g_assert_cmpint(kill(rig.pid, SIGSTOP), ==, 0); /* both are there when it looks */
        (void) client_add_query(&c, "SELECT 2", 0, NULL);
        part = (struct iovec) { .iov_base = c.output->data, .iov_len = c.side.memory ? 1 : c.output->len };
        g_assert_cmpint(sendmsg(c.fd, &m, 0), ==, (ssize_t) part.iov_len);
        if (!c.side.memory)
                g_byte_array_set_size(c.output, 0);
        (void) client_add_query(&c, "SELECT 3", 0, NULL);
        client_send(&c);
        g_assert_cmpint(kill(rig.pid, SIGCONT), ==, 0);
        g_assert_cmpint(client_expect(&c, 2, ERROR_NONE).integer, ==, 2);
        g_assert_cmpint(client_expect(&c, 3, ERROR_NONE).integer, ==, 3);
        client_done(&c);
        rig_done(&rig);
}

/* PrepareTimeoutSec= ends a compile, whatever the worker's parents ignored. */
static void test_compile_limit(void) {
        g_autoptr(GString) sql = g_string_new("WITH c0(x) AS (SELECT 1)");
        Setup setup = wide;
        int status;
        Client c;
        Rig rig;

        for (unsigned n = 1; n <= 25; n++)
                g_string_append_printf(sql, ", c%u(x) AS (SELECT x FROM c%u UNION ALL SELECT x FROM c%u)", n, n - 1, n - 1);
        g_string_append(sql, " SELECT count(*) FROM c25");
        g_assert_true(signal(SIGALRM, SIG_IGN) != SIG_ERR);
        setup.heap_size_max = UINT64_C(4) << 30; /* far off */
        rig_init(&rig, setup);
        g_assert_true(signal(SIGALRM, SIG_DFL) != SIG_ERR);
        client_init(&rig, &c);
        c.setup.prepare_timeout_usec = 1;
        client_open(&rig, &c);
        (void) client_add_prepare(&c, sql->str);
        client_send(&c);
        wait_for(rig.control_fd);
        g_assert_cmpint(waitpid(rig.pid, &status, 0), ==, rig.pid);
        g_assert_true(WIFSIGNALED(status));
        g_assert_cmpint(WTERMSIG(status), ==, SIGALRM);
        close(rig.job_fd);
        close(rig.control_fd);
        client_done(&c);
        rig_done_folder(&rig);
}

int main(int argc, char **argv) {
        rig_main_init(&argc, &argv);
        g_test_add_func("/channel/prepare-parked", test_prepare_parked);
        g_test_add_func("/channel/closed-in-step", test_closed_in_step);
        g_test_add_func("/channel/batch-with-failure", test_batch_with_failure);
        g_test_add_func("/channel/exit-is-unseen", test_exit_is_unseen);
        g_test_add_func("/channel/half-closed", test_half_closed);
        g_test_add_func("/channel/descriptors", test_descriptors);
        g_test_add_func("/channel/compile-limit", test_compile_limit);
        return g_test_run();
}
