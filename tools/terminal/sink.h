/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where bytes go that are written in small pieces: a buffer before a stream, or before a string. Memory is the buffer's:
 * what does not fit goes through it, or past it. Failures are the stream's own (ferror()).
 *
 *      char buffer[SINK_SIZE_MIN];
 *      Sink sink = { .stream = file, .buffer = buffer, .size = sizeof buffer };
 *      sink_write(&sink, ...); sink_string(&sink, ...); sink_flush(&sink);
 */
#ifndef TERMINAL_SINK_H
#define TERMINAL_SINK_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
        SINK_RESERVE_MAX = 128, /* what sink_reserve() can give */
        SINK_SIZE_MIN = 256,
};

typedef struct Sink {
        FILE *stream;    /* borrowed; this, */
        GString *string; /* borrowed; or that */
        char *buffer;    /* borrowed */
        size_t size;     /* of buffer: SINK_SIZE_MIN or more */
        size_t used;
        bool harmless;   /* a terminal shows it: controls leave escaped, but for newline and tab */
} Sink;

/** Hands the buffer on; but not to the file, which the stream does. Of `harmless` bytes a character that is not complete yet
 * stays for what follows. */
void sink_flush(Sink *sink);
/** The same with what is not complete. */
void sink_finish(Sink *sink);

/** Room for `n` bytes, up to SINK_RESERVE_MAX; those that were written to it are then taken by sink_advance(). */
static inline char *sink_reserve(Sink *sink, size_t n) {
        if (sink->size - sink->used < n)
                sink_flush(sink);
        return sink->buffer + sink->used;
}

static inline void sink_advance(Sink *sink, size_t n) {
        sink->used += n;
}

/** For sink_write(): more than there is room for. */
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

/** `c`, `n` times. */
void sink_fill(Sink *sink, char c, size_t n);

/** Two digits for each byte. */
void sink_hex(Sink *sink, const void *bytes, size_t size);

#endif
