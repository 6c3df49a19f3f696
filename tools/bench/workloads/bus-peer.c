/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The benchmark's own D-Bus service, see bus-peer.h. */
#include "tools/bench/workloads/bus-peer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/bench/core/bus-link.h"
#include "tools/bench/core/passing.h"

#define PEER_INTERFACE "org.sqlipc1.BenchmarkPeer"

static int32_t *integers; /* of the service */

static int answer_echo(sd_bus_message *call) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *reply = NULL;
        const void *bytes;
        size_t size;
        int r;

        r = sd_bus_message_read_array(call, 'y', &bytes, &size);
        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_append_array(reply, 'y', bytes, size);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int answer_integers(sd_bus_message *call, int32_t n) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *reply = NULL;
        int r;

        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_append_array(reply, 'i', integers, (size_t) n * sizeof *integers);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int answer_text(sd_bus_message *call, int32_t n) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *reply = NULL;
        size_t size = (size_t) n * sizeof *integers;
        char *text;
        int r;

        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_append_string_space(reply, size, &text);
        if (r < 0)
                return r;
        memset(text, BUS_PEER_LETTER, size);
        return sd_bus_send(NULL, reply, NULL);
}

/* Send the reply first, because the pipe may be too small for all integers. */
static int answer_pipe(sd_bus_message *call, int32_t n) {
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        r = sd_bus_reply_method_return(call, "h", fds[0]);
        if (r >= 0)
                r = sd_bus_flush(sd_bus_message_get_bus(call));
        close(fds[0]);
        if (r >= 0)
                r = passing_write_all(fds[1], integers, (size_t) n * sizeof *integers);
        close(fds[1]);
        return r;
}

static int answer_number(sd_bus_message *call) {
        const char *member = sd_bus_message_get_member(call);
        int32_t n;
        int r;

        r = sd_bus_message_read(call, "i", &n);
        if (r < 0)
                return r;
        if (n < 0 || n > BUS_PEER_INTEGERS_MAX)
                return sd_bus_reply_method_errnof(call, -ERANGE, "Too many.");
        return g_str_equal(member, "PassInteger") ? answer_pipe(call, n)
               : g_str_equal(member, "GetText")   ? answer_text(call, n)
                                                  : answer_integers(call, n);
}

static int answer(sd_bus_message *message, void *userdata) {
        (void) userdata;
        if (sd_bus_message_is_method_call(message, PEER_INTERFACE, "Echo") > 0)
                return answer_echo(message);
        return sd_bus_message_is_method_call(message, PEER_INTERFACE, NULL) > 0 ? answer_number(message) : 0;
}

/* Called before the service answers calls. */
static void make_integers(void) {
        integers = g_new(int32_t, BUS_PEER_INTEGERS_MAX);
        for (uint32_t i = 0; i < BUS_PEER_INTEGERS_MAX; i++)
                integers[i] = bus_peer_integer(i);
}

static int serve_on_bus(int fd, void *userdata) {
        int r;

        make_integers();
        r = bus_link_serve_on_bus(userdata, fd, answer, NULL);
        g_clear_pointer(&integers, g_free);
        return r;
}

static int serve_direct(int fd, void *userdata) {
        int r;

        (void) userdata;
        make_integers();
        r = bus_link_serve_direct(fd, answer, NULL);
        g_clear_pointer(&integers, g_free);
        return r;
}

static void find_bus_daemon(BusPeer *peer) {
        sd_bus_creds *creds = NULL;

        if (sd_bus_get_name_creds(peer->bus, "org.freedesktop.DBus", SD_BUS_CREDS_PID, &creds) >= 0)
                (void) sd_bus_creds_get_pid(creds, &peer->bus_daemon);
        sd_bus_creds_unref(creds);
}

