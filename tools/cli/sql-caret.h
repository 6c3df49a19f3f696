/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where in the SQL an error is: its line, and a caret under the place. Pure. */
#ifndef CLI_SQL_CARET_H
#define CLI_SQL_CARET_H

#include <stddef.h>

/** Two lines, safe to show: the line of `sql` that byte `offset` is in, or the part of it around the place that fits
 * `width` columns (0: any number), and a caret under that byte. To be freed; NULL where `offset` is not inside the SQL. */
char *sql_caret(const char *sql, size_t offset, size_t width);

#endif
