/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * csv, tsv, list, ascii and tcl: rows as lines, for programs; render.h lists the differences from sqlite3.
 *
 *                      csv, tsv, list                                  ascii, tcl
 *      INTEGER, REAL   exact: they contain no separators or quotes     as sqlite3 shows them
 *      TEXT            quoted by the rules of the mode; with a NUL,    its bytes, in tcl with escapes
 *                      which no line can hold, as an SQL literal
 *      BLOB            an SQL literal                                  its bytes, in tcl with escapes
 */
#include <sqlite3.h>

#include "tools/cli/render/render-private.h"
#include "tools/terminal/format.h"
#include "tools/terminal/sql-literal.h"

/* Classes of bytes within a value. */
enum {
        ZERO = 1 << 0,
        CSV_QUOTES = 1 << 1, /* needCsvQuote[] of SQLite's shell: controls, blank, quotes, non-ASCII bytes; the separator */
        TSV_QUOTES = 1 << 2, /* bytes that end a value or a row; and CR, which .import strips */
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

/* Writes text for tsv. .import treats a leading quote as a quote, and drops a leading byte-order mark. */
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

/* ---- ascii and tcl: sqlite3's bytes --------------------------------------------------------------------------------- */

/* How a mode writes a value, and the separators after a value and after a row. */
typedef struct Raw {
        TextWriter write;
        const char *between, *end;
} Raw;

static void write_ascii_text(Sink *sink, const char *text, size_t size) {
        sink_write(sink, text, size);
}

/* Writes a list element of Tcl; like sqlite3, with an octal escape for each byte that is not printable ASCII. That of 3.46
 * leaves valid UTF-8 as it is, and has a letter for form feed. */
static void write_tcl_text(Sink *sink, const char *text, size_t size) {
        static const char letters[] = "\\\\\"\"\tt\nn\rr\ff"; /* each character, and its letter */
        bool is_new = sqlite3_libversion_number() >= 3046000;

        sink_char(sink, '"');
        for (const char *p = text; p < text + size; p++) {
                const char *letter = *p ? strchr(letters, *p) : NULL;

                if (letter && (letter - letters) % 2 == 0 && (is_new || *p != '\f')) {
                        sink_char(sink, '\\');
                        sink_char(sink, letter[1]);
                } else if (*p >= ' ' && *p < 0x7f)
                        sink_char(sink, *p);
                else if (is_new && (unsigned char) *p >= 0x80 && g_utf8_get_char_validated(p, text + size - p) <= 0x10ffff) {
                        const char *next = g_utf8_next_char(p);

                        sink_write(sink, p, (size_t) (next - p));
                        p = next - 1;
                } else
                        sink_advance(sink, (size_t) g_snprintf(sink_reserve(sink, 5), 5, "\\%03o", (unsigned char) *p));
        }
        sink_char(sink, '"');
}

static const Raw ascii = { write_ascii_text, "\x1f", "\x1e" }, tcl = { write_tcl_text, " ", "\n" };

static void write_raw_value(Renderer *renderer, const Value *value, const Raw *raw) {
        char number[FORMAT_NUMBER_SIZE];

        switch (value->type) {
        case SQLIPC_INTEGER:
        case SQLIPC_REAL:
                raw->write(&renderer->sink, number, format_number(number, value));
                return;
        case SQLIPC_TEXT:
        case SQLIPC_BLOB:
                raw->write(&renderer->sink, value->bytes, value->size);
                return;
        case SQLIPC_NULL:
                break;
        }
        raw->write(&renderer->sink, renderer->options.null, strlen(renderer->options.null));
}

static void write_raw_names(Renderer *renderer, const Raw *raw) {
        for (size_t i = 0; i < renderer->n_columns; i++) {
                raw->write(&renderer->sink, renderer->names[i], strlen(renderer->names[i]));
                sink_string(&renderer->sink, i + 1 < renderer->n_columns ? raw->between : raw->end);
        }
}

static void write_raw_row(Renderer *renderer, const Value *values, const Raw *raw) {
        if (renderer->headers && renderer->n_rows == 0)
                write_raw_names(renderer, raw);
        for (size_t i = 0; i < renderer->n_columns; i++) {
                write_raw_value(renderer, &values[i], raw);
                sink_string(&renderer->sink, i + 1 < renderer->n_columns ? raw->between : raw->end);
        }
}

static void ascii_row(Renderer *renderer, const Value *values) {
        write_raw_row(renderer, values, &ascii);
}

const RenderOps render_ascii_ops = { .null = "", .row = ascii_row };

static void tcl_row(Renderer *renderer, const Value *values) {
        write_raw_row(renderer, values, &tcl);
}

const RenderOps render_tcl_ops = { .null = "", .row = tcl_row };
