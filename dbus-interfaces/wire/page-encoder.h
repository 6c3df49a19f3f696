/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns values into the bytes of one page (sqlipc-page.h). Pure: no I/O, no allocation; the caller owns the page.
 *
 * The encoder appends whole frames to a page until one does not fit. The caller then sends the number of bytes that
 * page_encoder_finish() returns, and calls page_encoder_clear(). Rows are built value by value inside an open ROWS frame:
 *
 *      begin_row -> 1: add_... once per column, then end_row -> 1: the row is in
 *                                                    end_row -> 0: it did not fit and was removed
 *                   0: no room for its head
 *
 * After a 0 the caller sends the page, clears it and starts the row again. If the page was empty, the row is larger than a
 * page and is sent as BIG_ROW through begin_part/append/end_part, like a COLUMNS payload. Errors inside a row are sticky:
 * add_... after the page is full does nothing, and end_row returns 0.
 *
 * Long bytes of a part need not be copied: page_encoder_end_part_with() leaves a gap for them at the end of the page, its
 * *tail*, and the caller sends them from their own memory. Nothing can be added to the page until it is cleared.
 */
#ifndef SQLIPC_DBUS_INTERFACES_WIRE_PAGE_ENCODER_H
#define SQLIPC_DBUS_INTERFACES_WIRE_PAGE_ENCODER_H

#include <stdbool.h>

#include "dbus-interfaces/wire/sqlipc-page.h"

/* The values of the row under way. A loop that adds all of them does so in a local copy, page_row_add(), which the compiler
 * keeps in registers: it would load the fields of the encoder again after each byte that is stored. */
typedef struct PageRow {
        uint8_t *type, *end; /* of the next value */
        uint8_t *data;       /* first byte after the row's head */
        uint8_t *next;       /* position of the next byte, also of a part under way; NULL once the row did not fit */
        uint8_t *limit;      /* end of the page */
} PageRow;

typedef struct PageEncoder {
        uint8_t *page;       /* borrowed from the caller, page_size bytes */
        size_t page_size;
        size_t fill;         /* bytes of complete frames and rows, without the padding of the open ROWS frame */
        uint64_t run;

        FrameKind open;      /* ROWS, or the kind of an open part; 0: no frame is open */
        size_t frame;        /* offset of its header */
        uint32_t n_rows;     /* in the open ROWS frame */

        uint8_t *row;        /* the first byte of the row under way; NULL: no row is under way */
        unsigned n_columns;  /* of that row */
        PageRow values;

        /* replaces the last bytes of [0, fill) */
        const uint8_t *tail; /* borrowed from the caller; NULL: none */
        size_t tail_size;
} PageEncoder;

/* `page` is borrowed; `page_size` is a power of two in SQLIPC_PAGE_SIZE_MIN..MAX. */
void page_encoder_init(PageEncoder *e, uint8_t *page, size_t page_size, uint64_t run);

/* Forgets everything in the page (it was sent), including a frame, row or part under way. */
void page_encoder_clear(PageEncoder *e);

/* Forgets everything after `fill`, which must be the end of a frame, including a frame, row or part under way. */
void page_encoder_cut(PageEncoder *e, size_t fill);

/* True if nothing is in the page. */
static inline bool page_encoder_is_empty(const PageEncoder *e) {
        return e->fill == 0;
}

/* Closes an open ROWS frame (pads it, stores its counts) and returns how many bytes of `page` must be sent. The next row
 * opens a new frame. A row or part under way is dropped. */
size_t page_encoder_finish(PageEncoder *e);

/* Starts a row of `n_columns` values. 1, or 0 if there is no room even for its head. */
int page_encoder_begin_row(PageEncoder *e, unsigned n_columns);

/* Completes the row; every column was added. 1, or 0 if it did not fit: it is removed, and the page is as before the row. */
int page_encoder_end_row(PageEncoder *e);

