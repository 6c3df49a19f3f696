/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Formats the SQL of a schema, see schema-text.h. */
#include "tools/cli/dump/schema-text.h"

#include <string.h>

#include "tools/cli/sql/sql-scan.h"

/* A shorter statement is not indented. */
enum { LONG = 79 };

static bool is_blank(char c) {
        return c == ' ' || (c >= '\t' && c <= '\r');
}

const char *schema_text_comment_end(const char *sql) {
        static const char *const ends[] = { "", "*/", "\n" };

        if (!strstr(sql, "/*") && !strstr(sql, "--"))
                return "";
        for (size_t i = 0; i < G_N_ELEMENTS(ends); i++) {
                g_autofree char *complete = g_strconcat(sql, ends[i], ";", NULL);
                size_t size;

                if (sql_scan_statement(SQL_DIALECT_SQLITE, complete, strlen(complete), &size) == SQL_EXTENT_COMPLETE)
                        return ends[i];
        }
        return "";
}

size_t schema_text_size(const char *sql) {
        size_t all = strlen(sql), size;

        return sql_scan_statement(SQL_DIALECT_SQLITE, sql, all, &size) == SQL_EXTENT_COMPLETE ? size - strlen(";") : all;
}

/* Appends a line, or a part of one. Tables with quoted names mostly belong to a virtual table, and get IF NOT EXISTS. */
static void append_piece(GString *text, const char *sql, const char *end) {
        static const char create[] = "CREATE TABLE ";
        const char *name = sql + strlen(create);

        if (g_str_has_prefix(sql, create) && (*name == '\'' || *name == '"'))
                g_string_append_printf(text, "CREATE TABLE IF NOT EXISTS %s%s", name, end);
        else
                g_string_append_printf(text, "%s%s", sql, end);
}

static void append_end(GString *text, const char *sql) {
        append_piece(text, sql, schema_text_comment_end(sql));
        g_string_append(text, ";\n");
}

/* Reduces several blanks to one, and removes those inside of a parenthesis. */
static char *squeeze(const char *sql) {
        g_autoptr(GString) line = g_string_new(NULL);

        while (is_blank(*sql))
                sql++;
        for (const char *p = sql; *p; p++) {
                char *last = line->len > 0 ? &line->str[line->len - 1] : NULL;

                if (is_blank(*p)) {
                        if (last && *last == '\r')
                                *last = '\n';
                        if (last && (is_blank(*last) || *last == '('))
                                continue;
                } else if ((*p == '(' || *p == ')') && last && is_blank(*last))
                        g_string_truncate(line, line->len - 1);
                g_string_append_c(line, *p);
        }
        while (line->len > 0 && is_blank(line->str[line->len - 1]))
                g_string_truncate(line, line->len - 1);
        return g_string_free(g_steal_pointer(&line), FALSE);
}

/* Returns true if only blanks or a comment follow up to the end of the line. */
static bool line_ends(const char *p) {
        for (; *p && *p != '\n'; p++)
                if (!is_blank(*p))
                        return p[0] == '-' && p[1] == '-';
        return true;
}

typedef struct Breaker {
        char quote;          /* the character that ends the current string, name or comment; 0: none */
        int depth;           /* of parentheses */
        unsigned n_lines;
        GString *line;       /* since the last break */
} Breaker;

static void break_line(Breaker *breaker, GString *text, const char *end) {
        append_piece(text, breaker->line->str, end);
        g_string_truncate(breaker->line, 0);
}

static void take_character(Breaker *breaker, GString *text, const char *p) {
        if (*p == breaker->quote)
                breaker->quote = 0;
        else if (*p == '"' || *p == '\'' || *p == '`')
                breaker->quote = *p;
        else if (*p == '[')
                breaker->quote = ']';
        else if (p[0] == '-' && p[1] == '-')
                breaker->quote = '\n';
        else if (*p == '(')
                breaker->depth++;
        else if (*p == ')' && --breaker->depth == 0 && breaker->n_lines > 0 && breaker->line->len > 0)
                break_line(breaker, text, "\n");
}

/* Appends a statement, with a line for each column and constraint: the parts between commas inside of the outer
 * parenthesis. */
static void append_indented(GString *text, const char *sql) {
        g_autoptr(GString) line = g_string_new(NULL);
        Breaker breaker = { .line = line };

        for (const char *p = sql; *p; p++) {
                take_character(&breaker, text, p);
                if (*p != '\n' || breaker.depth != 1 || breaker.quote)
                        g_string_append_c(line, *p);
                if (breaker.depth != 1 || breaker.quote || !(*p == '(' || *p == '\n' || (*p == ',' && !line_ends(p + 1))))
                        continue;
                break_line(&breaker, text, "\n  ");
                breaker.n_lines++;
                while (is_blank(p[1]))
                        p++;
        }
        append_end(text, line->str);
}

void schema_text_append(GString *text, const char *definition, bool indent) {
        g_autofree char *sql = g_strndup(definition, schema_text_size(definition)), *line = NULL;

        if (!indent) {
                append_end(text, sql);
                return;
        }
        if (g_ascii_strncasecmp(sql, "CREATE VIEW", 11) == 0 || g_ascii_strncasecmp(sql, "CREATE TRIG", 11) == 0) {
                g_string_append_printf(text, "%s;\n", sql);
                return;
        }
        line = squeeze(sql);
        if (strlen(line) >= LONG)
                append_indented(text, line);
        else
                append_end(text, line);
}
