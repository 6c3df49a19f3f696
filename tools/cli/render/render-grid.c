/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * table, box, qbox, markdown and column: aligned columns for people, with sqlite3's borders.
 *
 *      rows ──> held rows ──(RENDER_GRID_BYTES, a flush or the end: a block)──> widths ──> names, rows
 *                                                                                └─ too wide for the terminal: vertical
 *
 * A block is measured as a whole before it is written. Widths only grow from block to block. If the next block needs other
 * widths, it begins with the names again, so that the borders below the names always agree with them. A row that is too
 * large for memory is a block of its own.
 *
 * A cell has a line for each of its newlines. On a terminal, a line that is wider than its column is cut; if the caller or
 * the mode set the width, it continues on the next line. If a row of a block has several lines, the rows of that block are
 * separated.
 */
#include "tools/cli/render/held-rows.h"
#include "tools/cli/render/render-cell.h"
#include "tools/terminal/format.h"

enum {
        COLUMN_WIDTH_MIN = 6,       /* the least width of a column on a narrow terminal */
        COLUMN_WIDTH_READABLE = 10, /* if columns must be narrower, the mode vertical is better */
};

/* A line without cells: its ends, its dash, and the separator of columns. */
typedef struct Rule {
        const char *left, *dash, *between, *right; /* dash NULL: there is no such line */
} Rule;

typedef struct Style {
        const char *left, *between, *right; /* of a line with cells */
        size_t frame;                       /* columns that left and right take together ... */
        size_t gap;                         /* ... and between */
        size_t padding;                     /* how many columns rules are wider than cells */
        bool centered;                      /* the names are centered */
        bool one_line;                      /* a row must be one line */
        size_t width_max;                   /* a wider line continues on the next one; 0: no limit */
        Rule top, below_names, between_rows, bottom;
} Style;

#define BOX(left, between, right) { left, "\u2500", between, right }
#define BOX_STYLE(width_max)                                                                                          \
        { "\u2502 ", " \u2502 ", " \u2502\n", 4, 3, 2, true, false, width_max,                                          \
          BOX("\u250c", "\u252c", "\u2510\n"), BOX("\u251c", "\u253c", "\u2524\n"),                                    \
          BOX("\u251c", "\u253c", "\u2524\n"), BOX("\u2514", "\u2534", "\u2518\n") }
#define TABLE { "+", "-", "+", "+\n" }

static const Style styles[] = {
        [RENDER_TABLE] = {
                "| ", " | ", " |\n", 4, 3, 2, true, false, 0,
                TABLE, TABLE, TABLE, TABLE,
        },
        [RENDER_BOX] = BOX_STYLE(0),
        [RENDER_QBOX] = BOX_STYLE(60),
        [RENDER_MARKDOWN] = {
                "| ", " | ", " |\n", 4, 3, 2, true, true, 0,
                {}, { "|", "-", "|", "|\n" }, {}, {},
        },
        [RENDER_COLUMN] = {
                "", "  ", "\n", 0, 2, 0, false, false, 0,
                {}, { "", "-", "  ", "\n" }, { "", "", "", "\n" }, {},
        },
};

typedef struct Column {
        char *name;          /* ready to be shown */
        size_t natural;      /* width of the widest line so far, or as given */
        size_t number_width; /* of the widest number so far: the column is never narrower */
        size_t fitted;       /* `natural`, shrunk to the terminal */
        size_t width;        /* width of the current block */
        const char *rest;    /* the rest of the cell that is being written; NULL: none */
        sqlipc_type type;    /* of that cell */
        size_t width_max;    /* of a line; a wider one continues on the next; 0: no limit */
        bool given;          /* the caller chose the width */
        bool has_number, has_other; /* so far; NULL counts as neither */
        bool right;          /* the caller wants it flushed right */
} Column;

typedef struct Grid {
        const Style *style;
        Column *columns; /* n_columns */
        HeldRows *held;
        bool begun;      /* names are written */
        bool spaced;     /* rows are separated */
        size_t n_rows;   /* written since the names */
} Grid;

