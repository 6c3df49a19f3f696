/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns values into the bytes of one page. Pure. Functions that are called for each value are inline in page-encoder.h;
 * those that are called for each row or frame are here.
 *
 * The page consists of [0, fill), which holds complete frames and rows, and after it at most one thing under way: a row
 * (`row` set) or a part (`open` is neither 0 nor ROWS). Neither is counted in `fill` before it is complete, so dropping it
 * costs nothing, and the caller may send [0, finish()) at any moment.
 *
 * Frames start at multiples of 8, and the page size is such a multiple. So if a frame fits without padding, it fits with
 * padding, and no room is reserved for padding.
 */
#include <assert.h>

#include "dbus-interfaces/wire/page-encoder.h"

#define ROWS_HEAD_SIZE ((size_t) 4)
#define TAIL_SIZE_MIN ((size_t) 16 * 1024) /* fewer bytes are copied, because later frames can then be sent with them */
#define ELLIPSIS_SIZE (sizeof PAGE_ELLIPSIS - 1)

static_assert(FRAME_HEADER_SIZE + FRAME_ERROR_HEAD_SIZE + SQLIPC_MESSAGE_SIZE_MAX + FRAME_ALIGN <= SQLIPC_PAGE_SIZE_MIN,
              "an ERROR frame fits an empty page of any size");

void page_encoder_init(PageEncoder *e, uint8_t *page, size_t page_size, uint64_t run) {
        assert(page_size >= SQLIPC_PAGE_SIZE_MIN && page_size <= SQLIPC_PAGE_SIZE_MAX && (page_size & (page_size - 1)) == 0);

        *e = (PageEncoder) {
                .page = page,
                .page_size = page_size,
                .run = run,
                .values.limit = page + page_size,
        };
}

void page_encoder_cut(PageEncoder *e, size_t fill) {
        e->fill = fill;
        e->open = 0;
        e->row = e->values.next = NULL;
        e->tail = NULL; /* it was the end of the page */
        e->tail_size = 0;
}

void page_encoder_clear(PageEncoder *e) {
        page_encoder_cut(e, 0);
}

static void write_header(PageEncoder *e, size_t at, FrameKind kind, uint16_t flags, size_t size) {
        uint8_t *header = e->page + at;

        store_le32(header, (uint32_t) size);
        header[4] = (uint8_t) kind;
        header[5] = SQLIPC_PAGE_VERSION;
        store_le16(header + 6, flags);
        store_le64(header + 8, e->run);
}

/* Adds the frame that starts at `at` and whose payload ends at `end` to the page. */
static void close_frame(PageEncoder *e, size_t at, size_t end, FrameKind kind, uint16_t flags) {
        size_t padded = frame_padded(end);

        write_header(e, at, kind, flags, end - at - FRAME_HEADER_SIZE);
        memset(e->page + end, 0, padded - end);
        e->fill = padded;
        e->open = 0;
}

size_t page_encoder_finish(PageEncoder *e) {
        e->row = e->values.next = NULL;
        if (e->open == FRAME_ROWS) {
                store_le32(e->page + e->frame + FRAME_HEADER_SIZE, e->n_rows);
                close_frame(e, e->frame, e->fill, FRAME_ROWS, 0);
        }
        e->open = 0; /* a part under way is dropped */
        return e->fill;
}

int page_encoder_begin_row(PageEncoder *e, unsigned n_columns) {
        size_t head = e->open == FRAME_ROWS ? 0 : FRAME_HEADER_SIZE + ROWS_HEAD_SIZE, left = e->page_size - e->fill;

        assert(n_columns > 0 && n_columns <= SQLIPC_N_COLUMNS_MAX);
        assert(e->open == 0 || e->open == FRAME_ROWS);
        assert(!e->tail);

        e->row = e->values.next = NULL;
        if (left < head || left - head < ROW_HEAD_SIZE(n_columns))
                return 0;

        e->n_columns = n_columns;
        e->row = e->page + e->fill + head;
        e->values.type = e->row;
        e->values.end = e->row + n_columns;
        e->values.data = e->values.next = e->row + ROW_HEAD_SIZE(n_columns);
        return 1;
}

int page_encoder_end_row(PageEncoder *e) {
        if (!e->values.next) {
                e->row = NULL;
                return 0;
        }
        assert(e->values.type == e->row + e->n_columns);

        if (e->open != FRAME_ROWS) {
                e->open = FRAME_ROWS;
                e->frame = e->fill;
                e->n_rows = 0;
        }
        e->n_rows++;
        e->fill = (size_t) (e->values.next - e->page);
        e->row = e->values.next = NULL;
        return 1;
}

void page_encoder_abort_row(PageEncoder *e) {
        e->row = e->values.next = NULL;
}

