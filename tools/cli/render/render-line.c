/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * line and vertical: one value per line, for people. line is sqlite3's, and shows text completely; vertical is psql's \x,
 * cuts text on a terminal, and replaces a grid that is too wide.
 *
 *         id = 1                     -[ RECORD 1 ]--
 *      title = two                   id    | 1
 *              lines                 title | two
 *                                          | lines
 */
#include "tools/cli/render/render-cell.h"
#include "tools/cli/render/render-private.h"
#include "tools/terminal/format.h"

typedef struct Labels {
        char **text;   /* owned; the names, ready to be shown */
        size_t *width; /* n_columns */
        size_t widest;
} Labels;

static void labels_begin(Renderer *renderer) {
        Labels *labels = renderer->state = g_new0(Labels, 1);

        labels->text = g_new0(char *, renderer->n_columns + 1);
        labels->width = g_new(size_t, renderer->n_columns);
        for (size_t i = 0; i < renderer->n_columns; i++) {
                GString *text = g_string_new(NULL);

                render_name(text, renderer->names[i], render_value_max(renderer));
                labels->width[i] = format_shown_width(text->str, text->len);
                labels->widest = MAX(labels->widest, labels->width[i]);
                labels->text[i] = g_string_free(text, FALSE);
        }
}

static void labels_done(Renderer *renderer) {
        Labels *labels = renderer->state;

        if (!labels)
                return;
        g_strfreev(labels->text);
        g_free(labels->width);
        g_free(labels);
}

static void write_label(Renderer *renderer, const Labels *labels, size_t i) {
        renderer_write_colored(renderer, renderer->options.colors ? RENDER_COLOR_NAME : "", labels->text[i],
                               strlen(labels->text[i]));
}

/* The beginning of each line of a value except the first. */
typedef struct Margin {
        Sink *sink;
        size_t blanks;
        const char *bar;
} Margin;

static size_t write_lines(void *userdata, const char *text, size_t size, bool last) {
        const Margin *margin = userdata;

        (void) last;
        for (size_t done = 0, n; done < size; done += n) {
                const char *end = memchr(text + done, '\n', size - done);

                n = end ? (size_t) (end - text) - done + 1 : size - done;
                sink_write(margin->sink, text + done, n);
                if (end) {
                        sink_fill(margin->sink, ' ', margin->blanks);
                        sink_string(margin->sink, margin->bar);
                }
        }
        return size;
}

static void write_value(Renderer *renderer, const Value *value, size_t max, Margin margin) {
        const char *color = renderer_color(renderer, value->type);

        sink_string(&renderer->sink, color);
        render_cell(renderer, value, max, write_lines, &margin);
        if (*color)
                sink_string(&renderer->sink, RENDER_COLOR_OFF);
}

/* ---- line --------------------------------------------------------------------------------------------------------- */

static void line_begin(Renderer *renderer) {
        Labels *labels;

        labels_begin(renderer);
        labels = renderer->state;
        labels->widest = MAX(labels->widest, (size_t) 5); /* as in sqlite3's shell */
}

static void line_row(Renderer *renderer, const Value *values) {
        const Labels *labels = renderer->state;

        if (renderer->n_rows > 0)
                sink_char(&renderer->sink, '\n');
        for (size_t i = 0; i < renderer->n_columns; i++) {
                sink_fill(&renderer->sink, ' ', labels->widest - labels->width[i]);
                write_label(renderer, labels, i);
                sink_string(&renderer->sink, " = ");
                write_value(renderer, &values[i], values[i].type == SQLIPC_TEXT ? SIZE_MAX : render_value_max(renderer),
                            (Margin) { .sink = &renderer->sink, .blanks = labels->widest + 3, .bar = "" });
                sink_char(&renderer->sink, '\n');
        }
}

const RenderOps render_line_ops = {
        .null = "NULL", .harmless = true, .begin = line_begin, .row = line_row, .done = labels_done,
};

/* ---- vertical ----------------------------------------------------------------------------------------------------- */

static void write_rule(Renderer *renderer, size_t width) {
        int n = g_snprintf(sink_reserve(&renderer->sink, 48), 48, "-[ RECORD %" G_GUINT64_FORMAT " ]", renderer->n_rows + 1);

        sink_advance(&renderer->sink, (size_t) n);
        sink_fill(&renderer->sink, '-', MAX(width, (size_t) n) - (size_t) n + 2);
        sink_char(&renderer->sink, '\n');
}

static void write_vertical_label(Renderer *renderer, size_t i, bool empty) {
        const Labels *labels = renderer->state;

        write_label(renderer, labels, i);
        sink_fill(&renderer->sink, ' ', labels->widest - labels->width[i]);
        sink_string(&renderer->sink, empty ? " |" : " | ");
}

static Margin vertical_margin(Renderer *renderer) {
        const Labels *labels = renderer->state;

        return (Margin) { .sink = &renderer->sink, .blanks = labels->widest, .bar = " | " };
}

const char *render_vertical_cells(Renderer *renderer, const char *cells) {
        const Labels *labels = renderer->state;
        Margin margin = vertical_margin(renderer);

        write_rule(renderer, labels->widest);
        for (size_t i = 0; i < renderer->n_columns; i++) {
                const char *color = renderer_color(renderer, (sqlipc_type) *cells++);
                size_t size = strlen(cells);

                write_vertical_label(renderer, i, size == 0);
                sink_string(&renderer->sink, color);
                (void) write_lines(&margin, cells, size, true);
                sink_string(&renderer->sink, *color ? RENDER_COLOR_OFF "\n" : "\n");
                cells += size + 1;
        }
        return cells;
}

static void vertical_row(Renderer *renderer, const Value *values) {
        const Labels *labels = renderer->state;

        write_rule(renderer, labels->widest);
        for (size_t i = 0; i < renderer->n_columns; i++) {
                const Value *value = &values[i];

                write_vertical_label(renderer, i, renderer_quotes(renderer) ? false
                                     : value->type == SQLIPC_TEXT           ? value->size == 0
                                     : value->type == SQLIPC_NULL && !*renderer->options.null);
                write_value(renderer, value, render_value_max(renderer), vertical_margin(renderer));
                sink_char(&renderer->sink, '\n');
        }
}

const RenderOps render_vertical_ops = {
        .null = "NULL", .harmless = true, .begin = labels_begin, .row = vertical_row, .done = labels_done,
};
