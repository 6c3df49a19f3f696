/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading of runs (fetch.h). Library. */
#include "client-lib/block.h"
#include "client-lib/buffer.h"
#include "client-lib/connection.h"
#include "client-lib/event-loop.h"
#include "client-lib/fetch-life.h"
#include "client-lib/fetch.h"
#include "client-lib/row-memory.h"
#include "client-lib/source-channel.h"
#include "client-lib/source-pipe.h"
#include "client-lib/source-rows.h"
#include "client-lib/source.h"

/* A call returns after this many reads even if more could be read. Otherwise a service that sends forever, but never a
 * row, could keep its client from its deadline or its loop. */
#define READS_MAX 64u

void fetch_set_ended(Fetch *fetch) {
        if (fetch->state != FETCH_IDLE)
                fetch_life_move(&fetch->state, FETCH_IDLE);
}

static void init_decoder(Fetch *fetch, size_t page_size) {
        page_decoder_done(&fetch->decoder);
        page_decoder_init(&fetch->decoder, page_size, SQLIPC_ROW_SIZE_MAX);
        page_decoder_set_resize(&fetch->decoder, row_memory_resize, &fetch->row_memory);
}

static void init_source(Fetch *fetch, Source *source, const SourceOperations *operations) {
        *source = (Source) { .operations = operations, .connection = fetch->connection, .fetch = fetch,
                             .path = fetch->path };
}

void fetch_init(Fetch *fetch, sqlipc_connection *connection, char *path, ChannelLink *link) {
        *fetch = (Fetch) { .connection = connection, .link = link, .path = path, .pipe = { .fd = -1 },
                           .channel = { .link = link }, .row_memory = ROW_MEMORY_UNBOUNDED };
        init_source(fetch, &fetch->pipe.source, &source_pipe_operations);
        init_source(fetch, &fetch->channel.reader.source, &source_channel_operations);
        init_source(fetch, &fetch->rows.source, &source_rows_operations);
        fetch->source = &fetch->pipe.source;
        init_decoder(fetch, SQLIPC_PAGE_SIZE_DEFAULT);
}

void fetch_stop(Fetch *fetch) {
        source_close(fetch->source);
        fetch_set_ended(fetch);
}

void fetch_reset(Fetch *fetch) {
        fetch_stop(fetch);
        fetch->source = &fetch->pipe.source;
        page_decoder_reset(&fetch->decoder);
}

void fetch_done(Fetch *fetch) {
        source_done(&fetch->pipe.source);
        source_done(&fetch->channel.reader.source);
        source_done(&fetch->rows.source);
        buffer_done(&fetch->channel.reader.backlog);
        page_decoder_done(&fetch->decoder);
        block_done(&fetch->block);
        free(steal(fetch->path));
}

/* ---- Sources ------------------------------------------------------------------------------------------------------ */

int fetch_use_pipe(Fetch *fetch, sd_bus_message *reply, int fd, uint32_t page_size) {
        if (page_size < SQLIPC_PAGE_SIZE_MIN || page_size > SQLIPC_PAGE_SIZE_MAX)
                return -EBADMSG;
        source_close(fetch->source); /* a query's run goes on */
        fetch->source = &fetch->pipe.source;
        init_decoder(fetch, page_size);
        return source_pipe_open(&fetch->pipe, reply, fd);
}

void fetch_use_channel(Fetch *fetch) {
        fetch_reset(fetch);
        fetch->source = &fetch->channel.reader.source;
        if (fetch->decoder.statements && fetch->decoder.page_size_max == fetch->link->page_size)
                return;
        init_decoder(fetch, fetch->link->page_size);
        page_decoder_allow_statements(&fetch->decoder);
}

void fetch_use_rows(Fetch *fetch) {
        fetch_stop(fetch);
        fetch->source = &fetch->rows.source;
        source_rows_open(&fetch->rows);
        init_decoder(fetch, SQLIPC_PAGE_SIZE_MAX);
        page_decoder_ignore_n_bytes(&fetch->decoder); /* the service reports the size of its own pages, not of row-
                                                       * frames.c's */
}

/* ---- Runs --------------------------------------------------------------------------------------------------------- */

void fetch_begin(Fetch *fetch, sqlipc_cursor *cursor, Call *call, uint64_t number) {
        fetch_life_move(&fetch->state, FETCH_RUNNING);
        fetch->cursor = cursor;
        source_set_call(fetch->source, call);
        fetch->source->number = number;
        fetch->row_memory.max = fetch->connection->row_memory_max;
}

void fetch_set_number(Fetch *fetch, uint64_t number) {
        fetch->source->number = number;
        if (fetch->state == FETCH_CANCELLING)
                fetch_cancel(fetch);
}

