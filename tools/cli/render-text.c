/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * csv, tabs and line.
 *
 * csv and tabs are for programs, and what sqlite3's own shell writes with -header, byte for byte: the names come with
 * the first row (an empty result is empty), rows end in a newline without a carriage return, REAL has 15 digits, a
 * BLOB is its bytes, and a value ends at its first NUL. They differ in one thing: NULL in tabs is \N, which the shell
 * leaves empty.
 *
 * line is for people, and safe to show; like the shell's otherwise.
 */
#include <string.h>

#include "format.h"
#include "render-private.h"

/* ---- csv ---------------------------------------------------------------------------------------------------------- */

/* needCsvQuote[] of SQLite's shell: controls, blank, both quotes, everything past ASCII; and the separator. */
static bool needs_quotes(const char *text, size_t size) {
        for (size_t i = 0; i < size; i++) {
                unsigned char c = (unsigned char) text[i];

                if (c <= ' ' || c >= 0x7f || c == '"' || c == '\'' || c == ',')
                        return true;
        }
        return size == 0;
}

static void append_csv_text(GString *output, const char *text, size_t size) {
        if (!needs_quotes(text, size)) {
                g_string_append_len(output, text, (gssize) size);
                return;
        }
        g_string_append_c(output, '"');
        for (size_t done = 0; done < size;) {
                const char *quote = memchr(text + done, '"', size - done);
                size_t n = quote ? (size_t) (quote - text) + 1 - done : size - done;

                g_string_append_len(output, text + done, (gssize) n);
                if (quote)
                        g_string_append_c(output, '"');
                done += n;
        }
        g_string_append_c(output, '"');
}

static void append_tabs_text(GString *output, const char *text, size_t size) {
        g_string_append_len(output, text, (gssize) size);
}

/* What csv and tabs have in common. */
static int separated_row(Renderer *renderer, const Value *values, char separator,
                         void (*append_text)(GString *output, const char *text, size_t size)) {
        GString *output = renderer->buffer;

        if (renderer->n_rows == 0)
                for (size_t i = 0; i < renderer->n_columns; i++) {
                        append_text(output, renderer->names[i], strlen(renderer->names[i]));
                        g_string_append_c(output, i + 1 < renderer->n_columns ? separator : '\n');
                }

        for (size_t i = 0; i < renderer->n_columns; i++) {
                char number[FORMAT_NUMBER_SIZE];

                if (values[i].type == SQLIPC_TEXT || values[i].type == SQLIPC_BLOB)
                        append_text(output, values[i].bytes, strnlen(values[i].bytes, values[i].size));
                else if (values[i].type == SQLIPC_INTEGER || values[i].type == SQLIPC_REAL)
                        g_string_append_len(output, number, (gssize) format_number(number, &values[i]));
                else
                        g_string_append(output, renderer->options.null);
                g_string_append_c(output, i + 1 < renderer->n_columns ? separator : '\n');
        }
        renderer_write_buffer(renderer);
        return 0;
}

static int csv_row(Renderer *renderer, const Value *values) {
        return separated_row(renderer, values, ',', append_csv_text);
}

const RenderOps render_csv_ops = { .null = "", .row = csv_row };

/* ---- tabs --------------------------------------------------------------------------------------------------------- */

static int tabs_row(Renderer *renderer, const Value *values) {
        return separated_row(renderer, values, '\t', append_tabs_text);
}

const RenderOps render_tabs_ops = { .null = "\\N", .row = tabs_row };

/* ---- line --------------------------------------------------------------------------------------------------------- */

/* A name made ready to be shown, and its width. */
typedef struct Label {
        char *text;
        size_t width;
} Label;

typedef struct Labels {
        Label *label; /* n_columns */
        size_t width; /* of the widest, at least 5, as the shell's */
} Labels;

static Labels *make_labels(Renderer *renderer) {
        Labels *labels = g_new(Labels, 1);

        *labels = (Labels) { .label = g_new0(Label, renderer->n_columns), .width = 5 };
        for (size_t i = 0; i < renderer->n_columns; i++) {
                GString *text = g_string_new(NULL);

                format_shown_text(text, renderer->names[i], strlen(renderer->names[i]), SIZE_MAX);
                labels->label[i].width = format_shown_width(text->str, text->len);
                labels->label[i].text = g_string_free(text, FALSE);
                labels->width = MAX(labels->width, labels->label[i].width);
        }
        return labels;
}

static int line_row(Renderer *renderer, const Value *values) {
        GString *output = renderer->buffer;
        Labels *labels;

        if (!renderer->state)
                renderer->state = make_labels(renderer);
        else
                g_string_append_c(output, '\n');
        labels = renderer->state;

        for (size_t i = 0; i < renderer->n_columns; i++) {
                int indent = (int) (labels->width - labels->label[i].width);

                g_string_append_printf(output, "%*s%s = ", indent, "", labels->label[i].text);
                format_shown_value(output, &values[i], renderer->options.null, SIZE_MAX);
                g_string_append_c(output, '\n');
        }
        renderer_write_buffer(renderer);
        return 0;
}

static void line_done(Renderer *renderer) {
        Labels *labels = renderer->state;

        if (!labels)
                return;
        for (size_t i = 0; i < renderer->n_columns; i++)
                g_free(labels->label[i].text);
        g_free(labels->label);
        g_free(labels);
}

const RenderOps render_line_ops = { .null = "NULL", .row = line_row, .done = line_done };
