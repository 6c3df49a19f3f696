/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns bytes into rows (sqlipc-page.h). Pure: no I/O; owns its buffers. Every byte is hostile.
 *
 * The caller reads into the room that page_decoder_reserve() hands out, reports the number of bytes with
 * page_decoder_commit(), and calls page_decoder_next() until that returns PAGE_MORE. Rows are given in place: the result of
 * a call of next is valid until the following call of next or reserve.
 *
 * The buffers grow as bytes arrive, by doubling, never by an announced length. Errors are sticky: after a negative return
 * each call returns the same error. A decoder that reads run after run allocates nothing once it has seen the largest of
 * them, except for continued payloads.
 */
#ifndef SQLIPC_DBUS_INTERFACES_WIRE_PAGE_DECODER_H
#define SQLIPC_DBUS_INTERFACES_WIRE_PAGE_DECODER_H

#include <stdbool.h>

#include "dbus-interfaces/wire/page-payload.h"

/* The results of page_decoder_next(). */
enum {
        PAGE_MORE = 0,     /* nothing complete: read on */
        PAGE_COLUMNS = 1,  /* n_columns and the columns are known */
        PAGE_ROW = 2,      /* one row: types, ends, data */
        PAGE_END = 3,      /* end_counters; the next frame belongs to another run */
        PAGE_ERROR = 4,    /* error_..., possibly without PAGE_COLUMNS before; the next frame belongs to another run */
        PAGE_STATEMENT = 5, /* between runs, if page_decoder_allow_statements() was called: statement_... */
};

typedef struct PageValue {
        ValueType type;
        const uint8_t *bytes; /* in place; TEXT is followed by a NUL */
        size_t size;          /* TEXT: without that NUL */
} PageValue;

/* Like realloc(), but also gets the current size of `bytes`. `new_size` 0 frees it. */
typedef uint8_t *(*PageResize)(void *userdata, uint8_t *bytes, size_t size, size_t new_size);

typedef struct PageDecoder {
        /* configuration */
        size_t page_size_max;   /* no frame may be larger */
        size_t row_size_max;    /* no row may be larger: -EMSGSIZE */
        bool statements;        /* the stream is a channel's */
        bool ignores_n_bytes;   /* the bytes that END counts are those of other frames */
        PageResize resize;      /* of `joined`; NULL: realloc() */
        void *resize_userdata;

        /* the stream as received */
        uint8_t *buffer;
        size_t capacity, start, fill; /* unread bytes are buffer[start..fill) */
        int error;                    /* sticky, 0 or negative */

        /* a continued payload being joined, or the last one joined (COLUMNS are kept apart) */
        uint8_t *joined;
        size_t joined_size, joined_capacity;
        unsigned joining;             /* FrameKind; 0: no payload is being joined */

        /* the part of a long row whose payload is read directly into `joined`, not into the buffer */
        bool part_is_open, part_has_more;
        size_t part_left, part_padding; /* bytes of the payload that are still to be read; of the padding after it */

        /* the run */
        uint64_t run;                 /* of the last frame */
        bool in_run;                  /* COLUMNS seen, END or ERROR not yet */
        uint8_t *columns;             /* payload of COLUMNS */
        size_t columns_size, columns_capacity; /* the size is without the extension */
        unsigned n_columns;
        uint32_t page_size;           /* as announced by COLUMNS; bounds the frames that follow */
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

/* Starts with empty buffers. `page_size_max` is the negotiated page size, SQLIPC_PAGE_SIZE_MIN..MAX. `row_size_max` bounds a
 * row's head and data; a value above SQLIPC_ROW_SIZE_MAX is reduced to that. */
void page_decoder_init(PageDecoder *d, size_t page_size_max, size_t row_size_max);

/* The stream is a channel's: STATEMENT may come between runs. */
void page_decoder_allow_statements(PageDecoder *d);

/* The caller made the frames from other bytes, and END counts those: n_bytes is not compared. */
void page_decoder_ignore_n_bytes(PageDecoder *d);

/* Sets the allocator for joined payloads. Must be called before the first of them. */
void page_decoder_set_resize(PageDecoder *d, PageResize resize, void *userdata);

/* Forgets bytes that were received but not used, the run and any error, but keeps the columns and the buffers. The next byte
 * begins a frame. */
void page_decoder_reset(PageDecoder *d);

/* Frees the buffers. The decoder is like new, and may be initialised again. Accepts a decoder that is all zeros. */
void page_decoder_done(PageDecoder *d);

/* Returns the room for the next bytes of the stream: at least one byte, provided that page_decoder_next() returned PAGE_MORE
 * before. While a large frame is incomplete, the room ends after that frame and the next frame's header, so that large
 * frames need not be moved, and the parts of a long row are read directly into `joined`. Otherwise the room is large enough
 * for many small frames. -ENOMEM, or the sticky error. */
int page_decoder_reserve(PageDecoder *d, uint8_t **ret_room, size_t *ret_size);

/* The caller has filled `size` bytes of the room. */
void page_decoder_commit(PageDecoder *d, size_t size);

/* Returns the next event: PAGE_...; -EBADMSG if the format does not allow the bytes, -EMSGSIZE for a row over row_size_max,
 * -ENOMEM. */
int page_decoder_next(PageDecoder *d);

/* Frees the memory of a joined row that the caller no longer needs, and memory that an unfinished one does not need yet. For
 * a decoder that is not used for a while. */
void page_decoder_trim(PageDecoder *d);

/* The stream ended. Returns 0 between runs, -ECONNRESET anywhere else (END or ERROR is missing). */
int page_decoder_end_of_file(const PageDecoder *d);

/* Column `i` of the run, valid until the next PAGE_COLUMNS. `ret_declared_type` is NULL if there is none. */
void page_decoder_column(const PageDecoder *d, unsigned i, const char **ret_name, const char **ret_declared_type);
/* The name with its size: it may hold any bytes. */
void page_decoder_column_name(const PageDecoder *d, unsigned i, const char **ret_name, size_t *ret_size);

/* Column and parameter `i` of the statement under PAGE_STATEMENT. A declared type or name that is absent is NULL. */
void page_decoder_statement_column(const PageDecoder *d, unsigned i, const char **ret_name, const char **ret_declared_type);
const char *page_decoder_statement_parameter(const PageDecoder *d, unsigned i);

/* Value `i` of the row under PAGE_ROW; i < n_columns. The whole row was validated before it was handed out. */
static inline PageValue page_decoder_value(const PageDecoder *d, unsigned i) {
        uint32_t start = i == 0 ? 0 : load_le32(d->ends + (size_t) 4 * (i - 1)), end = load_le32(d->ends + (size_t) 4 * i);
        ValueType type = (ValueType) d->types[i];

        return (PageValue) { .type = type, .bytes = d->data + start, .size = end - start - (type == VALUE_TEXT) };
}

#endif
