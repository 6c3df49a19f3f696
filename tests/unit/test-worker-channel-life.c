/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The worker's channels: how they end, rest and move to another worker. */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/rigs/channel-rig.h"

/* Longer than the progress handler looks away. */
#define IN_STEP_USEC 30000

/* Another worker on the same database. */
static void second_init(Rig *second, const Rig *rig, Setup setup) {
        *second = *rig;
        rig_start(second, setup);
}

static void expect_closed(Rig *rig, Client *c) {
        ReceivedMessage m = client_expect_end(rig, c, MESSAGE_CHANNEL_CLOSED, NULL);

        received_message_done(&m);
}

/* The supervisor lets go of its descriptor, and the client learns it. */
static void expect_end_of_file(Client *c) {
        Answer a;

        close(c->kept_fd);
        c->kept_fd = -1;
        g_assert_false(client_receive(c, &a));
}

static void send_number(Rig *rig, MessageKind kind, uint64_t number) {
        g_assert_cmpint(message_send(rig->control_fd, &(Message) { .kind = kind, .number = number }, -1), ==, 0);
}

/* The next report that is none of progress must be of `kind`: its number. `ret_running` (NULL: nowhere): whether the last of
 * progress said that something runs. */
static uint64_t expect_past_progress(Rig *rig, MessageKind kind, bool *ret_running) {
        for (;;) {
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;
                bool progress;
                uint64_t number;

                wait_for(rig->control_fd);
                g_assert_cmpint(message_receive(rig->control_fd, &m), ==, 1);
                progress = m.message.kind == MESSAGE_CHANNEL_PROGRESS;
                if (!progress)
                        g_assert_cmpint(m.message.kind, ==, kind);
                else if (ret_running)
                        *ret_running = m.message.channel_progress.running;
                number = m.message.number;
                received_message_done(&m);
                if (!progress)
                        return number;
        }
}

/* Asks whether it looks at its sockets, and sees that it does. */
static void expect_pong(Rig *rig) {
        static uint64_t number = 100;

        send_number(rig, MESSAGE_PING, ++number);
        g_assert_cmpuint(expect_past_progress(rig, MESSAGE_PONG, NULL), ==, number);
}

/* A request that does not end, and the worker is in its step. */
static void begin_endless(Rig *rig, Client *c) {
        uint64_t before_usec;

        expect_pong(rig); /* it is up */
        before_usec = rig_cpu_usec(rig);
        (void) client_add_query(c, ENDLESS, 0, NULL);
        client_send(c);
        rig_wait_computing(rig, before_usec);
        expect_pong(rig); /* from inside the step */
}

static void test_client_leaves(void) {
        static const char *const sql[] = { NULL, ENDLESS, MANY };
        Rig rig;

        rig_init(&rig, wide);
        for (size_t i = 0; i < G_N_ELEMENTS(sql); i++) { /* quiet, in a step, parked; with and without more requests */
                Client c;

                client_start(&rig, &c);
                if (sql[i]) {
                        (void) client_add_query(&c, sql[i], 0, NULL);
                        (void) client_add_query(&c, "SELECT 1", 0, NULL);
                        client_send(&c);
                        g_usleep(IN_STEP_USEC);
                }
                client_leave(&c);
                expect_closed(&rig, &c);
                exec_sql(rig.database, "UPDATE t SET n = n"); /* no transaction of it is left */
                client_done(&c);
        }
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        rig_done(&rig);
}

static void send_close(Rig *rig, const Client *c, bool drain) {
        Message m = { .kind = MESSAGE_CHANNEL_CLOSE, .channel_close = { .number = c->number, .drain = drain } };

        g_assert_cmpint(message_send(rig->control_fd, &m, -1), ==, 0);
}

