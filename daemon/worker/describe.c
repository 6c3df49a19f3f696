/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See describe.h.
 */
#include "daemon/worker/describe.h"

#include <sqlite3.h>
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

/* Name and declared type of column `i`; the type is NULL for an expression. */
static void column_strings(sqlite3_stmt *stmt, int i, const char *ret[static 2]) {
        ret[0] = sqlite3_column_name(stmt, i);
        ret[1] = sqlite3_column_decltype(stmt, i);
}

static Bytes bytes_of(const char *s) {
        return (Bytes) { .data = s, .size = s ? strlen(s) : 0 };
}

bool describe_statement(sqlite3_stmt *stmt, Started *started, SqlError *error) {
        int n_columns = sqlite3_column_count(stmt), n_parameters = sqlite3_bind_parameter_count(stmt);
        Bytes *list = calloc((size_t) 2 * (size_t) n_columns + (size_t) n_parameters + 1, sizeof *list);

        if (!list)
                return out_of_memory(error);
        for (int i = 0; i < n_columns; i++) {
                const char *strings[2];

                column_strings(stmt, i, strings);
                if (!strings[0]) {
                        free(list);
                        return out_of_memory(error);
                }
                for (int k = 0; k < 2; k++)
                        list[2 * i + k] = bytes_of(strings[k]);
        }
        for (int i = 0; i < n_parameters; i++)
                list[2 * n_columns + i] = bytes_of(sqlite3_bind_parameter_name(stmt, i + 1));
        started->described = true;
        started->n_columns = (uint32_t) n_columns;
        started->columns = list;
        started->n_parameters = (uint32_t) n_parameters;
        started->parameters = list + 2 * n_columns;
        if (started_size(started) <= SQLIPC_COLUMNS_SIZE_MAX)
                return true;
        free(list);
        started->columns = NULL;
        return too_large(error);
}

bool describe_columns(sqlite3_stmt *stmt, uint32_t page_size, uint8_t **ret_payload, size_t *ret_size, SqlError *error) {
        size_t n = (size_t) sqlite3_column_count(stmt), head = 8 + 8 * n, size = head, at;
        uint8_t *payload;

        for (size_t i = 0; i < n; i++) {
                const char *strings[2];

                column_strings(stmt, (int) i, strings);
                if (!strings[0])
                        return out_of_memory(error);
                size += strlen(strings[0]) + 1 + (strings[1] ? strlen(strings[1]) + 1 : 0);
        }
        if (size > SQLIPC_COLUMNS_SIZE_MAX)
                return too_large(error);
        payload = malloc(size);
        if (!payload)
                return out_of_memory(error);
        store_le32(payload, (uint32_t) n);
        store_le32(payload + 4, page_size);
        at = head;
        for (size_t i = 0; i < n; i++) {
                const char *strings[2];

                column_strings(stmt, (int) i, strings);
                for (size_t k = 0; k < 2; k++) {
                        size_t length = strings[k] ? strlen(strings[k]) + 1 : 0;

                        if (length > 0)
                                memcpy(payload + at, strings[k], length);
                        at += length;
                        store_le32(payload + 8 + 4 * (2 * i + k), (uint32_t) (at - head));
                }
        }
        *ret_payload = payload;
        *ret_size = size;
        return true;
}

void columns_set_page_size(uint8_t *payload, uint32_t page_size) {
        store_le32(payload + 4, page_size);
}

static size_t string_size(const Bytes *s) {
        return s->data ? s->size + 1 : 0;
}

bool describe_prepared(sqlite3_stmt *stmt, uint8_t **ret_payload, size_t *ret_size, SqlError *error) {
        Started s = {};
        size_t n, head, size, at;
        uint8_t *payload;

        if (!describe_statement(stmt, &s, error))
                return false;
        n = (size_t) 2 * s.n_columns + s.n_parameters; /* columns and parameters are one array */
        head = size = CHANNEL_STATEMENT_HEAD_SIZE + 4 * n;
        for (size_t i = 0; i < n; i++)
                size += string_size(&s.columns[i]);
        payload = calloc(1, size);
        if (!payload) {
                free(s.columns);
                return out_of_memory(error);
        }
        store_le32(payload, s.n_columns);
        store_le32(payload + 4, s.n_parameters);
        store_le32(payload + 8, STATEMENT_READ_ONLY); /* statements that write are refused */
        at = head;
        for (size_t i = 0; i < n; i++) {
                if (s.columns[i].data)
                        memcpy(payload + at, s.columns[i].data, s.columns[i].size); /* the NUL comes from calloc() */
                at += string_size(&s.columns[i]);
                store_le32(payload + CHANNEL_STATEMENT_HEAD_SIZE + 4 * i, (uint32_t) (at - head));
        }
        free(s.columns);
        *ret_payload = payload;
        *ret_size = size;
        return true;
}
