/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values as they are shown, see render-cell.h. Pure. */
#include "render-cell.h"

#include <wchar.h>

#include "format.h"

void render_name(GString *output, const char *name) {
        size_t size = strlen(name);

        if (format_shown_text(output, name, size, RENDER_TABLE_VALUE_MAX) < size)
                g_string_append(output, FORMAT_ELLIPSIS);
}

void render_cell(GString *output, const Value *value, const char *null) {
        size_t shown;

        if (value->type == SQLIPC_NULL) {
                format_shown_lines(output, null, strlen(null), RENDER_TABLE_VALUE_MAX);
                return;
        }
        if (value->type != SQLIPC_TEXT) {
                format_shown_value(output, value, null, RENDER_TABLE_VALUE_MAX);
                return;
        }
        shown = format_shown_lines(output, value->bytes, value->size, RENDER_TABLE_VALUE_MAX);
        if (shown < value->size)
                g_string_append_printf(output, FORMAT_ELLIPSIS " (%zu bytes)", value->size);
}

void render_cell_append(GString *cells, const Value *value, const char *null) {
        g_string_append_c(cells, (char) value->type);
        render_cell(cells, value, null);
        g_string_append_c(cells, '\0');
}

/* ---- Grids -------------------------------------------------------------------------------------------------------- */

/* Some terminals draw a joined emoji, or one with a modifier, as one picture, and others as two; a character that the C
 * library does not know has no width here, and some on the terminal. */
static bool is_uncertain(gunichar c, int width, int width_before) {
        const bool joiner = c == 0x200d, modifier = c >= 0x1f3fb && c <= 0x1f3ff, variation = c == 0xfe0f;

        return width < 0 || variation || ((joiner || modifier) && width_before == 2);
}

static size_t append_escaped(GString *output, gunichar c) {
        size_t before = output->len;

        g_string_append_printf(output, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        return output->len - before;
}

static bool is_plain(const char *text, bool markdown) {
        for (const unsigned char *p = (const unsigned char *) text; *p; p++)
                if (*p < ' ' || *p >= 0x7f || (markdown && *p == '|'))
                        return false;
        return true;
}

size_t render_cell_fit(GString *cells, size_t start, bool markdown) {
        g_autofree char *copy = NULL;
        size_t widest = 0, column = 0;
        int before = 0;

        if (is_plain(cells->str + start, markdown))
                return cells->len - start;
        if (cells->str[cells->len - 1] == '\n')
                g_string_truncate(cells, cells->len - 1);
        copy = g_strdup(cells->str + start);
        g_string_truncate(cells, start);
        for (const char *p = copy; *p; p = g_utf8_next_char(p)) {
                gunichar c = g_utf8_get_char(p);
                int width = wcwidth((wchar_t) c);
                size_t blanks = 8 - column % 8;

                if (c == '\n' && !markdown) {
                        g_string_append_c(cells, '\n');
                        column = 0;
                } else if (c == '\t') {
                        g_string_append_printf(cells, "%*s", (int) blanks, "");
                        column += blanks;
                } else if (markdown && (c == '\n' || c == '|')) {
                        const char *mark = c == '|' ? "\\|" : "<br>";

                        g_string_append(cells, mark);
                        column += strlen(mark);
                } else if (is_uncertain(c, width, before))
                        column += append_escaped(cells, c);
                else {
                        g_string_append_unichar(cells, c);
                        column += (size_t) width;
                }
                before = width > 0 ? width : before;
                widest = MAX(widest, column);
        }
        return widest;
}

size_t render_cell_prefix(const char *text, size_t width, size_t *ret_size) {
        size_t used = 0;
        const char *p;

        for (p = text; *p && *p != '\n'; p = g_utf8_next_char(p)) {
                int w = (unsigned char) *p < 0x80 ? 1 : wcwidth((wchar_t) g_utf8_get_char(p));

                if (used + (size_t) MAX(w, 0) > width)
                        break;
                used += (size_t) MAX(w, 0);
        }
        *ret_size = (size_t) (p - text);
        return used;
}
