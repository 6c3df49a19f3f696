/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job-encode.h.
 */
#include "daemon/worker/core/job-encode.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

int job_encode_row(Job *job) {
        PageEncoder *e = &job->encoder;
        int n = (int) job->n_columns;

        if (!page_encoder_begin_row(e, job->n_columns))
                return 0;
        for (int i = 0; i < n; i++) {
                /* One lookup for each column: sqlite3_column_type/text/bytes would each repeat it. The value is
                 * "unprotected", which only matters if threads share the connection (see sqlite3_value in sqlite3.h). */
                sqlite3_value *v = sqlite3_column_value(job->stmt, i);
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
        job->row_size = e->next ? (size_t) (e->next - e->row) : 0;
        if (job->row_size > job->spec->row_size_max) {
                page_encoder_abort_row(e);
                return -EMSGSIZE;
        }
        return page_encoder_end_row(e);
}

/* Tells the type of value `i`, and its size in a row. It does not expand a zeroblob(), which may be over the limit.
 * -ENOMEM: TEXT that could not be converted to UTF-8. */
static int measure_value(Job *job, unsigned i, ValueType *ret_type, uint64_t *ret_size) {
        sqlite3_value *v = sqlite3_column_value(job->stmt, (int) i);

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
static const void *value_bytes(Job *job, unsigned i, uint8_t number[static 8]) {
        sqlite3_value *v = sqlite3_column_value(job->stmt, (int) i);

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

bool job_row_is_big(Job *job) {
        uint64_t size = FRAME_HEADER_SIZE + ROW_HEAD_SIZE(job->n_columns);

        for (unsigned i = 0; i < job->n_columns; i++) {
                ValueType type;
                uint64_t value_size;

                if (measure_value(job, i, &type, &value_size) < 0)
                        return false;
                size += value_size;
        }
        return size > job->spec->page_size;
}

int job_begin_big_row(Job *job, uint64_t *ret_size) {
        size_t head = ROW_HEAD_SIZE(job->n_columns);
        uint64_t data = 0;

        *ret_size = head;
        free(job->payload);
        job->payload = malloc(head);
        if (!job->payload)
                return -ENOMEM;
        job->payload_size = head;
        job->payload_done = 0;
        for (unsigned i = 0; i < job->n_columns; i++) {
                ValueType type;
                uint64_t size;

                if (measure_value(job, i, &type, &size) < 0)
                        return -ENOMEM;
                data += size;
                job->payload[i] = (uint8_t) type;
                /* if this overflows, the row is over every limit, and is refused below */
                store_le32(job->payload + job->n_columns + 4 * (size_t) i, (uint32_t) data);
        }
        *ret_size = head + data;
        if (*ret_size > job->spec->row_size_max || *ret_size > SQLIPC_ROW_SIZE_MAX)
                return 0;
        job->big_row = true;
        job->big_size = *ret_size;
        job->big_column = 0;
        return 1;
}

static void end_payload(Job *job) {
        free(job->payload);
        job->payload = NULL;
        if (!job->big_row)
                return;
        job->big_row = false;
        job->row_waits = false;
        job->n_rows++;
}

/* Appends data of the big row, value by value, until the part is full or the row is complete. 1: the part is already
 * closed, because its last bytes are sent from SQLite's memory; -ENOMEM. */
static int append_data(Job *job) {
        while (job->payload_done < job->big_size && page_encoder_part_room(&job->encoder) > 0) {
                const uint8_t *ends = job->payload + job->n_columns;
                size_t offset = job->payload_done - job->payload_size, start, end, n;
                uint8_t number[8];
                const uint8_t *bytes;

                while ((end = load_le32(ends + 4 * (size_t) job->big_column)) <= offset)
                        job->big_column++;
                start = job->big_column > 0 ? load_le32(ends + 4 * (size_t) (job->big_column - 1)) : 0;
                bytes = value_bytes(job, job->big_column, number);
                if (!bytes)
                        return -ENOMEM;
                bytes += offset - start;
                n = page_encoder_end_part_with(&job->encoder, bytes, end - offset, end < job->big_size - job->payload_size);
                job->payload_done += n > 0 ? n : page_encoder_append(&job->encoder, bytes, end - offset);
                if (n > 0)
                        return 1;
        }
        return 0;
}

int job_encode_payload(Job *job) {
        PageEncoder *e = &job->encoder;
        size_t total = job->big_row ? job->big_size : job->payload_size;
        int r = 0;

        if (!page_encoder_begin_part(e, job->big_row ? FRAME_BIG_ROW : job->payload_kind))
                return 0;
        if (job->payload_done < job->payload_size)
                job->payload_done +=
                        page_encoder_append(e, job->payload + job->payload_done, job->payload_size - job->payload_done);
        if (job->payload_done >= job->payload_size && job->big_row)
                r = append_data(job);
        if (r < 0)
                return r; /* the part under way is dropped: an empty part would not be a frame */
        if (r == 0)
                page_encoder_end_part(e, job->payload_done < total);
        if (job->payload_done < total)
                return 0;
        end_payload(job);
        return 1;
}
