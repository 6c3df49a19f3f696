/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds unknown names in errors (sql-mistake.h). */
#include "tools/cli/sql/sql-mistake.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "tools/cli/sql/sql-scan.h"

MistakeKind sql_mistake_read(const char *message, char **ret_name) {
        static const struct {
                const char *start;
                MistakeKind kind;
        } starts[] = {
                { "no such table: ", MISTAKE_TABLE },
                { "no such column: ", MISTAKE_COLUMN },
                { "no such function: ", MISTAKE_FUNCTION },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(starts); i++)
                if (g_str_has_prefix(message, starts[i].start)) {
                        const char *name = message + strlen(starts[i].start), *dot = strrchr(name, '.');

                        *ret_name = g_strdup(dot && dot[1] ? dot + 1 : name);
                        return starts[i].kind;
                }
        return MISTAKE_NONE;
}

static bool is_named(const char *sql, const SqlToken *token, const char *name) {
        size_t quotes = token->type == SQL_QUOTED ? 1 : 0;

        if ((token->type != SQL_NAME && token->type != SQL_QUOTED && token->type != SQL_KEYWORD) ||
            token->size != strlen(name) + 2 * quotes)
                return false;
        return g_ascii_strncasecmp(sql + token->start + quotes, name, strlen(name)) == 0;
}

static bool is_any_of(const char *sql, const SqlToken *token, const char *const *words) {
        for (; *words; words++)
                if (sql_token_is(sql, token, *words))
                        return true;
        return false;
}

int sql_mistake_find(MistakeKind kind, const char *name, const char *sql) {
        static const char *const before_tables[] = { "FROM", "JOIN", "INTO", "UPDATE", "TABLE", ",", ".", "(", "IN", NULL };
        size_t position = 0, size = strlen(sql);
        SqlToken token, before = {};

        while (sql_scan_next(SQL_DIALECT_SQLITE, sql, size, &position, &token)) {
                if (token.type == SQL_SPACE || token.type == SQL_COMMENT)
                        continue;
                if (is_named(sql, &token, name) && (kind != MISTAKE_TABLE || is_any_of(sql, &before, before_tables)))
                        return (int) token.start;
                before = token;
        }
        return -1;
}

/* Returns the first two words in capitals, separated by a blank. The caller frees them. */
static char *first_words(const char *sql) {
        GString *words = g_string_new(NULL);
        size_t position = 0, size = strlen(sql);
        SqlToken token;

        for (unsigned n = 0; n < 2 && sql_scan_next(SQL_DIALECT_SQLITE, sql, size, &position, &token);) {
                if (token.type == SQL_SPACE || token.type == SQL_COMMENT)
                        continue;
                if (n++ > 0)
                        g_string_append_c(words, ' ');
                g_string_append_len(words, sql + token.start, (gssize) token.size);
        }
        return g_string_free(g_string_ascii_up(words), FALSE);
}

const char *sql_mistake_command(const char *sql) {
        static const struct {
                const char *words, *hint;
        } hints[] = {
                { "SHOW TABLES", ".tables lists tables" },
                { "SHOW DATABASES", ".databases lists databases" },
                { "SHOW SCHEMAS", ".databases lists databases" },
                { "SHOW CREATE", ".schema NAME shows the CREATE statement" },
                { "SHOW COLUMNS", ".describe NAME shows columns" },
                { "SHOW FIELDS", ".describe NAME shows columns" },
                { "SHOW INDEX", ".indexes lists indexes" },
                { "SHOW VIEWS", ".views lists views" },
                { "SHOW ", ".help lists commands" },
                { "DESC ", ".describe NAME shows columns" },
                { "DESCRIBE ", ".describe NAME shows columns" },
                { "USE ", ".open NAME opens another database" },
        };
        g_autofree char *first = first_words(sql), *words = g_strconcat(first, " ", NULL);

        for (size_t i = 0; i < G_N_ELEMENTS(hints); i++)
                if (g_str_has_prefix(words, hints[i].words))
                        return hints[i].hint;
        return NULL;
}
