/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sql-tokens.h. The rules are those of SQLite's tokenize.c; SQL that breaks them was refused before.
 */
#include "daemon/worker/rqlite/sql-tokens.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_name_character(char c) {
        return isalnum((unsigned char) c) || c == '_' || c == '$' || (unsigned char) c >= 0x80;
}

static bool is_space(char c) {
        return c != 0 && strchr(" \t\n\f\r\v", c);
}

/* The end of a text that begins at `at` with a quote, or a bracket. A doubled quote does not end it. */
static const char *quoted_end(const char *at, const char *end) {
        char quote = *at == '[' ? ']' : *at;

        for (at++; at < end; at++) {
                if (*at != quote)
                        continue;
                if (quote == ']' || at + 1 >= end || at[1] != quote)
                        return at + 1;
                at++;
        }
        return end;
}

static const char *line_end(const char *at, const char *end) {
        const char *newline = memchr(at, '\n', (size_t) (end - at));

        return newline ? newline + 1 : end;
}

static const char *comment_end(const char *at, const char *end) {
        const char *close = memmem(at + 2, (size_t) (end - at) - 2, "*/", 2);

        return close ? close + 2 : end;
}

static const char *number_end(const char *at, const char *end) {
        bool hexadecimal = end - at > 1 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X');

        for (; at < end; at++)
                if (!is_name_character(*at) && *at != '.' &&
                    !(!hexadecimal && (*at == '+' || *at == '-') && (at[-1] == 'e' || at[-1] == 'E')))
                        break;
        return at;
}

/* After the name of a "$" parameter, "::" may follow, and text in parentheses (Tcl's variables). */
static const char *parameter_end(const char *at, const char *end) {
        const char *start = at;

        if (*at == '?') {
                for (at++; at < end && isdigit((unsigned char) *at); at++)
                        ;
                return at;
        }
        for (at++; at < end; at++) {
                if (is_name_character(*at))
                        continue;
                if (*at == '(' && at > start + 1) {
                        while (at < end && !is_space(*at) && *at != ')')
                                at++;
                        return at < end && *at == ')' ? at + 1 : at;
                }
                if (*at == ':' && at + 1 < end && at[1] == ':')
                        at++;
                else
                        break;
        }
        return at;
}

static SqlToken token_to(SqlTokenKind kind, const char *at, const char *to) {
        return (SqlToken) { .kind = kind, .text = at, .size = (size_t) (to - at) };
}

static SqlToken word(const char *at, const char *end) {
        const char *to = at;

        while (to < end && is_name_character(*to))
                to++;
        return token_to(SQL_TOKEN_WORD, at, to);
}

SqlToken sql_token(const char *at, const char *end) {
        const char *to = at;
        char next;

        if (at >= end)
                return (SqlToken) { .kind = SQL_TOKEN_END, .text = end };
        next = at + 1 < end ? at[1] : 0;
        if (is_space(*at)) {
                while (to < end && is_space(*to))
                        to++;
                return token_to(SQL_TOKEN_SPACE, at, to);
        }
        if (end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) /* a byte order mark, which SQLite skips */
                return token_to(SQL_TOKEN_SPACE, at, at + 3);
        if (*at == '-' && next == '-')
                return token_to(SQL_TOKEN_SPACE, at, line_end(at, end));
        if (*at == '/' && next == '*')
                return token_to(SQL_TOKEN_SPACE, at, comment_end(at, end));
        if (*at == '\'' || *at == '"' || *at == '`' || *at == '[')
                return token_to(SQL_TOKEN_OTHER, at, quoted_end(at, end));
        if ((*at == 'x' || *at == 'X') && next == '\'')
                return token_to(SQL_TOKEN_OTHER, at, quoted_end(at + 1, end));
        if (isdigit((unsigned char) *at) || (*at == '.' && isdigit((unsigned char) next)))
                return token_to(SQL_TOKEN_OTHER, at, number_end(at, end));
        if (*at == '?' || ((*at == ':' || *at == '@' || *at == '$') && (is_name_character(next) || next == ':')))
                return token_to(SQL_TOKEN_PARAMETER, at, parameter_end(at, end));
        if (is_name_character(*at))
                return word(at, end);
        return token_to(SQL_TOKEN_OTHER, at, at + 1);
}

bool sql_token_is(const SqlToken *token, const char *keyword) {
        return token->kind == SQL_TOKEN_WORD && strlen(keyword) == token->size &&
               strncasecmp(token->text, keyword, token->size) == 0;
}

SqlVerb sql_verb(const char *sql, size_t size) {
        const char *end = sql + size;
        bool first = true;
        int depth = 0;

        for (SqlToken t = sql_token(sql, end); t.kind != SQL_TOKEN_END; t = sql_token(t.text + t.size, end)) {
                if (t.kind == SQL_TOKEN_SPACE || (first && *t.text == ';'))
                        continue;
                depth += *t.text == '(' ? 1 : *t.text == ')' ? -1 : 0;
                if (depth == 0 && (sql_token_is(&t, "SELECT") || sql_token_is(&t, "VALUES")))
                        return SQL_VERB_SELECT;
                if (depth == 0 && (sql_token_is(&t, "INSERT") || sql_token_is(&t, "REPLACE")))
                        return SQL_VERB_INSERT;
                if (depth == 0 && (sql_token_is(&t, "UPDATE") || sql_token_is(&t, "DELETE")))
                        return SQL_VERB_CHANGE;
                if (first && !sql_token_is(&t, "WITH"))
                        return SQL_VERB_OTHER;
                first = false;
        }
        return SQL_VERB_OTHER;
}

bool sql_compound(const char *sql, size_t size, size_t *ret_offset) {
        const char *end = sql + size, *first = NULL;
        int depth = 0;

        for (SqlToken t = sql_token(sql, end); t.kind != SQL_TOKEN_END; t = sql_token(t.text + t.size, end)) {
                depth += *t.text == '(' ? 1 : *t.text == ')' ? -1 : 0;
                if (depth > 0)
                        continue;
                if (!first && (sql_token_is(&t, "SELECT") || sql_token_is(&t, "VALUES")))
                        first = t.text;
                if (first && (sql_token_is(&t, "UNION") || sql_token_is(&t, "EXCEPT") || sql_token_is(&t, "INTERSECT"))) {
                        *ret_offset = (size_t) (first - sql);
                        return true;
                }
        }
        return false;
}

/* The word is reserved: no name is written like this without quotes. */
size_t sql_returning(const char *sql, size_t size) {
        const char *end = sql + size;
        int depth = 0;

        for (SqlToken t = sql_token(sql, end); t.kind != SQL_TOKEN_END; t = sql_token(t.text + t.size, end)) {
                depth += *t.text == '(' ? 1 : *t.text == ')' ? -1 : 0;
                if (depth == 0 && sql_token_is(&t, "RETURNING"))
                        return (size_t) (t.text + t.size - sql);
        }
        return 0;
}

const char *sql_list_item_end(const char *at, const char *end) {
        int depth = 0;

        for (SqlToken t = sql_token(at, end); t.kind != SQL_TOKEN_END; t = sql_token(t.text + t.size, end)) {
                depth += *t.text == '(' ? 1 : *t.text == ')' ? -1 : 0;
                if (depth == 0 && *t.text == ',')
                        return t.text;
        }
        return end;
}
