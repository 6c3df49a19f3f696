/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * See engine-rows.h.
 */
#include "tests/rigs/engine-rows.h"

#include <string.h>

#include "daemon/worker/core/row-sink.h"
#include "dbus-interfaces/wire/page-encoder.h"

#define PAGE_SIZE 65536
#define LOAD_SIZE (1 << 20)

static void put_value(GString *to, const PageValue *v) {
        switch (v->type) {
        case VALUE_INTEGER:
                g_string_append_printf(to, "i:%" G_GINT64_FORMAT, (int64_t) load_le64(v->bytes));
                return;
        case VALUE_REAL:
                g_string_append_printf(to, "r:%.17g", load_le_double(v->bytes));
                return;
        case VALUE_TEXT:
                g_assert_cmpint(v->bytes[v->size], ==, 0);
                g_string_append(to, "t:");
                g_string_append_len(to, (const char *) v->bytes, (gssize) v->size);
                return;
        case VALUE_BLOB:
                g_string_append(to, "b:");
                for (size_t i = 0; i < v->size; i++)
                        g_string_append_printf(to, "%02x", v->bytes[i]);
                return;
        case VALUE_NULL:
                g_string_append(to, "null");
        }
}

/* Adds the bytes of a BLOB that is written in hex. */
static void add_hex(GByteArray *to, const char *hex) {
        for (; *hex; hex += 2) {
                uint8_t byte = (uint8_t) (g_ascii_xdigit_value(hex[0]) << 4 | g_ascii_xdigit_value(hex[1]));

                g_byte_array_append(to, &byte, 1);
        }
}

/* Adds the rows of the page. */
static void read_page(GString *to, const uint8_t *page, size_t size, unsigned n_columns) {
        PageDecoder d;
        uint8_t *room;
        size_t room_size, done = 0;
        int event;

        page_decoder_init(&d, PAGE_SIZE, PAGE_SIZE);
        d.in_run = true;
        d.n_columns = n_columns;
        d.page_size = PAGE_SIZE;
        d.run = 1;
        while (done < size) {
                g_assert_cmpint(page_decoder_reserve(&d, &room, &room_size), ==, 0);
                room_size = MIN(room_size, size - done);
                memcpy(room, page + done, room_size);
                page_decoder_commit(&d, room_size);
                done += room_size;
                while ((event = page_decoder_next(&d)) == PAGE_ROW) {
                        if (to->len > 0)
                                g_string_append_c(to, '\n');
                        for (unsigned i = 0; i < n_columns; i++) {
                                PageValue v = page_decoder_value(&d, i);

                                if (i > 0)
                                        g_string_append_c(to, '|');
                                put_value(to, &v);
                        }
                }
                g_assert_cmpint(event, ==, PAGE_MORE);
        }
        page_decoder_done(&d);
}

GByteArray *engine_rows_parameters(const char *const *values, unsigned n) {
        GByteArray *row = g_byte_array_new(), *data = g_byte_array_new();

        g_byte_array_set_size(row, (guint) ROW_HEAD_SIZE(n));
        if (n > 0) /* without values, there are no bytes */
                memset(row->data, 0, row->len);
        for (unsigned i = 0; i < n; i++) {
                const char *v = values[i];
                uint8_t number[8];

                if (strncmp(v, "i:", 2) == 0) {
                        row->data[i] = VALUE_INTEGER;
                        store_le64(number, (uint64_t) g_ascii_strtoll(v + 2, NULL, 10));
                        g_byte_array_append(data, number, 8);
                } else if (strncmp(v, "r:", 2) == 0) {
                        row->data[i] = VALUE_REAL;
                        store_le_double(number, g_ascii_strtod(v + 2, NULL));
                        g_byte_array_append(data, number, 8);
                } else if (strncmp(v, "t:", 2) == 0) {
                        row->data[i] = VALUE_TEXT;
                        g_byte_array_append(data, (const uint8_t *) v + 2, (guint) strlen(v + 2) + 1);
                } else if (strncmp(v, "b:", 2) == 0) {
                        row->data[i] = VALUE_BLOB;
                        add_hex(data, v + 2);
                } else
                        row->data[i] = VALUE_NULL;
                store_le32(row->data + n + 4 * (size_t) i, data->len);
        }
        g_byte_array_append(row, data->data, data->len);
        g_byte_array_unref(data);
        return row;
}