int bus_peer_start_on_bus(const BenchOptions *options, BusPeer *ret) {
        BusPeer peer = { .child = CHILD_INIT };
        int r;

        /* before this process has a connection, because the child would inherit it */
        r = child_start(SOCK_STREAM, serve_on_bus, (void *) options, &peer.child);
        if (r >= 0)
                r = bus_link_connect_on_bus(options, &peer.child, &peer.bus, &peer.name);
        if (r < 0) {
                child_stop(&peer.child);
                return r;
        }
        find_bus_daemon(&peer);
        *ret = peer;
        return 0;
}

int bus_peer_start_direct(BusPeer *ret) {
        BusPeer peer = { .child = CHILD_INIT };
        int r;

        r = child_start(SOCK_STREAM, serve_direct, NULL, &peer.child);
        if (r >= 0)
                r = bus_link_connect_direct(&peer.child, &peer.bus);
        if (r < 0) {
                child_stop(&peer.child);
                return r;
        }
        *ret = peer;
        return 0;
}

int bus_peer_stop(BusPeer *peer) {
        int r;

        if (!peer->bus)
                return 0;
        peer->bus = sd_bus_flush_close_unref(peer->bus);
        r = child_stop(&peer->child);
        g_clear_pointer(&peer->name, g_free);
        return r;
}

int bus_peer_new_call(BusPeer *peer, const char *member, sd_bus_message **ret) {
        return sd_bus_message_new_method_call(peer->bus, ret, peer->name, "/", PEER_INTERFACE, member);
}

int bus_peer_echo(BusPeer *peer, const void *bytes, size_t size, void *ret_bytes) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *call = NULL, *reply = NULL;
        const void *back;
        size_t back_size;
        int r;

        r = bus_peer_new_call(peer, "Echo", &call);
        if (r >= 0)
                r = sd_bus_message_append_array(call, 'y', bytes, size);
        if (r >= 0)
                r = sd_bus_call(peer->bus, call, 0, NULL, &reply);
        if (r >= 0)
                r = sd_bus_message_read_array(reply, 'y', &back, &back_size);
        if (r < 0)
                return r;
        if (back_size != size)
                return -EPROTO;
        memcpy(ret_bytes, back, size);
        return 0;
}

/* Makes a call with the argument `n`. */
static int call_for(BusPeer *peer, const char *member, int32_t n, sd_bus_message **ret_reply) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *call = NULL;
        int r;

        r = bus_peer_new_call(peer, member, &call);
        if (r >= 0)
                r = sd_bus_message_append(call, "i", n);
        return r < 0 ? r : sd_bus_call(peer->bus, call, 0, NULL, ret_reply);
}

static int read_reply(sd_bus_message *reply, size_t size, bool piped, int32_t *ret_integers) {
        const void *array;
        size_t array_size;
        int fd, r;

        if (piped) {
                r = sd_bus_message_read(reply, "h", &fd);
                return r < 0 ? r : passing_read_all(fd, ret_integers, size);
        }
        r = sd_bus_message_read_array(reply, 'i', &array, &array_size);
        if (r < 0)
                return r;
        if (array_size != size)
                return -EPROTO;
        memcpy(ret_integers, array, size);
        return 0;
}

int bus_peer_get_integers(BusPeer *peer, int32_t n, bool piped, int32_t *ret_integers) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *reply = NULL;
        int r;

        r = call_for(peer, piped ? "PassInteger" : "GetInteger", n, &reply);
        return r < 0 ? r : read_reply(reply, (size_t) n * sizeof *ret_integers, piped, ret_integers);
}

int bus_peer_get_text(BusPeer *peer, int32_t n, int32_t *ret_text) {
        __attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *reply = NULL;
        size_t size = (size_t) n * sizeof *ret_text;
        const char *text;
        int r;

        r = call_for(peer, "GetText", n, &reply);
        if (r >= 0)
                r = sd_bus_message_read(reply, "s", &text);
        if (r < 0)
                return r;
        if (strlen(text) != size)
                return -EPROTO;
        memcpy(ret_text, text, size);
        return 0;
}
