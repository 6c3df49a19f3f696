/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bytes -> rows (sqlipc-page.h). Pure: no I/O; owns its buffers. Every byte is hostile.
 *
 * The caller reads into what page_decoder_reserve() hands out, says how much came with page_decoder_commit(), and calls
 * page_decoder_next() until it answers PAGE_MORE. Rows are given in place: what a call of next returned is valid until the
 * following call of next or reserve.
 *
 * The buffers grow as bytes arrive, by doubling, never by what a length announces. Errors are sticky: after a negative
 * return each call returns the same. A decoder that reads run after run allocates nothing once it has seen the largest of
 * them, but for continued payloads.
 */
#ifndef SQLIPC_PAGE_DECODER_H
#define SQLIPC_PAGE_DECODER_H

#include <stdbool.h>

#include "page-payload.h"

/* What page_decoder_next() found. */
enum {
        PAGE_MORE = 0,     /* nothing whole: read on */
        PAGE_COLUMNS = 1,  /* n_columns and the columns are known */
        PAGE_ROW = 2,      /* one row: types, ends, data */
        PAGE_END = 3,      /* end_counters; the next frame belongs to another run */
        PAGE_ERROR = 4,    /* error_..., also without PAGE_COLUMNS before; the next frame belongs to another run */
        PAGE_STATEMENT = 5, /* between runs, where page_decoder_allow_statements() was called: statement_... */
};

typedef struct PageValue {
        ValueType type;
        const uint8_t *bytes; /* in place; TEXT has a NUL behind it */
        size_t size;          /* TEXT: without that NUL */
} PageValue;

/* As realloc(), with the size that `bytes` has; `new_size` 0 frees it. */
typedef uint8_t *(*PageResize)(void *userdata, uint8_t *bytes, size_t size, size_t new_size);

typedef struct PageDecoder {
        /* configuration */
        size_t page_size_max;   /* no frame may be larger */
        size_t row_size_max;    /* no row may be larger: -EMSGSIZE */
        bool statements;        /* the stream is a channel's */
        bool ignores_n_bytes;   /* END counts the bytes of other frames */
        PageResize resize;      /* of `joined`; NULL: realloc() */
        void *resize_userdata;

        /* the stream as it came */
        uint8_t *buffer;
        size_t capacity, start, fill; /* unread bytes are buffer[start..fill) */
        int error;                    /* sticky, 0 or negative */

        /* a continued payload being joined, or the last one joined (COLUMNS are kept apart) */
        uint8_t *joined;
        size_t joined_size, joined_capacity;
        unsigned joining;             /* FrameKind, 0: none under way */

        /* the part of a long row whose payload is read to where it is joined, not to the buffer */
        bool part_is_open, part_has_more;
        size_t part_left, part_padding; /* of the payload, still to be read; behind it */

        /* the run */
        uint64_t run;                 /* of the last frame */
        bool in_run;                  /* COLUMNS seen, END or ERROR not yet */
        uint8_t *columns;             /* payload of COLUMNS */
        size_t columns_size, columns_capacity; /* the size is without the extension */
        unsigned n_columns;
        uint32_t page_size;           /* as COLUMNS announced it; bounds the frames behind */
        uint64_t n_rows, n_bytes;     /* so far, as END counts them */
        Extension extension;          /* of COLUMNS, STATEMENT or ERROR, valid until the next call */

        /* the row under `next` */
        uint32_t rows_left;           /* in the open ROWS frame */
        size_t rows_end, frame_end;   /* offsets in buffer where its payload and its padding end */
        const uint8_t *types, *ends, *data;

        const uint8_t *statement;     /* payload of STATEMENT, valid until the next call */
        unsigned statement_n_columns, statement_n_parameters;
        bool statement_read_only;

        EndCounters end_counters;
        uint32_t error_number;
        int32_t error_extended_code, error_sql_offset;
        const char *error_message;    /* NUL-terminated, valid until the next call */
        size_t error_message_size;
} PageDecoder;

/* Starts with empty buffers. `page_size_max`: what was negotiated, SQLIPC_PAGE_SIZE_MIN..MAX; `row_size_max`: a row's head
 * and data, at most SQLIPC_ROW_SIZE_MAX, which holds where more is asked for. */
void page_decoder_init(PageDecoder *d, size_t page_size_max, size_t row_size_max);

/* The stream is a channel's: STATEMENT may stand between runs. */
void page_decoder_allow_statements(PageDecoder *d);

/* The caller made the frames out of something else, and END counts the bytes of that: they are not compared. */
void page_decoder_ignore_n_bytes(PageDecoder *d);

/* Has payloads joined in memory of the caller's, before the first of them. */
void page_decoder_set_resize(PageDecoder *d, PageResize resize, void *userdata);

/* Forgets what was read and not taken, the run and any error, but not the columns; keeps the buffers. The next byte begins a
 * frame. */
void page_decoder_reset(PageDecoder *d);

/* Frees the buffers; the decoder is as new, and may be initialised again. Accepts one that is all zeros. */
void page_decoder_done(PageDecoder *d);

/* Where the next bytes of the stream go: at least one byte, provided that page_decoder_next() answered PAGE_MORE before.
 * While a large frame is incomplete, the room reaches at most to its end and over the next frame's header, so that large
 * frames are not moved about, and the parts of a long row are read to where it is joined; else it is large enough for many
 * small ones. -ENOMEM, or the sticky error. */
int page_decoder_reserve(PageDecoder *d, uint8_t **ret_room, size_t *ret_size);

/* `size` bytes of the room were filled. */
void page_decoder_commit(PageDecoder *d, size_t size);

/* The next event: PAGE_..., -EBADMSG for what the format does not allow, -EMSGSIZE for a row over row_size_max, -ENOMEM. */
int page_decoder_next(PageDecoder *d);

/* Gives back the memory of a joined row that the caller is done with, and what one under way does not need yet; for a
 * decoder that rests before its next call. */
void page_decoder_trim(PageDecoder *d);

/* The stream ended. 0 at a border of runs, -ECONNRESET anywhere else (END or ERROR is missing). */
int page_decoder_end_of_file(const PageDecoder *d);

/* Column `i` of the run, valid until the next PAGE_COLUMNS. `ret_declared_type` is NULL where there is none. */
void page_decoder_column(const PageDecoder *d, unsigned i, const char **ret_name, const char **ret_declared_type);
/* As above with sizes: names may hold any bytes. */
void page_decoder_column_name(const PageDecoder *d, unsigned i, const char **ret_name, size_t *ret_size);

/* Column and parameter `i` of the statement under PAGE_STATEMENT; NULL for a declared type or a name that is not there. */
void page_decoder_statement_column(const PageDecoder *d, unsigned i, const char **ret_name, const char **ret_declared_type);
const char *page_decoder_statement_parameter(const PageDecoder *d, unsigned i);

/* Value `i` of the row under PAGE_ROW; i < n_columns. The row was validated as a whole before it was handed out. */
static inline PageValue page_decoder_value(const PageDecoder *d, unsigned i) {
        uint32_t start = i == 0 ? 0 : load_le32(d->ends + (size_t) 4 * (i - 1)), end = load_le32(d->ends + (size_t) 4 * i);
        ValueType type = (ValueType) d->types[i];

        return (PageValue) { .type = type, .bytes = d->data + start, .size = end - start - (type == VALUE_TEXT) };
}

#endif
