/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * csv, tsv and list: rows as lines, for programs; see render.h for what differs from sqlite3's.
 *
 *      INTEGER, REAL   as they are: neither has a separator or a quote in it
 *      TEXT            quoted as the mode does it; with a NUL, which no line can hold, as a literal of SQL
 *      BLOB            a literal of SQL
 */
#include "format.h"
#include "render-private.h"
#include "sql-literal.h"

/* What a byte means within a value. */
enum {
        ZERO = 1 << 0,
        CSV_QUOTES = 1 << 1, /* needCsvQuote[] of SQLite's shell: controls, blank, quotes, all past ASCII; the separator */
        TSV_QUOTES = 1 << 2, /* what ends a value or a row; and CR, which .import strips */
};

static const unsigned char classes[256] = {
        [0] = ZERO | CSV_QUOTES,
        [1 ... 8] = CSV_QUOTES,
        ['\t'] = CSV_QUOTES | TSV_QUOTES,
        ['\n'] = CSV_QUOTES | TSV_QUOTES,
        [11 ... 12] = CSV_QUOTES,
        ['\r'] = CSV_QUOTES | TSV_QUOTES,
        [14 ... ' '] = CSV_QUOTES,
        ['"'] = CSV_QUOTES,
        ['\''] = CSV_QUOTES,
        [','] = CSV_QUOTES,
        [0x7f ... 0xff] = CSV_QUOTES,
};

static unsigned classes_of(const char *text, size_t size) {
        unsigned seen = 0;

        for (size_t i = 0; i < size; i++)
                seen |= classes[(unsigned char) text[i]];
        return seen;
}

typedef void (*TextWriter)(Sink *sink, const char *text, size_t size);

static void write_csv_text(Sink *sink, const char *text, size_t size) {
        unsigned seen = classes_of(text, size);

        if (seen & ZERO) {
                sink_char(sink, '"');
                sql_literal_cast_text(sink, text, size);
                sink_char(sink, '"');
        } else if ((seen & CSV_QUOTES) || size == 0)
                sql_literal_quoted(sink, text, size, '"');
        else
                sink_write(sink, text, size);
}

/* .import also takes a quote in front for one, and a byte-order mark for none of the text. */
static void write_tsv_text(Sink *sink, const char *text, size_t size) {
        unsigned seen = classes_of(text, size);

        if (seen & ZERO)
                sql_literal_cast_text(sink, text, size);
        else if ((seen & TSV_QUOTES) || size == 0 || *text == '"' || *text == '\357')
                sql_literal_quoted(sink, text, size, '"');
        else
                sink_write(sink, text, size);
}

static void write_list_text(Sink *sink, const char *text, size_t size) {
        if (memchr(text, 0, size))
                sql_literal_cast_text(sink, text, size);
        else
                sink_write(sink, text, size);
}

static void write_blob(Sink *sink, const Value *value, const char *quote) {
        sink_string(sink, quote);
        sink_string(sink, "x'");
        sink_hex(sink, value->bytes, value->size);
        sink_char(sink, '\'');
        sink_string(sink, quote);
}

static inline void write_value(Renderer *renderer, const Value *value, TextWriter write_text, const char *blob_quote) {
        Sink *sink = &renderer->sink;

        switch (value->type) {
        case SQLIPC_INTEGER:
                sink_advance(sink, format_integer(sink_reserve(sink, FORMAT_NUMBER_SIZE), value->integer));
                return;
        case SQLIPC_REAL:
                sink_advance(sink, format_double_exact(sink_reserve(sink, FORMAT_NUMBER_SIZE), value->real));
                return;
        case SQLIPC_TEXT:
                write_text(sink, value->bytes, value->size);
                return;
        case SQLIPC_BLOB:
                write_blob(sink, value, blob_quote);
                return;
        case SQLIPC_NULL:
                break;
        }
        sink_string(sink, renderer->options.null);
}

static inline void write_row(Renderer *renderer, const Value *values, TextWriter write_text, const char *separator,
                             const char *blob_quote) {
        size_t size = strlen(separator);

        for (size_t i = 0; i < renderer->n_columns; i++) {
                if (i > 0)
                        sink_write(&renderer->sink, separator, size);
                write_value(renderer, &values[i], write_text, blob_quote);
        }
        sink_char(&renderer->sink, '\n');
}

static void write_names(Renderer *renderer, TextWriter write_text, const char *separator) {
        for (size_t i = 0; i < renderer->n_columns; i++) {
                if (i > 0)
                        sink_string(&renderer->sink, separator);
                write_text(&renderer->sink, renderer->names[i], strlen(renderer->names[i]));
        }
        sink_char(&renderer->sink, '\n');
}

/* ---- The modes: names come with the first row, so that an empty result is empty, as sqlite3's ------------------------ */

static void csv_row(Renderer *renderer, const Value *values) {
        if (renderer->headers && renderer->n_rows == 0)
                write_names(renderer, write_csv_text, ",");
        write_row(renderer, values, write_csv_text, ",", "\"");
}

const RenderOps render_csv_ops = { .null = "", .headers = true, .row = csv_row };

static void tsv_row(Renderer *renderer, const Value *values) {
        if (renderer->headers && renderer->n_rows == 0)
                write_names(renderer, write_tsv_text, "\t");
        write_row(renderer, values, write_tsv_text, "\t", "");
}

const RenderOps render_tsv_ops = { .null = "", .headers = true, .row = tsv_row };

static void list_row(Renderer *renderer, const Value *values) {
        if (renderer->headers && renderer->n_rows == 0)
                write_names(renderer, write_list_text, renderer->options.separator);
        write_row(renderer, values, write_list_text, renderer->options.separator, "");
}

const RenderOps render_list_ops = { .null = "", .headers = true, .row = list_row };
