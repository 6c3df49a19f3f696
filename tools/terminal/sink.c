/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A buffer in front of a stream or a string, see sink.h. */
#include "tools/terminal/sink.h"

#include "tools/terminal/format.h"

static void drain(Sink *sink, const char *bytes, size_t size) {
        if (sink->string)
                g_string_append_len(sink->string, bytes, (gssize) size);
        else
                (void) fwrite(bytes, 1, size, sink->stream); /* the owner of the stream checks ferror() */
}

/* The number of bytes at the end of `text` that begin a character of UTF-8 but do not complete it. */
static size_t incomplete_tail(const char *text, size_t size) {
        for (size_t n = 1; n <= MIN(size, (size_t) 3); n++) {
                unsigned char c = (unsigned char) text[size - n];

                if ((c & 0xc0) == 0x80)
                        continue;
                return (c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2u : 1u) > n ? n : 0;
        }
        return 0;
}

static void drain_harmless(Sink *sink, size_t size) {
        g_autoptr(GString) shown = g_string_sized_new(size);

        format_shown_lines(shown, sink->buffer, size, SIZE_MAX);
        drain(sink, shown->str, shown->len);
        memmove(sink->buffer, sink->buffer + size, sink->used - size);
        sink->used -= size;
}

void sink_flush(Sink *sink) {
        if (sink->harmless) {
                drain_harmless(sink, sink->used - incomplete_tail(sink->buffer, sink->used));
                return;
        }
        drain(sink, sink->buffer, sink->used);
        sink->used = 0;
}

void sink_finish(Sink *sink) {
        if (sink->harmless)
                drain_harmless(sink, sink->used);
        else
                sink_flush(sink);
}

void sink_write_large(Sink *sink, const char *bytes, size_t size) {
        sink_flush(sink);
        if (size >= sink->size && !sink->harmless) {
                drain(sink, bytes, size);
                return;
        }
        while (size > 0) {
                size_t n = MIN(size, sink->size - sink->used);

                memcpy(sink->buffer + sink->used, bytes, n);
                sink->used += n;
                bytes += n;
                size -= n;
                if (size > 0)
                        sink_flush(sink);
        }
}

void sink_fill(Sink *sink, char c, size_t n) {
        while (n > 0) {
                size_t piece = MIN(n, (size_t) SINK_RESERVE_MAX);

                memset(sink_reserve(sink, piece), c, piece);
                sink_advance(sink, piece);
                n -= piece;
        }
}

void sink_hex(Sink *sink, const void *bytes, size_t size) {
        static const char digits[] = "0123456789abcdef";
        const unsigned char *p = bytes;

        while (size > 0) {
                size_t piece = MIN(size, (size_t) SINK_RESERVE_MAX / 2);
                char *to = sink_reserve(sink, 2 * piece);

                for (size_t i = 0; i < piece; i++) {
                        *to++ = digits[p[i] >> 4];
                        *to++ = digits[p[i] & 15];
                }
                sink_advance(sink, 2 * piece);
                p += piece;
                size -= piece;
        }
}
