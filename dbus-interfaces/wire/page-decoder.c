/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns bytes into rows. Pure. This is the one place where bytes of the other side become lengths and pointers, so nothing
 * in this file is asserted about the stream.
 *
 *      between runs --COLUMNS--> in a run --ROWS, BIG_ROW--> in a run --END, ERROR--> between runs
 *      between runs --ERROR----> between runs
 *      between runs --STATEMENT-> between runs, in a channel
 *      in addition `joining`: a payload of COLUMNS, BIG_ROW or STATEMENT whose last frame had FRAME_MORE
 *
 * 1. A frame is examined once its header is there, and used once it is complete; it is never used in part. The only
 *    exception is a large part of a BIG_ROW, which does not wait in the buffer for its rest: the bytes that have arrived
 *    move to `joined`, and the rest is read directly into `joined` (`part_is_open`), so that long values are not copied once
 *    more.
 * 2. The rows of a ROWS frame are handed out one by one, in place (`rows_left`). Each is checked as a whole before it is
 *    handed out, so page_decoder_value() checks nothing.
 * 3. A BIG_ROW or STATEMENT of one frame and an ERROR are handed out in place too. COLUMNS and continued payloads are
 *    copied, because they are needed longer than the buffer keeps them.
 * 4. Memory is at most four times the number of bytes that have arrived, or READ_SIZE if that is more. It never exceeds one
 *    page and a header (READ_SIZE if pages are smaller) for the buffer, the format's limit for COLUMNS, row_size_max and
 *    BEHIND_PART for a joined row, STATEMENT_SIZE_MAX for a joined STATEMENT.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "dbus-interfaces/wire/page-decoder.h"
#include "dbus-interfaces/wire/page-payload.h"

/* The size of a read() if nothing better is known: as much as a pipe holds by default. */
#define READ_SIZE ((size_t) 65536)

/* A larger frame is read by itself. */
#define LARGE_FRAME_SIZE (READ_SIZE / 2)

/* The bytes that are read together with the rest of an open part: its padding, and the header after it. */
#define BEHIND_PART (FRAME_ALIGN + FRAME_HEADER_SIZE)

#define ROWS_HEAD_SIZE ((size_t) 4)

/* The largest joined payload of STATEMENT: names of columns and parameters, and declared types, of one statement. */
#define STATEMENT_SIZE_MAX (4 * SQLIPC_COLUMNS_SIZE_MAX)

/* The content of a frame's header. */
typedef struct Frame {
        unsigned kind;          /* FrameKind or FRAME_STATEMENT */
        bool more;
        uint64_t run;
        size_t size;            /* payload */
        size_t frame_size;      /* header, payload and padding */
} Frame;

void page_decoder_init(PageDecoder *d, size_t page_size_max, size_t row_size_max) {
        assert(page_size_max >= SQLIPC_PAGE_SIZE_MIN && page_size_max <= SQLIPC_PAGE_SIZE_MAX);
        assert(page_size_max % FRAME_ALIGN == 0);

        *d = (PageDecoder) {
                .page_size_max = page_size_max,
                .row_size_max = row_size_max < SQLIPC_ROW_SIZE_MAX ? row_size_max : SQLIPC_ROW_SIZE_MAX,
        };
}

void page_decoder_allow_statements(PageDecoder *d) {
        d->statements = true;
}

void page_decoder_ignore_n_bytes(PageDecoder *d) {
        d->ignores_n_bytes = true;
}

void page_decoder_set_resize(PageDecoder *d, PageResize resize, void *userdata) {
        assert(d->joined_capacity == 0);

        d->resize = resize;
        d->resize_userdata = userdata;
}

static int grow(uint8_t **buffer, size_t *capacity, size_t size) {
        uint8_t *grown = realloc(*buffer, size);

        if (!grown)
                return -ENOMEM;
        *buffer = grown;
        *capacity = size;
        return 0;
}

