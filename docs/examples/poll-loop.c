/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows in a loop of poll(): the library never waits, so this program can wait for other events at the same time; here for
 * standard input, on which any line cancels the query. Compare plain-loop.c.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime(), which -std=c99 hides */

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "example.h"

/* Milliseconds until `until` (CLOCK_MONOTONIC, microseconds) for poll(); rounded up so that it does not wake too early. */
static int milliseconds_left(uint64_t until) {
        struct timespec now;
        uint64_t usec;

        if (until == UINT64_MAX)
                return -1;
        clock_gettime(CLOCK_MONOTONIC, &now);
        usec = (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
        return until > usec ? (int) ((until - usec + 999) / 1000) : 0;
}

static int run(sqlipc_connection *connection, sqlipc_cursor *cursor) {
        bool reading = true;
        char buffer[256];
        int r;

        for (;;) {
                struct pollfd fds[2] = {
                        { sqlipc_get_fd(connection), (short) sqlipc_get_events(connection), 0 },
                        { reading ? STDIN_FILENO : -1, POLLIN, 0 },
                };
                uint64_t until;

                /* 1. Take the rows that have arrived. */
                while ((r = sqlipc_cursor_next(cursor)) > 0)
                        print_row(cursor);
                if (r != -EAGAIN)
                        return r;

                /* 2. Wait for the library and for other events. */
                r = sqlipc_get_timeout(connection, &until);
                if (r < 0)
                        return r;
                if (poll(fds, 2, milliseconds_left(until)) < 0 && errno != EINTR)
                        return -errno;

                /* 3. Let the library process its events. */
                r = sqlipc_process(connection);
                if (r < 0)
                        return r;

                if (fds[1].revents) {
                        reading = read(STDIN_FILENO, buffer, sizeof buffer) > 0;
                        if (reading)
                                sqlipc_cursor_cancel(cursor);
                }
        }
}

int main(int argc, char **argv) {
        Arguments arguments = parse_arguments(argc, argv);
        __attribute__((cleanup(sqlipc_closep))) sqlipc_connection *connection = NULL;
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        int r;

        if (open_connection(&arguments, &connection) < 0)
                return 1;

        r = sqlipc_set_blocking(connection, 0);
        if (r >= 0)
                r = sqlipc_query(connection, arguments.database, arguments.sql, &cursor, NULL);
        if (r >= 0)
                r = run(connection, cursor);
        if (r < 0)
                complain(connection, r);
        return r < 0;
}
