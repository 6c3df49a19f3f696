/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading of pipes, channels and replies with rows (fetch.h). Library. */
#include <string.h>

#include "client-lib/connection.h"
#include "client-lib/fetch.h"
#include "client-lib/pipe-read.h"

/* A call returns after this many reads even if more could be read. Otherwise a service that sends forever, but never a
 * row, could keep its client from its deadline or its loop. */
#define READS_MAX 64u

static void init_decoder(Fetch *fetch, size_t page_size) {
        page_decoder_init(&fetch->decoder, page_size, SQLIPC_ROW_SIZE_MAX);
        page_decoder_set_resize(&fetch->decoder, row_memory_resize, &fetch->row_memory);
}

void fetch_init(Fetch *fetch, sqlipc_connection *connection, char *path, ChannelLink *channel) {
        *fetch = (Fetch) { .connection = connection, .channel = channel, .path = path, .fd = -1,
                       .row_memory = ROW_MEMORY_UNBOUNDED };
        init_decoder(fetch, SQLIPC_PAGE_SIZE_DEFAULT);
}

void fetch_leave_channel(Fetch *fetch) {
        if (!fetch->on_channel)
                return;
        channel_link_forget(fetch->channel, fetch);
        buffer_drop(&fetch->backlog, buffer_size(&fetch->backlog));
        page_decoder_reset(&fetch->decoder);
        fetch->on_channel = fetch->channel_lost = false;
}

static void leave_rows(Fetch *fetch) {
        if (!fetch->as_rows)
                return;
        fetch->call = call_free(fetch->call);
        source_rows_stop(fetch);
        page_decoder_reset(&fetch->decoder);
        fetch->as_rows = fetch->under_way = false;
}

void fetch_done(Fetch *fetch) {
        fetch->call = call_free(fetch->call);
        fetch_leave_channel(fetch);
        leave_rows(fetch);
        buffer_done(&fetch->backlog);
        fetch_close_pipe(fetch);
        page_decoder_done(&fetch->decoder);
        block_done(&fetch->block);
        free(steal(fetch->owner));
        free(steal(fetch->path));
}

void fetch_close_pipe(Fetch *fetch) {
        if (fetch->fd < 0)
                return;
        connection_disarm(fetch->connection, fetch->fd);
        fetch->fd = safe_close(fetch->fd);
}

int fetch_open_pipe(Fetch *fetch, sd_bus_message *reply, int fd, uint32_t page_size) {
        const char *sender = sd_bus_message_get_sender(reply);
        _cleanup_free_ char *owner = NULL;
        int copy;

        if (page_size < SQLIPC_PAGE_SIZE_MIN || page_size > SQLIPC_PAGE_SIZE_MAX)
                return -EBADMSG;
        if (sender && !(owner = strdup(sender)))
                return -ENOMEM;

        copy = pipe_copy(fd); /* closing the message closes its own descriptor */
        if (copy < 0)
                return copy;

        fetch_leave_channel(fetch);
        leave_rows(fetch);
        fetch_close_pipe(fetch);
        page_decoder_done(&fetch->decoder);
        init_decoder(fetch, page_size);
        free(fetch->owner);
        fetch->owner = steal(owner);
        fetch->fd = copy;
        fetch->at_end_of_file = false;
        return 0;
}

void fetch_enter_rows(Fetch *fetch) {
        fetch_leave_channel(fetch);
        leave_rows(fetch);
        fetch_close_pipe(fetch);
        page_decoder_done(&fetch->decoder);
        init_decoder(fetch, SQLIPC_PAGE_SIZE_MAX);
        page_decoder_ignore_n_bytes(&fetch->decoder); /* the service reports the size of its own pages, not of row-
                                                     * frames.c's */
        fetch->rows = (SourceRows) { .more = false };
        fetch->as_rows = true;
}

void fetch_enter_channel(Fetch *fetch) {
        fetch_leave_channel(fetch);
        leave_rows(fetch);
        fetch_close_pipe(fetch);
        if (!fetch->decoder.statements || fetch->decoder.page_size_max != fetch->channel->page_size) {
                page_decoder_done(&fetch->decoder);
                init_decoder(fetch, fetch->channel->page_size);
                page_decoder_allow_statements(&fetch->decoder);
        }
        fetch->on_channel = true;
}

void fetch_on_channel_lost(Fetch *fetch, const char *owner, bool never_sent) {
        char *copy = owner ? strdup(owner) : NULL; /* without memory the daemon is not asked if it lives */

        fetch->channel_lost = true;
        fetch->never_sent = never_sent;
        free(fetch->owner);
        fetch->owner = copy;
}

int fetch_put_aside(Fetch *fetch, const uint8_t *bytes, size_t size) {
        uint8_t *room = buffer_extend(&fetch->backlog, size);

        if (!room)
                return -ENOMEM;
        memcpy(room, bytes, size);
        if (fetch->waits_since == fetch->connection->n_turns) { /* its program waits for the socket, which is empty now */
                fetch->waits_since = 0;
                connection_wake(fetch->connection);
        }
        return 0;
}