int page_encoder_begin_part(PageEncoder *e, FrameKind kind) {
        assert(kind != 0 && kind != FRAME_ROWS);
        assert(!e->tail);

        page_encoder_finish(e);
        if (e->page_size - e->fill < FRAME_HEADER_SIZE + 1)
                return 0;

        e->open = kind;
        e->frame = e->fill;
        e->values.next = e->page + e->fill + FRAME_HEADER_SIZE;
        return 1;
}

size_t page_encoder_part_room(const PageEncoder *e) {
        assert(e->open != 0 && e->open != FRAME_ROWS);

        return (size_t) (e->values.limit - e->values.next);
}

size_t page_encoder_append(PageEncoder *e, const void *bytes, size_t size) {
        size_t room = page_encoder_part_room(e);

        if (size > room)
                size = room;
        if (size > 0)
                memcpy(e->values.next, bytes, size);
        e->values.next += size;
        return size;
}

void page_encoder_end_part(PageEncoder *e, bool more) {
        assert(e->open != 0 && e->open != FRAME_ROWS);

        close_frame(e, e->frame, (size_t) (e->values.next - e->page), e->open, more ? FRAME_MORE : 0);
        e->values.next = NULL;
}

size_t page_encoder_end_part_with(PageEncoder *e, const void *bytes, size_t size, bool more) {
        size_t room = page_encoder_part_room(e), n = size < room ? size : room;

        if (n < TAIL_SIZE_MIN)
                return 0;
        n -= (size_t) (e->values.next + n - e->page) % FRAME_ALIGN;
        e->values.next += n;
        page_encoder_end_part(e, more || n < size);
        e->tail = bytes;
        e->tail_size = n;
        return n;
}

int page_encoder_end(PageEncoder *e, const EndCounters *counters) {
        const uint64_t values[] = {
                counters->n_rows, counters->n_bytes, counters->usec, counters->vm_steps,
                counters->fullscan_steps, counters->sorts, counters->autoindexes,
                (uint64_t) (counters->wrote ? counters->n_changes : -1),
                (uint64_t) (counters->wrote ? counters->last_rowid : 0),
                counters->sequence, counters->foreign_keys,
        };
        size_t size = counters->foreign_keys > 0 ? FRAME_END_SETTING_SIZE
                      : counters->sequence > 0   ? FRAME_END_SEQUENCE_SIZE
                      : counters->wrote          ? FRAME_END_WROTE_SIZE
                                                 : FRAME_END_SIZE;
        uint8_t *payload;

        static_assert(sizeof values == FRAME_END_SETTING_SIZE, "every counter is written");
        assert(!e->tail);

        page_encoder_finish(e);
        if (e->page_size - e->fill < FRAME_HEADER_SIZE + size)
                return 0;

        payload = e->page + e->fill + FRAME_HEADER_SIZE;
        for (size_t i = 0; i < size / sizeof *values; i++)
                store_le64(payload + 8 * i, values[i]);
        close_frame(e, e->fill, e->fill + FRAME_HEADER_SIZE + size, FRAME_END, 0);
        return 1;
}

/* A message may be invalid UTF-8 (SQLite quotes its input), hence at most three steps back. */
size_t page_message_kept(const char *message) {
        size_t cut = SQLIPC_MESSAGE_SIZE_MAX - ELLIPSIS_SIZE;

        for (size_t back = 0; back < 4; back++)
                if (((uint8_t) message[cut - back] & 0xc0) != 0x80)
                        return cut - back;
        return cut;
}

int page_encoder_error(PageEncoder *e, uint32_t number, int32_t extended_code, int32_t sql_offset, const char *message,
                       size_t message_size) {
        bool long_message = message_size > SQLIPC_MESSAGE_SIZE_MAX;
        size_t kept = long_message ? page_message_kept(message) : message_size;
        size_t stored = kept + (long_message ? ELLIPSIS_SIZE : 0);
        size_t frame_size = FRAME_HEADER_SIZE + FRAME_ERROR_HEAD_SIZE + stored + 1;
        uint8_t *payload;

        assert(!e->tail);

        page_encoder_finish(e);
        if (e->page_size - e->fill < frame_size)
                return 0;

        payload = e->page + e->fill + FRAME_HEADER_SIZE;
        store_le32(payload, number);
        store_le32(payload + 4, (uint32_t) extended_code);
        store_le32(payload + 8, (uint32_t) sql_offset);
        store_le32(payload + 12, (uint32_t) stored);
        payload += FRAME_ERROR_HEAD_SIZE;
        if (kept > 0)
                memcpy(payload, message, kept);
        if (long_message)
                memcpy(payload + kept, PAGE_ELLIPSIS, ELLIPSIS_SIZE);
        payload[stored] = 0;
        close_frame(e, e->fill, e->fill + frame_size, FRAME_ERROR, 0);
        return 1;
}