char *engine_rows_read(const Engine *engine, EngineStatement *statement, SqlError *error) {
        static uint8_t memory[PAGE_SIZE];
        static const PageWriter writer = { .fd = -1 };
        g_autoptr(GString) rows = g_string_new(NULL);
        PageEncoder encoder;
        RowSink sink = { .encoder = &encoder, .writer = &writer, .row_size_max = PAGE_SIZE, .n_rows_max = UINT64_MAX };
        EngineResult result;

        page_encoder_init(&encoder, memory, sizeof memory, 1);
        result = engine->step(statement, &sink, error);
        while (result == ENGINE_ROW || result == ENGINE_PAGE_FULL || result == ENGINE_NO_ROOM) {
                result = engine->fill(statement, &sink, error);
                if (sink.n_columns > 0)
                        read_page(rows, memory, page_encoder_finish(&encoder), sink.n_columns);
                page_encoder_clear(&encoder);
        }
        if (result != ENGINE_DONE) {
                g_assert_cmpint(error->error, !=, ERROR_NONE);
                return NULL;
        }
        return g_string_free(g_steal_pointer(&rows), FALSE);
}

static void encode_value(PageEncoder *e, const char *v) {
        g_autoptr(GByteArray) blob = NULL;

        if (g_str_has_prefix(v, "i:"))
                page_encoder_add_int64(e, g_ascii_strtoll(v + 2, NULL, 10));
        else if (g_str_has_prefix(v, "r:"))
                page_encoder_add_double(e, g_ascii_strtod(v + 2, NULL));
        else if (g_str_has_prefix(v, "t:"))
                page_encoder_add_text(e, v + 2, strlen(v + 2));
        else if (g_str_has_prefix(v, "b:")) {
                blob = g_byte_array_new();
                add_hex(blob, v + 2);
                page_encoder_add_blob(e, blob->data, blob->len);
        } else
                page_encoder_add_null(e);
}

void engine_rows_feed(RowSource *source, unsigned n_rows, unsigned n_columns, EngineRowFor row_for, void *userdata) {
        g_autofree uint8_t *memory = g_malloc(LOAD_SIZE);
        g_autofree const char **values = g_new(const char *, n_columns);
        PageEncoder e;
        uint8_t *room;
        size_t size, room_size;

        page_encoder_init(&e, memory, LOAD_SIZE, 1);
        for (unsigned i = 0; i < n_rows; i++) {
                row_for(userdata, i, values);
                g_assert_cmpint(page_encoder_begin_row(&e, n_columns), ==, 1);
                for (unsigned k = 0; k < n_columns; k++)
                        encode_value(&e, values[k]);
                g_assert_cmpint(page_encoder_end_row(&e), ==, 1);
        }
        size = page_encoder_finish(&e);
        *source = (RowSource) { .until_usec = UINT64_MAX };
        page_decoder_init(&source->decoder, LOAD_SIZE, LOAD_SIZE);
        source->decoder.in_run = true;
        source->decoder.n_columns = n_columns;
        source->decoder.page_size = LOAD_SIZE;
        source->decoder.run = 1;
        for (size_t done = 0; done < size; done += room_size) {
                g_assert_cmpint(page_decoder_reserve(&source->decoder, &room, &room_size), ==, 0);
                room_size = MIN(room_size, size - done);
                memcpy(room, memory + done, room_size);
                page_decoder_commit(&source->decoder, room_size);
                if (done + room_size < size) /* a large frame comes in pieces */
                        g_assert_cmpint(page_decoder_next(&source->decoder), ==, PAGE_MORE);
        }
        source->event = page_decoder_next(&source->decoder);
}
