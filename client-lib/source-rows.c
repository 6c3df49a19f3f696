/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* OpenRows and NextRows (source-rows.h). Library. */
#include <string.h>

#include "client-lib/connection.h"
#include "client-lib/cursor.h"
#include "client-lib/dictionary.h"
#include "client-lib/row-frames.h"
#include "client-lib/source-rows.h"

/* The first rows must come soon even over a slow connection, so blocks start small. Large results must not need many
 * round trips, so blocks grow. */
#define BLOCK_SIZE_MIN ((uint32_t) 64 * 1024)
#define BLOCK_SIZE_MAX ((uint32_t) 1024 * 1024)

void source_rows_stop(Fetch *fetch) {
        fetch->rows.next = call_free(fetch->rows.next);
        fetch->rows.failure = sd_bus_message_unref(fetch->rows.failure);
        buffer_done(&fetch->backlog);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------- */

/* Forgets the number, as the service does with its last answer. */
static void set_over(Fetch *fetch) {
        fetch->rows.more = false;
        fetch->number = 0;
}

static void on_next_reply(sd_bus_message *reply, void *userdata) {
        Fetch *fetch = userdata;
        bool more;
        int r;

        fetch->rows.next = call_free(fetch->rows.next);
        if (sd_bus_message_get_error(reply)) {
                fetch->rows.failure = sd_bus_message_ref(reply);
                set_over(fetch);
                return;
        }
        r = row_frames_append(&fetch->backlog, reply, &fetch->rows.n_columns, &more);
        if (r < 0)
                fetch->rows.error = r == -ENOMEM ? r : -EBADMSG;
        else if (!more)
                set_over(fetch);
}

/* Asks the instance that has the run for the next block. */
static int ask(Fetch *fetch) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        if (fetch->rows.bus_generation != fetch->connection->bus_generation)
                return -ENOTCONN; /* the service has forgotten our old bus name */
        r = connection_new_call(fetch->connection, &m, fetch->owner, fetch->path, "NextRows");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "ta{sv}", fetch->number, 1, "max-bytes", "u", fetch->rows.block_size);
        if (r < 0)
                return r;
        r = call_new(&fetch->rows.next, fetch->connection, m, on_next_reply, NULL, fetch, UINT64_MAX);
        if (r >= 0 && fetch->rows.block_size < BLOCK_SIZE_MAX)
                fetch->rows.block_size *= 2;
        return r;
}

ssize_t source_rows_read(Fetch *fetch, uint8_t *room, size_t size) {
        size_t n = buffer_size(&fetch->backlog);
        bool idle = fetch->rows.more && !fetch->rows.next && !fetch->cancel_sent && fetch->rows.error >= 0;

        if (n == 0) {
                if (fetch->rows.error < 0)
                        return fetch->rows.error;
                if (idle) {
                        int r = ask(fetch);

                        return r < 0 ? r : -EAGAIN;
                }
                return fetch->call || fetch->rows.next ? -EAGAIN : -ECONNRESET;
        }
        n = n < size ? n : size;
        memcpy(room, fetch->backlog.bytes + fetch->backlog.start, n);
        buffer_drop(&fetch->backlog, n);
        if (idle && buffer_size(&fetch->backlog) == 0)
                (void) ask(fetch); /* if it fails, it fails again after these bytes are read */
        return (ssize_t) n;
}

/* ---- Opening ------------------------------------------------------------------------------------------------------ */

static int read_info(sd_bus_message *reply, const char *key, const char *type, void *userdata) {
        if (strcmp(key, "readonly") != 0 || strcmp(type, "b") != 0)
                return 0;
        return dictionary_read_bool(reply, userdata);
}

static int read_reply(Fetch *fetch, sd_bus_message *reply) {
        const char *sender = sd_bus_message_get_sender(reply);
        bool read_only = false;
        char *owner = NULL;
        int r;

        r = sd_bus_message_read(reply, "t", &fetch->number);
        if (r < 0)
                return r;
        r = sd_bus_message_skip(reply, "a(ssa{sv})");
        if (r < 0)
                return r;
        r = dictionary_read(reply, read_info, &read_only);
        if (r < 0)
                return r;
        if (fetch->cursor)
                fetch->cursor->read_only = read_only;
        if (sender && !(owner = strdup(sender)))
                return -ENOMEM;
        free(fetch->owner);
        fetch->owner = owner;
        fetch->rows.more = true;
        return 0;
}

static void on_open_reply(sd_bus_message *reply, void *userdata) {
        Fetch *fetch = userdata;
        Error e;
        int r;

        fetch->call = call_free(fetch->call);
        if (sd_bus_message_get_error(reply)) {
                fetch->under_way = false;
                if (fetch->cursor)
                        cursor_fail_reply(fetch->cursor, reply);
                return;
        }
        r = read_reply(fetch, reply);
        if (r < 0)
                (void) error_set_errno(&e, r, NULL);
        if (r < 0 && fetch->cursor)
                cursor_fail(fetch->cursor, &e);
        else if (r >= 0 && fetch->cancel_wanted)
                fetch_cancel(fetch);
        else if (r >= 0)
                (void) ask(fetch); /* if it fails, it fails again when the program reads */
}

static int open_once(Fetch *fetch, sqlipc_cursor *cursor, const char *sql, const Parameter *parameters,
                     size_t n_parameters, size_t n_positional_min) {
        _cleanup_message_ sd_bus_message *m = NULL;
        Call *call;
        int r;

        r = query_new_call(cursor, &m, "OpenRows", sql, parameters, n_parameters, n_positional_min);
        if (r < 0)
                return r;
        r = call_new(&call, fetch->connection, m, on_open_reply, query_undo, fetch, UINT64_MAX);
        if (r < 0)
                return r;
        fetch_begin(fetch, cursor, call);
        return 0;
}

int source_rows_open(Fetch *fetch, sqlipc_cursor *cursor, const char *sql, const Parameter *parameters, size_t n_parameters,
              size_t n_positional_min) {
        int r;

        fetch_enter_rows(fetch);
        r = open_once(fetch, cursor, sql, parameters, n_parameters, n_positional_min);
        if (connection_may_send_again(fetch->connection, r))
                r = open_once(fetch, cursor, sql, parameters, n_parameters, n_positional_min);
        fetch->rows.bus_generation = fetch->connection->bus_generation;
        fetch->rows.block_size = BLOCK_SIZE_MIN;
        return r;
}
