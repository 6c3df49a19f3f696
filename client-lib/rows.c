/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* OpenRows and NextRows (rows.h). Library. */
#include <string.h>

#include "client-lib/connection.h"
#include "client-lib/cursor.h"
#include "client-lib/dictionary.h"
#include "client-lib/row-frames.h"
#include "client-lib/rows.h"

/* The first rows must come soon even over a slow connection, so blocks start small. Large results must not need many
 * round trips, so blocks grow. */
#define BLOCK_SIZE_MIN ((uint32_t) 64 * 1024)
#define BLOCK_SIZE_MAX ((uint32_t) 1024 * 1024)

void rows_stop(Run *run) {
        run->rows.next = call_free(run->rows.next);
        run->rows.failure = sd_bus_message_unref(run->rows.failure);
        buffer_done(&run->backlog);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------- */

/* Forgets the number, as the service does with its last answer. */
static void set_over(Run *run) {
        run->rows.more = false;
        run->number = 0;
}

static void on_next_reply(sd_bus_message *reply, void *userdata) {
        Run *run = userdata;
        bool more;
        int r;

        run->rows.next = call_free(run->rows.next);
        if (sd_bus_message_get_error(reply)) {
                run->rows.failure = sd_bus_message_ref(reply);
                set_over(run);
                return;
        }
        r = row_frames_append(&run->backlog, reply, &run->rows.n_columns, &more);
        if (r < 0)
                run->rows.error = r == -ENOMEM ? r : -EBADMSG;
        else if (!more)
                set_over(run);
}

/* Asks the instance that has the run for the next block. */
static int ask(Run *run) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        if (run->rows.bus_generation != run->connection->bus_generation)
                return -ENOTCONN; /* the service has forgotten our old bus name */
        r = connection_new_call(run->connection, &m, run->owner, run->path, "NextRows");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "ta{sv}", run->number, 1, "max-bytes", "u", run->rows.block_size);
        if (r < 0)
                return r;
        r = call_new(&run->rows.next, run->connection, m, on_next_reply, NULL, run, UINT64_MAX);
        if (r >= 0 && run->rows.block_size < BLOCK_SIZE_MAX)
                run->rows.block_size *= 2;
        return r;
}

ssize_t rows_read(Run *run, uint8_t *room, size_t size) {
        size_t n = buffer_size(&run->backlog);
        bool idle = run->rows.more && !run->rows.next && !run->cancel_sent && run->rows.error >= 0;

        if (n == 0) {
                if (run->rows.error < 0)
                        return run->rows.error;
                if (idle) {
                        int r = ask(run);

                        return r < 0 ? r : -EAGAIN;
                }
                return run->call || run->rows.next ? -EAGAIN : -ECONNRESET;
        }
        n = n < size ? n : size;
        memcpy(room, run->backlog.bytes + run->backlog.start, n);
        buffer_drop(&run->backlog, n);
        if (idle && buffer_size(&run->backlog) == 0)
                (void) ask(run); /* if it fails, it fails again after these bytes are read */
        return (ssize_t) n;
}

/* ---- Opening ------------------------------------------------------------------------------------------------------ */

static int read_info(sd_bus_message *reply, const char *key, const char *type, void *userdata) {
        if (strcmp(key, "readonly") != 0 || strcmp(type, "b") != 0)
                return 0;
        return dictionary_read_bool(reply, userdata);
}

static int read_reply(Run *run, sd_bus_message *reply) {
        const char *sender = sd_bus_message_get_sender(reply);
        bool read_only = false;
        char *owner = NULL;
        int r;

        r = sd_bus_message_read(reply, "t", &run->number);
        if (r < 0)
                return r;
        r = sd_bus_message_skip(reply, "a(ssa{sv})");
        if (r < 0)
                return r;
        r = dictionary_read(reply, read_info, &read_only);
        if (r < 0)
                return r;
        if (run->cursor)
                run->cursor->read_only = read_only;
        if (sender && !(owner = strdup(sender)))
                return -ENOMEM;
        free(run->owner);
        run->owner = owner;
        run->rows.more = true;
        return 0;
}

static void on_open_reply(sd_bus_message *reply, void *userdata) {
        Run *run = userdata;
        Error e;
        int r;

        run->call = call_free(run->call);
        if (sd_bus_message_get_error(reply)) {
                run->under_way = false;
                if (run->cursor)
                        cursor_fail_reply(run->cursor, reply);
                return;
        }
        r = read_reply(run, reply);
        if (r < 0)
                (void) error_set_errno(&e, r, NULL);
        if (r < 0 && run->cursor)
                cursor_fail(run->cursor, &e);
        else if (r >= 0 && run->cancel_wanted)
                run_cancel(run);
        else if (r >= 0)
                (void) ask(run); /* if it fails, it fails again when the program reads */
}

static int open_once(Run *run, sqlipc_cursor *cursor, const char *sql, const Parameter *parameters,
                     size_t n_parameters, size_t n_positional_min) {
        _cleanup_message_ sd_bus_message *m = NULL;
        Call *call;
        int r;

        r = query_new_call(cursor, &m, "OpenRows", sql, parameters, n_parameters, n_positional_min);
        if (r < 0)
                return r;
        r = call_new(&call, run->connection, m, on_open_reply, query_undo, run, UINT64_MAX);
        if (r < 0)
                return r;
        run_begin(run, cursor, call);
        return 0;
}

int rows_open(Run *run, sqlipc_cursor *cursor, const char *sql, const Parameter *parameters, size_t n_parameters,
              size_t n_positional_min) {
        int r;

        run_enter_rows(run);
        r = open_once(run, cursor, sql, parameters, n_parameters, n_positional_min);
        if (connection_may_send_again(run->connection, r))
                r = open_once(run, cursor, sql, parameters, n_parameters, n_positional_min);
        run->rows.bus_generation = run->connection->bus_generation;
        run->rows.block_size = BLOCK_SIZE_MIN;
        return r;
}
