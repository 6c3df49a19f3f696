/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows in an sd_event loop. An I/O source has the library's descriptor, a timer its deadline; both call step(). A GLib or
 * libuv loop looks the same: one descriptor, one timer, one function.
 *
 * A cursor with many rows must not block the rest of the loop, so step() takes a limited number of rows and is called again.
 */
#define _POSIX_C_SOURCE 200809L /* CLOCK_MONOTONIC, which -std=c99 hides */

#include <errno.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "example.h"

#define ROWS_PER_STEP 100

typedef struct Reader {
        sqlipc_connection *connection;
        sqlipc_cursor *cursor;
        sd_event_source *timer, *again;
} Reader;

/* Sets the timer before each wait, because the deadline of the library may have changed. */
static int arm(Reader *reader) {
        uint64_t until;
        int r;

        r = sqlipc_get_timeout(reader->connection, &until);
        if (r >= 0)
                r = sd_event_source_set_time(reader->timer, until);
        if (r >= 0) /* UINT64_MAX: never */
                r = sd_event_source_set_enabled(reader->timer, SD_EVENT_ONESHOT);
        return r;
}

static int step(Reader *reader, sd_event *event) {
        int r;

        r = sqlipc_process(reader->connection);
        if (r < 0)
                return sd_event_exit(event, r);
        for (int i = 0; i < ROWS_PER_STEP; i++) {
                r = sqlipc_cursor_next(reader->cursor);
                if (r == -EAGAIN)
                        return arm(reader);
                if (r <= 0)
                        return sd_event_exit(event, r);
                print_row(reader->cursor);
        }
        return sd_event_source_set_enabled(reader->again, SD_EVENT_ONESHOT); /* there may be more */
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        return step((Reader *) userdata, sd_event_source_get_event(source));
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        return step((Reader *) userdata, sd_event_source_get_event(source));
}

static int on_again(sd_event_source *source, void *userdata) {
        return step((Reader *) userdata, sd_event_source_get_event(source));
}

static int run(Reader *reader) {
        __attribute__((cleanup(sd_event_unrefp))) sd_event *event = NULL;
        int r;

        r = sd_event_new(&event);
        if (r >= 0)
                r = sd_event_add_io(event, NULL, sqlipc_get_fd(reader->connection), EPOLLIN, on_io, reader);
        if (r >= 0)
                r = sd_event_add_time(event, &reader->timer, CLOCK_MONOTONIC, UINT64_MAX, 1, on_time, reader);
        if (r >= 0)
                r = sd_event_add_defer(event, &reader->again, on_again, reader); /* the first step */
        if (r >= 0)
                r = sd_event_loop(event);
        sd_event_source_unref(reader->timer);
        sd_event_source_unref(reader->again);
        return r;
}

int main(int argc, char **argv) {
        Arguments arguments = parse_arguments(argc, argv);
        __attribute__((cleanup(sqlipc_closep))) sqlipc_connection *connection = NULL;
        Reader reader = { NULL, NULL, NULL, NULL };
        int r;

        if (open_connection(&arguments, &connection) < 0)
                return 1;

        reader.connection = connection;
        r = sqlipc_set_blocking(connection, 0);
        if (r >= 0)
                r = sqlipc_query(connection, arguments.database, arguments.sql, &reader.cursor, NULL);
        if (r >= 0)
                r = run(&reader);
        if (r < 0)
                complain(connection, r);
        (void) sqlipc_cursor_close(reader.cursor); /* the cursor holds a reference to the connection */
        return r < 0;
}