void fetch_begin(Fetch *fetch, sqlipc_cursor *cursor, Call *call) {
        fetch->cursor = cursor;
        fetch->call = call;
        fetch->row_memory.max = fetch->connection->row_memory_max;
        fetch->number = 0;
        fetch->under_way = true;
        fetch->cancel_wanted = fetch->cancel_sent = false;
}

/* Reads the backlog first, then the channel. */
static ssize_t read_channel(Fetch *fetch, uint8_t *room, size_t size) {
        size_t n = buffer_size(&fetch->backlog);

        if (n == 0)
                return fetch->channel_lost ? -ECONNRESET : channel_link_read(fetch->channel, fetch, room, size);
        n = n < size ? n : size;
        memcpy(room, fetch->backlog.bytes + fetch->backlog.start, n);
        buffer_drop(&fetch->backlog, n);
        return (ssize_t) n;
}

/* One read into the decoder: 0, -EAGAIN, -ECONNRESET at end-of-file. */
static int fill(Fetch *fetch) {
        uint8_t *room;
        size_t size;
        ssize_t n;
        int r;

        r = page_decoder_reserve(&fetch->decoder, &room, &size);
        if (r < 0)
                return r;
        n = fetch->as_rows ? source_rows_read(fetch, room, size) :
            fetch->on_channel ? read_channel(fetch, room, size) : pipe_read(fetch->fd, room, size);
        if (n < 0)
                return (int) n;
        if (n == 0) {
                fetch->at_end_of_file = true;
                return -ECONNRESET;
        }
        page_decoder_commit(&fetch->decoder, (size_t) n);
        return 0;
}

/* Takes the next event from the bytes that the decoder has. */
static int take(Fetch *fetch) {
        int r;

        if (connection_is_foreign(fetch->connection)) /* a long row may be in memory that the parent also maps */
                return -ECHILD;
        r = page_decoder_next(&fetch->decoder);
        if (r == PAGE_COLUMNS && !fetch->number)
                fetch->number = fetch->decoder.run; /* before the reply says so */
        if ((r == PAGE_END || r == PAGE_ERROR) && (!fetch->on_channel || fetch->decoder.run == fetch->number))
                fetch->under_way = false;
        return r;
}

/* As fetch_next(), with at most `*reads_left` reads. */
static int next_within(Fetch *fetch, unsigned *reads_left) {
        int r;

        for (;;) {
                r = take(fetch);
                if (r == -EBADMSG && fetch->on_channel && !fetch->channel_lost)
                        channel_link_drop(fetch->channel); /* do not trust its other answers either */
                if (r != PAGE_MORE)
                        return r;
                if (!fetch->on_channel && !fetch->as_rows) {
                        if (fetch->fd < 0)
                                return -EAGAIN;
                        if (fetch->at_end_of_file)
                                return -ECONNRESET;
                }
                if (*reads_left == 0) {
                        connection_come_back(fetch->connection);
                        return -EAGAIN;
                }
                --*reads_left;
                r = fill(fetch);
                if (r < 0)
                        return r;
        }
}

int fetch_next(Fetch *fetch) {
        unsigned reads_left = READS_MAX;

        return next_within(fetch, &reads_left);
}

void fetch_cancel(Fetch *fetch) {
        fetch->cancel_wanted = true;
        if (fetch->cancel_sent || !fetch->number)
                return;
        fetch->cancel_sent = true;
        if (fetch->on_channel) {
                channel_link_cancel(fetch->channel, fetch);
                return;
        }
        call_notify(fetch->connection->bus, fetch->owner, fetch->path, "Cancel", fetch->number);
        connection_update_events(fetch->connection);
}

int fetch_abandon(Fetch *fetch) {
        bool was_under_way = fetch->under_way;
        int r = PAGE_ROW;

        fetch->cursor = NULL;
        /* a program that wants one row leaves the end after it unread, which may be here */
        while (fetch->under_way && r > 0)
                r = take(fetch);
        if (fetch->under_way)
                fetch_cancel(fetch);
        if (fetch->on_channel)
                channel_link_forget(fetch->channel, fetch);
        if (fetch->as_rows)
                source_rows_stop(fetch);
        return was_under_way && !fetch->under_way ? r : PAGE_MORE;
}

int fetch_drain(Fetch *fetch) {
        unsigned reads_left = READS_MAX;
        int r;

        while (fetch->under_way) {
                r = next_within(fetch, &reads_left);
                if (r < 0)
                        return r == -ECONNRESET && fetch->call ? -EAGAIN : r;
        }
        return fetch->call ? -EAGAIN : 0;
}

const void *fetch_source(const Fetch *fetch) {
        return fetch->on_channel ? (const void *) fetch->channel : fetch;
}

struct pollfd fetch_pollfd(const Fetch *fetch) {
        if (fetch->on_channel)
                return fetch->channel_lost ? (struct pollfd) { .fd = -1 } : channel_link_pollfd(fetch->channel);
        return (struct pollfd) { .fd = fetch->at_end_of_file ? -1 : fetch->fd, .events = POLLIN };
}
