/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * table, box, markdown and column: aligned columns for people, with sqlite3's borders.
 *
 *      rows ──> cells that wait ──(RENDER_TABLE_ROWS, RENDER_TABLE_BYTES, a flush or the end)──> widths ──> names, cells
 *                                                                        └─ too wide for the terminal ──> vertical
 *
 * From then on widths are fixed and each row is written at once. A cell takes a line for each of its newlines; a line that
 * is wider than its column is cut, or goes on below where the caller gave the width. A number is not cut, since its first
 * digits look like another one: it stands out of its column. Where a row that waited has several lines, all rows are set
 * apart.
 */
#include "format.h"
#include "render-cell.h"

enum { COLUMN_WIDTH_MIN = 6 }; /* a column that gives way to a narrow terminal keeps so much */

/* A line without cells: its ends, what it is made of, and what is between columns. */
typedef struct Rule {
        const char *left, *dash, *between, *right; /* dash NULL: there is no such line */
} Rule;

typedef struct Style {
        const char *left, *between, *right; /* of a line with cells */
        size_t frame;                       /* columns that left and right take together ... */
        size_t gap;                         /* ... and between */
        size_t padding;                     /* by which rules are wider than the columns */
        bool centered;                      /* the names */
        bool one_line;                      /* a row cannot have several */
        Rule top, below_names, between_rows, bottom;
} Style;

#define BOX(left, between, right) { left, "\u2500", between, right }
#define TABLE { "+", "-", "+", "+\n" }

static const Style styles[] = {
        [RENDER_TABLE] = {
                "| ", " | ", " |\n", 4, 3, 2, true, false,
                TABLE, TABLE, TABLE, TABLE,
        },
        [RENDER_BOX] = {
                "\u2502 ", " \u2502 ", " \u2502\n", 4, 3, 2, true, false,
                BOX("\u250c", "\u252c", "\u2510\n"), BOX("\u251c", "\u253c", "\u2524\n"),
                BOX("\u251c", "\u253c", "\u2524\n"), BOX("\u2514", "\u2534", "\u2518\n"),
        },
        [RENDER_MARKDOWN] = {
                "| ", " | ", " |\n", 4, 3, 2, true, true,
                {}, { "|", "-", "|", "|\n" }, {}, {},
        },
        [RENDER_COLUMN] = {
                "", "  ", "\n", 0, 2, 0, false, false,
                {}, { "", "-", "  ", "\n" }, { "", "", "", "\n" }, {},
        },
};

typedef struct Column {
        char *name;       /* shown */
        size_t width;     /* of the widest cell so far; then fixed */
        const char *rest; /* of the cell that is written; NULL: nothing */
        sqlipc_type type; /* its */
        bool given;       /* the caller chose the width */
        bool has_number;  /* a cell that waited: it does not give way */
        bool right;       /* flushed right */
} Column;

typedef struct Grid {
        const Style *style;
        Column *columns;  /* n_columns */
        GString *waiting; /* cells, n_columns a row; later one row */
        size_t n_waiting; /* rows */
        bool decided;     /* widths are, and names are written */
        bool spaced;      /* rows are set apart */
} Grid;

static void grid_begin(Renderer *renderer) {
        Grid *grid = renderer->state = g_new0(Grid, 1);

        grid->style = &styles[renderer->mode];
        grid->columns = g_new0(Column, renderer->n_columns);
        grid->waiting = g_string_new(NULL);
        for (size_t i = 0; i < renderer->n_columns; i++) {
                Column *column = &grid->columns[i];
                int width = i < renderer->options.n_widths ? renderer->options.widths[i] : 0;
                GString *name = g_string_new(NULL);

                render_name(name, renderer->names[i]);
                column->width = MAX(render_cell_fit(name, 0, grid->style->one_line), (size_t) 1);
                column->name = g_string_free(name, FALSE);
                column->given = width != 0;
                column->right = width < 0;
                if (column->given)
                        column->width = (size_t) ABS((int64_t) width);
        }
}

static void grid_done(Renderer *renderer) {
        Grid *grid = renderer->state;

        if (!grid)
                return;
        for (size_t i = 0; i < renderer->n_columns; i++)
                g_free(grid->columns[i].name);
        g_free(grid->columns);
        g_string_free(grid->waiting, TRUE);
        g_free(grid);
}

/* ---- Widths ------------------------------------------------------------------------------------------------------- */