/* Resizes `joined`; unlike grow(), it can also shrink. */
static int resize_joined(PageDecoder *d, size_t size) {
        uint8_t *resized;

        if (!d->resize)
                return grow(&d->joined, &d->joined_capacity, size);
        resized = d->resize(d->resize_userdata, d->joined, d->joined_capacity, size);
        if (!resized)
                return -ENOMEM;
        d->joined = resized;
        d->joined_capacity = size;
        return 0;
}

static void free_joined(PageDecoder *d) {
        if (d->resize && d->joined_capacity > 0)
                (void) d->resize(d->resize_userdata, d->joined, d->joined_capacity, 0);
        else
                free(d->joined);
        d->joined = NULL;
        d->joined_size = d->joined_capacity = 0;
}

void page_decoder_done(PageDecoder *d) {
        free(d->buffer);
        free_joined(d);
        free(d->columns);
        *d = (PageDecoder) { .page_size_max = d->page_size_max, .row_size_max = d->row_size_max,
                             .statements = d->statements, .ignores_n_bytes = d->ignores_n_bytes,
                             .resize = d->resize, .resize_userdata = d->resize_userdata };
}

void page_decoder_reset(PageDecoder *d) {
        d->start = d->fill = 0;
        d->error = 0;
        d->joining = 0;
        d->part_is_open = false;
        d->in_run = false;
        d->rows_left = 0;
}

/* The size of the frame that starts with `header`; SIZE_MAX if no frame may be that large here. */
static size_t frame_size(const PageDecoder *d, const uint8_t *header) {
        size_t max = d->in_run ? d->page_size : d->page_size_max, size = load_le32(header);

        /* must precede the padding, which could wrap around; the maximum is a multiple of FRAME_ALIGN, so padding cannot
         * exceed it */
        if (size > max - FRAME_HEADER_SIZE)
                return SIZE_MAX;
        return FRAME_HEADER_SIZE + frame_padded(size);
}

/* The largest number of bytes that the next read should get. */
static size_t room_wanted(const PageDecoder *d) {
        size_t unread = d->fill - d->start, size;

        if (d->rows_left > 0 || unread < FRAME_HEADER_SIZE)
                return SIZE_MAX;

        /* A frame is under way. For a large frame the room ends after the next header, because more bytes of the next frame
         * would have to be moved. The same holds for the small rest of a large row, because another large frame may follow.
         * Small frames are read many at a time: a read costs more than the move. */
        size = frame_size(d, d->buffer + d->start);
        if (size == SIZE_MAX || size <= unread)
                return SIZE_MAX;
        if (size <= LARGE_FRAME_SIZE && (d->joining != FRAME_BIG_ROW || d->page_size <= LARGE_FRAME_SIZE))
                return SIZE_MAX;
        return size - unread + FRAME_HEADER_SIZE;
}

/* Moves the unread bytes to the front. */
static void move_to_front(PageDecoder *d) {
        if (d->start == 0)
                return;
        memmove(d->buffer, d->buffer + d->start, d->fill - d->start);
        if (d->rows_left > 0) {
                d->rows_end -= d->start;
                d->frame_end -= d->start;
        }
        d->fill -= d->start;
        d->start = 0;
}

/* Doubles the buffer, up to a page and the header after it. */
static int grow_buffer(PageDecoder *d) {
        size_t max = d->page_size_max + FRAME_HEADER_SIZE, size = d->capacity > 0 ? 2 * d->capacity : READ_SIZE;

        if (max < READ_SIZE)
                max = READ_SIZE;
        if (size >= d->page_size_max || size > max)
                size = max; /* at once, instead of growing once more for the header alone */
        return size > d->capacity ? grow(&d->buffer, &d->capacity, size) : 0;
}