/* Initializes a column. In markdown a row is one line, so that a given width is a minimum. */
static void column_init(Column *column, const Renderer *renderer, const Style *style, size_t i) {
        int width = i < renderer->options.n_widths ? renderer->options.widths[i] : 0;
        size_t given = (size_t) ABS((int64_t) width);
        g_autoptr(GString) shown = g_string_new(NULL);
        GString *name = g_string_new(NULL);
        CellSize size;

        render_name(shown, renderer->names[i], render_value_max(renderer));
        size = render_name_fit(name, shown->str, style->one_line);
        column->name = g_string_free(name, FALSE);
        column->given = width != 0 && !style->one_line;
        column->width_max = column->given ? given : style->width_max;
        column->right = width < 0;
        column->natural = column->given ? given : MAX(MAX(size.width, given), (size_t) 1);
}

static void grid_begin(Renderer *renderer) {
        Grid *grid = renderer->state = g_new0(Grid, 1);

        grid->style = &styles[renderer->mode];
        grid->columns = g_new0(Column, renderer->n_columns);
        grid->held = held_rows_new();
        for (size_t i = 0; i < renderer->n_columns; i++)
                column_init(&grid->columns[i], renderer, grid->style, i);
}

static void grid_done(Renderer *renderer) {
        Grid *grid = renderer->state;

        if (!grid)
                return;
        for (size_t i = 0; i < renderer->n_columns; i++)
                g_free(grid->columns[i].name);
        g_free(grid->columns);
        held_rows_free(grid->held);
        g_free(grid);
}

/* ---- Widths ------------------------------------------------------------------------------------------------------- */

static bool is_number(sqlipc_type type) {
        return type == SQLIPC_INTEGER || type == SQLIPC_REAL;
}

/* Takes the size of a cell into account. The width limit grows to fit the widest character, which would otherwise be
 * lost. */
static void measure(Column *column, sqlipc_type type, CellSize size) {
        size_t width = column->width_max > 0 ? MAX(MIN(size.width, column->width_max), size.cluster) : size.width;

        column->natural = MAX(column->natural, width);
        if (is_number(type)) {
                column->has_number = true;
                column->number_width = MAX(column->number_width, size.width);
        } else
                column->has_other |= type != SQLIPC_NULL;
}

static size_t natural_width(const Renderer *renderer, const Grid *grid) {
        size_t total = grid->style->frame + (renderer->n_columns - 1) * grid->style->gap;

        for (size_t i = 0; i < renderer->n_columns; i++)
                total += grid->columns[i].natural;
        return total;
}

/* Returns the column's width under `limit`. Numbers are not cut, since their first digits look like another number. */
static size_t shrunk_width(const Column *column, size_t limit) {
        if (column->given)
                return column->natural;
        return MIN(column->natural, MAX(MAX(limit, (size_t) COLUMN_WIDTH_MIN), column->number_width));
}

/* Returns the columns saved if each column is at most `limit` wide, as far as that is possible. */
static size_t savings(const Renderer *renderer, const Grid *grid, size_t limit) {
        size_t sum = 0;

        for (size_t i = 0; i < renderer->n_columns; i++)
                sum += grid->columns[i].natural - shrunk_width(&grid->columns[i], limit);
        return sum;
}

static size_t excess_width(const Renderer *renderer, const Grid *grid) {
        size_t total = natural_width(renderer, grid), room = renderer->options.terminal_width;

        return room > 0 && total > room ? total - room : 0;
}

