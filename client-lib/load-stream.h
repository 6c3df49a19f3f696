/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bytes of a load: rows become pages (sqlipc-page.h). Library. Pure, except that it allocates memory: one page for the
 * whole load, and room for rows that are larger than a page.
 *
 *      open --> add, next, sent, add, ... --> end --> next, sent until nothing is left
 *
 * Rows are collected until a page is full. A row is taken as a whole or not at all, so the program may offer it again after
 * a wait. A row that is larger than a page is copied, and goes out part by part before the next one is taken.
 */
#ifndef SQLIPC_CLIENT_LIB_LOAD_STREAM_H
#define SQLIPC_CLIENT_LIB_LOAD_STREAM_H

#include "client-lib/parameter.h"
#include "dbus-interfaces/wire/page-encoder.h"

typedef struct LoadStream {
        PageEncoder page;
        uint8_t *memory;            /* of the page; owned */
        size_t size, sent;          /* [sent, size) of a complete page must be sent; size 0: the page is open */
        uint8_t *part;              /* COLUMNS, or a row that is larger than a page; owned */
        size_t part_size, part_taken, part_capacity;
        FrameKind part_kind;
        uint64_t n_rows;
        uint64_t n_bytes;           /* of complete pages */
        bool ends;                  /* no more rows: END follows */
        bool ended;                 /* END is in the complete page, or was sent */
} LoadStream;

/* `n_columns`: at least 1. 0 or -ENOMEM. */
int load_stream_open(LoadStream *s, uint64_t run, unsigned n_columns, size_t page_size);

/* Frees the memory. All zeros are allowed. */
void load_stream_done(LoadStream *s);

/* Adds a row of `n_columns` nameless values. 1; 0: no room until the bytes of load_stream_next() are sent; -EINVAL
 * (an invalid type, or no bytes); -E2BIG: larger than any row may be; -ENOMEM. */
int load_stream_add(LoadStream *s, const Parameter *values, unsigned n_columns);

/* There are no more rows. */
void load_stream_end(LoadStream *s);

/* Returns the bytes to be sent next. `*ret_size` 0: there are none yet. */
const uint8_t *load_stream_next(LoadStream *s, size_t *ret_size);

/* `n` of these bytes were sent. */
void load_stream_sent(LoadStream *s, size_t n);

/* True if all was sent, with END. */
static inline bool load_stream_is_sent(const LoadStream *s) {
        return s->ended && s->size == 0;
}

#endif
