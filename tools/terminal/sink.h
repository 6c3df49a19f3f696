/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A buffer in front of a stream or a string, for bytes that are written in small pieces. It needs no further memory: bytes
 * that do not fit are written through the buffer, or past it. The stream keeps failures (ferror()).
 *
 *      char buffer[SINK_SIZE_MIN];
 *      Sink sink = { .stream = file, .buffer = buffer, .size = sizeof buffer };
 *      sink_write(&sink, ...); sink_string(&sink, ...); sink_flush(&sink);
 */
#ifndef SQLIPC_TOOLS_TERMINAL_SINK_H
#define SQLIPC_TOOLS_TERMINAL_SINK_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
        SINK_RESERVE_MAX = 128, /* the most that sink_reserve() can return */
        SINK_SIZE_MIN = 256,
};

typedef struct Sink {
        FILE *stream;    /* borrowed; either this */
        GString *string; /* borrowed; or this */
        char *buffer;    /* borrowed */
        size_t size;     /* of buffer: SINK_SIZE_MIN or more */
        size_t used;
        bool harmless;   /* for a terminal: controls are escaped, except newline and tab */
} Sink;

/** Passes the buffer to the stream or string, but does not flush the stream. With `harmless`, the bytes of an incomplete
 * character stay in the buffer until the rest follows. */
void sink_flush(Sink *sink);
/** The same, including an incomplete character. */
void sink_finish(Sink *sink);

/** Returns room for `n` bytes, up to SINK_RESERVE_MAX. After writing to it, call sink_advance() with the number of bytes. */
static inline char *sink_reserve(Sink *sink, size_t n) {
        if (sink->size - sink->used < n)
                sink_flush(sink);
        return sink->buffer + sink->used;
}

static inline void sink_advance(Sink *sink, size_t n) {
        sink->used += n;
}

/** For sink_write(): writes bytes that do not fit into the buffer. */
void sink_write_large(Sink *sink, const char *bytes, size_t size);

static inline void sink_write(Sink *sink, const void *bytes, size_t size) {
        if (sink->size - sink->used < size) {
                sink_write_large(sink, bytes, size);
                return;
        }
        if (size > 0)
                memcpy(sink->buffer + sink->used, bytes, size);
        sink->used += size;
}

static inline void sink_string(Sink *sink, const char *string) {
        sink_write(sink, string, strlen(string));
}

static inline void sink_char(Sink *sink, char c) {
        *sink_reserve(sink, 1) = c;
        sink->used++;
}

/** Writes `c`, `n` times. */
void sink_fill(Sink *sink, char c, size_t n);

/** Writes two digits for each byte. */
void sink_hex(Sink *sink, const void *bytes, size_t size);

#endif
