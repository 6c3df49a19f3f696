/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds SQL with names (sql-builder.h). Pure. ADBC driver. */
#include <errno.h>
#include <stdlib.h>

#include "client-lib/adbc/sql-builder.h"

int sql_builder_begin(SqlBuilder *sql, const char *text) {
        *sql = (SqlBuilder) { .file = NULL };
        sql->file = open_memstream(&sql->text, &sql->size);
        if (!sql->file)
                return -ENOMEM;
        sql_builder_add(sql, text);
        return 0;
}

void sql_builder_add(SqlBuilder *sql, const char *text) { (void) fputs(text, sql->file); }

void sql_builder_name(SqlBuilder *sql, const char *name) {
        (void) fputc('"', sql->file);
        for (; *name; name++) {
                if (*name == '"')
                        (void) fputc('"', sql->file);
                (void) fputc(*name, sql->file);
        }
        (void) fputc('"', sql->file);
}

char *sql_builder_end(SqlBuilder *sql) {
        int failed = ferror(sql->file);

        if (fclose(sql->file) != 0 || failed) {
                free(sql->text);
                return NULL;
        }
        return sql->text;
}
