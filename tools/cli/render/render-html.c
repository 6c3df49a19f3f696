/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* html: the rows of a table, as sqlite3 writes them, without the enclosing <TABLE>. For programs, see render.h. */
#include "tools/cli/render/render-private.h"
#include "tools/terminal/format.h"
#include "tools/terminal/sql-literal.h"

static void write_text(Sink *sink, const char *text, size_t size) {
        static const char *const entities[256] = {
                ['<'] = "&lt;", ['&'] = "&amp;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;",
        };
        size_t plain = 0;

        for (size_t i = 0; i < size; i++) {
                const char *entity = entities[(unsigned char) text[i]];

                if (!entity)
                        continue;
                sink_write(sink, text + plain, i - plain);
                sink_string(sink, entity);
                plain = i + 1;
        }
        sink_write(sink, text + plain, size - plain);
}

/* Writes a value. The quotes of a literal need no entity between tags. */
static void write_value(Renderer *renderer, const Value *value) {
        Sink *sink = &renderer->sink;

        switch (value->type) {
        case SQLIPC_INTEGER:
                sink_advance(sink, format_integer(sink_reserve(sink, FORMAT_NUMBER_SIZE), value->integer));
                return;
        case SQLIPC_REAL:
                sink_advance(sink, format_double_exact(sink_reserve(sink, FORMAT_NUMBER_SIZE), value->real));
                return;
        case SQLIPC_TEXT:
                if (memchr(value->bytes, 0, value->size))
                        sql_literal_cast_text(sink, value->bytes, value->size);
                else
                        write_text(sink, value->bytes, value->size);
                return;
        case SQLIPC_BLOB:
                sink_string(sink, "x'");
                sink_hex(sink, value->bytes, value->size);
                sink_char(sink, '\'');
                return;
        case SQLIPC_NULL:
                break;
        }
        write_text(sink, renderer->options.null, strlen(renderer->options.null));
}

static void write_names(Renderer *renderer) {
        sink_string(&renderer->sink, "<TR>");
        for (size_t i = 0; i < renderer->n_columns; i++) {
                sink_string(&renderer->sink, "<TH>");
                write_text(&renderer->sink, renderer->names[i], strlen(renderer->names[i]));
                sink_string(&renderer->sink, "</TH>\n");
        }
        sink_string(&renderer->sink, "</TR>\n");
}

static void html_row(Renderer *renderer, const Value *values) {
        if (renderer->headers && renderer->n_rows == 0)
                write_names(renderer);
        sink_string(&renderer->sink, "<TR>");
        for (size_t i = 0; i < renderer->n_columns; i++) {
                sink_string(&renderer->sink, "<TD>");
                write_value(renderer, &values[i]);
                sink_string(&renderer->sink, "</TD>\n");
        }
        sink_string(&renderer->sink, "</TR>\n");
}

const RenderOps render_html_ops = { .null = "", .headers = true, .row = html_row };
