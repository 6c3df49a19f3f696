/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Builds SQL with names of tables and columns. Pure. ADBC driver.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_SQL_TEXT_H
#define SQLIPC_CLIENT_LIB_ADBC_SQL_TEXT_H

#include <stdio.h>

typedef struct SqlText {
        FILE *file;
        char *text;
        size_t size;
} SqlText;

/* Begins a text. Returns 0 or -ENOMEM. */
int sql_text_begin(SqlText *sql, const char *text);

/* Add text as it is, or a name in double quotes. */
void sql_text_add(SqlText *sql, const char *text);
void sql_text_name(SqlText *sql, const char *name);

/* Ends the text; the caller frees it. Returns NULL without memory. */
char *sql_text_end(SqlText *sql);

#endif
