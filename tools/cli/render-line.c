/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * line and vertical: a value a line, for people. line is sqlite3's, and shows text whole; vertical is psql's \x, cuts it,
 * and is what a grid becomes that is too wide.
 *
 *         id = 1                     -[ RECORD 1 ]--
 *      title = two                   id    | 1
 *              lines                 title | two
 *                                          | lines
 */
#include "format.h"
#include "render-cell.h"
#include "render-private.h"

/* Text is made harmless in pieces of about so many bytes. */
enum { PIECE_SIZE = 8192 };

typedef struct Labels {
        char **text;   /* owned; the names, made ready to be shown */
        size_t *width; /* n_columns */
        size_t widest;
} Labels;

static void labels_begin(Renderer *renderer) {
        Labels *labels = renderer->state = g_new0(Labels, 1);

        labels->text = g_new0(char *, renderer->n_columns + 1);
        labels->width = g_new(size_t, renderer->n_columns);
        for (size_t i = 0; i < renderer->n_columns; i++) {
                GString *text = g_string_new(NULL);

                render_name(text, renderer->names[i]);
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

/* Shown text, each line of it but the first behind `margin` blanks and `bar`. */
static void write_lines(Renderer *renderer, const char *text, size_t size, size_t margin, const char *bar) {
        while (size > 0) {
                const char *end = memchr(text, '\n', size);
                size_t n = end ? (size_t) (end - text) + 1 : size;

                sink_write(&renderer->sink, text, n);
                if (end) {
                        sink_fill(&renderer->sink, ' ', margin);
                        sink_string(&renderer->sink, bar);
                }
                text += n;
                size -= n;
        }
}

/* ---- line --------------------------------------------------------------------------------------------------------- */

static void line_begin(Renderer *renderer) {
        Labels *labels;

        labels_begin(renderer);
        labels = renderer->state;
        labels->widest = MAX(labels->widest, (size_t) 5); /* as the shell's */
}

static void write_whole(Renderer *renderer, const Value *value, size_t margin) {
        for (size_t done = 0; done < value->size;) {
                done += format_shown_lines(renderer->scratch, value->bytes + done, value->size - done, PIECE_SIZE);
                write_lines(renderer, renderer->scratch->str, renderer->scratch->len, margin, "");
                g_string_truncate(renderer->scratch, 0);
        }
}

static void line_row(Renderer *renderer, const Value *values) {
        const Labels *labels = renderer->state;

        if (renderer->n_rows > 0)
                sink_char(&renderer->sink, '\n');
        for (size_t i = 0; i < renderer->n_columns; i++) {
                sink_fill(&renderer->sink, ' ', labels->widest - labels->width[i]);
                write_label(renderer, labels, i);
                sink_string(&renderer->sink, " = ");
                if (values[i].type == SQLIPC_TEXT)
                        write_whole(renderer, &values[i], labels->widest + 3);
                else {
                        render_cell(renderer->scratch, &values[i], renderer->options.null);
                        renderer_write_colored(renderer, renderer_color(renderer, values[i].type), renderer->scratch->str,
                                               renderer->scratch->len);
                        g_string_truncate(renderer->scratch, 0);
                }
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

const char *render_vertical_cells(Renderer *renderer, const char *cells) {
        const Labels *labels = renderer->state;

        write_rule(renderer, labels->widest);
        for (size_t i = 0; i < renderer->n_columns; i++) {
                sqlipc_type type = (sqlipc_type) *cells++;
                size_t size = strlen(cells);
                const char *color = renderer_color(renderer, type);

                write_label(renderer, labels, i);
                sink_fill(&renderer->sink, ' ', labels->widest - labels->width[i]);
                sink_string(&renderer->sink, size > 0 ? " | " : " |");
                sink_string(&renderer->sink, color);
                write_lines(renderer, cells, size, labels->widest, " | ");
                sink_string(&renderer->sink, *color ? RENDER_COLOR_OFF "\n" : "\n");
                cells += size + 1;
        }
        return cells;
}

static void vertical_row(Renderer *renderer, const Value *values) {
        for (size_t i = 0; i < renderer->n_columns; i++)
                render_cell_append(renderer->scratch, &values[i], renderer->options.null);
        render_vertical_cells(renderer, renderer->scratch->str);
        g_string_truncate(renderer->scratch, 0);
}

const RenderOps render_vertical_ops = {
        .null = "NULL", .harmless = true, .begin = labels_begin, .row = vertical_row, .done = labels_done,
};