/* Returns the room for the rest of the open part, in `joined`. */
static int reserve_part(PageDecoder *d, uint8_t **ret_room, size_t *ret_size) {
        size_t wanted = d->part_left + d->part_padding + FRAME_HEADER_SIZE, left = d->joined_capacity - d->joined_size;

        if (left < wanted && d->joined_size >= d->joined_capacity / 2) {
                size_t max = d->row_size_max + BEHIND_PART;
                size_t size = d->joined_capacity > READ_SIZE / 2 ? 2 * d->joined_capacity : READ_SIZE;
                int r = resize_joined(d, size < max ? size : max);

                if (r < 0)
                        return d->error = r;
                left = d->joined_capacity - d->joined_size;
        }
        assert(left > 0);
        *ret_room = d->joined + d->joined_size;
        *ret_size = wanted < left ? wanted : left;
        return 0;
}

int page_decoder_reserve(PageDecoder *d, uint8_t **ret_room, size_t *ret_size) {
        size_t wanted, left;

        if (d->error < 0)
                return d->error;
        if (d->part_is_open && d->part_left > 0)
                return reserve_part(d, ret_room, ret_size);

        wanted = room_wanted(d);
        if (d->capacity - d->fill < wanted)
                move_to_front(d);
        if (d->capacity - d->fill < wanted && d->fill >= d->capacity / 2) {
                int r = grow_buffer(d);

                if (r < 0)
                        return d->error = r;
        }

        /* There is room: the caller has used all complete frames, and without one the buffer cannot be full at its
         * largest. */
        left = d->capacity - d->fill;
        assert(left > 0);
        *ret_room = d->buffer + d->fill;
        *ret_size = wanted < left ? wanted : left;
        return 0;
}

/* Moves the bytes after the part to the buffer, where frames are examined. The buffer is empty then, and has room for many
 * headers. */
static void commit_part(PageDecoder *d, size_t size) {
        size_t behind = size > d->part_left ? size - d->part_left : 0;

        assert(size <= d->joined_capacity - d->joined_size && behind <= d->part_padding + FRAME_HEADER_SIZE);

        d->joined_size += size - behind;
        d->part_left -= size - behind;
        if (behind > 0)
                memcpy(d->buffer, d->joined + d->joined_size, behind);
        d->fill = behind;
}

void page_decoder_commit(PageDecoder *d, size_t size) {
        if (d->part_is_open && d->part_left > 0) {
                commit_part(d, size);
                return;
        }
        assert(size <= d->capacity - d->fill);

        d->fill += size;
}

/* Checks the payload, copies it into the memory of the previous columns, and begins the run. */
static int take_columns(PageDecoder *d, const uint8_t *payload, size_t size) {
        uint32_t n_columns, page_size;
        Extension extension;
        int r;

        if (size > SQLIPC_COLUMNS_SIZE_MAX)
                return -EBADMSG;
        r = payload_check_columns(payload, size, d->page_size_max, &n_columns, &page_size, &extension);
        if (r < 0)
                return r;
        if (size > d->columns_capacity) {
                r = grow(&d->columns, &d->columns_capacity, size);
                if (r < 0)
                        return r;
        }
        memcpy(d->columns, payload, size);
        d->columns_size = size - extension.size;
        d->extension = (Extension) { .bytes = d->columns + d->columns_size, .size = extension.size };
        d->n_columns = n_columns;
        d->page_size = page_size;
        d->in_run = true;
        return PAGE_COLUMNS;
}

static int take_statement(PageDecoder *d, const uint8_t *payload, size_t size) {
        uint32_t n_columns, n_parameters, flags;
        int r;

        r = payload_check_statement(payload, size, &n_columns, &n_parameters, &flags, &d->extension);
        if (r < 0)
                return r;
        d->statement = payload;
        d->statement_n_columns = n_columns;
        d->statement_n_parameters = n_parameters;
        d->statement_read_only = flags & STATEMENT_READ_ONLY;
        return PAGE_STATEMENT;
}

/* Checks the row at `bytes` and makes it the current one. */
static int take_row(PageDecoder *d, const uint8_t *bytes, size_t size, size_t *ret_size) {
        int r;

        r = page_check_row(bytes, size, d->n_columns, ret_size);
        if (r < 0)
                return r;
        if (*ret_size > d->row_size_max)
                return -EMSGSIZE;

        d->types = bytes;
        d->ends = bytes + d->n_columns;
        d->data = bytes + ROW_HEAD_SIZE(d->n_columns);
        d->n_rows++;
        return PAGE_ROW;
}

