/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Suggests names, from those that completion knows (suggest.h). */
#include "tools/cli/shell/suggest.h"

#include <string.h>

#include "tools/cli/shell/catalog.h"
#include "tools/cli/sql/complete-sql.h"
#include "tools/cli/sql/sql-mistake.h"
#include "tools/terminal/nearest.h"

static void consider_all(Nearest *nearest, const char *const *names) {
        for (; *names; names++)
                nearest_consider(nearest, *names, *names);
}

/* Considers the columns of the tables that fit at the position of the name, or the names that the statement itself
 * defines. */
static void consider_place(Shell *shell, Nearest *nearest, MistakeKind kind, const char *sql, size_t offset) {
        SqlPlace place;

        sql_place_find(session_dialect(&shell->session), sql, offset, &place);
        if (kind == MISTAKE_COLUMN)
                for (guint i = 0; i < place.tables->len; i++)
                        consider_all(nearest, catalog_columns(shell->catalog, place.tables->pdata[i]));
        else
                for (guint i = 0; i < place.names->len; i++)
                        if (!g_str_equal(place.names->pdata[i], nearest->word))
                                nearest_consider(nearest, place.names->pdata[i], place.names->pdata[i]);
        sql_place_done(&place);
}

static char *nearest_name(Shell *shell, MistakeKind kind, const char *name, const char *sql, int offset) {
        Nearest nearest = nearest_begin(name);

        if (kind == MISTAKE_FUNCTION)
                consider_all(&nearest, catalog_functions(shell->catalog));
        else if (offset >= 0)
                consider_place(shell, &nearest, kind, sql, (size_t) offset);
        if (kind == MISTAKE_TABLE)
                consider_all(&nearest, catalog_tables(shell->catalog));
        return nearest.name;
}

/* True if the statement asks for SQLite's catalog, and the database is PostgreSQL's. */
static bool misses_catalog(const char *message) {
        return strstr(message, "does not exist") && (strstr(message, "\"sqlite_schema\"") || strstr(message, "pragma_") ||
                                                     strstr(message, "\"sqlite_master\""));
}

char *suggest(Shell *shell, const char *message, const char *sql, int *offset) {
        g_autofree char *name = NULL, *nearest = NULL;
        MistakeKind kind = sql_mistake_read(message, &name);

        if (misses_catalog(message))
                return g_strdup("this is PostgreSQL, which has no catalog of SQLite: .tables lists the tables, \\d NAME the "
                                "columns of one, and pg_dump --schema-only on the server has the CREATE statements");
        if (kind == MISTAKE_NONE)
                return strstr(message, "syntax error") ? g_strdup(sql_mistake_command(sql)) : NULL;
        if (*offset < 0)
                *offset = sql_mistake_find(kind, name, sql);
        nearest = nearest_name(shell, kind, name, sql, *offset);
        return nearest ? g_strdup_printf("did you mean %s?", nearest) : NULL;
}
