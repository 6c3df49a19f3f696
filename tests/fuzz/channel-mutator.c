/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Changes what a channel's client sends, request by request, so that it stays what one could send: frames keep their form,
 * their numbers rise, FETCH, CANCEL and FINALIZE name a request before them. Now and then one of these is left wrong, or
 * everything changes by bytes. For targets whose input is such bytes; with an engine only. Tests only.
 */
#ifdef WITH_FUZZING_ENGINE
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "dbus-interfaces/wire/sqlipc-channel.h"
#include "tests/fuzz/replay.h"

enum { N_FRAMES_MAX = 64 };
#define PAYLOAD_MAX ((size_t) 2048)

typedef struct Frame {
        uint8_t kind, version;
        uint16_t flags;
        uint64_t number;
        size_t size;
        uint8_t payload[PAYLOAD_MAX];
} Frame;

static Frame frames[N_FRAMES_MAX];
static size_t n_frames;
static uint32_t state;

static uint32_t below(uint32_t n) {
        state = state * UINT32_C(1664525) + UINT32_C(1013904223);
        return (state >> 8) % n;
}

/* Whole requests; the rest, and requests larger than we keep, are dropped. */
static void take_apart(const uint8_t *bytes, size_t size) {
        n_frames = 0;
        while (size >= FRAME_HEADER_SIZE && n_frames < N_FRAMES_MAX) {
                size_t payload_size = load_le32(bytes), padded = frame_padded(payload_size);
                Frame *f = frames + n_frames;

                if (payload_size > PAYLOAD_MAX || padded > size - FRAME_HEADER_SIZE)
                        return;
                *f = (Frame) { .kind = bytes[4], .version = bytes[5], .flags = load_le16(bytes + 6),
                               .number = load_le64(bytes + 8), .size = payload_size };
                memcpy(f->payload, bytes + FRAME_HEADER_SIZE, payload_size);
                n_frames++;
                bytes += FRAME_HEADER_SIZE + padded;
                size -= FRAME_HEADER_SIZE + padded;
        }
}

static size_t put_together(uint8_t *bytes, size_t size_max) {
        size_t size = 0;

        for (const Frame *f = frames; f < frames + n_frames; f++) {
                size_t padded = frame_padded(f->size);

                if (FRAME_HEADER_SIZE + padded > size_max - size)
                        break;
                memset(bytes + size, 0, FRAME_HEADER_SIZE + padded);
                store_le32(bytes + size, (uint32_t) f->size);
                bytes[size + 4] = f->kind;
                bytes[size + 5] = f->version;
                store_le16(bytes + size + 6, f->flags);
                store_le64(bytes + size + 8, f->number);
                memcpy(bytes + size + FRAME_HEADER_SIZE, f->payload, f->size);
                size += FRAME_HEADER_SIZE + padded;
        }
        return size;
}

static void add(Frame *f, const void *bytes, size_t size) {
        memcpy(f->payload + f->size, bytes, size);
        f->size += size;
}

/* A row of `n` values, INTEGER or TEXT; of names and values in turn if they are `named`. */
static void add_row(Frame *f, unsigned n, bool named) {
        uint8_t *row = f->payload + f->size, *data = row + ROW_HEAD_SIZE(n);
        uint32_t end = 0;

        for (unsigned i = 0; i < n; i++) {
                bool name = named && i % 2 == 0;

                row[i] = name ? VALUE_TEXT : VALUE_INTEGER;
                memset(data + end, name ? 0 : (int) below(256), 8);
                if (name)
                        data[end] = (uint8_t) ('a' + below(3));
                end += name ? 2 : 8;
                store_le32(row + n + (size_t) 4 * i, end);
        }
        f->size += ROW_HEAD_SIZE(n) + end;
}

