/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compares a result of .watch with the previous one (watch-table.h). Pure. */
#include "tools/cli/render/watch-table.h"

#include <glib.h>
#include <string.h>

#include "tools/cli/render/render-cell.h"
#include "tools/terminal/format.h"

#define SGR_BOLD "\033[1m"
#define SGR_REVERSE "\033[7m"
#define SGR_RESET "\033[0m"
#define ELLIPSIS "\u2026"

enum { GAP = 2, NARROWEST = 6 };

typedef struct Cell {
        char *text;    /* owned, safe to show */
        bool is_number;
        bool changed;
} Cell;

struct WatchTable {
        char **names;
        char *null;
        size_t n_columns;
        GPtrArray *rows; /* of Cell[n_columns] */
        size_t n_bytes;
        uint64_t n_rows; /* all rows, also those not held */
};

static char *shown(const char *text, size_t size) {
        GString *output = g_string_new(NULL);

        format_shown_text(output, text, size, WATCH_VALUE_MAX);
        return g_string_free(output, FALSE);
}

WatchTable *watch_table_new(const char *const *names, size_t n_columns, const char *null) {
        WatchTable *table = g_new(WatchTable, 1);

        *table = (WatchTable) {
                .names = g_new0(char *, n_columns + 1),
                .null = g_strdup(null),
                .n_columns = n_columns,
                .rows = g_ptr_array_new(),
        };
        for (size_t i = 0; i < n_columns; i++)
                table->names[i] = shown(names[i], strlen(names[i]));
        return table;
}

WatchTable *watch_table_free(WatchTable *table) {
        if (!table)
                return NULL;
        for (guint i = 0; i < table->rows->len; i++) {
                Cell *cells = table->rows->pdata[i];

                for (size_t column = 0; column < table->n_columns; column++)
                        g_free(cells[column].text);
                g_free(cells);
        }
        g_ptr_array_unref(table->rows);
        g_strfreev(table->names);
        g_free(table->null);
        g_free(table);
        return NULL;
}

void watch_table_freep(WatchTable **table) {
        *table = watch_table_free(*table);
}

void watch_table_add(WatchTable *table, const Value *values) {
        g_autoptr(GString) text = NULL;
        Cell *cells;

        table->n_rows++;
        if (table->rows->len >= WATCH_ROWS_MAX || table->n_bytes >= WATCH_BYTES_MAX)
                return;
        cells = g_new0(Cell, table->n_columns);
        text = g_string_new(NULL);
        for (size_t i = 0; i < table->n_columns; i++) {
                g_string_truncate(text, 0);
                format_shown_value(text, &values[i], table->null, WATCH_VALUE_MAX);
                cells[i].is_number = values[i].type == SQLIPC_INTEGER || values[i].type == SQLIPC_REAL;
                cells[i].text = g_strdup(text->str); /* a copy, because a GString has up to four times the memory it needs */
                table->n_bytes += text->len + sizeof(Cell);
        }
        g_ptr_array_add(table->rows, cells);
}

uint64_t watch_table_count(const WatchTable *table) {
        return table->n_rows;
}

/* ---- Changes ------------------------------------------------------------------------------------------------------ */

static bool is_whole(const WatchTable *table) {
        return table->rows->len == table->n_rows;
}

static bool has_same_columns(const WatchTable *a, const WatchTable *b) {
        return g_strv_equal((const char *const *) a->names, (const char *const *) b->names);
}

/* Indexes rows by their first column. Returns NULL if a value occurs twice. */
static GHashTable *index_rows(const WatchTable *table) {
        g_autoptr(GHashTable) rows = g_hash_table_new(g_str_hash, g_str_equal);

        for (guint i = 0; i < table->rows->len; i++) {
                Cell *cells = table->rows->pdata[i];

                if (!g_hash_table_insert(rows, cells[0].text, cells))
                        return NULL;
        }
        return g_steal_pointer(&rows);
}

/* Indexes the rows of `before` if the first column is a key of both results. Two results of a single row are always compared
 * by position, because that row is the same thing even if its first column changes. */
static GHashTable *index_before(const WatchTable *table, const WatchTable *before) {
        g_autoptr(GHashTable) now = NULL;

        if (table->n_columns < 2 || (table->n_rows == 1 && before->n_rows == 1))
                return NULL;
        now = index_rows(table);
        return now ? index_rows(before) : NULL;
}

/* Marks changed cells. `before` NULL: the row is new. Returns the number of changed cells. */
static uint64_t mark(Cell *cells, const Cell *before, size_t n_columns) {
        uint64_t n = 0;

        for (size_t i = 0; i < n_columns; i++) {
                cells[i].changed = !before || !g_str_equal(cells[i].text, before[i].text);
                n += cells[i].changed;
        }
        return n;
}