/* CHANNEL_CLOSE between two requests, and in the middle of one. */
static void test_told_to_close(void) {
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        g_assert_cmpuint(client_query(&c, "SELECT * FROM t").n_rows, ==, 2);
        send_close(&rig, &c, false);
        expect_closed(&rig, &c);
        expect_end_of_file(&c);
        client_done(&c);

        client_start(&rig, &c);
        begin_endless(&rig, &c);
        send_close(&rig, &c, false);
        (void) client_expect(&c, c.request, ERROR_SHUTTING_DOWN);
        expect_closed(&rig, &c);
        expect_end_of_file(&c);
        client_done(&c);

        client_start(&rig, &c); /* parked: the socket is full, and that is that */
        (void) client_add_query(&c, MANY, 0, NULL);
        client_send(&c);
        g_usleep(IN_STEP_USEC);
        send_close(&rig, &c, false);
        expect_closed(&rig, &c);
        exec_sql(rig.database, "UPDATE t SET n = n");
        client_done(&c);

        send_close(&rig, &c, false); /* they may cross */
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        rig_done(&rig);
}

/* CHANNEL_CLOSE with drain: the run under way is answered, even if other runs must wait for it; the request after it is not
 * taken. */
static void test_told_to_drain(void) {
        Setup setup = wide;
        Client idle, parked, stuck;
        uint64_t number;
        Answer a;
        Rig rig;

        setup.park_usec = setup.park_rollback_usec = LATER;
        rig_init(&rig, setup);
        client_start(&rig, &idle);
        g_assert_cmpuint(client_query(&idle, "SELECT * FROM t").n_rows, ==, 2);
        send_close(&rig, &idle, true);
        expect_closed(&rig, &idle);
        expect_end_of_file(&idle);
        client_done(&idle);

        client_start(&rig, &parked);
        number = client_add_query(&parked, MANY " LIMIT 100000", 0, NULL);
        (void) client_add_query(&parked, "SELECT 1", 0, NULL);
        client_send(&parked);
        client_wait(&parked);
        send_close(&rig, &parked, true);
        a = client_expect(&parked, number, ERROR_NONE);
        g_assert_cmpuint(a.n_rows, ==, 100000);
        expect_end_of_file(&parked);
        expect_closed(&rig, &parked);
        client_done(&parked);
        rig_stop(&rig);

        setup.park_usec = setup.park_rollback_usec = 200000;
        rig_start(&rig, setup);
        client_start(&rig, &stuck); /* its answer does not fit into the socket, and is not read */
        (void) client_add_query(&stuck, "SELECT hex(randomblob(125000))", 0, NULL);
        client_send(&stuck);
        client_wait(&stuck);
        send_close(&rig, &stuck, true);
        expect_closed(&rig, &stuck);
        client_done(&stuck);
        rig_done(&rig);
}

/* CANCEL by the supervisor names the channel. A CANCEL before or after the run has no effect. */
static void test_cancelled_by_supervisor(void) {
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        begin_endless(&rig, &c);
        do
                send_cancel(&rig, c.number);
        while (!client_can_read(&c, 100));
        (void) client_expect(&c, c.request, ERROR_CANCELLED);
        send_cancel(&rig, c.number); /* nothing is under way */
        expect_pong(&rig);
        g_assert_cmpuint(client_query(&c, "SELECT * FROM t").n_rows, ==, 2);
        (void) client_add_query(&c, MANY, 0, NULL);
        client_send(&c);
        g_assert_true(client_can_read(&c, -1));
        send_cancel(&rig, c.number);
        (void) client_expect(&c, c.request, ERROR_CANCELLED);
        g_assert_cmpuint(client_query(&c, "SELECT * FROM t").n_rows, ==, 2);
        client_done(&c);
        rig_done(&rig);
}

/* A CANCEL that came before its run began, but was not read for lack of room: nothing wakes the worker for it. */
static void test_cancel_unread(void) {
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        begin_endless(&rig, &c);
        (void) client_add_query(&c, ENDLESS, 0, NULL);
        while (c.output->len < CHANNEL_AHEAD_SIZE)
                client_add_finalize(&c, 1);
        client_add_cancel(&c, 2);
        client_send(&c);
        expect_pong(&rig); /* it has looked */
        send_cancel(&rig, c.number);
        (void) client_expect(&c, 1, ERROR_CANCELLED);
        (void) client_expect(&c, 2, ERROR_CANCELLED);
        client_done(&c);
        rig_done(&rig);
}

/* A worker in a long step gives away the channels with waiting requests, with their statements and the bytes of their
 * requests, and no others. */
