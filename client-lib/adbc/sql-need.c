/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which statement needs a pin (sql-need.h). Pure. ADBC driver. */
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "client-lib/adbc/sql-need.h"

/* PRAGMAs that the service sets on pins only, see sqlipc-sql(7). */
static const char *const settings[] = { "count_changes",      "full_column_names",         "legacy_alter_table",
                                        "recursive_triggers", "reverse_unordered_selects", "short_column_names" };

/* A word, a name without its quotes, or one other character. Size 0: the end. */
typedef struct Token {
        const char *text;
        size_t size;
} Token;

static const char *skip_space(const char *sql) {
        for (;;) {
                sql += strspn(sql, " \t\n\f\r;");
                if (strncmp(sql, "--", 2) == 0) {
                        sql += strcspn(sql, "\n");
                } else if (strncmp(sql, "/*", 2) == 0) {
                        const char *end = strstr(sql + 2, "*/");

                        sql = end ? end + 2 : sql + strlen(sql);
                } else {
                        return sql;
                }
        }
}

static bool is_of_word(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
}

static Token next(const char **sql) {
        const char *begin = skip_space(*sql), *end = begin;
        char quote = *begin == '[' ? ']' : *begin;
        Token token;

        if (quote && strchr("\"'`]", quote)) {
                end = strchr(begin + 1, quote);
                token = (Token) { begin + 1, end ? (size_t) (end - begin - 1) : strlen(begin + 1) };
                *sql = end ? end + 1 : begin + strlen(begin);
                return token;
        }
        while (is_of_word(*end))
                end++;
        if (end == begin && *end)
                end++;
        *sql = end;
        return (Token) { begin, (size_t) (end - begin) };
}

static bool is(Token token, const char *word) {
        return token.size == strlen(word) && strncasecmp(token.text, word, token.size) == 0;
}

/* After CREATE. */
static bool makes_temp(const char *sql) {
        Token token = next(&sql);

        if (is(token, "temp") || is(token, "temporary"))
                return true;
        token = next(&sql);
        if (is(token, "if")) {
                const char *after = sql;

                if (is(next(&after), "not") && is(next(&after), "exists")) {
                        token = next(&after);
                        sql = after;
                }
        }
        return is(token, "temp") && is(next(&sql), ".");
}

/* After PRAGMA. */
static bool sets(const char *sql) {
        Token name = next(&sql), token = next(&sql);

        if (is(token, ".")) {
                name = next(&sql);
                token = next(&sql);
        }
        if (!is(token, "=") && !is(token, "("))
                return false;
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
                if (is(name, settings[i]))
                        return true;
        return false;
}

SqlNeed sql_need_of(const char *sql) {
        Token verb = next(&sql);
        bool explains = is(verb, "explain");

        if (explains)
                verb = next(&sql);
        if (explains && is(verb, "query")) {
                (void) next(&sql);
                verb = next(&sql);
        }
        if (is(verb, "create") && makes_temp(sql))
                return explains ? SQL_NEEDS_PIN : SQL_MAKES_TEMP;
        return is(verb, "attach") || (is(verb, "pragma") && sets(sql)) ? SQL_NEEDS_PIN : SQL_NEEDS_NO_PIN;
}