/* Takes the next row of the open ROWS frame. */
static int next_row(PageDecoder *d) {
        size_t size;
        int r;

        r = take_row(d, d->buffer + d->start, d->rows_end - d->start, &size);
        if (r < 0)
                return r;

        d->start += size;
        if (--d->rows_left == 0) {
                if (d->start != d->rows_end)
                        return -EBADMSG;
                d->start = d->frame_end;
        }
        return r;
}

static int take_big_row(PageDecoder *d, const uint8_t *payload, size_t size) {
        size_t row_size;
        int r;

        r = take_row(d, payload, size, &row_size);
        return r > 0 && row_size != size ? -EBADMSG : r;
}

/* Reads the fields of a run that wrote, the change sequence, and the setting. They are absent from END if they are not
 * known, and from that of an older service. */
static int take_changes(EndCounters *counters, const uint8_t *payload, size_t size) {
        int64_t n_changes;

        if (size < FRAME_END_WROTE_SIZE)
                return 0;
        n_changes = (int64_t) load_le64(payload + FRAME_END_SIZE);
        if (n_changes < -1)
                return -EBADMSG;
        if (size >= FRAME_END_SEQUENCE_SIZE)
                counters->sequence = load_le64(payload + FRAME_END_WROTE_SIZE);
        if (size >= FRAME_END_SETTING_SIZE)
                counters->foreign_keys = load_le64(payload + FRAME_END_SEQUENCE_SIZE);
        if (counters->foreign_keys >= FOREIGN_KEYS_MAX_)
                counters->foreign_keys = FOREIGN_KEYS_CONFIGURED;
        if (n_changes == -1)
                return 0;
        counters->n_changes = n_changes;
        counters->last_rowid = (int64_t) load_le64(payload + FRAME_END_SIZE + 8);
        counters->wrote = true;
        return 0;
}

static int take_end(PageDecoder *d, const uint8_t *payload, size_t size) {
        if (size < FRAME_END_SIZE)
                return -EBADMSG;

        d->end_counters = (EndCounters) {
                .n_rows = load_le64(payload),
                .n_bytes = load_le64(payload + 8),
                .usec = load_le64(payload + 16),
                .vm_steps = load_le64(payload + 24),
                .fullscan_steps = load_le64(payload + 32),
                .sorts = load_le64(payload + 40),
                .autoindexes = load_le64(payload + 48),
        };
        if (d->end_counters.n_rows != d->n_rows || (!d->ignores_n_bytes && d->end_counters.n_bytes != d->n_bytes))
                return -EBADMSG;
        return take_changes(&d->end_counters, payload, size) < 0 ? -EBADMSG : PAGE_END;
}

static int take_error(PageDecoder *d, const uint8_t *payload, size_t size) {
        uint32_t number, message_size;
        size_t without_extension;
        int32_t sql_offset;

        if (size < FRAME_ERROR_HEAD_SIZE + 1)
                return -EBADMSG;
        number = load_le32(payload);
        sql_offset = (int32_t) load_le32(payload + 8);
        message_size = load_le32(payload + 12);
        if (number == 0 || sql_offset < -1 || message_size > SQLIPC_MESSAGE_SIZE_MAX)
                return -EBADMSG;
        without_extension = FRAME_ERROR_HEAD_SIZE + message_size + 1;
        if (size < without_extension || payload[without_extension - 1] != 0)
                return -EBADMSG;
        d->extension = (Extension) { .bytes = payload + without_extension, .size = size - without_extension };
        if (payload_check_extension(d->extension) < 0)
                return -EBADMSG;

        d->error_number = number;
        d->error_extended_code = (int32_t) load_le32(payload + 4);
        d->error_sql_offset = sql_offset;
        d->error_message = (const char *) payload + FRAME_ERROR_HEAD_SIZE;
        d->error_message_size = message_size;
        return PAGE_ERROR;
}

