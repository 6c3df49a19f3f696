/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading of pipes, channels and replies with rows (run.h). Library. */
#include <string.h>

#include "client-lib/connection.h"
#include "client-lib/pipe-read.h"
#include "client-lib/run.h"

/* A call returns after this many reads even if more could be read. Otherwise a service that sends forever, but never a
 * row, could keep its client from its deadline or its loop. */
#define READS_MAX 64u

static void init_decoder(Run *run, size_t page_size) {
        page_decoder_init(&run->decoder, page_size, SQLIPC_ROW_SIZE_MAX);
        page_decoder_set_resize(&run->decoder, row_memory_resize, &run->row_memory);
}

void run_init(Run *run, sqlipc_connection *connection, char *path, Channel *channel) {
        *run = (Run) { .connection = connection, .channel = channel, .path = path, .fd = -1,
                       .row_memory = ROW_MEMORY_UNBOUNDED };
        init_decoder(run, SQLIPC_PAGE_SIZE_DEFAULT);
}

void run_leave_channel(Run *run) {
        if (!run->on_channel)
                return;
        channel_forget(run->channel, run);
        buffer_drop(&run->backlog, buffer_size(&run->backlog));
        page_decoder_reset(&run->decoder);
        run->on_channel = run->channel_lost = false;
}

static void leave_rows(Run *run) {
        if (!run->as_rows)
                return;
        run->call = call_free(run->call);
        rows_stop(run);
        page_decoder_reset(&run->decoder);
        run->as_rows = run->under_way = false;
}

void run_done(Run *run) {
        run->call = call_free(run->call);
        run_leave_channel(run);
        leave_rows(run);
        buffer_done(&run->backlog);
        run_close_pipe(run);
        page_decoder_done(&run->decoder);
        block_done(&run->block);
        free(steal(run->owner));
        free(steal(run->path));
}

void run_close_pipe(Run *run) {
        if (run->fd < 0)
                return;
        connection_disarm(run->connection, run->fd);
        run->fd = safe_close(run->fd);
}

int run_open_pipe(Run *run, sd_bus_message *reply, int fd, uint32_t page_size) {
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

        run_leave_channel(run);
        leave_rows(run);
        run_close_pipe(run);
        page_decoder_done(&run->decoder);
        init_decoder(run, page_size);
        free(run->owner);
        run->owner = steal(owner);
        run->fd = copy;
        run->at_end_of_file = false;
        return 0;
}

void run_enter_rows(Run *run) {
        run_leave_channel(run);
        leave_rows(run);
        run_close_pipe(run);
        page_decoder_done(&run->decoder);
        init_decoder(run, SQLIPC_PAGE_SIZE_MAX);
        page_decoder_ignore_n_bytes(&run->decoder); /* the service reports the size of its own pages, not of row-
                                                     * frames.c's */
        run->rows = (Rows) { .more = false };
        run->as_rows = true;
}

void run_enter_channel(Run *run) {
        run_leave_channel(run);
        leave_rows(run);
        run_close_pipe(run);
        if (!run->decoder.statements || run->decoder.page_size_max != run->channel->page_size) {
                page_decoder_done(&run->decoder);
                init_decoder(run, run->channel->page_size);
                page_decoder_allow_statements(&run->decoder);
        }
        run->on_channel = true;
}

void run_on_channel_lost(Run *run, const char *owner, bool never_sent) {
        char *copy = owner ? strdup(owner) : NULL; /* without memory the daemon is not asked if it lives */

        run->channel_lost = true;
        run->never_sent = never_sent;
        free(run->owner);
        run->owner = copy;
}

int run_put_aside(Run *run, const uint8_t *bytes, size_t size) {
        uint8_t *room = buffer_extend(&run->backlog, size);

        if (!room)
                return -ENOMEM;
        memcpy(room, bytes, size);
        if (run->waits_since == run->connection->n_turns) { /* its program waits for the socket, which is empty now */
                run->waits_since = 0;
                connection_wake(run->connection);
        }
        return 0;
}

void run_begin(Run *run, sqlipc_cursor *cursor, Call *call) {
        run->cursor = cursor;
        run->call = call;
        run->row_memory.max = run->connection->row_memory_max;
        run->number = 0;
        run->under_way = true;
        run->cancel_wanted = run->cancel_sent = false;
}

