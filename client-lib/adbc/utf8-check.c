/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks UTF-8 (utf8-check.h). Pure. ADBC driver. */
#include <stdlib.h>
#include <string.h>

#include "client-lib/adbc/utf8-check.h"

/* Large enough for vector instructions, small enough that a letter in a text of ASCII costs little. */
#define BLOCK 64

static bool block_is_ascii(const uint8_t *bytes) {
        uint64_t words[BLOCK / 8], any = 0;

        memcpy(words, bytes, BLOCK);
        for (size_t i = 0; i < BLOCK / 8; i++)
                any |= words[i];
        return (any & 0x8080808080808080u) == 0;
}

static bool is_tail(uint8_t byte) { return (byte & 0xc0) == 0x80; }

/* Returns the size of the character at `s`, of which `n` > 0 bytes are there; 0 if it is not valid. See table 3-7 of the
 * Unicode standard: only the second byte has special ranges. */
static size_t character(const uint8_t *s, size_t n) {
        uint8_t low = 0x80, high = 0xbf;
        size_t size;

        if (s[0] < 0x80)
                return 1;
        if (s[0] < 0xc2 || s[0] > 0xf4)
                return 0;
        size = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
        if (s[0] == 0xe0)
                low = 0xa0;
        else if (s[0] == 0xed)
                high = 0x9f;
        else if (s[0] == 0xf0)
                low = 0x90;
        else if (s[0] == 0xf4)
                high = 0x8f;
        if (n < size || s[1] < low || s[1] > high)
                return 0;
        for (size_t i = 2; i < size; i++)
                if (!is_tail(s[i]))
                        return 0;
        return size;
}

bool utf8_check(const uint8_t *bytes, size_t size) {
        size_t at = 0;

        while (at < size) {
                size_t n;

                if (size - at >= BLOCK && block_is_ascii(bytes + at)) {
                        at += BLOCK;
                        continue;
                }
                n = character(bytes + at, size - at);
                if (n == 0)
                        return false;
                at += n;
        }
        return true;
}

char *utf8_make_valid(const char *text) {
        static const char replacement[] = "\xef\xbf\xbd";
        size_t size = strlen(text), n_valid = 0;
        char *copy;

        if (utf8_check((const uint8_t *) text, size))
                return strdup(text);
        copy = malloc(size * strlen(replacement) + 1);
        if (!copy)
                return NULL;
        for (size_t at = 0; at < size;) {
                size_t n = character((const uint8_t *) text + at, size - at);
                const char *from = n > 0 ? text + at : replacement;

                at += n > 0 ? n : 1;
                n = n > 0 ? n : strlen(replacement);
                memcpy(copy + n_valid, from, n);
                n_valid += n;
        }
        copy[n_valid] = 0;
        return copy;
}
