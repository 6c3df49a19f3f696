/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Point queries through libsqlipc, see point.h. Over the bus: with a statement that is prepared once, or with Query in one
 * call. On a channel: with one prepared statement, waiting for each answer, or with POINT_IN_FLIGHT statements in turn.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "tools/bench/core/library.h"
#include "tools/bench/core/sampler.h"
#include "tools/bench/workloads/point.h"

typedef struct InFlight {
        sqlipc_statement *statement;
        sqlipc_cursor *cursor; /* NULL: no query is open */
        double start_usec;
} InFlight;

typedef struct LibraryClient {
        const Point *point;
        sqlipc_connection *connection;
        InFlight in_flight[POINT_IN_FLIGHT]; /* only the first is used if the client waits for each answer */
} LibraryClient;

static void library_close(void *userdata) {
        LibraryClient *client = userdata;

        for (size_t i = 0; i < POINT_IN_FLIGHT; i++) {
                sqlipc_cursor_close(client->in_flight[i].cursor);
                sqlipc_finalize(client->in_flight[i].statement);
        }
        sqlipc_close(client->connection);
        g_free(client);
}

static int open_client(const Point *point, sqlipc_transport transport, unsigned n_statements, void **ret_client) {
        LibraryClient *client = g_new0(LibraryClient, 1);
        int r;

        client->point = point;
        r = library_open(point->options, transport, &client->connection);
        for (unsigned i = 0; r >= 0 && i < n_statements; i++) {
                r = sqlipc_prepare(client->connection, point->options->database, POINT_SQL, &client->in_flight[i].statement);
                if (r < 0)
                        library_failed(client->connection, r, POINT_SQL);
        }
        if (r < 0)
                library_close(client);
        else
                *ret_client = client;
        return r;
}

static int bus_fetch_open(void *userdata, void **ret_client) {
        return open_client(userdata, SQLIPC_TRANSPORT_PIPE, 1, ret_client);
}

static int bus_query_open(void *userdata, void **ret_client) {
        return open_client(userdata, SQLIPC_TRANSPORT_PIPE, 0, ret_client);
}

static int channel_open(void *userdata, void **ret_client) {
        return open_client(userdata, SQLIPC_TRANSPORT_CHANNEL, 1, ret_client);
}

static int pipelined_open(void *userdata, void **ret_client) {
        void *opened;
        int r = open_client(userdata, SQLIPC_TRANSPORT_CHANNEL, POINT_IN_FLIGHT, &opened);

        if (r < 0)
                return r;
        r = sqlipc_set_blocking(((LibraryClient *) opened)->connection, 0);
        if (r < 0)
                library_close(opened);
        else
                *ret_client = opened;
        return r;
}

/* ---- One after the other ------------------------------------------------------------------------------------------ */

static int fetch_one(void *userdata, int64_t key, Copy *copy) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        LibraryClient *client = userdata;
        sqlipc_statement *statement = client->in_flight[0].statement;
        int r;

        r = sqlipc_bind_int64(statement, 1, key);
        if (r >= 0)
                r = sqlipc_execute(statement, &cursor);
        if (r >= 0)
                r = library_copy_rows(cursor, copy);
        return r < 0 ? library_failed(client->connection, r, POINT_SQL) : 0;
}

static int query_one(void *userdata, int64_t key, Copy *copy) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        LibraryClient *client = userdata;
        int r;

        r = sqlipc_query(client->connection, client->point->options->database, POINT_SQL, &cursor, "i", key);
        if (r >= 0)
                r = library_copy_rows(cursor, copy);
        return r < 0 ? library_failed(client->connection, r, POINT_SQL) : 0;
}

static int fetch_ask(void *client, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy) {
        return clients_ask_each(fetch_one, client, keys, n, ret_usec, copy);
}

static int query_ask(void *client, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy) {
        return clients_ask_each(query_one, client, keys, n, ret_usec, copy);
}

/* ---- Many at once ------------------------------------------------------------------------------------------------- */

static int ask_ahead(InFlight *one, int64_t key) {
        int r;

        one->start_usec = sampler_now_usec();
        r = sqlipc_bind_int64(one->statement, 1, key);
        return r < 0 ? r : sqlipc_execute(one->statement, &one->cursor);
}

/* Waits until something arrives, as a program with its own event loop does. */
static int wait_and_process(sqlipc_connection *connection) {
        struct pollfd pollfd = { .fd = sqlipc_get_fd(connection), .events = (short) sqlipc_get_events(connection) };
        uint64_t until;
        int r, timeout_msec = -1;

        r = sqlipc_get_timeout(connection, &until);
        if (r < 0)
                return r;
        if (until != UINT64_MAX) {
                double left = (double) until - sampler_now_usec();

                timeout_msec = left <= 0 ? 0 : (int) MIN(left / 1e3 + 1, 1e6);
        }
        if (poll(&pollfd, 1, timeout_msec) < 0 && errno != EINTR)
                return -errno;
        return sqlipc_process(connection);
}

/* Takes the answer to the oldest query. */
static int take_answer(LibraryClient *client, InFlight *one, double *ret_usec, Copy *copy) {
        int r;

        while ((r = library_copy_rows(one->cursor, copy)) == -EAGAIN)
                if ((r = wait_and_process(client->connection)) < 0)
                        break;
        *ret_usec = sampler_now_usec() - one->start_usec;
        one->cursor = sqlipc_cursor_close(one->cursor);
        return r;
}

static int pipelined_ask(void *userdata, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy) {
        LibraryClient *client = userdata;
        unsigned asked = 0;
        int r = 0;

        for (unsigned answered = 0; r >= 0 && answered < n; answered++) {
                for (; r >= 0 && asked < n && asked - answered < POINT_IN_FLIGHT; asked++)
                        r = ask_ahead(&client->in_flight[asked % POINT_IN_FLIGHT], keys[asked]);
                if (r >= 0)
                        r = take_answer(client, &client->in_flight[answered % POINT_IN_FLIGHT], &ret_usec[answered], copy);
        }
        return r < 0 ? library_failed(client->connection, r, POINT_SQL) : 0;
}

/* ------------------------------------------------------------------------------------------------------------------- */

static ClientKind make(const Point *point, const char *name, int (*open)(void *, void **),
                       int (*ask)(void *, const int64_t *, unsigned, double *, Copy *)) {
        return (ClientKind) {
                .name = name, .open = open, .ask = ask, .close = library_close, .userdata = (void *) point,
                .answers_rows = true,
        };
}

ClientKind point_bus_fetch(const Point *point) {
        return make(point, "bus, prepared", bus_fetch_open, fetch_ask);
}

ClientKind point_bus_query(const Point *point) {
        return make(point, "bus, Query", bus_query_open, query_ask);
}

ClientKind point_channel(const Point *point) {
        return make(point, "channel", channel_open, fetch_ask);
}

ClientKind point_pipelined(const Point *point) {
        return make(point, "channel, 32 in flight", pipelined_open, pipelined_ask);
}
