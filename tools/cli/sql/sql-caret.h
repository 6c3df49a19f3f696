/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shows the position of an error in the SQL: its line, and a caret under the position. Pure. */
#ifndef SQLIPC_TOOLS_CLI_SQL_SQL_CARET_H
#define SQLIPC_TOOLS_CLI_SQL_SQL_CARET_H

#include <stddef.h>

/** Returns two lines, safe to show: the line of `sql` that contains byte `offset`, or the part around it that fits `width`
 * columns (0: no limit), and a caret under that byte. The caller frees them. NULL if `offset` is outside of the SQL. */
char *sql_caret(const char *sql, size_t offset, size_t width);

#endif
