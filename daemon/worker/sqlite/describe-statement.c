/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See describe-statement.h.
 */
#include "daemon/worker/sqlite/describe-statement.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

static bool out_of_memory(SqlError *error) {
        return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
}

static Bytes bytes_of(const char *s) {
        return (Bytes) { .data = s, .size = s ? strlen(s) : 0 };
}

bool describe_statement(sqlite3_stmt *stmt, EngineDescription *ret, SqlError *error) {
        int n_columns = sqlite3_column_count(stmt), n_parameters = sqlite3_bind_parameter_count(stmt);
        Bytes *list = calloc((size_t) 2 * (size_t) n_columns + (size_t) n_parameters + 1, sizeof *list);

        if (!list)
                return out_of_memory(error);
        for (int i = 0; i < n_columns; i++) {
                list[2 * i] = bytes_of(sqlite3_column_name(stmt, i));
                list[2 * i + 1] = bytes_of(sqlite3_column_decltype(stmt, i)); /* an expression has none */
                if (!list[2 * i].data) {
                        free(list);
                        return out_of_memory(error);
                }
        }
        for (int i = 0; i < n_parameters; i++)
                list[2 * n_columns + i] = bytes_of(sqlite3_bind_parameter_name(stmt, i + 1));
        *ret = (EngineDescription) {
                .n_columns = (unsigned) n_columns,
                .n_parameters = (unsigned) n_parameters,
                .strings = list,
        };
        return true;
}
