/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values as they are shown, see render-cell.h. Pure. */
#include "render-cell.h"

#include <wchar.h>

#include "format.h"

enum {
        PIECE_SIZE = 8192,     /* values are shown in pieces of about so many bytes */
        CLUSTER_SIZE = 128,    /* a character and its marks may need so many; what is longer has no width past them */
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

static void give_text(const Pieces *pieces, const Value *value, size_t max) {
        size_t done = 0, room = max;

        while (done < value->size) {
                size_t before = pieces->scratch->len;
                size_t n = format_shown_lines(pieces->scratch, value->bytes + done, value->size - done,
                                              MIN(room, (size_t) PIECE_SIZE));

                if (n == 0)
                        break;
                done += n;
                room -= pieces->scratch->len - before;
                if (done < value->size)
                        give(pieces, false);
        }
        if (done < value->size)
                g_string_append_printf(pieces->scratch, FORMAT_ELLIPSIS " (%zu bytes)", value->size);
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

void render_cell(const Value *value, const char *null, size_t max, GString *scratch, RenderPiece piece, void *userdata) {
        const Pieces pieces = { .scratch = scratch, .piece = piece, .userdata = userdata };

        if (value->type == SQLIPC_NULL)
                format_shown_lines(scratch, null, strlen(null), max);
        else if (value->type == SQLIPC_TEXT)
                give_text(&pieces, value, max);
        else if (value->type == SQLIPC_BLOB && max == SIZE_MAX)
                give_blob(&pieces, value);
        else
                format_shown_value(scratch, value, null, max);
        give(&pieces, true);
}

/* ---- Grids -------------------------------------------------------------------------------------------------------- */

typedef struct Fit {
        Sink *sink;
        bool one_line;
        bool newline;  /* one waits: at the end of the value it goes */
        size_t column; /* that the line has reached */
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

/* Newlines, tabs and, in markdown, "|". False: `c` is none of these. */
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

/* Characters of ASCII at the beginning of `text` that have a column each and no marks. */
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

CellSize render_cell_fit(Sink *sink, const Value *value, const char *null, size_t max, bool one_line, GString *scratch) {
        Fit fit = { .sink = sink, .one_line = one_line };

        render_cell(value, null, max, scratch, fit_piece, &fit);
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

size_t render_cell_prefix(const char *text, size_t width, size_t *ret_size) {
        size_t size = strcspn(text, "\n"), used = 0, done = 0;

        while (done < size) {
                size_t columns, n = MIN(format_plain_clusters(text + done, size - done), width - used);

                if (n > 0)
                        columns = n;
                else
                        n = format_next_cluster(text + done, size - done, &columns);
                if (used + columns > width)
                        break;
                used += columns;
                done += n;
        }
        *ret_size = done;
        return used;
}
