/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Passes streams through the decoder, for its tests. Tests only. */
#ifndef SQLIPC_TESTS_UNIT_DECODE_H
#define SQLIPC_TESTS_UNIT_DECODE_H

#include "tests/unit/stream.h"
#include "tests/unit/test.h"
#include "tests/vectors/page-text.h"

/* A stream that is right until `bytes`. */
static inline Stream in_run(unsigned n_columns) {
        Stream s = STREAM_INIT;

        stream_add_columns(&s, 1, n_columns, SQLIPC_PAGE_SIZE_MIN);
        return s;
}

/* Decodes in pieces of `chunk`; returns the lines, to be freed, and the reason for the end. */
static inline char *decode_with(const Stream *s, size_t chunk, size_t page_size_max, size_t row_size_max, int *ret_result) {
        size_t size;
        char *text;
        FILE *out = open_memstream(&text, &size);
        PageDecoder d;

        CHECK(out);
        page_decoder_init(&d, page_size_max, row_size_max);
        *ret_result = page_text_decode(out, &d, s->bytes, s->size, chunk);
        if (*ret_result < 0 && d.error < 0) {
                uint8_t *room;
                size_t n;

                /* errors are sticky, everywhere */
                CHECK_INT(page_decoder_next(&d), *ret_result);
                CHECK_INT(page_decoder_reserve(&d, &room, &n), *ret_result);
                CHECK_INT(page_decoder_end_of_file(&d), *ret_result);
        }
        page_decoder_done(&d);
        CHECK(fclose(out) == 0);
        return text;
}

static inline int decode_result(const Stream *s, size_t page_size_max, size_t row_size_max) {
        int r;

        free(decode_with(s, SIZE_MAX, page_size_max, row_size_max, &r));
        return r;
}

/* Gives a decoder all of a stream, and it has to take it. */
static inline void feed(PageDecoder *d, const uint8_t *bytes, size_t size) {
        while (size > 0) {
                uint8_t *room;
                size_t n;

                CHECK_INT(page_decoder_reserve(d, &room, &n), 0);
                CHECK(n > 0);
                n = n > size ? size : n;
                memcpy(room, bytes, n);
                page_decoder_commit(d, n);
                bytes += n;
                size -= n;
        }
}

#endif
