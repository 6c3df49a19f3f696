/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Converts the library's columns to Value (cursor-values.h). */
#include "tools/cli/shell/cursor-values.h"

#include <glib.h>

const char **cursor_names(sqlipc_cursor *cursor, size_t *ret_n) {
        unsigned n = sqlipc_column_count(cursor);
        const char **names = g_new0(const char *, n + 1);

        for (unsigned i = 0; i < n; i++)
                names[i] = sqlipc_column_name(cursor, i);
        *ret_n = n;
        return names;
}

void cursor_values(sqlipc_cursor *cursor, Value *ret_values, size_t n_columns) {
        for (unsigned i = 0; i < n_columns; i++) {
                Value *value = &ret_values[i];

                *value = (Value) { .type = sqlipc_column_type(cursor, i) };
                if (value->type == SQLIPC_INTEGER)
                        value->integer = sqlipc_column_int64(cursor, i);
                else if (value->type == SQLIPC_REAL)
                        value->real = sqlipc_column_double(cursor, i);
                else if (value->type != SQLIPC_NULL)
                        value->bytes = sqlipc_column_text(cursor, i, &value->size);
        }
}