void page_decoder_trim(PageDecoder *d) {
        if (d->joining == 0)
                free_joined(d);
        else if (d->joined_capacity > d->joined_size && d->joined_size > 0)
                (void) resize_joined(d, d->joined_size); /* frees the room after the bytes that have arrived */
}

/* The run is over: its joined payload, which may be a large row, is no longer needed. */
static void close_run(PageDecoder *d) {
        d->in_run = false;
        d->joining = 0;
        free_joined(d);
}

/* The largest size of a joined payload. */
static size_t joined_size_max(const PageDecoder *d, unsigned kind) {
        switch (kind) {
        case FRAME_COLUMNS:
                return SQLIPC_COLUMNS_SIZE_MAX;
        case FRAME_STATEMENT:
                return STATEMENT_SIZE_MAX;
        default:
                return d->row_size_max;
        }
}

/* Begins a part of a continued payload, the first or another one. */
static int begin_part(PageDecoder *d, const Frame *f) {
        size_t max = joined_size_max(d, f->kind);

        if (d->joining == 0)
                d->joined_size = 0;
        if (d->joined_size > max || f->size > max - d->joined_size)
                return f->kind == FRAME_BIG_ROW ? -EMSGSIZE : -EBADMSG;
        d->joining = f->kind;
        return 0;
}

/* Appends `size` bytes of the part that was begun. */
static int join(PageDecoder *d, const uint8_t *payload, size_t size) {
        size_t needed = d->joined_size + size;

        if (needed > d->joined_capacity) {
                size_t max = joined_size_max(d, d->joining), doubled = 2 * d->joined_capacity;
                int r;

                doubled = doubled > max ? max : doubled;
                r = resize_joined(d, doubled > needed ? doubled : needed);
                if (r < 0)
                        return r;
        }
        if (size > 0)
                memcpy(d->joined + d->joined_size, payload, size);
        d->joined_size = needed;
        return 0;
}

static int take_whole(PageDecoder *d, unsigned kind, const uint8_t *payload, size_t size) {
        switch (kind) {
        case FRAME_COLUMNS:
                return take_columns(d, payload, size);
        case FRAME_STATEMENT:
                return take_statement(d, payload, size);
        default:
                return take_big_row(d, payload, size);
        }
}

/* Takes COLUMNS, STATEMENT or BIG_ROW: complete, a part, or the last part. PAGE_MORE: the series continues. */
static int take_part(PageDecoder *d, const Frame *f, const uint8_t *payload) {
        int r;

        if (!f->more && d->joining == 0)
                return take_whole(d, f->kind, payload, f->size);

        r = begin_part(d, f);
        if (r >= 0)
                r = join(d, payload, f->size);
        if (r < 0 || f->more)
                return r;
        d->joining = 0;
        r = take_whole(d, f->kind, d->joined, d->joined_size);
        if (f->kind == FRAME_COLUMNS) /* they are copied; the other kinds are handed out in place */
                free_joined(d);
        return r;
}

/* True if the stream may continue with this frame. */
static bool frame_is_expected(const PageDecoder *d, const Frame *f) {
        bool goes_on = d->in_run || d->joining != 0;

        if (goes_on && f->run != d->run)
                return false;

        switch (f->kind) {
        case FRAME_STATEMENT:
                return d->statements && !d->in_run && d->joining != FRAME_COLUMNS;
        case FRAME_COLUMNS:
                return !d->in_run && d->joining != FRAME_STATEMENT;
        case FRAME_ROWS:
                return d->in_run && d->joining == 0 && d->n_columns > 0;
        case FRAME_BIG_ROW: /* rows without columns take no bytes, so their number would be unbounded */
                return d->in_run && d->n_columns > 0;
        case FRAME_END:
                return d->in_run && d->joining == 0;
        case FRAME_ERROR:
                return true;
        }
        return false;
}

/* Padding must be zero, so that a later version can give it a meaning. */
static bool padding_is_zero(const uint8_t *padding, size_t size) {
        for (size_t i = 0; i < size; i++)
                if (padding[i] != 0)
                        return false;
        return true;
}

