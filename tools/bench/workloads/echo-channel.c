/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sends bytes to a worker and back, as the parameter and the only value of a query on a channel. */
#include <errno.h>
#include <string.h>

#include "tools/bench/workloads/echo.h"

/* Runs the statement with the payload as its parameter, and copies the single value of its row. */
static int trip_channel(Echo *echo, size_t size) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        const void *blob;
        size_t back_size;
        int r;

        r = sqlipc_bind_blob(echo->statement, 1, echo->payload, size);
        if (r >= 0)
                r = sqlipc_execute(echo->statement, &cursor);
        if (r >= 0)
                r = sqlipc_cursor_next(cursor);
        if (r <= 0)
                return r < 0 ? r : -EPROTO;
        if (sqlipc_cursor_get_transport(cursor) != SQLIPC_TRANSPORT_CHANNEL)
                return -EOPNOTSUPP; /* what else would be measured? */
        blob = sqlipc_column_blob(cursor, 0, &back_size);
        if (!blob || back_size != size)
                return -EPROTO;
        memcpy(echo->back, blob, size);
        r = sqlipc_cursor_next(cursor);
        return r <= 0 ? r : -EPROTO;
}

static int open_channel(Echo *echo, const BenchOptions *options) {
        int r;

        r = bench_service_open(options, &echo->service);
        if (r < 0)
                return r;
        echo->server = echo->service.pid;
        r = sqlipc_set_transport(echo->service.connection, SQLIPC_TRANSPORT_CHANNEL);
        if (r >= 0)
                r = sqlipc_prepare(echo->service.connection, options->database, "SELECT ?1", &echo->statement);
        if (r >= 0)
                r = trip_channel(echo, 1);
        if (r >= 0)
                return 0;
        echo->why = g_strdup_printf("the service has no channel for us: %s", sqlipc_error_message(echo->service.connection));
        return -EOPNOTSUPP;
}

static int close_channel(Echo *echo) {
        echo->statement = sqlipc_finalize(echo->statement);
        bench_service_close(&echo->service);
        return 0;
}

const EchoKind echo_channel = {
        .name = "sqlipc, channel", .open = open_channel, .trip = trip_channel, .close = close_channel
};
