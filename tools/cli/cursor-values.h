/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cursor's row as renderers and their like take it. */
#ifndef CLI_CURSOR_VALUES_H
#define CLI_CURSOR_VALUES_H

#include "value.h"

/** The names of the columns: an array to be freed, of strings that are the cursor's. */
const char **cursor_names(sqlipc_cursor *cursor, size_t *ret_n);

/** The current row, borrowed until the next one. */
void cursor_values(sqlipc_cursor *cursor, Value *ret_values, size_t n_columns);

#endif