/* Shrinks the widest columns, all to the same width. */
static void fit_terminal(const Renderer *renderer, Grid *grid) {
        size_t excess = excess_width(renderer, grid), low = COLUMN_WIDTH_MIN, high = natural_width(renderer, grid);
        size_t left_over;

        while (low < high) { /* the largest limit that saves enough */
                size_t middle = low + (high - low + 1) / 2;

                if (savings(renderer, grid, middle) >= excess)
                        low = middle;
                else
                        high = middle - 1;
        }
        left_over = savings(renderer, grid, low);
        left_over = left_over > excess ? left_over - excess : 0;
        for (size_t i = 0; i < renderer->n_columns; i++) {
                Column *column = &grid->columns[i];

                column->fitted = shrunk_width(column, low);
                if (column->fitted < column->natural && left_over > 0) {
                        column->fitted++;
                        left_over--;
                }
        }
}

static bool widths_differ(const Renderer *renderer, const Grid *grid) {
        for (size_t i = 0; i < renderer->n_columns; i++)
                if (grid->columns[i].width != grid->columns[i].fitted)
                        return true;
        return false;
}

/* ---- Writing ------------------------------------------------------------------------------------------------------ */

/* Writes a rule, fast for single-byte dashes, because a large value makes long rules. */
static void write_dashes(Sink *sink, const char *dash, size_t n) {
        if (strlen(dash) == 1)
                sink_fill(sink, *dash, n);
        else
                for (; *dash && n > 0; n--)
                        sink_string(sink, dash);
}

static void write_rule(Renderer *renderer, const Rule *rule) {
        const Grid *grid = renderer->state;

        if (!rule->dash)
                return;
        sink_string(&renderer->sink, rule->left);
        for (size_t i = 0; i < renderer->n_columns; i++) {
                if (i > 0)
                        sink_string(&renderer->sink, rule->between);
                write_dashes(&renderer->sink, rule->dash, grid->columns[i].width + grid->style->padding);
        }
        sink_string(&renderer->sink, rule->right);
}

/* Writes text between the blanks that fill the column. */
static void write_padded(Renderer *renderer, const char *color, const char *text, size_t size, size_t before, size_t after) {
        sink_fill(&renderer->sink, ' ', before);
        renderer_write_colored(renderer, size > 0 ? color : "", text, size);
        sink_fill(&renderer->sink, ' ', after);
}

/* Writes a name: above a column of numbers it is flushed as they are, unless names are centered. */
static void write_name(Renderer *renderer, const Column *column, bool centered) {
        size_t size, room = column->width - render_cell_prefix(column->name, column->width, &size), before;
        const char *sign = "";

        if (column->name[size] && !column->given) {
                room = column->width - 1 - render_cell_prefix(column->name, column->width - 1, &size);
                sign = FORMAT_ELLIPSIS;
        }
        g_autofree char *name = g_strdup_printf("%.*s%s", (int) size, column->name, sign);

        before = centered ? room / 2 : column->right || (column->has_number && !column->has_other) ? room : 0;
        write_padded(renderer, renderer->options.colors ? RENDER_COLOR_NAME : "", name, strlen(name), before, room - before);
}

static void write_names(Renderer *renderer) {
        const Grid *grid = renderer->state;

        sink_string(&renderer->sink, grid->style->left);
        for (size_t i = 0; i < renderer->n_columns; i++) {
                if (i > 0)
                        sink_string(&renderer->sink, grid->style->between);
                write_name(renderer, &grid->columns[i], grid->style->centered);
        }
        sink_string(&renderer->sink, grid->style->right);
}

/* Returns the number of blanks before text that leaves `room` columns free. Numbers are flushed right, and so is NULL among
 * them. */
static size_t blanks_before(const Column *column, size_t room) {
        bool numeric = column->has_number && !column->has_other;

        return column->right || is_number(column->type) || (column->type == SQLIPC_NULL && numeric) ? room : 0;
}

/* Returns the end of a cut line: an ellipsis, followed by the size of the value if the line tells that and some text still
 * fits. */
static const char *sign_of_cut(const char *line, size_t width) {
        const char *sign = g_strrstr(line, FORMAT_ELLIPSIS);

        if (!sign || !g_str_has_suffix(sign, " bytes)") || strchr(line, '\n') ||
            format_shown_width(sign, strlen(sign)) + COLUMN_WIDTH_MIN > width)
                return FORMAT_ELLIPSIS;
        return sign;
}