/* Drops the row under way. */
void page_encoder_abort_row(PageEncoder *e);

/* Reserves `size` bytes for the next value and stores its type and end. NULL if the row no longer fits. Must be called at
 * most n_columns times for each row. */
static inline uint8_t *page_row_add(PageRow *row, ValueType type, size_t size) {
        uint8_t *at = row->next;

        if (!at || size > (size_t) (row->limit - at)) {
                row->next = NULL;
                return NULL;
        }
        *row->type++ = (uint8_t) type;
        store_le32(row->end, (uint32_t) (at + size - row->data));
        row->end += 4;
        row->next = at + size;
        return at;
}

static inline uint8_t *page_encoder_add(PageEncoder *e, ValueType type, size_t size) {
        return page_row_add(&e->values, type, size);
}

static inline void page_encoder_add_null(PageEncoder *e) {
        (void) page_encoder_add(e, VALUE_NULL, 0);
}

static inline void page_encoder_add_int64(PageEncoder *e, int64_t value) {
        uint8_t *at = page_encoder_add(e, VALUE_INTEGER, 8);
        if (at)
                store_le64(at, (uint64_t) value);
}

static inline void page_encoder_add_double(PageEncoder *e, double value) {
        uint8_t *at = page_encoder_add(e, VALUE_REAL, 8);
        if (at)
                store_le_double(at, value);
}

/* `text` need not be NUL-terminated; this function writes the NUL. */
static inline void page_encoder_add_text(PageEncoder *e, const void *text, size_t size) {
        uint8_t *at = page_encoder_add(e, VALUE_TEXT, size + 1);
        if (!at)
                return;
        if (size > 0)
                memcpy(at, text, size);
        at[size] = 0;
}

static inline void page_encoder_add_blob(PageEncoder *e, const void *blob, size_t size) {
        uint8_t *at = page_encoder_add(e, VALUE_BLOB, size);
        if (at && size > 0)
                memcpy(at, blob, size);
}

/* Opens a frame of a kind that may be continued, COLUMNS or BIG_ROW (closing an open ROWS frame), if at least one byte of
 * payload fits after its header. 1, or 0: send and clear the page first. */
int page_encoder_begin_part(PageEncoder *e, FrameKind kind);

/* Payload bytes that still fit the open part. */
size_t page_encoder_part_room(const PageEncoder *e);

/* Appends up to `size` bytes of payload to the open part. Returns how many fitted. */
size_t page_encoder_append(PageEncoder *e, const void *bytes, size_t size);

/* Closes the part. `more`: the next frame continues its payload. */
void page_encoder_end_part(PageEncoder *e, bool more);

/* Closes the part with as many of `bytes` as fit and need no padding, after the bytes that were appended. They are not
 * copied but become the tail, which the caller keeps until the page is sent. The next frame continues the payload if `more`
 * is set, or if not all bytes fitted. Returns how many did; 0: nothing was done, because too few fit to be worth it. */
size_t page_encoder_end_part_with(PageEncoder *e, const void *bytes, size_t size, bool more);

/* How many bytes of a `message` of more than SQLIPC_MESSAGE_SIZE_MAX bytes are kept before PAGE_ELLIPSIS. Never splits a
 * character. */
#define PAGE_ELLIPSIS "\xe2\x80\xa6"
size_t page_message_kept(const char *message);

/* Append END or ERROR, closing an open ROWS frame. 1, or 0: no room, send and clear the page first; either fits an empty
 * page of any size. A row or part under way is dropped. `message` may hold any bytes, which are not changed (SQLite quotes
 * its input). A message of more than SQLIPC_MESSAGE_SIZE_MAX bytes is cut between characters and ends in U+2026. */
int page_encoder_end(PageEncoder *e, const EndCounters *counters);
int page_encoder_error(PageEncoder *e, uint32_t number, int32_t extended_code, int32_t sql_offset, const char *message,
                       size_t message_size);

#endif
