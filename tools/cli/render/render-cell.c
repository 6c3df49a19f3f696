/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes values ready to be shown, see render-cell.h. Pure. */
#include "tools/cli/render/render-cell.h"

#include <wchar.h>

#include "tools/terminal/format.h"

enum {
        PIECE_SIZE = 8192,     /* approximate size of the pieces in which values are shown */
        CLUSTER_SIZE = 128,    /* the bytes of a character and its marks; bytes beyond this do not count for the width */
};

size_t render_value_max(const Renderer *renderer) {
        return renderer->options.terminal ? RENDER_VALUE_MAX : SIZE_MAX;
}

void render_name(GString *output, const char *name, size_t max) {
        size_t size = strlen(name);

        if (format_shown_text(output, name, size, max) < size)
                g_string_append(output, FORMAT_ELLIPSIS);
}

/* ---- Values in pieces --------------------------------------------------------------------------------------------- */

typedef struct Pieces {
        GString *scratch; /* borrowed */
        RenderPiece piece;
        void *userdata;
} Pieces;

static void give(const Pieces *pieces, bool last) {
        size_t taken = pieces->piece(pieces->userdata, pieces->scratch->str, pieces->scratch->len, last);

        g_string_erase(pieces->scratch, 0, (gssize) taken);
}

/* Returns the size up to and including the next quote, which must be doubled. A piece may drop each CR, but never takes more
 * bytes than are searched here. */
static size_t quoted_run(const char *text, size_t size) {
        const char *quote = memchr(text, '\'', MIN(size, 2 * (size_t) PIECE_SIZE + 2));

        return quote ? (size_t) (quote - text) + 1 : size;
}

static void give_text(const Pieces *pieces, const Value *value, size_t max, bool quoted) {
        size_t done = 0, room = max;

        if (quoted)
                g_string_append_c(pieces->scratch, '\'');
        while (done < value->size) {
                const char *text = value->bytes + done;
                size_t before = pieces->scratch->len, size = value->size - done;
                size_t n = format_shown_lines(pieces->scratch, text, quoted ? quoted_run(text, size) : size,
                                              MIN(room, (size_t) PIECE_SIZE));

                if (n == 0)
                        break;
                if (quoted && text[n - 1] == '\'')
                        g_string_append_c(pieces->scratch, '\'');
                done += n;
                room -= MIN(pieces->scratch->len - before, room);
                if (done < value->size && pieces->scratch->len >= PIECE_SIZE / 2)
                        give(pieces, false);
        }
        if (done < value->size)
                g_string_append(pieces->scratch, FORMAT_ELLIPSIS);
        if (quoted)
                g_string_append_c(pieces->scratch, '\'');
        if (done < value->size)
                g_string_append_printf(pieces->scratch, " (%zu bytes)", value->size);
}

static void give_blob(const Pieces *pieces, const Value *value) {
        char buffer[SINK_SIZE_MIN];
        Sink sink = { .string = pieces->scratch, .buffer = buffer, .size = sizeof buffer };

        sink_string(&sink, "x'");
        for (size_t done = 0, n; done < value->size; done += n) {
                n = MIN(value->size - done, (size_t) PIECE_SIZE / 2);
                sink_hex(&sink, value->bytes + done, n);
                sink_flush(&sink);
                give(pieces, false);
        }
        sink_char(&sink, '\'');
        sink_flush(&sink);
}

void render_cell(const Renderer *renderer, const Value *value, size_t max, RenderPiece piece, void *userdata) {
        const Pieces pieces = { .scratch = renderer->scratch, .piece = piece, .userdata = userdata };
        const char *null = renderer_quotes(renderer) ? "NULL" : renderer->options.null;

        if (value->type == SQLIPC_NULL)
                format_shown_lines(renderer->scratch, null, strlen(null), max);
        else if (value->type == SQLIPC_TEXT)
                give_text(&pieces, value, max, renderer_quotes(renderer));
        else if (value->type == SQLIPC_BLOB && max == SIZE_MAX)
                give_blob(&pieces, value);
        else
                format_shown_value(renderer->scratch, value, null, max);
        give(&pieces, true);
}

/* ---- Grids -------------------------------------------------------------------------------------------------------- */

