/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See statement-frames.h. Pure.
 */
#include "daemon/worker/core/statement-frames.h"

#include <stdlib.h>
#include <string.h>

#include "dbus-interfaces/wire/sqlipc-channel.h"

static bool out_of_memory(SqlError *error) {
        return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
}

static bool too_large(SqlError *error) {
        return sql_error_set(error, ERROR_LIMITS_EXCEEDED,
                             "the names of the columns take more than %zu bytes: name fewer columns, or shorter",
                             SQLIPC_COLUMNS_SIZE_MAX);
}

bool statement_frames_started(const EngineDescription *d, Started *started, SqlError *error) {
        Started s = *started;

        s.described = true;
        s.n_columns = d->n_columns;
        s.columns = d->strings;
        s.n_parameters = d->n_parameters;
        s.parameters = d->strings + (size_t) 2 * d->n_columns;
        if (started_size(&s) > SQLIPC_COLUMNS_SIZE_MAX)
                return too_large(error);
        *started = s;
        return true;
}

static size_t string_size(const Bytes *s) {
        return s->data ? s->size + 1 : 0;
}

static size_t strings_size(const Bytes *strings, size_t n) {
        size_t size = 0;

        for (size_t i = 0; i < n; i++)
                size += string_size(&strings[i]);
        return size;
}

/* Stores the end of each string at `ends`, and the strings after these. The memory is zero, so each has its NUL. */
static void put_strings(uint8_t *ends, const Bytes *strings, size_t n) {
        uint8_t *texts = ends + 4 * n;
        size_t at = 0;

        for (size_t i = 0; i < n; i++) {
                if (strings[i].data)
                        memcpy(texts + at, strings[i].data, strings[i].size);
                at += string_size(&strings[i]);
                store_le32(ends + 4 * i, (uint32_t) at);
        }
}

bool statement_frames_columns(const EngineDescription *d, uint32_t page_size, uint8_t **ret_payload, size_t *ret_size,
                              SqlError *error) {
        size_t n = (size_t) 2 * d->n_columns, size = 8 + 4 * n + strings_size(d->strings, n);
        uint8_t *payload;

        if (size > SQLIPC_COLUMNS_SIZE_MAX)
                return too_large(error);
        payload = calloc(1, size);
        if (!payload)
                return out_of_memory(error);
        store_le32(payload, d->n_columns);
        statement_frames_set_page_size(payload, page_size);
        put_strings(payload + 8, d->strings, n);
        *ret_payload = payload;
        *ret_size = size;
        return true;
}

void statement_frames_set_page_size(uint8_t *payload, uint32_t page_size) {
        store_le32(payload + 4, page_size);
}

bool statement_frames_statement(const EngineDescription *d, bool read_only, uint8_t **ret_payload, size_t *ret_size,
                                SqlError *error) {
        size_t n = (size_t) 2 * d->n_columns + d->n_parameters;
        size_t size = CHANNEL_STATEMENT_HEAD_SIZE + 4 * n + strings_size(d->strings, n);
        Started s = {};
        uint8_t *payload;

        if (!statement_frames_started(d, &s, error)) /* the limit is the same */
                return false;
        payload = calloc(1, size);
        if (!payload)
                return out_of_memory(error);
        store_le32(payload, d->n_columns);
        store_le32(payload + 4, d->n_parameters);
        store_le32(payload + 8, read_only ? STATEMENT_READ_ONLY : 0);
        put_strings(payload + CHANNEL_STATEMENT_HEAD_SIZE, d->strings, n);
        *ret_payload = payload;
        *ret_size = size;
        return true;
}
