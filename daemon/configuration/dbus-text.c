/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* D-Bus string validity. Pure. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/configuration/dbus-text.h"

/* Returns how many bytes the character at `s` has, or would have: at most `n`, at least 1. */
static size_t character_size(const unsigned char *s, size_t n, uint32_t *ret_code, bool *ret_whole) {
        static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
        size_t size = s[0] < 0x80             ? 1
                      : (s[0] & 0xe0) == 0xc0 ? 2
                      : (s[0] & 0xf0) == 0xe0 ? 3
                      : (s[0] & 0xf8) == 0xf0 ? 4
                                              : 0;

        *ret_whole = false;
        if (size == 0)
                return 1;
        *ret_code = size == 1 ? s[0] : s[0] & (0xffu >> (size + 1));
        for (size_t i = 1; i < size; i++) {
                if (i >= n || (s[i] & 0xc0) != 0x80)
                        return i;
                *ret_code = *ret_code << 6 | (s[i] & 0x3fu);
        }
        *ret_whole = *ret_code >= smallest[size];
        return size;
}

static bool code_is_valid(uint32_t code) {
        return code != 0 && code <= 0x10ffff && (code & 0xfffff800u) != 0xd800u && !(code >= 0xfdd0 && code <= 0xfdef) &&
               (code & 0xfffeu) != 0xfffeu;
}

/* Returns the size of the valid character at `s`; 0: there is none, and `*ret_skip` bytes are invalid. */
static size_t valid_size(const char *s, size_t n, size_t *ret_skip) {
        uint32_t code = 0;
        bool whole;
        size_t size = character_size((const unsigned char *) s, n, &code, &whole);

        *ret_skip = size;
        return whole && code_is_valid(code) ? size : 0;
}

/* Returns how many bytes at the start of `s` are certainly ASCII without NUL; tests eight at a time. */
static size_t plain_size(const char *s, size_t n) {
        const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
        size_t at = 0;

        for (uint64_t eight; n - at >= sizeof eight; at += sizeof eight) {
                memcpy(&eight, s + at, sizeof eight);
                if (((eight | (eight - ones)) & tops) != 0)
                        break;
        }
        return at;
}

bool dbus_text_is_valid(const char *text, size_t size) {
        for (size_t at = plain_size(text, size), skip; at < size; at += plain_size(text + at, size - at)) {
                if (valid_size(text + at, size - at, &skip) == 0)
                        return false;
                at += skip;
        }
        return true;
}

char *dbus_text_replace(const char *text, size_t size) {
        static const char replacement[] = "\xef\xbf\xbd";
        size_t fill = 0, skip;

        if (size > (SIZE_MAX - 1) / 3)
                return NULL;
        char *copy = malloc(3 * size + 1); /* an invalid byte becomes three */
        if (!copy)
                return NULL;
        for (size_t at = 0; at < size; at += skip) {
                bool valid = valid_size(text + at, size - at, &skip) > 0;
                const char *from = valid ? text + at : replacement;
                size_t n = valid ? skip : 3;

                memcpy(copy + fill, from, n);
                fill += n;
        }
        copy[fill] = 0;
        return copy;
}
