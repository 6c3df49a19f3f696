/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Builds SQL with names of tables and columns. Pure. ADBC driver.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_SQL_BUILDER_H
#define SQLIPC_CLIENT_LIB_ADBC_SQL_BUILDER_H

#include <stdio.h>

typedef struct SqlBuilder {
        FILE *file;
        char *text;
        size_t size;
} SqlBuilder;

/* Begins a text. Returns 0 or -ENOMEM. */
int sql_builder_begin(SqlBuilder *sql, const char *text);

/* Add text as it is, or a name in double quotes. */
void sql_builder_add(SqlBuilder *sql, const char *text);
void sql_builder_name(SqlBuilder *sql, const char *name);

/* Ends the text; the caller frees it. Returns NULL without memory. */
char *sql_builder_end(SqlBuilder *sql);

#endif