/* A request as a client makes it; numbers come later. */
static Frame request(void) {
        static const uint8_t kinds[] = { REQUEST_QUERY, REQUEST_PREPARE, REQUEST_FETCH, REQUEST_CANCEL, REQUEST_FINALIZE,
                                         REQUEST_FOREIGN_KEYS, REQUEST_TIME_ZONE, REQUEST_LOCK_WAIT };
        static const char *const zones[] = { "", "Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3", "../x", "/x", "?" };
        static const char *const sqls[] = {
                "SELECT 1", "SELECT ?1, :a", "SELECT a, b FROM t", "SELECT * FROM t WHERE a > ?", "SELEC", "", ";",
                "SELECT zeroblob(9000)",
                "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
                "SELECT b || b FROM t, t AS u",
                "SELECT abs(-9223372036854775807 - 1)", "PRAGMA table_info(t)", "DELETE FROM t",
                "SELECT printf('%.3000c', 'x'), a FROM t",
        };
        Frame f = { .kind = kinds[below(sizeof kinds)], .version = SQLIPC_PAGE_VERSION };
        const char *sql = sqls[below(sizeof sqls / sizeof *sqls)];
        unsigned n_positional = below(3), n_named = below(4) == 0;
        uint8_t head[CHANNEL_QUERY_HEAD_SIZE] = {};

        static_assert(CHANNEL_QUERY_HEAD_SIZE == CHANNEL_FETCH_HEAD_SIZE, "one buffer is enough");
        if (f.kind == REQUEST_PREPARE)
                add(&f, sql, strlen(sql));
        if (f.kind == REQUEST_TIME_ZONE) {
                sql = zones[below(sizeof zones / sizeof *zones)];
                add(&f, sql, strlen(sql));
        }
        if (f.kind != REQUEST_QUERY && f.kind != REQUEST_FETCH)
                return f;
        if (f.kind == REQUEST_QUERY) {
                store_le32(head + 8, n_positional);
                store_le32(head + 12, n_named);
                store_le32(head + 16, (uint32_t) strlen(sql));
        } else {
                store_le32(head + 16, n_positional);
                store_le32(head + 20, n_named);
        }
        add(&f, head, sizeof head);
        if (f.kind == REQUEST_QUERY)
                add(&f, sql, strlen(sql));
        if (n_named > 0)
                n_positional = 0, store_le32(f.payload + (f.kind == REQUEST_QUERY ? 8 : 16), 0);
        if (n_positional + n_named > 0)
                add_row(&f, n_positional + 2 * n_named, n_named > 0);
        return f;
}

static void insert(Frame f) {
        size_t at = below((uint32_t) n_frames + 1);

        if (n_frames == N_FRAMES_MAX)
                return;
        memmove(frames + at + 1, frames + at, (n_frames - at) * sizeof *frames);
        frames[at] = f;
        n_frames++;
}

static void change(void) {
        uint32_t n = n_frames > 0 ? (uint32_t) n_frames : 1;
        Frame *f = frames + below(n), *other = frames + below(n), kept = *f;

        if (n_frames == 0 || below(4) == 0) {
                insert(request());
                return;
        }
        switch (below(6)) {
        case 0:
                insert(kept);
                return;
        case 1:
                *f = *other;
                *other = kept;
                return;
        case 2:
                memmove(f, f + 1, (size_t) (frames + --n_frames - f) * sizeof *f);
                return;
        case 3:
                if (below(8) == 0)
                        f->flags = (uint16_t) below(4), f->version = (uint8_t) below(3);
                else
                        f->kind = request().kind;
                return;
        default:
                f->size = LLVMFuzzerMutate(f->payload, f->size, PAYLOAD_MAX);
        }
}

/* Increasing numbers; a request that refers to another one refers to an earlier one. */
static void renumber(void) {
        uint64_t last = 0, prepared[N_FRAMES_MAX];
        size_t n_prepared = 0;

        for (Frame *f = frames; f < frames + n_frames; f++) {
                uint64_t some = n_prepared > 0 && below(8) > 0 ? prepared[below((uint32_t) n_prepared)] : last;

                if (f->kind == REQUEST_CANCEL)
                        f->number = below(3) > 0 ? last : last + 1;
                else if (f->kind == REQUEST_FINALIZE)
                        f->number = some;
                else if (f->kind == REQUEST_FOREIGN_KEYS)
                        f->number = below(FOREIGN_KEYS_MAX_);
                else if (f->kind == REQUEST_TIME_ZONE || f->kind == REQUEST_LOCK_WAIT)
                        f->number = 0;
                else
                        f->number = ++last;
                if (f->kind == REQUEST_FETCH && f->size >= 8)
                        store_le64(f->payload, some);
                if (f->kind == REQUEST_PREPARE)
                        prepared[n_prepared++] = last;
        }
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t size_max, unsigned seed) {
        state = seed;
        if (below(10) == 0)
                return LLVMFuzzerMutate(bytes, size, size_max);
        take_apart(bytes, size);
        for (unsigned n = 1 + below(4); n > 0; n--)
                change();
        if (below(8) > 0)
                renumber();
        return put_together(bytes, size_max);
}
#endif