static void test_stuck_sibling(void) {
        uint64_t statement, number;
        Client stuck, waiting, quiet;
        ReceivedMessage m;
        Rig rig, second;

        rig_init(&rig, wide);
        second_init(&second, &rig, wide);
        client_start(&rig, &stuck);
        client_start(&rig, &waiting);
        client_start(&rig, &quiet);
        statement = client_add_prepare(&waiting, "SELECT 40 + 2");
        client_send(&waiting);
        (void) client_expect(&waiting, statement, ERROR_NONE);
        g_assert_cmpuint(client_query(&quiet, "SELECT * FROM t").n_rows, ==, 2);
        begin_endless(&rig, &stuck);
        number = client_add_fetch(&waiting, statement, 0, NULL);
        client_send(&waiting);
        m = client_expect_end(&rig, &waiting, MESSAGE_CHANNEL_RESTED, NULL);
        g_assert_true(m.message.channel_end.waiting);
        g_assert_cmpuint(m.message.channel_end.progress.n_statements, ==, 1);
        client_take_up(&second, &waiting, &m);
        received_message_done(&m);
        g_assert_cmpint(client_expect(&waiting, number, ERROR_NONE).integer, ==, 42);

        client_add_cancel(&stuck, stuck.request);
        client_send(&stuck);
        (void) client_expect(&stuck, stuck.request, ERROR_CANCELLED);
        g_assert_cmpuint(client_query(&quiet, "SELECT * FROM t").n_rows, ==, 2); /* it stayed */
        client_done(&stuck);
        client_done(&waiting);
        client_done(&quiet);
        rig_stop(&second);
        rig_done(&rig);
}

/* Moved in the middle of a request, and with requests that wait, one of them cancelled: wherever the client's bytes are
 * cut, it notices nothing. */
static void test_move_anywhere(void) {
        g_autoptr(GByteArray) all = NULL;
        Rig rig, second, *from = &rig, *to = &second, *swap;
        uint64_t statement;
        Client c;

        rig_init(&rig, wide);
        second_init(&second, &rig, wide);
        client_start(&rig, &c);
        statement = client_add_prepare(&c, "SELECT 40 + 2");
        client_send(&c);
        (void) client_expect(&c, statement, ERROR_NONE);
        for (guint cut = 1; cut < 500; cut += 7) {
                uint64_t first = c.request + 1;
                ReceivedMessage m;
                Answer a;

                (void) client_add_fetch(&c, statement, 0, NULL);
                (void) client_add_query(&c, "SELECT 2", 0, NULL);
                client_add_cancel(&c, first + 1);
                (void) client_add_query(&c, "SELECT 3", 0, NULL);
                all = g_steal_pointer(&c.output);
                c.output = g_byte_array_new();
                g_byte_array_append(c.output, all->data, MIN(cut, all->len));
                client_send(&c);
                g_usleep(1000);
                g_assert_cmpint(message_send(from->control_fd, &(Message) { .kind = MESSAGE_EXIT }, -1), ==, 0);
                m = client_expect_end(from, &c, MESSAGE_CHANNEL_RESTED, NULL);
                client_take_up(to, &c, &m);
                received_message_done(&m);
                if (cut < all->len) {
                        g_byte_array_append(c.output, all->data + cut, all->len - cut);
                        client_send(&c);
                }
                g_clear_pointer(&all, g_byte_array_unref);
                g_assert_cmpint(client_expect(&c, first, ERROR_NONE).integer, ==, 42);
                g_assert_true(client_receive(&c, &a)); /* cancelled, unless it was over by then */
                g_assert_cmpuint(a.number, ==, first + 1);
                g_assert_true(a.error == ERROR_CANCELLED || a.integer == 2);
                g_assert_cmpint(client_expect(&c, first + 2, ERROR_NONE).integer, ==, 3);
                rig_gone(from);
                rig_start(from, wide);
                swap = from;
                from = to;
                to = swap;
        }
        client_done(&c);
        rig_stop(&second);
        rig_done(&rig);
}

