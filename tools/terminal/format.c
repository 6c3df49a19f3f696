/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values as text, see format.h. Pure. */
#include "format.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* ---- Doubles ------------------------------------------------------------------------------------------------------ */

/* SQLite does not print doubles with the C library: it scales in long double and takes digit by digit, which differs from
 * correct rounding in the last place now and then (one double in 250 at 15 digits). Output that shall equal its
 * shell's byte by byte has to go the same way, so these functions follow its printf.c (etGENERIC) up to the order of
 * operations and the constants being double. */

/* 1.0 <= result < 10.0, result * 10^ret_exponent == value. */
static long double normalize(long double value, int *ret_exponent) {
        long double scale = 1.0;
        int exponent = 0;

        for (; value >= 1e100 * scale && exponent <= 350; exponent += 100)
                scale *= 1e100;
        for (; value >= 1e10 * scale && exponent <= 350; exponent += 10)
                scale *= 1e10;
        for (; value >= 10.0 * scale && exponent <= 350; exponent++)
                scale *= 10.0;

        value /= scale;
        for (; value < 1e-8; exponent -= 8)
                value *= 1e8;
        for (; value < 1.0; exponent--)
                value *= 10.0;

        *ret_exponent = exponent;
        return value;
}

/* The next digit of value, which then holds the rest. After 26 digits SQLite gives zeros. */
static char next_digit(long double *value, int *n_left) {
        if (*n_left <= 0)
                return '0';
        (*n_left)--;

        int digit = (int) *value;
        *value = (*value - digit) * 10.0;
        return (char) ('0' + digit);
}

static char *put_exponent(char *p, int exponent) {
        *p++ = 'e';
        *p++ = exponent < 0 ? '-' : '+';
        exponent = abs(exponent);
        if (exponent >= 100)
                *p++ = (char) ('0' + exponent / 100);
        *p++ = (char) ('0' + exponent / 10 % 10);
        *p++ = (char) ('0' + exponent % 10);
        return p;
}

size_t format_double(char ret_buffer[static FORMAT_NUMBER_SIZE], double value, int digits) {
        long double rest = value < 0 ? -(long double) value : value;
        int exponent = 0, n_left = 26, precision = digits - 1;
        char *p = ret_buffer;
        double rounder = 0.5;

        if (isnan(value) || isinf(value)) {
                strcpy(ret_buffer, isnan(value) ? "NaN" : value < 0 ? "-Inf" : "Inf");
                return strlen(ret_buffer);
        }

        if (rest > 0)
                rest = normalize(rest, &exponent);
        for (int i = precision; i > 0; i--)
                rounder *= 0.1;
        rest += rounder;
        if (rest >= 10.0) {
                rest *= 0.1;
                exponent++;
        }

        bool scientific = exponent < -4 || exponent > precision;
        int place = scientific ? 0 : exponent;
        if (!scientific)
                precision -= exponent;

        if (value < 0)
                *p++ = '-';
        if (place < 0)
                *p++ = '0';
        for (; place >= 0; place--)
                *p++ = next_digit(&rest, &n_left);
        *p++ = '.';
        for (place++; place < 0; place++, precision--)
                *p++ = '0';
        for (; precision > 0; precision--)
                *p++ = next_digit(&rest, &n_left);

        while (p[-1] == '0')
                p--;
        if (p[-1] == '.')
                *p++ = '0';
        if (scientific)
                p = put_exponent(p, exponent);
        *p = '\0';
        return (size_t) (p - ret_buffer);
}

size_t format_number(char ret_buffer[static FORMAT_NUMBER_SIZE], const Value *value) {
        if (value->type == SQLIPC_REAL)
                return format_double(ret_buffer, value->real, FORMAT_DIGITS_SHORT);
        return (size_t) snprintf(ret_buffer, FORMAT_NUMBER_SIZE, "%" PRId64, value->integer);
}

/* ---- Text --------------------------------------------------------------------------------------------------------- */

/* Decodes one character; false where `text` does not start with a valid one (NUL is a character here). */
static bool next_character(const char *text, size_t size, gunichar *ret_character, size_t *ret_size) {
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

/* Characters that act on a terminal or on the order of what stands beside them, instead of being seen. */
static bool is_harmful(gunichar c) {
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

size_t format_shown_text(GString *output, const char *text, size_t size, size_t max) {
        size_t done = 0, start = output->len;

        while (done < size) {
                const char *piece = text + done;
                size_t taken = 1, n;
                char buffer[12];
                gunichar c;

                if (!next_character(piece, size - done, &c, &taken)) {
                        n = (size_t) snprintf(buffer, sizeof buffer, "\\x%02x", (unsigned char) *piece);
                        piece = buffer;
                } else if (is_harmful(c)) {
                        n = (size_t) escape(buffer, c);
                        piece = buffer;
                } else
                        n = taken;

                if (n > max - (output->len - start))
                        break;
                g_string_append_len(output, piece, (gssize) n);
                done += taken;
        }
        return done;
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
                g_string_append_printf(output, "...' (%zu bytes)", size);
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
                        g_string_append_printf(output, "... (%zu bytes)", value->size);
                return;
        case SQLIPC_BLOB:
                format_shown_blob(output, value->bytes, value->size);
                return;
        case SQLIPC_NULL:
                g_string_append(output, null);
                return;
        }
        g_string_append(output, "?"); /* a type that a later library may have */
}

size_t format_shown_width(const char *text, size_t size) {
        size_t width = 0;

        for (size_t done = 0, taken; done < size; done += taken) {
                gunichar c;
                int w;

                if (!next_character(text + done, size - done, &c, &taken)) {
                        taken = 1;
                        continue;
                }
                w = wcwidth((wchar_t) c);
                width += w > 0 ? (size_t) w : 0;
        }
        return width;
}

void format_valid_utf8(GString *output, const char *text, size_t size) {
        for (size_t done = 0, taken; done < size; done += taken) {
                gunichar c;

                if (next_character(text + done, size - done, &c, &taken))
                        g_string_append_len(output, text + done, (gssize) taken);
                else {
                        g_string_append(output, "\357\277\275");
                        taken = 1;
                }
        }
}
