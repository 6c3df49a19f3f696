/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shows the position of an error in the SQL, see sql-caret.h. Pure. */
#include "tools/cli/sql/sql-caret.h"

#include <glib.h>
#include <string.h>

#include "tools/terminal/format.h"

#define INDENT "  "
#define DOTS "..."
enum { TAB_WIDTH = 8 };

/* Appends a part of a line, with tabs expanded to blanks. */
static void append_piece(GString *output, const char *piece, size_t size) {
        size_t done = 0;

        while (done < size) {
                const char *tab = memchr(piece + done, '\t', size - done);
                size_t n = tab ? (size_t) (tab - piece) - done : size - done;

                format_shown_text(output, piece + done, n, SIZE_MAX);
                done += n;
                if (!tab)
                        continue;
                do
                        g_string_append_c(output, ' ');
                while (format_shown_width(output->str, output->len) % TAB_WIDTH != 0);
                done++;
        }
}

/* Removes characters at the start until at most `width` columns are left. */
static void keep_back(GString *text, size_t width) {
        size_t total = format_shown_width(text->str, text->len), gone = 0;
        const char *p = text->str;

        while (total - gone > width) {
                const char *next = g_utf8_next_char(p);

                gone += format_shown_width(p, (size_t) (next - p));
                p = next;
        }
        g_string_erase(text, 0, p - text->str);
}

static void keep_front(GString *text, size_t width) {
        const char *p = text->str;
        size_t used = 0;

        while (*p) {
                const char *next = g_utf8_next_char(p);

                used += format_shown_width(p, (size_t) (next - p));
                if (used > width)
                        break;
                p = next;
        }
        g_string_truncate(text, (size_t) (p - text->str));
}

/* Cuts both sides so that the position stays visible; a third of the width is reserved for the text after it. */
static void fit(GString *before, GString *after, size_t width) {
        size_t b = format_shown_width(before->str, before->len), a = format_shown_width(after->str, after->len);
        size_t room = width - strlen(INDENT) - 2 * strlen(DOTS);

        if (strlen(INDENT) + b + a <= width)
                return;
        size_t for_after = MIN(a, MAX(room / 3, room - MIN(room, b)));
        if (b > room - for_after) {
                keep_back(before, room - for_after);
                g_string_prepend(before, DOTS);
        }
        if (a > for_after) {
                keep_front(after, for_after);
                g_string_append(after, DOTS);
        }
}

char *sql_caret(const char *sql, size_t offset, size_t width) {
        g_autoptr(GString) before = NULL, after = NULL;
        size_t size = strlen(sql), start, end;

        if (offset > size)
                return NULL;
        for (start = offset; start > 0 && sql[start - 1] != '\n'; start--)
                ;
        end = offset + strcspn(sql + offset, "\n");
        while (offset > start && (sql[offset] & 0xc0) == 0x80) /* never inside of a character */
                offset--;

        before = g_string_new(NULL);
        append_piece(before, sql + start, offset - start);
        after = g_string_new(before->str); /* starts with `before`, so that tabs expand to the same columns */
        append_piece(after, sql + offset, end - offset);
        g_string_erase(after, 0, (gssize) before->len);

        if (width > 30)
                fit(before, after, width);
        return g_strdup_printf(INDENT "%s%s\n" INDENT "%*s^\n", before->str, after->str,
                               (int) format_shown_width(before->str, before->len), "");
}