/* The service has ended the run of the call, or has answered the call before it read Cancel. */
static void on_cancel_reply(sd_bus_message *reply, void *userdata) {
        Source *source = userdata;

        call_note_cancel(&source->cancellation, reply);
        if (source->fetch->state == FETCH_CANCELLING)
                fetch_cancel(source->fetch);
}

void fetch_cancel(Fetch *fetch) {
        Source *source = fetch->source;

        if (fetch->state == FETCH_RUNNING && !source->number)
                fetch_life_move(&fetch->state, FETCH_CANCELLING);
        if (fetch->state == FETCH_CANCELLING && !source->number && source->call)
                call_cancel(&source->cancellation, source->call, on_cancel_reply, source);
        if (!source->number || source->cancellation.state == CANCEL_SENT ||
            (fetch->state != FETCH_RUNNING && fetch->state != FETCH_CANCELLING))
                return;
        fetch_life_move(&fetch->state, FETCH_CANCELLED);
        if (source->cancellation.state != CANCEL_OBEYED)
                source->operations->cancel(source);
}

bool fetch_is_of_run(const Fetch *fetch) {
        return !fetch->source->operations->shared || fetch->decoder.run == fetch->source->number;
}

bool fetch_has_started(const Fetch *fetch) {
        return fetch->decoder.in_run || fetch->source->operations->started(fetch->source);
}

/* ---- Reading ------------------------------------------------------------------------------------------------------ */

/* Takes the next event from the bytes that the decoder has. */
static int take(Fetch *fetch) {
        int r;

        if (connection_is_foreign(fetch->connection)) /* a long row may be in memory that the parent also maps */
                return -ECHILD;
        r = page_decoder_next(&fetch->decoder);
        if (r == PAGE_ROW) /* most often */
                return r;
        if (r == PAGE_COLUMNS && !fetch->source->number)
                fetch->source->number = fetch->decoder.run; /* before the reply says so */
        if ((r == PAGE_END || r == PAGE_ERROR) && fetch_is_of_run(fetch))
                fetch_set_ended(fetch);
        return r;
}

/* Reads one block of bytes into the decoder. */
static int fill(Fetch *fetch) {
        uint8_t *room;
        size_t size;
        ssize_t n;
        int r;

        r = page_decoder_reserve(&fetch->decoder, &room, &size);
        if (r < 0)
                return r;
        n = fetch->source->operations->next(fetch->source, room, size);
        if (n < 0)
                return (int) n;
        turns_step(&fetch->connection->turns);
        page_decoder_commit(&fetch->decoder, (size_t) n);
        return 0;
}

/* As fetch_next(), with at most `*reads_left` reads. */
static int next_within(Fetch *fetch, unsigned *reads_left) {
        const SourceOperations *operations = fetch->source->operations;
        int r;

        for (;;) {
                r = take(fetch);
                if (r == -EBADMSG && operations->distrust)
                        operations->distrust(fetch->source);
                if (r != PAGE_MORE)
                        return r;
                if (*reads_left == 0) {
                        event_loop_come_back(fetch->connection);
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

int fetch_abandon(Fetch *fetch) {
        bool was_idle = fetch->state == FETCH_IDLE;
        int r = PAGE_ROW;

        fetch->cursor = NULL;
        /* a program that wants one row leaves the end after it unread, which may be here */
        while (fetch->state != FETCH_IDLE && r > 0)
                r = take(fetch);
        if (fetch->state == FETCH_IDLE)
                return was_idle ? -EALREADY : r;
        if (fetch->source->number > 0) /* not after the answer to Cancel for the call, which the reply may have crossed */
                call_forget_cancel(&fetch->source->cancellation);
        fetch_cancel(fetch);
        if (fetch->source->operations->abandon(fetch->source))
                fetch_set_ended(fetch);
        return PAGE_MORE;
}

int fetch_drain(Fetch *fetch) {
        unsigned reads_left = READS_MAX;
        int r;

        while (fetch->state != FETCH_IDLE) {
                r = next_within(fetch, &reads_left);
                if (r < 0)
                        return r == -ECONNRESET && fetch->source->call ? -EAGAIN : r;
        }
        return fetch->source->call ? -EAGAIN : 0;
}

/* ---- Waiting ------------------------------------------------------------------------------------------------------ */

int fetch_wait(Fetch *fetch, struct pollfd data) {
        fetch->source->waits_since = fetch->connection->n_turns;
        return data.fd < 0 ? 0 : event_loop_arm(fetch->connection, data, fetch_descriptor_owner(fetch));
}

const void *fetch_descriptor_owner(const Fetch *fetch) {
        const SourceOperations *operations = fetch->source->operations;

        return operations->descriptor_owner ? operations->descriptor_owner(fetch->source) : fetch;
}

struct pollfd fetch_pollfd(const Fetch *fetch) {
        return fetch->source->operations->pollfd(fetch->source);
}