typedef struct Fit {
        Sink *sink;
        bool one_line;
        bool newline;  /* a newline is pending: at the end of the value it is dropped */
        size_t column; /* reached in the current line */
        CellSize size;
} Fit;

static void put(Fit *fit, const char *text, size_t size, size_t width) {
        if (fit->newline) {
                sink_string(fit->sink, fit->one_line ? "<br>" : "\n");
                fit->column = fit->one_line ? fit->column + strlen("<br>") : 0;
                fit->newline = false;
        }
        sink_write(fit->sink, text, size);
        fit->column += width;
        fit->size.width = MAX(fit->size.width, fit->column);
}

static void put_escaped(Fit *fit, gunichar c) {
        char buffer[12];
        int n = g_snprintf(buffer, sizeof buffer, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);

        put(fit, buffer, (size_t) n, (size_t) n);
}

/* Writes newlines, tabs and, in markdown, "|". Returns false if `c` is none of these. */
static bool put_layout(Fit *fit, char c) {
        if (c == '\n') {
                put(fit, "", 0, 0);
                fit->newline = true;
        } else if (c == '\t') {
                put(fit, "", 0, 0);
                put(fit, "        ", 8 - fit->column % 8, 8 - fit->column % 8);
        } else if (c == '|' && fit->one_line)
                put(fit, "\\|", 2, 2);
        else
                return false;
        return true;
}

/* Returns the number of ASCII characters at the start of `text` that are one column wide and have no marks. */
static size_t plain_run(const Fit *fit, const char *text, size_t size) {
        size_t n = 0;

        while (n < size && text[n] >= ' ' && text[n] < 0x7f && !(text[n] == '|' && fit->one_line))
                n++;
        return n > 0 && n < size && (unsigned char) text[n] >= 0x80 ? n - 1 : n;
}

static void put_cluster(Fit *fit, const char *text, size_t size, size_t width) {
        gunichar c = g_utf8_get_char(text);

        if (wcwidth((wchar_t) c) < 0)
                put_escaped(fit, c);
        else {
                put(fit, text, size, width);
                fit->size.cluster = MAX(fit->size.cluster, width);
        }
}

static size_t fit_piece(void *userdata, const char *text, size_t size, bool last) {
        size_t done = 0, n, width;
        Fit *fit = userdata;

        while (done < size && (last || size - done > CLUSTER_SIZE)) {
                const char *p = text + done;

                n = plain_run(fit, p, size - done);
                if (n > 0)
                        put(fit, p, n, n);
                else if (put_layout(fit, *p))
                        n = 1;
                else {
                        n = format_next_cluster(p, size - done, &width);
                        put_cluster(fit, p, n, width);
                }
                done += n;
        }
        return done;
}

CellSize render_cell_fit(const Renderer *renderer, const Value *value, bool one_line, Sink *sink) {
        Fit fit = { .sink = sink, .one_line = one_line };

        render_cell(renderer, value, render_value_max(renderer), fit_piece, &fit);
        return fit.size;
}

CellSize render_name_fit(GString *output, const char *name, bool one_line) {
        char buffer[SINK_SIZE_MIN];
        Sink sink = { .string = output, .buffer = buffer, .size = sizeof buffer };
        Fit fit = { .sink = &sink, .one_line = one_line };

        (void) fit_piece(&fit, name, strlen(name), true);
        sink_flush(&sink);
        return fit.size;
}

/* Reads only the prefix, because a long line is continued many times. */
size_t render_cell_prefix(const char *text, size_t width, size_t *ret_size) {
        size_t used = 0, done = 0;

        while (text[done] && text[done] != '\n') {
                const char *p = text + done;
                size_t columns, n = MIN(format_plain_clusters(p, width - used + 1), width - used); /* stops at the NUL */

                if (n > 0)
                        columns = n;
                else {
                        size_t size = strnlen(p, CLUSTER_SIZE);
                        const char *newline = memchr(p, '\n', size);

                        n = format_next_cluster(p, newline ? (size_t) (newline - p) : size, &columns);
                }
                if (used + columns > width)
                        break;
                used += columns;
                done += n;
        }
        *ret_size = done;
        return used;
}