/* Writes the next line of a cell, and stores the remainder in `rest`. */
static void write_line(Renderer *renderer, const Grid *grid, Column *column) {
        const char *text = column->rest ? column->rest : "", *rest, *sign = "";
        size_t size, used = render_cell_prefix(text, column->width, &size);

        if (size == 0 && *text && *text != '\n') /* more marks than were measured: this line is wider than the column */
                size = format_next_cluster(text, strlen(text), &used);
        rest = text + size;
        if (*rest && *rest != '\n' && column->width_max == 0) {
                sign = sign_of_cut(text, column->width);
                used = format_shown_width(sign, strlen(sign));
                used += render_cell_prefix(text, column->width - used, &size);
                rest += strcspn(rest, "\n");
        }
        column->rest = *rest == '\n' ? rest + 1 : *rest ? rest : NULL;

        size_t room = column->width > used ? column->width - used : 0, before = blanks_before(column, room);
        const char *color = renderer_color(renderer, column->type);

        sink_fill(&renderer->sink, ' ', before);
        if (used > 0)
                sink_string(&renderer->sink, color);
        sink_write(&renderer->sink, text, size);
        sink_string(&renderer->sink, sign);
        if (used > 0 && *color)
                sink_string(&renderer->sink, RENDER_COLOR_OFF);
        sink_fill(&renderer->sink, ' ', room - before);
}

