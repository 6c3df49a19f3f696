/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See text-buffer.h.
 */
#include "daemon/worker/rqlite/text-buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN ((size_t) 256)

void text_buffer_done(TextBuffer *t) {
        free(t->bytes);
        *t = (TextBuffer) { .size_max = t->size_max };
}

void text_buffer_cut(TextBuffer *t, size_t size) {
        t->state = TEXT_GOOD;
        if (size >= t->size)
                return;
        t->size = size;
        t->bytes[size] = 0;
}

/* Makes room for `size` bytes and a NUL. */
static bool reserve(TextBuffer *t, size_t size) {
        size_t capacity = t->capacity > 0 ? t->capacity : CAPACITY_MIN;
        char *bytes;

        if (t->state != TEXT_GOOD)
                return false;
        if (t->size_max > 0 && (size > t->size_max || t->size > t->size_max - size)) {
                t->state = TEXT_TOO_LARGE;
                return false;
        }
        if (t->bytes && size < t->capacity - t->size)
                return true;
        while (capacity - t->size <= size)
                capacity *= 2;
        bytes = realloc(t->bytes, capacity);
        if (!bytes) {
                t->state = TEXT_NO_MEMORY;
                return false;
        }
        t->bytes = bytes;
        t->capacity = capacity;
        return true;
}

void text_buffer_add(TextBuffer *t, const void *bytes, size_t size) {
        if (!reserve(t, size))
                return;
        if (size > 0)
                memcpy(t->bytes + t->size, bytes, size);
        t->size += size;
        t->bytes[t->size] = 0;
}

void text_buffer_puts(TextBuffer *t, const char *text) {
        text_buffer_add(t, text, strlen(text));
}

void text_buffer_printf(TextBuffer *t, const char *format, ...) {
        char few[256];
        va_list ap;
        int n;

        va_start(ap, format);
        n = vsnprintf(few, sizeof few, format, ap);
        va_end(ap);
        if (n < 0) {
                t->state = TEXT_NO_MEMORY;
                return;
        }
        if ((size_t) n < sizeof few) {
                text_buffer_add(t, few, (size_t) n);
                return;
        }
        if (!reserve(t, (size_t) n))
                return;
        va_start(ap, format);
        (void) vsnprintf(t->bytes + t->size, (size_t) n + 1, format, ap);
        va_end(ap);
        t->size += (size_t) n;
}

void text_buffer_add_hex(TextBuffer *t, const uint8_t *bytes, size_t size) {
        static const char digits[] = "0123456789ABCDEF";

        if (size > SIZE_MAX / 4 || !reserve(t, 2 * size))
                return;
        for (size_t i = 0; i < size; i++) {
                t->bytes[t->size++] = digits[bytes[i] >> 4];
                t->bytes[t->size++] = digits[bytes[i] & 15];
        }
        t->bytes[t->size] = 0;
}

/* ---- JSON ---- */

void text_buffer_add_json_string(TextBuffer *t, const char *bytes, size_t size) {
        size_t plain = 0;

        text_buffer_puts(t, "\"");
        for (size_t i = 0; i < size; i++) {
                unsigned char c = (unsigned char) bytes[i];

                if (c >= 0x20 && c != '"' && c != '\\')
                        continue;
                text_buffer_add(t, bytes + plain, i - plain);
                plain = i + 1;
                if (c < 0x20)
                        text_buffer_printf(t, "\\u%04x", c);
                else
                        text_buffer_printf(t, "\\%c", c);
        }
        text_buffer_add(t, bytes + plain, size - plain);
        text_buffer_puts(t, "\"");
}

void text_buffer_add_json_double(TextBuffer *t, double value) {
        char number[40];

        (void) snprintf(number, sizeof number, "%.17g", value);
        text_buffer_puts(t, number);
        if (!strpbrk(number, ".e"))
                text_buffer_puts(t, ".0");
}

/* ---- SQL ---- */

static void add_quoted(TextBuffer *t, char quote, const char *bytes, size_t size) {
        size_t plain = 0;

        text_buffer_add(t, &quote, 1);
        for (size_t i = 0; i < size; i++)
                if (bytes[i] == quote) {
                        text_buffer_add(t, bytes + plain, i + 1 - plain);
                        plain = i; /* the quote again */
                }
        text_buffer_add(t, bytes + plain, size - plain);
        text_buffer_add(t, &quote, 1);
}

void text_buffer_add_sql_string(TextBuffer *t, const char *bytes, size_t size) {
        add_quoted(t, '\'', bytes, size);
}

void text_buffer_add_sql_name(TextBuffer *t, const char *name) {
        add_quoted(t, '"', name, strlen(name));
}

/* ---- UTF-8 ---- */

/* The number of bytes of the character at `s`, of which `size` are there. 0: it is none. */
static size_t character_size(const unsigned char *s, size_t size) {
        size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

        if (n == 0 || n > size)
                return 0;
        for (size_t i = 1; i < n; i++)
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
        if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf0 && s[1] < 0x90) ||
            (s[0] == 0xf4 && s[1] >= 0x90))
                return 0;
        return n;
}

bool text_is_utf8(const char *bytes, size_t size) {
        const unsigned char *s = (const unsigned char *) bytes;

        for (size_t i = 0, n; i < size; i += n)
                if ((n = character_size(s + i, size - i)) == 0)
                        return false;
        return true;
}
