/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The bytes of a load (load-stream.h). Library. Pure. */
#include "client-lib/load-stream.h"
#include "client-lib/parameter-row.h"

/* Room for larger rows is freed once such a row was sent. */
#define PART_SIZE_KEPT ((size_t) 1024 * 1024)

static void complete_page(LoadStream *s) {
        s->size = page_encoder_finish(&s->page);
        s->sent = 0;
        s->n_bytes += s->size;
}

/* ---- Parts -------------------------------------------------------------------------------------------------------- */

static uint8_t *begin_part(LoadStream *s, FrameKind kind, size_t size) {
        if (size > s->part_capacity) {
                uint8_t *part = malloc(size);

                if (!part)
                        return NULL;
                free(s->part);
                s->part = part;
                s->part_capacity = size;
        }
        s->part_kind = kind;
        s->part_size = size;
        s->part_taken = 0;
        return s->part;
}

static void end_part(LoadStream *s) {
        s->part_size = s->part_taken = 0;
        if (s->part_capacity <= PART_SIZE_KEPT)
                return;
        free(steal(s->part));
        s->part_capacity = 0;
}

/* Moves as much of the part into the page as fits. True if the page is open then, and nothing precedes the next row. */
static bool take_part(LoadStream *s) {
        while (s->size == 0 && s->part_size > 0) {
                bool more;

                if (!page_encoder_begin_part(&s->page, s->part_kind)) {
                        complete_page(s);
                        break;
                }
                s->part_taken += page_encoder_append(&s->page, s->part + s->part_taken, s->part_size - s->part_taken);
                more = s->part_taken < s->part_size;
                page_encoder_end_part(&s->page, more);
                if (more)
                        complete_page(s);
                else
                        end_part(s);
        }
        return s->size == 0;
}

/* Columns need no names: the service looks only at their number. */
static int begin_columns(LoadStream *s, unsigned n_columns, size_t page_size) {
        size_t ends_size = (size_t) 8 * n_columns;
        uint8_t *payload = begin_part(s, FRAME_COLUMNS, 8 + ends_size + n_columns);

        if (!payload)
                return -ENOMEM;
        store_le32(payload, n_columns);
        store_le32(payload + 4, (uint32_t) page_size);
        for (unsigned i = 0; i < n_columns; i++) { /* an empty name is a NUL, and an absent declared type is nothing */
                store_le32(payload + 8 + (size_t) 8 * i, i + 1);
                store_le32(payload + 12 + (size_t) 8 * i, i + 1);
        }
        memset(payload + 8 + ends_size, 0, n_columns);
        return 0;
}

int load_stream_open(LoadStream *s, uint64_t run, unsigned n_columns, size_t page_size) {
        *s = (LoadStream) { .memory = malloc(page_size) };
        if (!s->memory)
                return -ENOMEM;
        page_encoder_init(&s->page, s->memory, page_size, run);
        return begin_columns(s, n_columns, page_size);
}

void load_stream_done(LoadStream *s) {
        free(steal(s->memory));
        free(steal(s->part));
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static void add_value(PageEncoder *page, const Parameter *p) {
        switch (p->type) {
        case SQLIPC_INTEGER:
                page_encoder_add_int64(page, p->integer);
                break;
        case SQLIPC_REAL:
                page_encoder_add_double(page, p->real);
                break;
        case SQLIPC_TEXT:
                page_encoder_add_text(page, p->bytes, p->size);
                break;
        case SQLIPC_BLOB:
                page_encoder_add_blob(page, p->bytes, p->size);
                break;
        case SQLIPC_NULL:
                page_encoder_add_null(page);
                break;
        }
}

static bool add_to_page(LoadStream *s, const Parameter *values, unsigned n_columns) {
        if (!page_encoder_begin_row(&s->page, n_columns))
                return false;
        for (unsigned i = 0; i < n_columns; i++)
                add_value(&s->page, &values[i]);
        return page_encoder_end_row(&s->page);
}

int load_stream_add(LoadStream *s, const Parameter *values, unsigned n_columns) {
        ParameterRow row;
        uint8_t *part;
        int r;

        r = parameter_row_init(&row, values, n_columns, 0, SQLIPC_ROW_SIZE_MAX);
        if (r < 0)
                return r;
        if (!take_part(s))
                return 0;
        if (!add_to_page(s, values, n_columns)) {
                if (!page_encoder_is_empty(&s->page)) {
                        complete_page(s);
                        return 0;
                }
                part = begin_part(s, FRAME_BIG_ROW, row.size);
                if (!part)
                        return -ENOMEM;
                parameter_row_write(&row, part);
        }
        s->n_rows++;
        return 1;
}

/* ---- Sending ------------------------------------------------------------------------------------------------------ */

void load_stream_end(LoadStream *s) {
        s->ends = true;
}

/* If END does not fit, it is the next page. */
static void add_end(LoadStream *s) {
        EndCounters counters = { .n_rows = s->n_rows, .n_bytes = s->n_bytes + page_encoder_finish(&s->page) };

        s->ended = page_encoder_end(&s->page, &counters);
        complete_page(s);
}

const uint8_t *load_stream_next(LoadStream *s, size_t *ret_size) {
        if (take_part(s) && s->ends && !s->ended)
                add_end(s);
        *ret_size = s->size - s->sent;
        return s->memory + s->sent;
}

void load_stream_sent(LoadStream *s, size_t n) {
        s->sent += n;
        if (s->sent < s->size)
                return;
        s->size = s->sent = 0;
        page_encoder_clear(&s->page);
}