static size_t total_width(const Renderer *renderer, const Grid *grid) {
        size_t total = grid->style->frame + (renderer->n_columns - 1) * grid->style->gap;

        for (size_t i = 0; i < renderer->n_columns; i++)
                total += grid->columns[i].width;
        return total;
}

static bool gives_way(const Column *column) {
        return !column->given && !column->has_number;
}

/* What the columns give up where none is wider than `limit`, as far as they can. */
static size_t savings(const Renderer *renderer, const Grid *grid, size_t limit) {
        size_t sum = 0;

        for (size_t i = 0; i < renderer->n_columns; i++) {
                const Column *column = &grid->columns[i];

                if (gives_way(column) && column->width > MAX(limit, (size_t) COLUMN_WIDTH_MIN))
                        sum += column->width - MAX(limit, (size_t) COLUMN_WIDTH_MIN);
        }
        return sum;
}

/* The widest columns give way, all down to the same width. */
static void fit_terminal(Renderer *renderer, Grid *grid) {
        size_t total = total_width(renderer, grid), excess, low = COLUMN_WIDTH_MIN, high = total, left_over;

        if (total <= renderer->options.terminal_width)
                return;
        excess = total - renderer->options.terminal_width;
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

                if (!gives_way(column) || column->width <= low)
                        continue;
                column->width = low + (left_over > 0);
                left_over -= left_over > 0;
        }
}

/* ---- Writing ------------------------------------------------------------------------------------------------------ */

static void write_rule(Renderer *renderer, const Rule *rule) {
        const Grid *grid = renderer->state;

        if (!rule->dash)
                return;
        sink_string(&renderer->sink, rule->left);
        for (size_t i = 0; i < renderer->n_columns; i++) {
                if (i > 0)
                        sink_string(&renderer->sink, rule->between);
                for (size_t n = grid->columns[i].width + grid->style->padding; *rule->dash && n > 0; n--)
                        sink_string(&renderer->sink, rule->dash);
        }
        sink_string(&renderer->sink, rule->right);
}

/* Text within blanks that fill the column. */
static void write_padded(Renderer *renderer, const char *color, const char *text, size_t size, size_t before, size_t after) {
        sink_fill(&renderer->sink, ' ', before);
        renderer_write_colored(renderer, size > 0 ? color : "", text, size);
        sink_fill(&renderer->sink, ' ', after);
}

static void write_names(Renderer *renderer) {
        const Grid *grid = renderer->state;
        const char *color = renderer->options.colors ? RENDER_COLOR_NAME : "";

        sink_string(&renderer->sink, grid->style->left);
        for (size_t i = 0; i < renderer->n_columns; i++) {
                const Column *column = &grid->columns[i];
                size_t size, room;
                const char *sign = "";

                if (i > 0)
                        sink_string(&renderer->sink, grid->style->between);
                room = column->width - render_cell_prefix(column->name, column->width, &size);
                if (column->name[size] && !column->given) {
                        room = column->width - 1 - render_cell_prefix(column->name, column->width - 1, &size);
                        sign = FORMAT_ELLIPSIS;
                }
                g_autofree char *name = g_strdup_printf("%.*s%s", (int) size, column->name, sign);
                size_t before = grid->style->centered ? room / 2 : column->right ? room : 0;

                write_padded(renderer, color, name, strlen(name), before, room - before);
        }
        sink_string(&renderer->sink, grid->style->right);
}

static bool is_number(sqlipc_type type) {
        return type == SQLIPC_INTEGER || type == SQLIPC_REAL;
}

