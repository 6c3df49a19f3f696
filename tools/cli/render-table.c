/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * table: aligned columns for people, laid out by libsmartcols, safe to show.
 *
 * The first RENDER_TABLE_ROWS rows (or RENDER_TABLE_BYTES of them) decide how wide each column is, whether it holds
 * numbers (then it is flushed right), and where the terminal is too narrow, which columns give way. From then on
 * widths are fixed, and chunks of rows are printed with them: a value that is wider than its column goes on in the
 * line below, inside its column.
 *
 *      rows ──> pending cells ──(chunk is full, or the end)──> [first: choose widths, print names] ──> smartcols ──> stream
 *
 * smartcols knows a minimal width but no fixed one, so cells are folded here, by newlines that its wrapnl functions
 * understand; no other newline can be in a cell, as shown text has none.
 */
#include <libsmartcols/libsmartcols.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "render-private.h"

#define SEPARATOR "  "
enum { COLUMN_WIDTH_MIN = 6 }; /* a column that gives way to a narrow terminal keeps so much */

typedef struct TableColumn {
        char *name;       /* shown */
        size_t width;     /* of the widest cell so far; fixed after the first chunk */
        bool has_number;  /* some value is INTEGER or REAL ... */
        bool has_other;   /* ... some is TEXT or BLOB */
} TableColumn;

typedef struct Table {
        TableColumn *columns;              /* n_columns */
        GPtrArray *cells;                  /* pending: n_columns strings a row; NULL for the value NULL */
        size_t n_bytes;                    /* of pending cells */
        struct libscols_table *smartcols;  /* NULL until the widths are known */
} Table;

static Table *table_new(Renderer *renderer) {
        Table *table = g_new(Table, 1);

        *table = (Table) {
                .columns = g_new0(TableColumn, renderer->n_columns),
                .cells = g_ptr_array_new_with_free_func(g_free),
        };
        for (size_t i = 0; i < renderer->n_columns; i++) {
                GString *name = g_string_new(NULL);

                format_shown_text(name, renderer->names[i], strlen(renderer->names[i]), RENDER_TABLE_VALUE_MAX);
                table->columns[i].width = MAX(format_shown_width(name->str, name->len), (size_t) 1);
                table->columns[i].name = g_string_free(name, FALSE);
        }
        return table;
}

static void table_done(Renderer *renderer) {
        Table *table = renderer->state;

        if (!table)
                return;
        scols_unref_table(table->smartcols);
        g_ptr_array_unref(table->cells);
        for (size_t i = 0; i < renderer->n_columns; i++)
                g_free(table->columns[i].name);
        g_free(table->columns);
        g_free(table);
}

/* ---- Widths ------------------------------------------------------------------------------------------------------- */

static void measure_cell(Renderer *renderer, TableColumn *column, const char *cell) {
        const char *shown = cell ? cell : renderer->options.null;

        column->width = MAX(column->width, format_shown_width(shown, strlen(shown)));
}

/* Of a row, in columns of the terminal. */
static size_t total_width(Renderer *renderer, const Table *table) {
        size_t total = (renderer->n_columns - 1) * strlen(SEPARATOR);

        for (size_t i = 0; i < renderer->n_columns; i++)
                total += table->columns[i].width;
        return total;
}

/* Takes from the widest column, a column of the terminal at a time, until all fit or none can give more. */
static void fit_terminal(Renderer *renderer, Table *table) {
        size_t total = total_width(renderer, table);

        while (total > renderer->options.terminal_width) {
                TableColumn *widest = &table->columns[0];

                for (size_t i = 1; i < renderer->n_columns; i++)
                        if (table->columns[i].width > widest->width)
                                widest = &table->columns[i];
                if (widest->width <= COLUMN_WIDTH_MIN)
                        return;
                widest->width--;
                total--;
        }
}

static void choose_widths(Renderer *renderer, Table *table) {
        for (size_t i = 0; i < table->cells->len; i++)
                measure_cell(renderer, &table->columns[i % renderer->n_columns], table->cells->pdata[i]);
        if (renderer->options.terminal_width > 0)
                fit_terminal(renderer, table);
}

/* Breaks shown text into lines of at most `width` terminal columns (a wider character stands alone). */
static char *fold(const char *text, size_t width) {
        g_autoptr(GString) folded = g_string_new(NULL);
        size_t used = 0;

        for (const char *next; *text; text = next) {
                next = g_utf8_next_char(text);
                size_t w = format_shown_width(text, (size_t) (next - text));

                if (used > 0 && used + w > width) {
                        g_string_append_c(folded, '\n');
                        used = 0;
                }
                g_string_append_len(folded, text, next - text);
                used += w;
        }
        return g_string_free(g_steal_pointer(&folded), FALSE);
}

/* A name that is wider than its column is cut: smartcols has no names of several lines. */
static char *cut(const char *text, size_t width) {
        const char *end = text;
        size_t used = 0;

        if (format_shown_width(text, strlen(text)) <= width)
                return g_strdup(text);
        for (const char *next; *end; end = next) {
                next = g_utf8_next_char(end);
                used += format_shown_width(end, (size_t) (next - end));
                if (used > width - 1)
                        break;
        }
        return g_strdup_printf("%.*s\342\200\246", (int) (end - text), text); /* ... as one character */
}

