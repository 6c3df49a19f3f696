/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text as JSON writes it, see json.h. Pure. */
#include "json.h"

#include "format.h"

static void append_escaped(GString *output, unsigned char c) {
        static const char letters[0x20] = { ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't' };

        if (c == '"' || c == '\\')
                g_string_append_printf(output, "\\%c", c);
        else if (letters[c])
                g_string_append_printf(output, "\\%c", letters[c]);
        else
                g_string_append_printf(output, "\\u%04x", c);
}

/* Runs of characters that need nothing are most of any text, so they go over in one piece each. */
void json_append_string(GString *output, const char *text, size_t size) {
        size_t plain = 0, i;

        g_string_append_c(output, '"');
        for (i = 0; i < size; i++) {
                unsigned char c = (unsigned char) text[i];

                if (c >= 0x20 && c != '"' && c != '\\')
                        continue;
                format_valid_utf8(output, text + plain, i - plain);
                append_escaped(output, c);
                plain = i + 1;
        }
        format_valid_utf8(output, text + plain, i - plain);
        g_string_append_c(output, '"');
}