/* Writes a row. Returns the position of the next row's cells. */
static const char *write_row(Renderer *renderer, const char *cells) {
        Grid *grid = renderer->state;
        bool more = true;

        for (size_t i = 0; i < renderer->n_columns; i++) {
                grid->columns[i].type = (sqlipc_type) *cells++;
                grid->columns[i].rest = cells;
                cells += strlen(cells) + 1;
        }
        while (more) {
                more = false;
                sink_string(&renderer->sink, grid->style->left);
                for (size_t i = 0; i < renderer->n_columns; i++) {
                        if (i > 0)
                                sink_string(&renderer->sink, grid->style->between);
                        write_line(renderer, grid, &grid->columns[i]);
                        more |= grid->columns[i].rest != NULL;
                }
                sink_string(&renderer->sink, grid->style->right);
        }
        return cells;
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------- */

/* Returns true if the grid is too wide even after wide columns were shrunk to a readable width. */
static bool is_too_wide(const Renderer *renderer, const Grid *grid) {
        return !grid->begun && renderer->options.vertical_when_wide &&
               excess_width(renderer, grid) > savings(renderer, grid, COLUMN_WIDTH_READABLE);
}

/* Turns the renderer into one of the mode vertical. */
static void become_vertical(Renderer *renderer) {
        Grid *grid = renderer->state;
        const char *cells = held_rows_cells(grid->held);
        uint64_t n_rows = renderer->n_rows;

        renderer->ops = &render_vertical_ops;
        renderer->ops->begin(renderer);
        renderer->n_rows = 0;
        for (; renderer->n_rows < grid->held->n_rows; renderer->n_rows++)
                cells = render_vertical_cells(renderer, cells);
        renderer->n_rows = n_rows;

        void *vertical = renderer->state;
        renderer->state = grid;
        grid_done(renderer);
        renderer->state = vertical;
}

static bool has_lines(const Renderer *renderer, const Grid *grid) {
        const char *cell = held_rows_cells(grid->held), *end = cell + held_rows_size(grid->held);

        for (size_t i = 0; cell < end; i = (i + 1) % renderer->n_columns) {
                const Column *column = &grid->columns[i];
                const char *text = cell + 1;

                if (strchr(text, '\n') || (column->width_max > 0 && format_shown_width(text, strlen(text)) > column->width))
                        return true;
                cell = text + strlen(text) + 1;
        }
        return false;
}

static void end_block(Renderer *renderer) {
        const Grid *grid = renderer->state;

        if (grid->style->bottom.dash)
                write_rule(renderer, &grid->style->bottom);
        else if (renderer->headers) /* otherwise markdown takes the next names for a row */
                sink_char(&renderer->sink, '\n');
}

static void begin_block(Renderer *renderer) {
        Grid *grid = renderer->state;

        for (size_t i = 0; i < renderer->n_columns; i++)
                grid->columns[i].width = grid->columns[i].fitted;
        grid->begun = true;
        grid->spaced = false;
        grid->n_rows = 0;
        write_rule(renderer, &grid->style->top);
        if (!renderer->headers)
                return;
        write_names(renderer);
        write_rule(renderer, &grid->style->below_names);
}

/* Measures and writes the held rows. */
static void write_block(Renderer *renderer) {
        Grid *grid = renderer->state;
        const char *cells;

        if (grid->held->n_rows > 0 && is_too_wide(renderer, grid)) {
                become_vertical(renderer);
                return;
        }
        fit_terminal(renderer, grid);
        if (!grid->begun || widths_differ(renderer, grid)) {
                if (grid->begun)
                        end_block(renderer);
                begin_block(renderer);
        }
        grid->spaced |= !grid->style->one_line && has_lines(renderer, grid);
        cells = held_rows_cells(grid->held);
        for (size_t i = 0; i < grid->held->n_rows; i++) {
                if (grid->n_rows++ > 0 && grid->spaced)
                        write_rule(renderer, &grid->style->between_rows);
                cells = write_row(renderer, cells);
        }
        held_rows_clear(grid->held);
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

/* Returns true for rows that must be kept in a file. Shown text can take eight times its bytes, if all of it is tabs. */
static bool is_large(const Renderer *renderer, const Value *values) {
        size_t sum = 0, max = render_value_max(renderer);

        for (size_t i = 0; i < renderer->n_columns; i++)
                if (values[i].type == SQLIPC_TEXT || values[i].type == SQLIPC_BLOB)
                        sum += MIN(values[i].size, max);
        return sum > RENDER_GRID_BYTES / 8;
}

static int hold(Renderer *renderer, const Value *values, bool large) {
        Grid *grid = renderer->state;
        Sink *sink;
        int r = held_rows_begin(grid->held, large, &sink);

        for (size_t i = 0; r >= 0 && i < renderer->n_columns; i++) {
                sink_char(sink, (char) values[i].type);
                measure(&grid->columns[i], values[i].type,
                        render_cell_fit(renderer, &values[i], grid->style->one_line, sink));
                sink_char(sink, '\0');
        }
        return r < 0 ? r : held_rows_end(grid->held);
}

static void grid_flush(Renderer *renderer) {
        Grid *grid = renderer->state;

        if (grid && grid->held->n_rows > 0)
                write_block(renderer);
}

static void grid_row(Renderer *renderer, const Value *values) {
        const Grid *grid = renderer->state;
        bool large = is_large(renderer, values);

        if (large)
                grid_flush(renderer);
        if (renderer->ops != &render_grid_ops) {
                renderer->ops->row(renderer, values);
                return;
        }
        renderer->error = hold(renderer, values, large);
        if (renderer->error >= 0 && (large || held_rows_size(grid->held) >= RENDER_GRID_BYTES))
                write_block(renderer);
}

/* Ends the grid. An empty result shows its names, so that it can be recognized. */
static void grid_finish(Renderer *renderer, bool complete) {
        const Grid *grid = renderer->state;

        if (!grid)
                return;
        if (complete && !grid->begun)
                write_block(renderer);
        if (grid->begun)
                write_rule(renderer, &grid->style->bottom);
}

const RenderOps render_grid_ops = {
        .null = "NULL", .headers = true, .harmless = true, .begin = grid_begin, .row = grid_row, .flush = grid_flush,
        .finish = grid_finish, .done = grid_done,
};