/* EXIT in the middle of a request that takes too long: that ends, and the channel goes on elsewhere. */
static void test_exit(void) {
        uint64_t statement;
        ReceivedMessage m;
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        statement = client_add_prepare(&c, "SELECT 40 + 2");
        client_send(&c);
        (void) client_expect(&c, statement, ERROR_NONE);
        begin_endless(&rig, &c);
        send_number(&rig, MESSAGE_GIVE_WAY, 0); /* EXIT goes further */
        send_number(&rig, MESSAGE_EXIT, 0);
        (void) client_expect(&c, c.request, ERROR_SHUTTING_DOWN);
        m = client_expect_end(&rig, &c, MESSAGE_CHANNEL_RESTED, NULL);
        rig_gone(&rig);
        rig_start(&rig, wide);
        client_take_up(&rig, &c, &m);
        received_message_done(&m);
        (void) client_add_fetch(&c, statement, 0, NULL);
        client_send(&c);
        g_assert_cmpint(client_expect(&c, c.request, ERROR_NONE).integer, ==, 42);
        client_done(&c);
        rig_done(&rig);
}

/* GIVE_WAY in the middle of a request that lasts, in a step or for want of a reader: what rests goes on elsewhere; the
 * request is answered here, and so is what comes after. */
static void test_give_way(void) {
        static const char *const sql[] = { ENDLESS, MANY " LIMIT 100000" };
        Rig rig;

        rig_init(&rig, wide);
        for (size_t i = 0; i < G_N_ELEMENTS(sql); i++) {
                Client resting, lasting;
                ReceivedMessage m;
                uint64_t number, before_usec;
                bool sent, running = false;

                client_start(&rig, &resting);
                g_assert_cmpuint(client_query(&resting, "SELECT * FROM t").n_rows, ==, 2);
                client_start(&rig, &lasting);
                before_usec = rig_cpu_usec(&rig);
                (void) client_add_query(&lasting, sql[i], 0, NULL);
                client_send(&lasting);
                if (i == 0)
                        rig_wait_computing(&rig, before_usec);
                else
                        client_wait(&lasting);
                send_number(&rig, MESSAGE_GIVE_WAY, 0);
                m = client_expect_end(&rig, &resting, MESSAGE_CHANNEL_RESTED, NULL);
                (void) expect_past_progress(&rig, MESSAGE_STAY, &running);
                g_assert_true(running);
                if (i == 0)
                        client_add_cancel(&lasting, lasting.request);
                client_send(&lasting);
                g_assert_cmpuint(client_expect(&lasting, lasting.request, i == 0 ? ERROR_CANCELLED : ERROR_NONE).n_rows, ==,
                                 i == 0 ? 0 : 100000);
                client_take_up(&rig, &resting, &m);
                received_message_done(&m);
                g_assert_cmpuint(client_query(&resting, "SELECT * FROM t").n_rows, ==, 2);
                client_leave(&resting);
                client_leave(&lasting);
                m = client_expect_end(&rig, &resting, MESSAGE_CHANNEL_CLOSED, NULL);
                received_message_done(&m);
                m = client_expect_end(&rig, &lasting, MESSAGE_CHANNEL_CLOSED, NULL);
                received_message_done(&m);
                sent = send_prepare(&rig, "SELECT 1", &number);
                g_assert_true(sent);
                expect_number(&rig, number, MESSAGE_TAKEN);
                expect_started(&rig, number);
                client_done(&resting);
                client_done(&lasting);
        }
        rig_done(&rig);
}

/* Quiet for ten seconds: no worker needs to have it. Half a request: it stays, until ParkTimeoutSec= ends it. */
static void test_quiet(void) {
        Setup setup = wide;
        Client quiet, half;
        ReceivedMessage m;
        Rig rig;

        setup.park_usec = setup.park_rollback_usec = 200000;
        rig_init(&rig, setup);
        client_start(&rig, &half);
        (void) client_add_query(&half, "SELECT 1", 0, NULL);
        g_byte_array_set_size(half.output, half.output->len - 1);
        client_send(&half);
        expect_closed(&rig, &half);
        client_start(&rig, &quiet);
        g_assert_cmpuint(client_query(&quiet, "SELECT * FROM t").n_rows, ==, 2);
        m = client_expect_end(&rig, &quiet, MESSAGE_CHANNEL_RESTED, NULL);
        g_assert_false(m.message.channel_end.waiting);
        received_message_done(&m);
        client_done(&quiet);
        client_done(&half);
        rig_done(&rig);
}

