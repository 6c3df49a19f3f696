/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds SQL with names (sql-text.h). Pure. ADBC driver. */
#include <errno.h>
#include <stdlib.h>

#include "client-lib/adbc/sql-text.h"

int sql_text_begin(SqlText *sql, const char *text) {
        *sql = (SqlText) { .file = NULL };
        sql->file = open_memstream(&sql->text, &sql->size);
        if (!sql->file)
                return -ENOMEM;
        sql_text_add(sql, text);
        return 0;
}

void sql_text_add(SqlText *sql, const char *text) {
        (void) fputs(text, sql->file);
}

void sql_text_name(SqlText *sql, const char *name) {
        (void) fputc('"', sql->file);
        for (; *name; name++) {
                if (*name == '"')
                        (void) fputc('"', sql->file);
                (void) fputc(*name, sql->file);
        }
        (void) fputc('"', sql->file);
}

char *sql_text_end(SqlText *sql) {
        int failed = ferror(sql->file);

        if (fclose(sql->file) != 0 || failed) {
                free(sql->text);
                return NULL;
        }
        return sql->text;
}
