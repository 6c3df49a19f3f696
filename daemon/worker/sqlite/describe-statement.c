/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See describe-statement.h.
 */
#include "daemon/worker/sqlite/describe-statement.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define NAME_OVERHEAD 10 /* at most, of a string in a frame or message */
#define CUT_NAME_SIZE ((size_t) 64 * 1024)

static bool out_of_memory(SqlError *error) {
        return sql_error_set(error, ERROR_OUT_OF_MEMORY, "out of memory");
}

static Bytes bytes_of(const char *s) {
        return (Bytes) { .data = s, .size = s ? strlen(s) : 0 };
}

/* Without AS the name of a column is its expression, which may have all of a statement's megabytes. SQLite promises no
 * particular name there, so such names are cut if not all fit. */
static void cut_long_names(Bytes *list, int n_columns) {
        size_t size = 0;

        for (int i = 0; i < 2 * n_columns; i++)
                size += list[i].size + NAME_OVERHEAD;
        if (size <= SQLIPC_COLUMNS_SIZE_MAX)
                return;
        for (int i = 0; i < 2 * n_columns; i += 2) {
                if (list[i].size <= CUT_NAME_SIZE)
                        continue;
                list[i].size = CUT_NAME_SIZE;
                while (list[i].size > 0 && ((uint8_t) list[i].data[list[i].size] & 0xc0) == 0x80)
                        list[i].size--; /* to the start of a character */
        }
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
        cut_long_names(list, n_columns);
        for (int i = 0; i < n_parameters; i++)
                list[2 * n_columns + i] = bytes_of(sqlite3_bind_parameter_name(stmt, i + 1));
        *ret = (EngineDescription) {
                .n_columns = (unsigned) n_columns,
                .n_parameters = (unsigned) n_parameters,
                .strings = list,
        };
        return true;
}
