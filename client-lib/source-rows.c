/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* NextRows (source-rows.h). Library. */
#include "client-lib/buffer.h"
#include "client-lib/call.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/fetch.h"
#include "client-lib/row-frames.h"
#include "client-lib/source-rows.h"
#include "client-lib/source.h"

/* The first rows must come soon even over a slow connection, so blocks start small. Large results must not need many
 * round trips, so blocks grow. */
#define BLOCK_SIZE_MIN ((uint32_t) 64 * 1024)
#define BLOCK_SIZE_MAX ((uint32_t) 1024 * 1024)

void source_rows_open(SourceRows *rows) {
        rows->state = SOURCE_ROWS_OPENING;
        rows->n_columns = 0;
        rows->error = 0;
        rows->block_size = BLOCK_SIZE_MIN;
}

static void on_next_reply(sd_bus_message *reply, void *userdata) {
        SourceRows *rows = userdata;
        bool more;
        int r;

        rows->ask = call_free(rows->ask);
        if (sd_bus_message_get_error(reply)) {
                rows->source.failure = sd_bus_message_ref(reply);
                rows->state = SOURCE_ROWS_OVER;
                return;
        }
        r = row_frames_append(&rows->backlog, reply, &rows->n_columns, &more);
        if (r < 0)
                rows->error = r == -ENOMEM ? r : -EBADMSG;
        else if (!more)
                rows->state = SOURCE_ROWS_OVER;
}

/* Asks the instance that has the run for the next block. */
static int ask(SourceRows *rows) {
        _cleanup_message_ sd_bus_message *m = NULL;
        sqlipc_connection *connection = rows->source.connection;
        int r;

        if (rows->bus_generation != connection->bus_generation)
                return -ENOTCONN; /* the service has forgotten our old bus name */
        r = connection_bus_new_call(connection, &m, rows->source.owner, rows->source.path, "NextRows");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "ta{sv}", rows->source.number, 1, "max-bytes", "u", rows->block_size);
        if (r < 0)
                return r;
        r = call_new(&rows->ask, connection, m, on_next_reply, NULL, rows, UINT64_MAX);
        if (r >= 0 && rows->block_size < BLOCK_SIZE_MAX)
                rows->block_size *= 2;
        return r;
}

void source_rows_begin(SourceRows *rows) {
        if (rows->state != SOURCE_ROWS_OPENING)
                return;
        rows->state = SOURCE_ROWS_MORE;
        rows->bus_generation = rows->source.connection->bus_generation;
        (void) ask(rows); /* if it fails, it fails again when the program reads */
}

static ssize_t next(Source *source, uint8_t *room, size_t size) {
        SourceRows *rows = (SourceRows *) source;
        bool idle = rows->state == SOURCE_ROWS_MORE && !rows->ask && rows->error >= 0;
        size_t n;

        if (buffer_size(&rows->backlog) == 0) {
                int r = idle ? ask(rows) : rows->error;

                if (r < 0)
                        return r;
                return source->call || rows->ask ? -EAGAIN : -ECONNRESET;
        }
        n = buffer_take(&rows->backlog, room, size);
        if (idle && buffer_size(&rows->backlog) == 0)
                (void) ask(rows); /* if it fails, it fails again after these bytes are read */
        return (ssize_t) n;
}

/* The service forgets the number with its last answer. The answer to a NextRows that was sent before tells how the run
 * ended. */
static void cancel(Source *source) {
        SourceRows *rows = (SourceRows *) source;

        if (rows->state == SOURCE_ROWS_OVER)
                return;
        if (rows->state == SOURCE_ROWS_MORE && !rows->ask && source->fetch->cursor)
                (void) ask(rows);
        rows->state = SOURCE_ROWS_OVER;
        source_cancel_on_bus(source);
}

static void drop(Source *source) {
        SourceRows *rows = (SourceRows *) source;

        rows->state = SOURCE_ROWS_OVER;
        rows->ask = call_free(rows->ask);
        buffer_done(&rows->backlog);
}

static bool abandon(Source *source) {
        source->call = call_free(source->call); /* the late reply to OpenRows is undone */
        drop(source);
        return true;
}

static struct pollfd get_pollfd(const Source *source) {
        (void) source;
        return (struct pollfd) { .fd = -1 };
}

const SourceOperations source_rows_operations = {
        .next = next,
        .cancel = cancel,
        .abandon = abandon,
        .pollfd = get_pollfd,
        .started = source_was_answered,
        .close = drop,
};