WatchChanges watch_table_compare(WatchTable *table, const WatchTable *before) {
        g_autoptr(GHashTable) keys = NULL;
        WatchChanges changes = {};
        uint64_t n_known = 0;

        if (!before || !has_same_columns(table, before))
                return changes;
        if (!is_whole(table) || !is_whole(before)) {
                changes.n_new = table->n_rows > before->n_rows ? table->n_rows - before->n_rows : 0;
                changes.n_gone = before->n_rows > table->n_rows ? before->n_rows - table->n_rows : 0;
                return changes;
        }
        keys = index_before(table, before);
        for (guint i = 0; i < table->rows->len; i++) {
                Cell *cells = table->rows->pdata[i];
                const Cell *old;
                uint64_t n;

                if (keys)
                        old = g_hash_table_lookup(keys, cells[0].text);
                else
                        old = i < before->rows->len ? before->rows->pdata[i] : NULL;
                n = mark(cells, old, table->n_columns);
                n_known += old != NULL;
                changes.n_changed += old ? n : 0;
                changes.n_new += !old;
        }
        changes.n_gone = before->n_rows - n_known;
        return changes;
}

/* ---- Drawing ------------------------------------------------------------------------------------------------------ */

/* Without colours, changed cells are followed by a *. */
static size_t cell_width(const Cell *cell, bool colors) {
        return format_shown_width(cell->text, strlen(cell->text)) + (cell->changed && !colors);
}

static void measure(const WatchTable *table, size_t n_rows, bool colors, size_t *widths) {
        for (size_t i = 0; i < table->n_columns; i++) {
                widths[i] = format_shown_width(table->names[i], strlen(table->names[i]));
                for (size_t row = 0; row < n_rows; row++)
                        widths[i] = MAX(widths[i], cell_width((const Cell *) table->rows->pdata[row] + i, colors));
        }
}

/* Returns how many columns fit if each is shrunk to NARROWEST. */
static size_t count_fitting(const size_t *widths, size_t n_columns, size_t width) {
        size_t sum = 0;

        for (size_t i = 0; i < n_columns; i++) {
                sum += MIN(widths[i], (size_t) NARROWEST) + (i > 0 ? GAP : 0);
                if (sum > width)
                        return i;
        }
        return n_columns;
}

/* Shrinks the widest columns first. Returns the number of columns that fit. */
static size_t squeeze(size_t *widths, size_t n_columns, size_t width) {
        size_t n = count_fitting(widths, n_columns, width), sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += widths[i] + (i > 0 ? GAP : 0);
        for (; sum > width; sum--) {
                size_t widest = 0;

                for (size_t i = 1; i < n; i++)
                        if (widths[i] > widths[widest])
                                widest = i;
                widths[widest]--;
        }
        return n;
}

static void append_cell(GString *output, const char *text, size_t width, bool right, const char *style, bool starred) {
        size_t room = width - (starred ? 1 : 0), taken = format_shown_width(text, strlen(text)), size = strlen(text);
        bool cut = taken > room;

        if (cut)
                taken = render_cell_prefix(text, room - 1, &size) + 1;
        if (right)
                g_string_append_printf(output, "%*s", (int) (room - taken), "");
        g_string_append_printf(output, "%s%.*s%s%s%s", style, (int) size, text, cut ? ELLIPSIS : "", starred ? "*" : "",
                               *style ? SGR_RESET : "");
        if (!right)
                g_string_append_printf(output, "%*s", (int) (room - taken), "");
}

static void append_row(GString *output, const WatchTable *table, const Cell *cells, const size_t *widths, size_t n_columns,
                       bool colors) {
        for (size_t i = 0; i < n_columns; i++) {
                const char *text = cells ? cells[i].text : table->names[i];
                bool changed = cells && cells[i].changed;
                const char *style = !colors ? "" : !cells ? SGR_BOLD : changed ? SGR_REVERSE : "";

                g_string_append_printf(output, "%*s", i > 0 ? GAP : 0, "");
                append_cell(output, text, widths[i], cells && cells[i].is_number, style, changed && !colors);
        }
        g_string_append_c(output, '\n');
}

char *watch_table_draw(const WatchTable *table, size_t width, size_t height, bool colors) {
        size_t n_rows = height > 1 ? MIN(table->rows->len, height - 1) : 0, n_columns;
        g_autofree size_t *widths = g_new0(size_t, table->n_columns + 1);
        GString *output = g_string_new(NULL);

        measure(table, n_rows, colors, widths);
        n_columns = squeeze(widths, table->n_columns, width);
        if (height > 0)
                append_row(output, table, NULL, widths, n_columns, colors);
        for (size_t row = 0; row < n_rows; row++)
                append_row(output, table, table->rows->pdata[row], widths, n_columns, colors);
        return g_string_free(output, FALSE);
}
