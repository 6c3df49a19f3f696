/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A page stream in memory, made of pages of the encoder and of frames made by hand, right or wrong. It owns its bytes:
 * initialize it with STREAM_INIT, free it with stream_done(). Tests only.
 */
#ifndef SQLIPC_TESTS_UNIT_STREAM_H
#define SQLIPC_TESTS_UNIT_STREAM_H

#include "dbus-interfaces/wire/page-encoder.h"
#include "dbus-interfaces/wire/sqlipc-channel.h"
#include "tests/unit/test.h"

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

/* A frame of any kind and size, padded. */
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

/* A frame with the bytes of `payload`, which is freed. */
static inline void stream_take_frame(Stream *s, unsigned kind, unsigned flags, uint64_t run, Stream *payload) {
        stream_add_frame(s, kind, flags, run, payload->bytes, payload->size);
        stream_done(payload);
}

/* Moves the encoder's page to the stream. */
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

/* Bytes of the frames behind the last END, ERROR or STATEMENT, as END counts them. */
static inline uint64_t stream_run_size(const Stream *s) {
        size_t start = 0;

        for (size_t at = 0; at < s->size;) {
                unsigned kind = s->bytes[at + 4];

                at += FRAME_HEADER_SIZE + frame_padded(load_le32(s->bytes + at));
                if (kind == FRAME_END || kind == FRAME_ERROR || kind == FRAME_STATEMENT)
                        start = at;
        }
        return s->size - start;
}

/* END with these totals and `size` bytes of payload, more or less than there are counters. */
static inline void stream_add_end_with(Stream *s, uint64_t run, uint64_t n_rows, uint64_t n_bytes, size_t size) {
        Stream payload = STREAM_INIT;
        uint8_t *end = stream_extend(&payload, size > FRAME_END_SIZE ? size : FRAME_END_SIZE);

        store_le64(end, n_rows);
        store_le64(end + 8, n_bytes);
        memset(end + FRAME_END_SIZE, 0xee, payload.size - FRAME_END_SIZE);
        if (size >= FRAME_END_WROTE_SIZE)
                store_le64(end + FRAME_END_SIZE, UINT64_MAX); /* it did not write */
        stream_add_frame(s, FRAME_END, 0, run, end, size);
        stream_done(&payload);
}

static inline void stream_add_end(Stream *s, uint64_t run, uint64_t n_rows) {
        stream_add_end_with(s, run, n_rows, stream_run_size(s), FRAME_END_SIZE);
}

/* END of a run that wrote; with the first `size` bytes of its payload, and zeros after it. */
static inline void stream_add_end_wrote(Stream *s, uint64_t run, uint64_t n_rows, int64_t n_changes, int64_t last_rowid,
                                        size_t size) {
        uint8_t payload[FRAME_END_WROTE_SIZE + 64] = { 0 };

        store_le64(payload, n_rows);
        store_le64(payload + 8, stream_run_size(s));
        store_le64(payload + FRAME_END_SIZE, (uint64_t) n_changes);
        store_le64(payload + FRAME_END_SIZE + 8, (uint64_t) last_rowid);
        stream_add_frame(s, FRAME_END, 0, run, payload, size);
}

/* END of a run of which `n_bytes` went out before the bytes in the stream. */
static inline void stream_add_end_behind(Stream *s, uint64_t run, uint64_t n_rows, uint64_t n_bytes) {
        stream_add_end_with(s, run, n_rows, n_bytes + stream_run_size(s), FRAME_END_SIZE);
}

/* An item of an extension. */
static inline void stream_add_item(Stream *s, uint32_t tag, const void *bytes, uint32_t size) {
        stream_add_le32(s, tag);
        stream_add_le32(s, size);
        stream_add(s, bytes, size);
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
