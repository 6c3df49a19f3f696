/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text and BLOBs in a form that is safe to show, see format.h. Pure. */
#include "tools/terminal/format.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

bool format_next_character(const char *text, size_t size, gunichar *ret_character, size_t *ret_size) {
        gunichar c;

        if (*text == '\0') {
                *ret_character = 0;
                *ret_size = 1;
                return true;
        }
        c = g_utf8_get_char_validated(text, (gssize) MIN(size, 6));
        if (c == (gunichar) -1 || c == (gunichar) -2)
                return false;
        *ret_character = c;
        *ret_size = (size_t) g_unichar_to_utf8(c, NULL);
        return true;
}

bool format_is_harmful(gunichar c) {
        switch (g_unichar_type(c)) {
        case G_UNICODE_CONTROL:
        case G_UNICODE_LINE_SEPARATOR:
        case G_UNICODE_PARAGRAPH_SEPARATOR:
        case G_UNICODE_SURROGATE:
                return true;
        case G_UNICODE_FORMAT:
                /* The joiners and the soft hyphen belong to ordinary text: emoji, Persian, Hindi. */
                return c != 0x200c && c != 0x200d && c != 0xad;
        default:
                return false;
        }
}

static int escape(char ret_buffer[static 12], gunichar c) {
        static const char letters[] = "abtnvfr";

        if (c >= '\a' && c <= '\r')
                return snprintf(ret_buffer, 12, "\\%c", letters[c - '\a']);
        if (c < 0x80)
                return snprintf(ret_buffer, 12, "\\x%02x", (unsigned) c);
        return snprintf(ret_buffer, 12, c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned) c);
}

/* The number of bytes of printable ASCII at the beginning of `text`. */
static size_t plain_run(const char *text, size_t size) {
        size_t n = 0;

        while (n < size && text[n] >= ' ' && text[n] < 0x7f)
                n++;
        return n;
}

/* `layout`: controls that stay as they are; if there are any, a CR before a newline is dropped. */
static size_t append_shown(GString *output, const char *text, size_t size, size_t max, const char *layout) {
        size_t done = 0, start = output->len;

        while (done < size) {
                const char *piece = text + done;
                size_t taken = 1, n, room = max - (output->len - start);
                char buffer[12];
                gunichar c;

                n = plain_run(piece, MIN(size - done, room));
                if (n > 0) {
                        g_string_append_len(output, piece, (gssize) n);
                        done += n;
                        continue;
                }
                if (!format_next_character(piece, size - done, &c, &taken)) {
                        n = (size_t) snprintf(buffer, sizeof buffer, "\\x%02x", (unsigned char) *piece);
                        piece = buffer;
                } else if (c == '\r' && *layout && done + 1 < size && piece[1] == '\n') {
                        done++;
                        continue;
                } else if (format_is_harmful(c) && !(c > 0 && c < 0x80 && strchr(layout, (int) c))) {
                        n = (size_t) escape(buffer, c);
                        piece = buffer;
                } else
                        n = taken;

                if (n > room)
                        break;
                g_string_append_len(output, piece, (gssize) n);
                done += taken;
        }
        return done;
}

size_t format_shown_text(GString *output, const char *text, size_t size, size_t max) {
        return append_shown(output, text, size, max, "");
}

size_t format_shown_lines(GString *output, const char *text, size_t size, size_t max) {
        return append_shown(output, text, size, max, "\n\t");
}

void format_shown_blob(GString *output, const void *blob, size_t size) {
        static const char hex[] = "0123456789abcdef";
        const uint8_t *bytes = blob;

        g_string_append(output, "x'");
        for (size_t i = 0; i < MIN(size, (size_t) FORMAT_BLOB_SHOWN_MAX); i++) {
                g_string_append_c(output, hex[bytes[i] >> 4]);
                g_string_append_c(output, hex[bytes[i] & 15]);
        }
        if (size > FORMAT_BLOB_SHOWN_MAX)
                g_string_append_printf(output, FORMAT_ELLIPSIS "' (%zu bytes)", size);
        else
                g_string_append_c(output, '\'');
}

void format_shown_value(GString *output, const Value *value, const char *null, size_t max) {
        char number[FORMAT_NUMBER_SIZE];

        switch (value->type) {
        case SQLIPC_INTEGER:
        case SQLIPC_REAL:
                g_string_append_len(output, number, (gssize) format_number(number, value));
                return;
        case SQLIPC_TEXT:
                if (format_shown_text(output, value->bytes, value->size, max) < value->size)
                        g_string_append_printf(output, FORMAT_ELLIPSIS " (%zu bytes)", value->size);
                return;
        case SQLIPC_BLOB:
                format_shown_blob(output, value->bytes, value->size);
                return;
        case SQLIPC_NULL:
                g_string_append(output, null);
                return;
        }
        g_string_append(output, "?"); /* a type of a later library */
}

size_t format_plain_clusters(const char *text, size_t size) {
        size_t n = plain_run(text, size);

        return n > 0 && n < size && (unsigned char) text[n] >= 0x80 ? n - 1 : n; /* the last may have marks */
}

size_t format_shown_width(const char *text, size_t size) {
        size_t width = 0;

        for (size_t done = 0; done < size;) {
                size_t columns, plain = format_plain_clusters(text + done, size - done);

                width += plain;
                done += plain;
                if (done == size)
                        break;
                done += format_next_cluster(text + done, size - done, &columns);
                width += columns;
        }
        return width;
}
