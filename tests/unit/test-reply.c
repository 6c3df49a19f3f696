/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replies of any size: the count is an upper bound of the bytes that are sent, and no reply past REPLY_SIZE_MAX is sent.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "daemon/supervisor/base/sd-autoptr.h"
#include "daemon/supervisor/calls/reply.h"
#include "daemon/supervisor/calls/rows.h"
#include "dbus-interfaces/wire/sqlipc-page.h"
#include "tests/unit/test.h"

/* A connection of ours, and the bytes that come out of it. */
static sd_bus *bus;
static int peer_fd;

static void write_all(const char *bytes, size_t size) {
        CHECK_INT(write(peer_fd, bytes, size), size);
}

static size_t drain(void) {
        static uint8_t sink[1024 * 1024];
        size_t size = 0;

        for (ssize_t n; (n = recv(peer_fd, sink, sizeof sink, MSG_DONTWAIT)) > 0 || sd_bus_process(bus, NULL) > 0;)
                size += n > 0 ? (size_t) n : 0;
        return size;
}

static void open_bus(void) {
        static const char hello[] = "\0AUTH ANONYMOUS\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n";
        int fds[2];

        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        peer_fd = fds[1];
        CHECK(sd_bus_new(&bus) >= 0);
        CHECK(sd_bus_set_fd(bus, fds[0], fds[0]) >= 0);
        CHECK(sd_bus_set_server(bus, true, (sd_id128_t) {}) >= 0);
        CHECK(sd_bus_set_anonymous(bus, true) >= 0);
        CHECK(sd_bus_start(bus) >= 0);
        write_all(hello, sizeof hello - 1);
        (void) drain();
        CHECK(sd_bus_is_ready(bus) > 0);
}

static void close_bus(void) {
        bus = sd_bus_close_unref(bus);
        close(peer_fd);
}

static Reply new_reply(void) {
        g_autoptr(sd_bus_message) call = NULL;
        Reply reply;

        CHECK(sd_bus_message_new_method_call(bus, &call, NULL, "/", "a.b", "C") >= 0);
        CHECK(sd_bus_message_seal(call, 1, 0) >= 0);
        CHECK(reply_new(call, &reply) >= 0);
        return reply;
}

/* A statement that is as large as decoding lets it be: bytes that no string may hold, in as many columns as there may be. */
static Started largest_started(Bytes *list, unsigned n_columns) {
        static char bytes[SQLIPC_COLUMNS_SIZE_MAX];
        size_t size = SQLIPC_COLUMNS_SIZE_MAX / (2 * n_columns) - 5;

        memset(bytes, 0xff, sizeof bytes);
        for (size_t i = 0; i < (size_t) 2 * n_columns; i++)
                list[i] = (Bytes) { .data = bytes, .size = size };
        return (Started) { .n_columns = n_columns, .columns = list };
}

static void test_largest_columns(void) {
        static const unsigned counts[] = { 1, 100, SQLIPC_N_COLUMNS_MAX };
        static Bytes list[2 * SQLIPC_N_COLUMNS_MAX];

        for (size_t i = 0; i < N_ELEMENTS(counts); i++) {
                g_auto(Reply) reply = new_reply();
                Started started = largest_started(list, counts[i]);

                CHECK(started_size(&started) <= SQLIPC_COLUMNS_SIZE_MAX);
                CHECK(rows_append_columns_of_statement(&reply, &started) >= 0);
                size_t counted = reply.size;
                CHECK(counted <= REPLY_SIZE_MAX);
                CHECK(reply_send(&reply) >= 0);
                size_t sent = drain();
                CHECK(sent > 3 * SQLIPC_COLUMNS_SIZE_MAX);
                CHECK(sent <= counted + 256); /* the header is not counted */
        }
}

static void test_parameters(void) {
        g_auto(Reply) reply = new_reply();
        static Bytes list[PARAMETERS_MAX];
        Started started = { .n_parameters = PARAMETERS_MAX, .parameters = list };

        for (size_t i = 0; i < PARAMETERS_MAX; i++)
                list[i] = (Bytes) { .data = "\xff\xff", .size = i % 3 };
        CHECK(sd_bus_message_open_container(reply.message, 'a', "{sv}") >= 0);
        CHECK(rows_append_parameters(&reply, &started) >= 0);
        CHECK(sd_bus_message_close_container(reply.message) >= 0);
        CHECK(reply_send(&reply) >= 0);
        CHECK(drain() <= reply.size + 256);
}

static void test_at_the_limit(void) {
        g_autofree char *text = g_strnfill(REPLY_SIZE_MAX - REPLY_VALUE_OVERHEAD, 'x');
        g_auto(Reply) whole = new_reply(), more = new_reply();

        CHECK(reply_append_string(&whole, text) >= 0);
        CHECK(reply_send(&whole) >= 0);
        CHECK(drain() > REPLY_SIZE_MAX - 256);
        CHECK_INT(reply_append_string(&whole, ""), -EMSGSIZE);
        CHECK(reply_append_string(&more, "x") >= 0);
        CHECK_INT(reply_append_string(&more, text), -EMSGSIZE);
        CHECK_INT(reply_append_string(&more, ""), -EMSGSIZE);
        CHECK_INT(reply_send(&more), -EMSGSIZE);
        CHECK_INT(drain(), 0);
}

int main(void) {
        static const Test tests[] = { TEST(test_largest_columns), TEST(test_parameters), TEST(test_at_the_limit) };

        open_bus();
        int r = test_main(tests, N_ELEMENTS(tests));
        close_bus();
        return r;
}