/* A state that no worker packed: that channel is closed, and all others live. */
static void test_bad_state(void) {
        static const struct {
                uint64_t taken, discard;
                uint32_t n_statements, input_size;
                size_t size; /* of the bytes, the head included */
        } cases[] = {
                { 0, 0, 0, 0, 1 },           { 0, 0, 0, 0, 23 },          { 0, 0, 0, 1, 24 },
                { 0, 0, 0, UINT32_MAX, 24 }, { 5, 0, 1, 0, 24 },          { 5, 0, UINT32_MAX, 0, 40 },
                { 0, UINT64_MAX, 0, 0, 24 }, { 5, 0, 1, 0, 36 },          { 0, 0, 0, 0, 25 },
        };
        uint8_t bytes[64] = {};
        Client c, good;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &good);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                client_init(&rig, &c);
                store_le64(bytes, cases[i].taken);
                store_le64(bytes + 8, cases[i].discard);
                store_le32(bytes + 16, cases[i].n_statements);
                store_le32(bytes + 20, cases[i].input_size);
                c.setup.state = (Bytes) { .data = (const char *) bytes, .size = cases[i].size };
                client_open(&rig, &c);
                expect_closed(&rig, &c);
                client_done(&c);
        }
        g_assert_cmpuint(client_query(&good, "SELECT * FROM t").n_rows, ==, 2);
        client_done(&good);
        rig_done(&rig);
}

/* The supervisor learns how long a request runs, its SQL, and its result. */
static void test_progress(void) {
        ChannelProgress sums = {};
        ReceivedMessage m;
        Client c;
        Rig rig;

        rig_init(&rig, wide);
        client_start(&rig, &c);
        for (unsigned i = 0; i < 50; i++)
                g_assert_cmpuint(client_query(&c, "SELECT * FROM t").n_rows, ==, 2);
        (void) client_add_query(&c, ENDLESS, 0, NULL);
        client_send(&c);
        for (bool running = false; !running;) {
                m = RECEIVED_MESSAGE_INIT;
                wait_for(rig.control_fd);
                g_assert_cmpint(message_receive(rig.control_fd, &m), ==, 1);
                g_assert_cmpint(m.message.kind, ==, MESSAGE_CHANNEL_PROGRESS);
                /* A report may find one of the short ones still running, if the machine is slow. */
                running = m.message.channel_progress.running && m.message.channel_progress.sql.size == strlen(ENDLESS);
                sums.n_runs += m.message.channel_progress.n_runs;
                sums.n_rows += m.message.channel_progress.n_rows;
                if (running) {
                        g_assert_cmpuint(m.message.channel_progress.usec, >, 0);
                        g_assert_cmpmem(m.message.channel_progress.sql.data, m.message.channel_progress.sql.size, ENDLESS,
                                        strlen(ENDLESS));
                }
                received_message_done(&m);
        }
        client_add_cancel(&c, c.request);
        client_send(&c);
        (void) client_expect(&c, c.request, ERROR_CANCELLED);
        client_leave(&c);
        m = client_expect_end(&rig, &c, MESSAGE_CHANNEL_CLOSED, &sums);
        g_assert_false(m.message.channel_end.progress.running);
        g_assert_cmpuint(sums.n_runs, ==, 51);
        g_assert_cmpuint(sums.n_rows, ==, 100);
        g_assert_cmpuint(sums.n_bytes, >, 0);
        received_message_done(&m);
        client_done(&c);
        rig_done(&rig);
}

int main(int argc, char **argv) {
        rig_main_init(&argc, &argv);
        g_test_add_func("/channel/client-leaves", test_client_leaves);
        g_test_add_func("/channel/told-to-close", test_told_to_close);
        g_test_add_func("/channel/told-to-drain", test_told_to_drain);
        g_test_add_func("/channel/cancelled-by-supervisor", test_cancelled_by_supervisor);
        g_test_add_func("/channel/cancel-unread", test_cancel_unread);
        g_test_add_func("/channel/stuck-sibling", test_stuck_sibling);
        g_test_add_func("/channel/move-anywhere", test_move_anywhere);
        g_test_add_func("/channel/exit", test_exit);
        g_test_add_func("/channel/give-way", test_give_way);
        g_test_add_func("/channel/quiet", test_quiet);
        g_test_add_func("/channel/bad-state", test_bad_state);
        g_test_add_func("/channel/progress", test_progress);
        return g_test_run();
}