/* ---- Printing ----------------------------------------------------------------------------------------------------- */

static int add_column(Renderer *renderer, struct libscols_table *smartcols, const TableColumn *column) {
        g_autofree char *name = cut(column->name, column->width);
        int flags = SCOLS_FL_WRAP | (column->has_number && !column->has_other ? SCOLS_FL_RIGHT : 0);
        struct libscols_column *added = scols_table_new_column(smartcols, name, (double) column->width, flags);

        if (!added)
                return -ENOMEM;
        if (renderer->options.colors && scols_cell_set_color(scols_column_get_header(added), "bold") < 0)
                return -ENOMEM;
        return scols_column_set_wrapfunc(added, scols_wrapnl_chunksize, scols_wrapnl_nextchunk, NULL);
}

static int open_smartcols(Renderer *renderer, Table *table) {
        struct libscols_table *smartcols = table->smartcols = scols_new_table();
        int r;

        if (!smartcols)
                return -ENOMEM;

        /* Widths are ours, so the terminal is as wide as they need (a column more each, for a character of two columns
         * in a column of one; not just any number, since smartcols allocates a line of it), and bytes are safe already. */
        (void) scols_table_set_termforce(smartcols, SCOLS_TERMFORCE_ALWAYS);
        (void) scols_table_set_termwidth(smartcols, total_width(renderer, table) + renderer->n_columns);
        (void) scols_table_enable_noencoding(smartcols, 1);
        (void) scols_table_enable_colors(smartcols, renderer->options.colors);
        r = scols_table_set_stream(smartcols, renderer->options.output);
        if (r >= 0)
                r = scols_table_set_column_separator(smartcols, SEPARATOR);

        for (size_t i = 0; r >= 0 && i < renderer->n_columns; i++)
                r = add_column(renderer, smartcols, &table->columns[i]);
        return r;
}

static int add_cell(Renderer *renderer, struct libscols_line *line, size_t i, size_t width, const char *text) {
        g_autofree char *folded = fold(text ? text : renderer->options.null, width);
        int r;

        r = scols_line_set_data(line, i, folded);
        if (r >= 0 && !text && renderer->options.colors)
                r = scols_cell_set_color(scols_line_get_cell(line, i), "\033[2m");
        return r;
}

/* Prints and forgets the pending rows. */
static int print_chunk(Renderer *renderer, Table *table) {
        int r = 0;

        if (!table->smartcols) {
                choose_widths(renderer, table);
                r = open_smartcols(renderer, table);
        } else
                (void) scols_table_enable_noheadings(table->smartcols, 1);

        for (size_t row = 0; r >= 0 && row < table->cells->len; row += renderer->n_columns) {
                struct libscols_line *line = scols_table_new_line(table->smartcols, NULL);

                if (!line)
                        return -ENOMEM;
                for (size_t i = 0; r >= 0 && i < renderer->n_columns; i++)
                        r = add_cell(renderer, line, i, table->columns[i].width, table->cells->pdata[row + i]);
        }
        if (r < 0)
                return r;

        r = scols_print_table(table->smartcols);
        scols_table_remove_lines(table->smartcols);
        g_ptr_array_set_size(table->cells, 0);
        table->n_bytes = 0;
        return r < 0 ? r : 0;
}

static int table_row(Renderer *renderer, const Value *values) {
        Table *table = renderer->state;

        if (!table)
                table = renderer->state = table_new(renderer);

        for (size_t i = 0; i < renderer->n_columns; i++) {
                GString *cell;

                if (values[i].type == SQLIPC_NULL) {
                        g_ptr_array_add(table->cells, NULL);
                        continue;
                }
                cell = g_string_new(NULL);
                format_shown_value(cell, &values[i], "", RENDER_TABLE_VALUE_MAX);
                if (values[i].type == SQLIPC_INTEGER || values[i].type == SQLIPC_REAL)
                        table->columns[i].has_number = true;
                else
                        table->columns[i].has_other = true;
                table->n_bytes += cell->len;
                g_ptr_array_add(table->cells, g_string_free(cell, FALSE));
        }

        if (table->cells->len >= RENDER_TABLE_ROWS * renderer->n_columns || table->n_bytes >= RENDER_TABLE_BYTES)
                return print_chunk(renderer, table);
        return 0;
}

/* An empty result shows its names, so that it is seen to be one. */
static int table_finish(Renderer *renderer, bool complete) {
        Table *table = renderer->state;

        if (!table)
                table = renderer->state = table_new(renderer);
        if (table->cells->len > 0)
                return print_chunk(renderer, table);
        if (renderer->n_rows > 0 || !complete)
                return 0;

        for (size_t i = 0; i < renderer->n_columns; i++)
                if (fprintf(renderer->options.output, "%s%s", i > 0 ? SEPARATOR : "", table->columns[i].name) < 0)
                        return -EIO;
        return fputc('\n', renderer->options.output) < 0 ? -EIO : 0;
}

const RenderOps render_table_ops = { .null = "NULL", .row = table_row, .finish = table_finish, .done = table_done };