/* True for a part of a long row, which is read directly into `joined`. */
static bool part_is_long(const PageDecoder *d, const Frame *f) {
        return f->kind == FRAME_BIG_ROW && (f->more || d->joining != 0) && f->frame_size > LARGE_FRAME_SIZE;
}

/* The results of find_frame() that are no errors. */
enum { FRAME_NOT_YET, FRAME_IS_WHOLE, FRAME_IS_LONG /* but not complete yet */ };

/* Finds the next frame, which may be incomplete. */
static int find_frame(const PageDecoder *d, Frame *ret) {
        size_t unread = d->fill - d->start;
        const uint8_t *header;
        uint16_t flags;

        if (unread < FRAME_HEADER_SIZE)
                return FRAME_NOT_YET;
        header = d->buffer + d->start;

        /* Checks the header before waiting for the bytes that it announces. */
        flags = load_le16(header + 6);
        *ret = (Frame) {
                .kind = header[4],
                .more = flags & FRAME_MORE,
                .run = load_le64(header + 8),
                .size = load_le32(header),
                .frame_size = frame_size(d, header),
        };
        if (header[5] != SQLIPC_PAGE_VERSION || (flags & ~FRAME_MORE) != 0 || ret->frame_size == SIZE_MAX)
                return -EBADMSG;
        if (ret->more && ret->kind != FRAME_COLUMNS && ret->kind != FRAME_BIG_ROW && ret->kind != FRAME_STATEMENT)
                return -EBADMSG;
        if (ret->more && ret->size == 0) /* a series of such frames would never end */
                return -EBADMSG;
        if (!frame_is_expected(d, ret))
                return -EBADMSG;
        if (unread < ret->frame_size)
                return part_is_long(d, ret) ? FRAME_IS_LONG : FRAME_NOT_YET;
        if (!padding_is_zero(header + FRAME_HEADER_SIZE + ret->size, ret->frame_size - FRAME_HEADER_SIZE - ret->size))
                return -EBADMSG;
        return FRAME_IS_WHOLE;
}

/* A frame of a run is about to be used: adds it to the bytes that END counts. END itself is not counted. */
static void count_frame(PageDecoder *d, const Frame *f) {
        if (f->kind == FRAME_END)
                return;
        if (!d->in_run && d->joining == 0)
                d->n_rows = d->n_bytes = 0;
        d->n_bytes += f->frame_size;
}

static int take_rows(PageDecoder *d, const Frame *f, const uint8_t *payload) {
        if (f->size < ROWS_HEAD_SIZE)
                return -EBADMSG;
        d->rows_left = load_le32(payload);
        if (d->rows_left == 0)
                return -EBADMSG;

        d->rows_end = d->start + FRAME_HEADER_SIZE + f->size;
        d->frame_end = d->start + f->frame_size;
        d->start += FRAME_HEADER_SIZE + ROWS_HEAD_SIZE;
        return next_row(d);
}

static int take_frame(PageDecoder *d, const Frame *f) {
        const uint8_t *payload = d->buffer + d->start + FRAME_HEADER_SIZE;
        int r = -EBADMSG;

        d->run = f->run;
        count_frame(d, f);
        switch (f->kind) {
        case FRAME_ROWS:
                return take_rows(d, f, payload); /* advances through the frame by itself */
        case FRAME_COLUMNS:
        case FRAME_BIG_ROW:
        case FRAME_STATEMENT:
                r = take_part(d, f, payload);
                break;
        case FRAME_END:
                close_run(d);
                r = take_end(d, payload, f->size);
                break;
        case FRAME_ERROR:
                close_run(d);
                r = take_error(d, payload, f->size);
                break;
        }
        d->start += f->frame_size;
        return r;
}