/* Reads the backlog first, then the channel. */
static ssize_t read_channel(Run *run, uint8_t *room, size_t size) {
        size_t n = buffer_size(&run->backlog);

        if (n == 0)
                return run->channel_lost ? -ECONNRESET : channel_read(run->channel, run, room, size);
        n = n < size ? n : size;
        memcpy(room, run->backlog.bytes + run->backlog.start, n);
        buffer_drop(&run->backlog, n);
        return (ssize_t) n;
}

/* One read into the decoder: 0, -EAGAIN, -ECONNRESET at end-of-file. */
static int fill(Run *run) {
        uint8_t *room;
        size_t size;
        ssize_t n;
        int r;

        r = page_decoder_reserve(&run->decoder, &room, &size);
        if (r < 0)
                return r;
        n = run->as_rows ? rows_read(run, room, size) :
            run->on_channel ? read_channel(run, room, size) : pipe_read(run->fd, room, size);
        if (n < 0)
                return (int) n;
        if (n == 0) {
                run->at_end_of_file = true;
                return -ECONNRESET;
        }
        page_decoder_commit(&run->decoder, (size_t) n);
        return 0;
}

/* Takes the next event from the bytes that the decoder has. */
static int take(Run *run) {
        int r;

        if (connection_is_foreign(run->connection)) /* a long row may be in memory that the parent also maps */
                return -ECHILD;
        r = page_decoder_next(&run->decoder);
        if (r == PAGE_COLUMNS && !run->number)
                run->number = run->decoder.run; /* before the reply says so */
        if ((r == PAGE_END || r == PAGE_ERROR) && (!run->on_channel || run->decoder.run == run->number))
                run->under_way = false;
        return r;
}

/* As run_next(), with at most `*reads_left` reads. */
static int next_within(Run *run, unsigned *reads_left) {
        int r;

        for (;;) {
                r = take(run);
                if (r == -EBADMSG && run->on_channel && !run->channel_lost)
                        channel_drop(run->channel); /* do not trust its other answers either */
                if (r != PAGE_MORE)
                        return r;
                if (!run->on_channel && !run->as_rows) {
                        if (run->fd < 0)
                                return -EAGAIN;
                        if (run->at_end_of_file)
                                return -ECONNRESET;
                }
                if (*reads_left == 0) {
                        connection_come_back(run->connection);
                        return -EAGAIN;
                }
                --*reads_left;
                r = fill(run);
                if (r < 0)
                        return r;
        }
}

int run_next(Run *run) {
        unsigned reads_left = READS_MAX;

        return next_within(run, &reads_left);
}

void run_cancel(Run *run) {
        run->cancel_wanted = true;
        if (run->cancel_sent || !run->number)
                return;
        run->cancel_sent = true;
        if (run->on_channel) {
                channel_cancel(run->channel, run);
                return;
        }
        call_notify(run->connection->bus, run->owner, run->path, "Cancel", run->number);
        connection_update_events(run->connection);
}

int run_abandon(Run *run) {
        bool was_under_way = run->under_way;
        int r = PAGE_ROW;

        run->cursor = NULL;
        while (run->under_way && r > 0) /* a program that wants one row leaves the end after it unread, which may be here */
                r = take(run);
        if (run->under_way)
                run_cancel(run);
        if (run->on_channel)
                channel_forget(run->channel, run);
        if (run->as_rows)
                rows_stop(run);
        return was_under_way && !run->under_way ? r : PAGE_MORE;
}

int run_drain(Run *run) {
        unsigned reads_left = READS_MAX;
        int r;

        while (run->under_way) {
                r = next_within(run, &reads_left);
                if (r < 0)
                        return r == -ECONNRESET && run->call ? -EAGAIN : r;
        }
        return run->call ? -EAGAIN : 0;
}

const void *run_source(const Run *run) {
        return run->on_channel ? (const void *) run->channel : run;
}

struct pollfd run_pollfd(const Run *run) {
        if (run->on_channel)
                return run->channel_lost ? (struct pollfd) { .fd = -1 } : channel_pollfd(run->channel);
        return (struct pollfd) { .fd = run->at_end_of_file ? -1 : run->fd, .events = POLLIN };
}
