/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See run-encode.h.
 */
#include "daemon/worker/run-encode.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

int run_encode_row(Run *run) {
        PageEncoder *e = &run->encoder;
        int n = (int) run->n_columns;

        if (!page_encoder_begin_row(e, run->n_columns))
                return 0;
        for (int i = 0; i < n; i++) {
                /* One lookup for each column: sqlite3_column_type/text/bytes would each repeat it. The value is
                 * "unprotected", which only matters if threads share the connection (see sqlite3_value in sqlite3.h). */
                sqlite3_value *v = sqlite3_column_value(run->stmt, i);
                const void *bytes;
                uint8_t *at;
                size_t size;

                switch (sqlite3_value_type(v)) {
                case SQLITE_INTEGER:
                        page_encoder_add_int64(e, sqlite3_value_int64(v));
                        break;
                case SQLITE_FLOAT:
                        page_encoder_add_double(e, sqlite3_value_double(v));
                        break;
                case SQLITE_TEXT:
                        bytes = sqlite3_value_text(v);
                        if (!bytes) {
                                page_encoder_abort_row(e);
                                return -ENOMEM;
                        }
                        page_encoder_add_text(e, bytes, (size_t) sqlite3_value_bytes(v));
                        break;
                case SQLITE_BLOB:
                        /* the size before the blob: zeroblob() need not be expanded if it does not fit anyway */
                        size = (size_t) sqlite3_value_bytes(v);
                        at = page_encoder_add(e, VALUE_BLOB, size);
                        if (!at || size == 0)
                                break;
                        bytes = sqlite3_value_blob(v);
                        if (!bytes) {
                                page_encoder_abort_row(e);
                                return -ENOMEM;
                        }
                        memcpy(at, bytes, size);
                        break;
                default:
                        page_encoder_add_null(e);
                }
        }
        run->row_size = e->next ? (size_t) (e->next - e->row) : 0;
        if (run->row_size > run->job->row_size_max) {
                page_encoder_abort_row(e);
                return -EMSGSIZE;
        }
        return page_encoder_end_row(e);
}

/* Tells the type of value `i`, and its size in a row. It does not expand a zeroblob(), which may be over the limit.
 * -ENOMEM: TEXT that could not be converted to UTF-8. */
static int measure_value(Run *run, unsigned i, ValueType *ret_type, uint64_t *ret_size) {
        sqlite3_value *v = sqlite3_column_value(run->stmt, (int) i);

        *ret_type = (ValueType) sqlite3_value_type(v);
        *ret_size = 0;
        switch (*ret_type) {
        case VALUE_INTEGER:
        case VALUE_REAL:
                *ret_size = 8;
                break;
        case VALUE_TEXT:
                if (!sqlite3_value_text(v))
                        return -ENOMEM;
                *ret_size = (uint64_t) sqlite3_value_bytes(v) + 1; /* SQLite puts a NUL after it */
                break;
        case VALUE_BLOB:
                *ret_size = (uint64_t) sqlite3_value_bytes(v);
                break;
        case VALUE_NULL:
                break;
        }
        return 0;
}

/* Returns the bytes of value `i`, which must have some; numbers are stored in `number`. NULL: no memory. */
static const void *value_bytes(Run *run, unsigned i, uint8_t number[static 8]) {
        sqlite3_value *v = sqlite3_column_value(run->stmt, (int) i);

        switch (sqlite3_value_type(v)) {
        case SQLITE_INTEGER:
                store_le64(number, (uint64_t) sqlite3_value_int64(v));
                return number;
        case SQLITE_FLOAT:
                store_le_double(number, sqlite3_value_double(v));
                return number;
        case SQLITE_TEXT:
                return sqlite3_value_text(v);
        default:
                return sqlite3_value_blob(v);
        }
}

bool run_row_is_big(Run *run) {
        uint64_t size = FRAME_HEADER_SIZE + ROW_HEAD_SIZE(run->n_columns);

        for (unsigned i = 0; i < run->n_columns; i++) {
                ValueType type;
                uint64_t value_size;

                if (measure_value(run, i, &type, &value_size) < 0)
                        return false;
                size += value_size;
        }
        return size > run->job->page_size;
}

int run_begin_big_row(Run *run, uint64_t *ret_size) {
        size_t head = ROW_HEAD_SIZE(run->n_columns);
        uint64_t data = 0;

        *ret_size = head;
        free(run->payload);
        run->payload = malloc(head);
        if (!run->payload)
                return -ENOMEM;
        run->payload_size = head;
        run->payload_done = 0;
        for (unsigned i = 0; i < run->n_columns; i++) {
                ValueType type;
                uint64_t size;

                if (measure_value(run, i, &type, &size) < 0)
                        return -ENOMEM;
                data += size;
                run->payload[i] = (uint8_t) type;
                /* if this overflows, the row is over every limit, and is refused below */
                store_le32(run->payload + run->n_columns + 4 * (size_t) i, (uint32_t) data);
        }
        *ret_size = head + data;
        if (*ret_size > run->job->row_size_max || *ret_size > SQLIPC_ROW_SIZE_MAX)
                return 0;
        run->big_row = true;
        run->big_size = *ret_size;
        run->big_column = 0;
        return 1;
}

static void end_payload(Run *run) {
        free(run->payload);
        run->payload = NULL;
        if (!run->big_row)
                return;
        run->big_row = false;
        run->row_waits = false;
        run->n_rows++;
}

/* Appends data of the big row, value by value, until the part is full or the row is complete. 1: the part is already
 * closed, because its last bytes are sent from SQLite's memory; -ENOMEM. */
static int append_data(Run *run) {
        while (run->payload_done < run->big_size && page_encoder_part_room(&run->encoder) > 0) {
                const uint8_t *ends = run->payload + run->n_columns;
                size_t offset = run->payload_done - run->payload_size, start, end, n;
                uint8_t number[8];
                const uint8_t *bytes;

                while ((end = load_le32(ends + 4 * (size_t) run->big_column)) <= offset)
                        run->big_column++;
                start = run->big_column > 0 ? load_le32(ends + 4 * (size_t) (run->big_column - 1)) : 0;
                bytes = value_bytes(run, run->big_column, number);
                if (!bytes)
                        return -ENOMEM;
                bytes += offset - start;
                n = page_encoder_end_part_with(&run->encoder, bytes, end - offset, end < run->big_size - run->payload_size);
                run->payload_done += n > 0 ? n : page_encoder_append(&run->encoder, bytes, end - offset);
                if (n > 0)
                        return 1;
        }
        return 0;
}

int run_encode_payload(Run *run) {
        PageEncoder *e = &run->encoder;
        size_t total = run->big_row ? run->big_size : run->payload_size;
        int r = 0;

        if (!page_encoder_begin_part(e, run->big_row ? FRAME_BIG_ROW : run->payload_kind))
                return 0;
        if (run->payload_done < run->payload_size)
                run->payload_done +=
                        page_encoder_append(e, run->payload + run->payload_done, run->payload_size - run->payload_done);
        if (run->payload_done >= run->payload_size && run->big_row)
                r = append_data(run);
        if (r < 0)
                return r; /* the part under way is dropped: an empty part would not be a frame */
        if (r == 0)
                page_encoder_end_part(e, run->payload_done < total);
        if (run->payload_done < total)
                return 0;
        end_payload(run);
        return 1;
}
