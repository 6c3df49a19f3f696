/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* insert and quote: values as SQL literals, which give the same values back. See render.h and sql-literal.h. */
#include "tools/cli/render/render-private.h"
#include "tools/cli/sql/sql-name.h"
#include "tools/terminal/sql-literal.h"

static void write_values(Renderer *renderer, const Value *values, SqlLiteralFlags flags) {
        for (size_t i = 0; i < renderer->n_columns; i++) {
                if (i > 0)
                        sink_char(&renderer->sink, ',');
                sql_literal_write(&renderer->sink, &values[i], flags);
        }
}

/* ---- insert ------------------------------------------------------------------------------------------------------- */

/* Prepares "INSERT INTO t(a,b) VALUES(", which is the same for each row. */
static void insert_begin(Renderer *renderer) {
        char buffer[SINK_SIZE_MIN];
        GString *front = g_string_new("INSERT INTO ");
        Sink sink = { .string = front, .buffer = buffer, .size = sizeof buffer };

        renderer->state = front;
        sql_name_write(&sink, renderer->options.table_name);
        for (size_t i = 0; renderer->headers && i < renderer->n_columns; i++) {
                sink_char(&sink, i == 0 ? '(' : ',');
                sql_name_write(&sink, renderer->names[i]);
        }
        sink_string(&sink, renderer->headers ? ") VALUES(" : " VALUES(");
        sink_flush(&sink);
}

static void insert_row(Renderer *renderer, const Value *values) {
        const GString *front = renderer->state;

        sink_write(&renderer->sink, front->str, front->len);
        write_values(renderer, values, SQL_LITERAL_ONE_LINE);
        sink_string(&renderer->sink, ");\n");
}

static void insert_done(Renderer *renderer) {
        if (renderer->state)
                g_string_free(renderer->state, TRUE);
}

const RenderOps render_insert_ops = { .null = "NULL", .begin = insert_begin, .row = insert_row, .done = insert_done };

/* ---- quote -------------------------------------------------------------------------------------------------------- */

static void quote_row(Renderer *renderer, const Value *values) {
        Sink *sink = &renderer->sink;

        if (renderer->headers && renderer->n_rows == 0) {
                for (size_t i = 0; i < renderer->n_columns; i++) {
                        if (i > 0)
                                sink_char(sink, ',');
                        sql_literal_quoted(sink, renderer->names[i], strlen(renderer->names[i]), '\'');
                }
                sink_char(sink, '\n');
        }
        write_values(renderer, values, 0);
        sink_char(sink, '\n');
}

const RenderOps render_quote_ops = { .null = "NULL", .row = quote_row };
