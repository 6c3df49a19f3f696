/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text as JSON writes it, see json.h. Pure. */
#include "tools/terminal/json.h"

#include "tools/terminal/format.h"

/* Bytes that are characters by themselves and are not escaped. */
static const bool plain[256] = {
        [' ' ... '!'] = true,
        ['#' ... '['] = true,
        [']' ... '~'] = true,
};

static const char hex[] = "0123456789abcdef";

/* Writes an escaped unit of UTF-16. */
static void write_unit(Sink *sink, unsigned unit) {
        const char escaped[6] = { '\\', 'u', hex[unit >> 12], hex[unit >> 8 & 15], hex[unit >> 4 & 15], hex[unit & 15] };

        sink_write(sink, escaped, sizeof escaped);
}

static void write_escaped(Sink *sink, gunichar c) {
        static const char letters[0x80] = {
                ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't', ['"'] = '"', ['\\'] = '\\',
        };

        if (c < 0x80 && letters[c]) {
                sink_char(sink, '\\');
                sink_char(sink, letters[c]);
        } else if (c < 0x10000)
                write_unit(sink, c);
        else {
                write_unit(sink, 0xd800 + ((c - 0x10000) >> 10));
                write_unit(sink, 0xdc00 + ((c - 0x10000) & 0x3ff));
        }
}

/* Writes the character at `text`, which is not plain; returns the number of its bytes. */
static size_t write_character(Sink *sink, const char *text, size_t size) {
        size_t taken;
        gunichar c;

        if (!format_next_character(text, size, &c, &taken)) {
                sink_write(sink, "\357\277\275", 3);
                return 1;
        }
        if (c == '"' || c == '\\' || format_is_harmful(c))
                write_escaped(sink, c);
        else
                sink_write(sink, text, taken);
        return taken;
}

void json_write_string(Sink *sink, const char *text, size_t size) {
        sink_char(sink, '"');
        for (size_t done = 0; done < size;) {
                size_t n = done;

                while (n < size && plain[(unsigned char) text[n]])
                        n++;
                sink_write(sink, text + done, n - done);
                done = n < size ? n + write_character(sink, text + n, size - n) : n;
        }
        sink_char(sink, '"');
}

void json_append_string(GString *output, const char *text, size_t size) {
        char buffer[SINK_SIZE_MIN];
        Sink sink = { .string = output, .buffer = buffer, .size = sizeof buffer };

        json_write_string(&sink, text, size);
        sink_flush(&sink);
}
