/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See job-encode.h.
 */
#include "daemon/worker/core/job-encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Always returns -ENOMEM. */
static int out_of_memory(Job *job) {
        (void) sql_error_set(&job->error, ERROR_OUT_OF_MEMORY, "out of memory");
        return -ENOMEM;
}

static bool measure(Job *job, unsigned i, ValueType *ret_type, uint64_t *ret_size, SqlError *error) {
        return job->context->engine->measure(job->statement, i, ret_type, ret_size, error);
}

bool job_row_is_big(Job *job) {
        SqlError error = SQL_ERROR_INIT;
        uint64_t size = FRAME_HEADER_SIZE + ROW_HEAD_SIZE(job->sink.n_columns);

        for (unsigned i = 0; i < job->sink.n_columns; i++) {
                ValueType type;
                uint64_t value_size;

                if (!measure(job, i, &type, &value_size, &error)) {
                        sql_error_done(&error);
                        return false;
                }
                size += value_size;
        }
        return size > job->spec->page_size;
}

int job_begin_big_row(Job *job, uint64_t *ret_size) {
        JobPayload *p = &job->payload;
        size_t head = ROW_HEAD_SIZE(job->sink.n_columns);
        uint64_t data = 0;

        *ret_size = head;
        free(p->bytes);
        p->bytes = malloc(head);
        if (!p->bytes)
                return out_of_memory(job);
        p->size = head;
        p->done = 0;
        for (unsigned i = 0; i < job->sink.n_columns; i++) {
                ValueType type;
                uint64_t size;

                if (!measure(job, i, &type, &size, &job->error))
                        return -ENOMEM;
                data += size;
                p->bytes[i] = (uint8_t) type;
                /* if this overflows, the row is over every limit, and is refused below */
                store_le32(p->bytes + job->sink.n_columns + 4 * (size_t) i, (uint32_t) data);
        }
        *ret_size = head + data;
        if (*ret_size > job->spec->row_size_max || *ret_size > SQLIPC_ROW_SIZE_MAX)
                return 0;
        p->is_row = true;
        p->row_size = *ret_size;
        p->column = 0;
        return 1;
}

static void end_payload(Job *job) {
        JobPayload *p = &job->payload;

        free(p->bytes);
        p->bytes = NULL;
        if (!p->is_row)
                return;
        p->is_row = false;
        job->sink.row_waits = false;
        job->sink.n_rows++;
}

/* Appends data of the big row, value by value, until the part is full or the row is complete (0). 1: the part is
 * closed already, because its last bytes are sent from the engine's memory; -ENOMEM. */
static int append_data(Job *job) {
        JobPayload *p = &job->payload;

        while (p->done < p->row_size && page_encoder_part_room(&job->encoder) > 0) {
                const uint8_t *ends = p->bytes + job->sink.n_columns;
                size_t offset = p->done - p->size, start, end, n;
                uint8_t number[8];
                const uint8_t *bytes;

                while ((end = load_le32(ends + 4 * (size_t) p->column)) <= offset)
                        p->column++;
                start = p->column > 0 ? load_le32(ends + 4 * (size_t) (p->column - 1)) : 0;
                bytes = job->context->engine->value(job->statement, p->column, number, &job->error);
                if (!bytes)
                        return -ENOMEM;
                bytes += offset - start;
                n = page_encoder_end_part_with(&job->encoder, bytes, end - offset, end < p->row_size - p->size);
                p->done += n > 0 ? n : page_encoder_append(&job->encoder, bytes, end - offset);
                if (n > 0)
                        return 1;
        }
        return 0;
}

int job_encode_payload(Job *job) {
        JobPayload *p = &job->payload;
        PageEncoder *e = &job->encoder;
        size_t total = p->is_row ? p->row_size : p->size;
        int r = 0;

        if (!page_encoder_begin_part(e, p->is_row ? FRAME_BIG_ROW : p->kind))
                return 0;
        if (p->done < p->size)
                p->done += page_encoder_append(e, p->bytes + p->done, p->size - p->done);
        if (p->done >= p->size && p->is_row)
                r = append_data(job);
        if (r < 0)
                return r; /* the part under way is dropped: an empty part would not be a frame */
        if (r == 0)
                page_encoder_end_part(e, p->done < total);
        if (p->done < total)
                return 0;
        end_payload(job);
        return 1;
}