/* The frame's header was read, and a part of the rest: opens the part. */
static int open_part(PageDecoder *d, const Frame *f) {
        size_t came = d->fill - d->start - FRAME_HEADER_SIZE, size = came < f->size ? came : f->size;
        const uint8_t *payload = d->buffer + d->start + FRAME_HEADER_SIZE;
        int r;

        r = begin_part(d, f);
        if (r >= 0)
                r = join(d, payload, size);
        if (r < 0)
                return r;
        d->run = f->run;
        count_frame(d, f);
        d->part_is_open = true;
        d->part_has_more = f->more;
        d->part_left = f->size - size;
        d->part_padding = f->frame_size - FRAME_HEADER_SIZE - f->size;
        d->start += FRAME_HEADER_SIZE + size;
        if (d->part_left > 0)
                d->start = d->fill = 0;
        return PAGE_MORE;
}

/* The open part is complete, including its padding. */
static int close_part(PageDecoder *d) {
        if (!padding_is_zero(d->buffer + d->start, d->part_padding))
                return -EBADMSG;
        d->start += d->part_padding;
        d->part_is_open = false;
        if (d->part_has_more)
                return PAGE_MORE;
        d->joining = 0;
        return take_big_row(d, d->joined, d->joined_size);
}

static int next_event(PageDecoder *d) {
        int r;

        if (d->rows_left > 0)
                return next_row(d);
        do {
                if (d->part_is_open) {
                        if (d->part_left > 0 || d->fill - d->start < d->part_padding)
                                return PAGE_MORE;
                        r = close_part(d);
                } else {
                        Frame f;

                        r = find_frame(d, &f);
                        if (r < 0 || r == FRAME_NOT_YET)
                                return r;
                        r = r == FRAME_IS_LONG ? open_part(d, &f) : take_frame(d, &f);
                }
        } while (r == PAGE_MORE); /* after a part of a series, try the next frame */
        return r;
}

int page_decoder_next(PageDecoder *d) {
        int r;

        if (d->error < 0)
                return d->error;
        r = next_event(d);
        if (r < 0)
                d->error = r;
        return r;
}

int page_decoder_end_of_file(const PageDecoder *d) {
        if (d->error < 0)
                return d->error;
        return d->in_run || d->joining != 0 || d->start != d->fill ? -ECONNRESET : 0;
}

static const char *columns_string(const PageDecoder *d, size_t i, size_t *ret_size) {
        return payload_string(d->columns + COLUMNS_HEAD_SIZE, (size_t) 2 * d->n_columns, i, ret_size);
}

void page_decoder_column(const PageDecoder *d, unsigned i, const char **ret_name, const char **ret_declared_type) {
        const char *declared_type;
        size_t size;

        assert(i < d->n_columns);

        declared_type = columns_string(d, (size_t) 2 * i + 1, &size);
        *ret_declared_type = size > 0 ? declared_type : NULL;
        *ret_name = columns_string(d, (size_t) 2 * i, &size);
}

void page_decoder_column_name(const PageDecoder *d, unsigned i, const char **ret_name, size_t *ret_size) {
        size_t size;

        assert(i < d->n_columns);

        *ret_name = columns_string(d, (size_t) 2 * i, &size);
        *ret_size = size - 1;
}

/* String `i` of STATEMENT, NULL if it is absent. */
static const char *statement_string(const PageDecoder *d, size_t i) {
        size_t n = (size_t) 2 * d->statement_n_columns + d->statement_n_parameters, size;
        const char *string = payload_string(d->statement + CHANNEL_STATEMENT_HEAD_SIZE, n, i, &size);

        return size > 0 ? string : NULL;
}

void page_decoder_statement_column(const PageDecoder *d, unsigned i, const char **ret_name,
                                   const char **ret_declared_type) {
        assert(i < d->statement_n_columns);

        *ret_name = statement_string(d, (size_t) 2 * i);
        *ret_declared_type = statement_string(d, (size_t) 2 * i + 1);
}

const char *page_decoder_statement_parameter(const PageDecoder *d, unsigned i) {
        assert(i < d->statement_n_parameters);

        return statement_string(d, (size_t) 2 * d->statement_n_columns + i);
}