/* Writes the next line of a cell, and leaves in `rest` what follows. */
static void write_line(Renderer *renderer, const Grid *grid, Column *column) {
        const char *text = column->rest ? column->rest : "", *rest, *sign = "";
        size_t size, used = render_cell_prefix(text, column->width, &size);

        rest = text + size;
        if (is_number(column->type) && !column->given) {
                used = render_cell_prefix(text, SIZE_MAX, &size);
                rest = text + size;
        } else if (*rest && *rest != '\n' && (grid->style->one_line || !column->given || size == 0)) {
                used = render_cell_prefix(text, column->width - 1, &size) + 1;
                sign = FORMAT_ELLIPSIS;
                rest += strcspn(rest, "\n");
        }
        column->rest = *rest == '\n' ? rest + 1 : *rest ? rest : NULL;

        size_t room = column->width > used ? column->width - used : 0, before = column->right ? room : 0;
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

/* Writes a row, returns where the next one's cells are. */
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

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static bool is_too_wide(const Renderer *renderer, const Grid *grid) {
        return grid->n_waiting > 0 && renderer->options.vertical_when_wide && renderer->options.terminal_width > 0 &&
               total_width(renderer, grid) > renderer->options.terminal_width;
}

/* From now on the renderer is one of vertical. */
static void become_vertical(Renderer *renderer) {
        Grid *grid = renderer->state;
        const char *cells = grid->waiting->str;
        uint64_t n_rows = renderer->n_rows;

        renderer->ops = &render_vertical_ops;
        renderer->ops->begin(renderer);
        renderer->n_rows = 0;
        for (; renderer->n_rows < grid->n_waiting; renderer->n_rows++)
                cells = render_vertical_cells(renderer, cells);
        renderer->n_rows = n_rows;

        void *vertical = renderer->state;
        renderer->state = grid;
        grid_done(renderer);
        renderer->state = vertical;
}

static bool has_lines(const Renderer *renderer, const Grid *grid) {
        const char *cell = grid->waiting->str, *end = cell + grid->waiting->len;

        for (size_t i = 0; cell < end; i = (i + 1) % renderer->n_columns) {
                const Column *column = &grid->columns[i];
                const char *text = cell + 1;

                if (strchr(text, '\n') || (column->given && format_shown_width(text, strlen(text)) > column->width))
                        return true;
                cell = text + strlen(text) + 1;
        }
        return false;
}

/* Decides about widths, and writes what waited. */
static void write_waiting(Renderer *renderer) {
        Grid *grid = renderer->state;
        const char *cells = grid->waiting->str;

        if (is_too_wide(renderer, grid)) {
                become_vertical(renderer);
                return;
        }
        if (renderer->options.terminal_width > 0)
                fit_terminal(renderer, grid);
        grid->decided = true;
        grid->spaced = !grid->style->one_line && has_lines(renderer, grid);
        write_rule(renderer, &grid->style->top);
        if (renderer->headers) {
                write_names(renderer);
                write_rule(renderer, &grid->style->below_names);
        }
        for (size_t i = 0; i < grid->n_waiting; i++) {
                if (i > 0 && grid->spaced)
                        write_rule(renderer, &grid->style->between_rows);
                cells = write_row(renderer, cells);
        }
        g_string_truncate(grid->waiting, 0);
}

static void grid_row(Renderer *renderer, const Value *values) {
        Grid *grid = renderer->state;

        for (size_t i = 0; i < renderer->n_columns; i++) {
                size_t start = grid->waiting->len + 1, width;

                g_string_append_c(grid->waiting, (char) values[i].type);
                render_cell(grid->waiting, &values[i], renderer->options.null);
                width = render_cell_fit(grid->waiting, start, grid->style->one_line);
                g_string_append_c(grid->waiting, '\0');
                grid->columns[i].has_number |= !grid->decided && is_number(values[i].type);
                if (!grid->decided && !grid->columns[i].given)
                        grid->columns[i].width = MAX(grid->columns[i].width, width);
        }

        if (grid->decided) {
                if (grid->spaced)
                        write_rule(renderer, &grid->style->between_rows);
                write_row(renderer, grid->waiting->str);
                g_string_truncate(grid->waiting, 0);
                return;
        }
        grid->n_waiting++;
        if (grid->n_waiting >= RENDER_TABLE_ROWS || grid->waiting->len >= RENDER_TABLE_BYTES)
                write_waiting(renderer);
}

static void grid_flush(Renderer *renderer) {
        Grid *grid = renderer->state;

        if (grid && !grid->decided && grid->n_waiting > 0)
                write_waiting(renderer);
}

/* An empty result shows its names, so that it is seen to be one. */
static void grid_finish(Renderer *renderer, bool complete) {
        Grid *grid = renderer->state;

        if (!grid)
                return;
        if (complete && !grid->decided)
                write_waiting(renderer);
        if (grid->decided)
                write_rule(renderer, &grid->style->bottom);
}

const RenderOps render_grid_ops = {
        .null = "NULL", .headers = true, .harmless = true, .begin = grid_begin, .row = grid_row, .flush = grid_flush,
        .finish = grid_finish, .done = grid_done,
};
