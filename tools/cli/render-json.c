/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * json and jsonl: always valid JSON in UTF-8, whatever the bytes were.
 *
 * As sqlite3's own shell writes it (REAL with 20 digits, which read back as the same double; infinities as 1e999), but
 * for what would not be JSON or would lose something there: an empty result is [], text goes on behind a NUL (\u0000),
 * bytes that are no UTF-8 become U+FFFD, and a BLOB is {"base64": "..."}, to tell it from text.
 */
#include <math.h>
#include <string.h>

#include "format.h"
#include "json.h"
#include "render-private.h"

static void append_real(GString *output, double value) {
        char number[FORMAT_NUMBER_SIZE];

        if (isinf(value))
                g_string_append(output, value < 0 ? "-1e999" : "1e999");
        else if (isnan(value)) /* SQLite has none; a stream might */
                g_string_append(output, "null");
        else
                g_string_append_len(output, number, (gssize) format_double(number, value, FORMAT_DIGITS_EXACT));
}

static void append_blob(GString *output, const void *blob, size_t size) {
        gint state = 0, save = 0;
        size_t start, room = (size / 3 + 1) * 4 + 4;
        gsize n;

        g_string_append(output, "{\"base64\":\"");
        start = output->len;
        g_string_set_size(output, start + room);
        n = g_base64_encode_step(blob, size, FALSE, output->str + start, &state, &save);
        n += g_base64_encode_close(FALSE, output->str + start + n, &state, &save);
        g_string_truncate(output, start + n);
        g_string_append(output, "\"}");
}

static void append_value(GString *output, const Value *value) {
        switch (value->type) {
        case SQLIPC_INTEGER:
                g_string_append_printf(output, "%" G_GINT64_FORMAT, value->integer);
                return;
        case SQLIPC_REAL:
                append_real(output, value->real);
                return;
        case SQLIPC_TEXT:
                json_append_string(output, value->bytes, value->size);
                return;
        case SQLIPC_BLOB:
                append_blob(output, value->bytes, value->size);
                return;
        case SQLIPC_NULL:
                break;
        }
        g_string_append(output, "null");
}

static void append_object(Renderer *renderer, const Value *values) {
        GString *output = renderer->buffer;

        g_string_append_c(output, '{');
        for (size_t i = 0; i < renderer->n_columns; i++) {
                if (i > 0)
                        g_string_append_c(output, ',');
                json_append_string(output, renderer->names[i], strlen(renderer->names[i]));
                g_string_append_c(output, ':');
                append_value(output, &values[i]);
        }
        g_string_append_c(output, '}');
}

static int json_row(Renderer *renderer, const Value *values) {
        g_string_append(renderer->buffer, renderer->n_rows == 0 ? "[" : ",\n");
        append_object(renderer, values);
        renderer_write_buffer(renderer);
        return 0;
}

static int json_finish(Renderer *renderer, bool complete) {
        if (complete)
                g_string_append(renderer->buffer, renderer->n_rows == 0 ? "[]\n" : "]\n");
        else if (renderer->n_rows > 0)
                g_string_append(renderer->buffer, "\n");
        renderer_write_buffer(renderer);
        return 0;
}

const RenderOps render_json_ops = { .row = json_row, .finish = json_finish };

static int jsonl_row(Renderer *renderer, const Value *values) {
        append_object(renderer, values);
        g_string_append_c(renderer->buffer, '\n');
        renderer_write_buffer(renderer);
        return 0;
}

const RenderOps render_jsonl_ops = { .row = jsonl_row };
