/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * json and jsonl: always valid JSON in UTF-8, whatever the bytes were.
 *
 * The format is that of sqlite3's shell (REAL with 20 digits, which read back as the same double; infinities as 1e999),
 * except if that is not JSON or loses data: an empty result is [], text continues after a NUL (\u0000), bytes that are
 * not UTF-8 become U+FFFD, and a BLOB is {"base64": "..."}, to distinguish it from text. Characters that act on a terminal
 * are escaped like \u009b, which is the same JSON.
 */
#include <math.h>

#include "tools/cli/render/render-private.h"
#include "tools/terminal/format.h"
#include "tools/terminal/json.h"

static void write_real(Sink *sink, double value) {
        char *number = sink_reserve(sink, FORMAT_NUMBER_SIZE);

        if (isinf(value))
                sink_string(sink, value < 0 ? "-1e999" : "1e999");
        else if (isnan(value)) /* SQLite has no NaN, but a stream may contain one */
                sink_string(sink, "null");
        else
                sink_advance(sink, format_double(number, value, FORMAT_DIGITS_EXACT));
}

static void write_blob(Sink *sink, const char *blob, size_t size) {
        enum { PIECE = 3072 };
        char encoded[(PIECE / 3 + 1) * 4 + 4];
        gint state = 0, save = 0;

        sink_string(sink, "{\"base64\":\"");
        for (size_t done = 0; done < size; done += PIECE)
                sink_write(sink, encoded,
                           g_base64_encode_step((const guchar *) blob + done, MIN(size - done, (size_t) PIECE), FALSE,
                                                encoded, &state, &save));
        sink_write(sink, encoded, g_base64_encode_close(FALSE, encoded, &state, &save));
        sink_string(sink, "\"}");
}

static void write_value(Sink *sink, const Value *value) {
        switch (value->type) {
        case SQLIPC_INTEGER:
                sink_advance(sink, format_integer(sink_reserve(sink, FORMAT_NUMBER_SIZE), value->integer));
                return;
        case SQLIPC_REAL:
                write_real(sink, value->real);
                return;
        case SQLIPC_TEXT:
                json_write_string(sink, value->bytes, value->size);
                return;
        case SQLIPC_BLOB:
                write_blob(sink, value->bytes, value->size);
                return;
        case SQLIPC_NULL:
                break;
        }
        sink_string(sink, "null");
}

/* The text before each value, from "{" or "," to ":", all in one string; each name is escaped only once. */
typedef struct Keys {
        GString *text;
        size_t *end; /* n_columns */
} Keys;

static void keys_begin(Renderer *renderer) {
        Keys *keys = renderer->state = g_new(Keys, 1);

        keys->text = g_string_new(NULL);
        keys->end = g_new(size_t, renderer->n_columns);
        for (size_t i = 0; i < renderer->n_columns; i++) {
                g_string_append_c(keys->text, i == 0 ? '{' : ',');
                json_append_string(keys->text, renderer->names[i], strlen(renderer->names[i]));
                g_string_append_c(keys->text, ':');
                keys->end[i] = keys->text->len;
        }
}

static void keys_done(Renderer *renderer) {
        Keys *keys = renderer->state;

        if (!keys)
                return;
        g_string_free(keys->text, TRUE);
        g_free(keys->end);
        g_free(keys);
}

static void write_object(Renderer *renderer, const Value *values) {
        const Keys *keys = renderer->state;
        size_t start = 0;

        for (size_t i = 0; i < renderer->n_columns; i++) {
                sink_write(&renderer->sink, keys->text->str + start, keys->end[i] - start);
                write_value(&renderer->sink, &values[i]);
                start = keys->end[i];
        }
        sink_char(&renderer->sink, '}');
}

static void json_row(Renderer *renderer, const Value *values) {
        sink_string(&renderer->sink, renderer->n_rows == 0 ? "[" : ",\n");
        write_object(renderer, values);
}

static void json_finish(Renderer *renderer, bool complete) {
        if (complete)
                sink_string(&renderer->sink, renderer->n_rows == 0 ? "[]\n" : "]\n");
        else if (renderer->n_rows > 0)
                sink_char(&renderer->sink, '\n');
}

const RenderOps render_json_ops = {
        .null = "null", .begin = keys_begin, .row = json_row, .finish = json_finish, .done = keys_done,
};

static void jsonl_row(Renderer *renderer, const Value *values) {
        write_object(renderer, values);
        sink_char(&renderer->sink, '\n');
}

const RenderOps render_jsonl_ops = { .null = "null", .begin = keys_begin, .row = jsonl_row, .done = keys_done };
