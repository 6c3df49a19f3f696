/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Converts the cursor's row to Value, which renderers and other modules take. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_CURSOR_VALUES_H
#define SQLIPC_TOOLS_CLI_SHELL_CURSOR_VALUES_H

#include "tools/terminal/value.h"

/** The names of the columns: an array that the caller frees, of strings that the cursor owns. */
const char **cursor_names(sqlipc_cursor *cursor, size_t *ret_n);

/** The current row, borrowed until the next one. */
void cursor_values(sqlipc_cursor *cursor, Value *ret_values, size_t n_columns);

#endif
