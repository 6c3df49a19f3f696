/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A page stream in memory, from pages of the encoder and from frames made by hand, right or wrong. Tests only.
 * Owns its bytes; STREAM_INIT to start with, stream_done() to free.
 */
#ifndef SQLIPC_TEST_STREAM_H
#define SQLIPC_TEST_STREAM_H

#include "page-encoder.h"
#include "test.h"

typedef struct Stream {
        uint8_t *bytes;
        size_t size, capacity;
} Stream;

#define STREAM_INIT ((Stream) { NULL, 0, 0 })

static inline void stream_done(Stream *s) {
        free(s->bytes);
        *s = STREAM_INIT;
}

/* Room for `size` more bytes, zeros. */
static inline uint8_t *stream_extend(Stream *s, size_t size) {
        if (size >= s->capacity - s->size) {
                s->capacity = 2 * (s->size + size + 1);
                s->bytes = realloc(s->bytes, s->capacity);
                CHECK(s->bytes);
        }
        memset(s->bytes + s->size, 0, size);
        s->size += size;
        return s->bytes + s->size - size;
}

static inline void stream_add(Stream *s, const void *bytes, size_t size) {
        uint8_t *at = stream_extend(s, size);

        if (size > 0)
                memcpy(at, bytes, size);
}

static inline void stream_add_le32(Stream *s, uint32_t value) {
        store_le32(stream_extend(s, 4), value);
}

/* A frame of whatever is asked for, padded. */
static inline void stream_add_frame(Stream *s, unsigned kind, unsigned flags, uint64_t run, const void *payload,
                                    size_t size) {
        uint8_t *header = stream_extend(s, FRAME_HEADER_SIZE);

        store_le32(header, (uint32_t) size);
        header[4] = (uint8_t) kind;
        header[5] = SQLIPC_PAGE_VERSION;
        store_le16(header + 6, (uint16_t) flags);
        store_le64(header + 8, run);
        stream_add(s, payload, size);
        stream_extend(s, frame_padded(size) - size);
}

/* A frame with what `payload` holds, which is freed. */
static inline void stream_take_frame(Stream *s, unsigned kind, unsigned flags, uint64_t run, Stream *payload) {
        stream_add_frame(s, kind, flags, run, payload->bytes, payload->size);
        stream_done(payload);
}

/* What is in the encoder's page goes to the stream. */
static inline void stream_take_page(Stream *s, PageEncoder *e) {
        size_t size = page_encoder_finish(e);

        CHECK(size <= e->page_size && size % FRAME_ALIGN == 0);
        stream_add(s, e->page, size);
        page_encoder_clear(e);
}

/* The payload of COLUMNS: `n` columns named "c" without a declared type. */
static inline void stream_add_columns_payload(Stream *s, uint32_t n, uint32_t page_size) {
        stream_add_le32(s, n);
        stream_add_le32(s, page_size);
        for (uint32_t i = 0; i < n; i++) {
                stream_add_le32(s, 2 * (i + 1));
                stream_add_le32(s, 2 * (i + 1));
        }
        for (uint32_t i = 0; i < n; i++)
                stream_add(s, "c", 2);
}

static inline void stream_add_columns(Stream *s, uint64_t run, uint32_t n, uint32_t page_size) {
        Stream payload = STREAM_INIT;

        stream_add_columns_payload(&payload, n, page_size);
        stream_take_frame(s, FRAME_COLUMNS, 0, run, &payload);
}

/* A payload as a series of frames with at most `part_size` bytes of it each; the last says `last_flags`. */
static inline void stream_add_series(Stream *s, unsigned kind, uint64_t run, const Stream *payload, size_t part_size,
                                     unsigned last_flags) {
        for (size_t at = 0; at < payload->size; at += part_size) {
                size_t left = payload->size - at;

                stream_add_frame(s, kind, left > part_size ? FRAME_MORE : last_flags, run, payload->bytes + at,
                                 left > part_size ? part_size : left);
        }
}

static inline void stream_add_end(Stream *s, uint64_t run, uint64_t n_rows) {
        Stream payload = STREAM_INIT;

        store_le64(stream_extend(&payload, FRAME_END_SIZE), n_rows);
        stream_take_frame(s, FRAME_END, 0, run, &payload);
}

static inline void stream_add_error(Stream *s, uint64_t run, uint32_t number, const char *message) {
        Stream payload = STREAM_INIT;

        stream_add_le32(&payload, number);
        stream_add_le32(&payload, 1);
        stream_add_le32(&payload, UINT32_MAX);
        stream_add_le32(&payload, (uint32_t) strlen(message));
        stream_add(&payload, message, strlen(message) + 1);
        stream_take_frame(s, FRAME_ERROR, 0, run, &payload);
}

/* A row of one BLOB of `size` bytes: its head of 5 bytes, and the blob. */
static inline void stream_add_blob_row(Stream *s, size_t size) {
        *stream_extend(s, 1) = VALUE_BLOB;
        stream_add_le32(s, (uint32_t) size);
        memset(stream_extend(s, size), 0xb1, size);
}

#endif
