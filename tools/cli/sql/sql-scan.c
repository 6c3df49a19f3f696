/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Splits SQL into tokens, see sql-scan.h. Pure.
 *
 * SQLite's rules are those of sqlite3GetToken() and sqlite3_complete(). PostgreSQL's are those of its scan.l, with the
 * placeholders of daemon/worker/postgresql/pg-text.h; the service sets standard_conforming_strings.
 */
#include "tools/cli/sql/sql-scan.h"

#include <glib.h>
#include <string.h>

#include "tools/cli/sql/sql-keyword.h"

/* The text to scan; only `size` bytes of it are valid. */
typedef struct Input {
        const char *text;
        size_t size;
        SqlDialect dialect;
} Input;

/* Where the scan of a token goes on that the end of the text cut off. */
typedef struct Resume {
        size_t position; /* 0: at the token's start */
        unsigned depth;  /* of comments within comments, there */
} Resume;

/* Returns NUL after the end, as SQLite's tokenizer sees it. */
static char at(Input input, size_t position) {
        return position < input.size ? input.text[position] : '\0';
}

static bool is_space(char c) {
        return c == ' ' || (c >= '\t' && c <= '\r' && c != '\v');
}

static bool is_name_byte(char c) {
        return g_ascii_isalnum(c) || c == '_' || c == '$' || (unsigned char) c >= 0x80;
}

static size_t skip_name(Input input, size_t position) {
        while (position < input.size && is_name_byte(input.text[position]))
                position++;
        return position;
}

static size_t skip_digits(Input input, size_t position) {
        while (g_ascii_isdigit(at(input, position)))
                position++;
        return position;
}

static size_t skip_to(Input input, size_t position, char c) {
        const char *found = position < input.size ? memchr(input.text + position, c, input.size - position) : NULL;

        return found ? (size_t) (found - input.text) : input.size;
}

/* Skips to the position after the closing quote; a doubled quote does not close. */
static size_t skip_quoted(Input input, size_t position, char quote, bool *ret_open) {
        for (;;) {
                position = skip_to(input, position, quote);
                if (position >= input.size) {
                        *ret_open = true;
                        return input.size;
                }
                if (at(input, position + 1) != quote || quote == ']')
                        return position + 1;
                position += 2;
        }
}

static size_t skip_block_comment(Input input, size_t position, bool *ret_open) {
        for (;; position++) {
                position = skip_to(input, position, '*');
                if (position >= input.size) {
                        *ret_open = true;
                        return input.size;
                }
                if (at(input, position + 1) == '/')
                        return position + 2;
        }
}

static bool is_hexadecimal(Input input, size_t position) {
        return at(input, position) == '0' && (at(input, position + 1) | 0x20) == 'x' &&
               g_ascii_isxdigit(at(input, position + 2));
}

static size_t skip_number(Input input, size_t position) {
        if (is_hexadecimal(input, position)) {
                position += 2;
                while (g_ascii_isxdigit(at(input, position)))
                        position++;
                return position;
        }
        position = skip_digits(input, position);
        if (at(input, position) == '.')
                position = skip_digits(input, position + 1);
        if ((at(input, position) | 0x20) == 'e') {
                size_t digits = position + 1 + (at(input, position + 1) == '+' || at(input, position + 1) == '-');

                if (g_ascii_isdigit(at(input, digits)))
                        position = skip_digits(input, digits);
        }
        return position;
}

/* Skips :name, @name, $name, and Tcl's $name::name(index). */
static size_t skip_parameter(Input input, size_t position, SqlTokenType *ret_type) {
        size_t start = ++position;

        for (;; position++) {
                char c = at(input, position);

                if (is_name_byte(c))
                        continue;
                if (c == ':' && at(input, position + 1) == ':') {
                        position++;
                        continue;
                }
                if (c == '(' && position > start) {
                        while (position < input.size && !is_space(input.text[position]) && input.text[position] != ')')
                                position++;
                        if (at(input, position) == ')')
                                return position + 1;
                        *ret_type = SQL_OTHER;
                }
                break;
        }
        if (position == start)
                *ret_type = SQL_OTHER;
        return position;
}

static size_t skip_operator(Input input, size_t position) {
        static const char *const longest_first[] = { "->>", "->", "||", "<<", ">>", "<=", ">=", "<>", "==", "!=" };

        for (size_t i = 0; i < G_N_ELEMENTS(longest_first); i++) {
                size_t size = strlen(longest_first[i]);

                if (size <= input.size - position && memcmp(input.text + position, longest_first[i], size) == 0)
                        return position + size;
        }
        return position + 1;
}

/* Skips a token that consists of its first byte, or an operator. */
static size_t skip_sign(Input input, size_t position, SqlTokenType *ret_type) {
        char c = input.text[position];

        if (c == ';') {
                *ret_type = SQL_SEMICOLON;
                return position + 1;
        }
        if (c == '\\') {
                *ret_type = SQL_BACKSLASH;
                return skip_to(input, position, '\n');
        }
        *ret_type = c != '\0' && strchr("+-*/%(),.=<>|&~", c) ? SQL_OPERATOR : SQL_OTHER;
        if (c == '!' && at(input, position + 1) == '=')
                *ret_type = SQL_OPERATOR;
        return skip_operator(input, position);
}

static size_t skip_space(Input input, size_t position) {
        while (position < input.size && is_space(input.text[position]))
                position++;
        return position;
}

/* Skips a word, or x'00'. */
static size_t skip_word(Input input, size_t position, size_t resume, SqlToken *token) {
        size_t end;

        if ((input.text[position] | 0x20) == 'x' && at(input, position + 1) == '\'') {
                token->type = SQL_BLOB;
                end = skip_to(input, MAX(position + 2, resume), '\'');
                token->open = end >= input.size;
                return MIN(end + 1, input.size);
        }
        end = skip_name(input, position);
        token->type = sql_is_keyword(input.text + position, end - position) ? SQL_KEYWORD : SQL_NAME;
        return end;
}

/* Returns the end of the token at `position`. A token that the text ended in last time was scanned up to `*progress`. */
static size_t sqlite_token(Input input, size_t position, Resume *progress, SqlToken *ret) {
        static const char byte_order_mark[] = "\357\273\277";
        char c = input.text[position], next = at(input, position + 1);
        size_t resume = progress->position;

        progress->position = input.size;
        if (is_space(c)) {
                ret->type = SQL_SPACE;
                return skip_space(input, position + 1);
        }
        if (c == '-' && next == '-') {
                ret->type = SQL_COMMENT;
                return skip_to(input, position, '\n');
        }
        if (c == '/' && next == '*') {
                ret->type = SQL_COMMENT;
                return skip_block_comment(input, MAX(position + 2, resume), &ret->open);
        }
        if (strchr("'\"`[", c) && c != '\0') {
                ret->type = c == '\'' ? SQL_STRING : SQL_QUOTED;
                return skip_quoted(input, MAX(position + 1, resume), c == '[' ? ']' : c, &ret->open);
        }
        if (g_ascii_isdigit(c) || (c == '.' && g_ascii_isdigit(next))) {
                size_t end = skip_number(input, position), word_end = skip_name(input, end);

                ret->type = end == word_end ? SQL_NUMBER : SQL_OTHER;
                return word_end;
        }
        if (c == '?') {
                ret->type = SQL_PARAMETER;
                return skip_digits(input, position + 1);
        }
        if (c == ':' || c == '@' || c == '$' || c == '#') {
                ret->type = SQL_PARAMETER;
                return skip_parameter(input, position, &ret->type);
        }
        if (input.size - position >= 3 && memcmp(input.text + position, byte_order_mark, 3) == 0) {
                ret->type = SQL_SPACE;
                return position + 3;
        }
        if (is_name_byte(c))
                return skip_word(input, position, resume, ret);
        return skip_sign(input, position, &ret->type);
}

/* ---- PostgreSQL --------------------------------------------------------------------------------------------------- */

static bool is_postgresql_space(char c) {
        return is_space(c) || c == '\v';
}

static bool is_name_start(char c) {
        return is_name_byte(c) && c != '$' && !g_ascii_isdigit(c);
}

/* Skips to the end of the line, which a CR ends, too. */
static size_t skip_line(Input input, size_t position) {
        while (position < input.size && input.text[position] != '\n' && input.text[position] != '\r')
                position++;
        return position;
}

static size_t skip_nested_comment(Input input, size_t position, Resume *progress, bool *ret_open) {
        unsigned depth = progress->position > 0 ? progress->depth : 0;

        for (position = MAX(position, progress->position); position < input.size; position++) {
                char c = input.text[position], next = at(input, position + 1);

                if (c == '/' && next == '*') {
                        depth++;
                        position++;
                } else if (c == '*' && next == '/') {
                        position++;
                        if (--depth == 0)
                                return position + 1;
                }
        }
        *progress = (Resume) { .position = position, .depth = depth };
        *ret_open = true;
        return input.size;
}

/* Skips '...' in which a backslash escapes, from within it. */
static size_t skip_escapes(Input input, size_t position, Resume *progress, bool *ret_open) {
        for (; position < input.size; position++) {
                if (input.text[position] == '\\' && position + 1 >= input.size)
                        break;
                if (input.text[position] == '\\')
                        position++;
                else if (input.text[position] == '\'' && at(input, position + 1) == '\'')
                        position++;
                else if (input.text[position] == '\'')
                        return position + 1;
        }
        progress->position = position;
        *ret_open = true;
        return input.size;
}

/* Finds the quote by which a string goes on after its closing quote, before `position`: a new line is between them, and only
 * blanks and comments. 0: it does not go on. `*ret_undecided`: the text ends before that is known. */
static size_t find_continuation(Input input, size_t position, bool *ret_undecided) {
        bool new_line = false;

        for (; position < input.size; position++) {
                if (input.text[position] == '-' && at(input, position + 1) == '-')
                        position = skip_line(input, position) - 1;
                else if (!is_postgresql_space(input.text[position]))
                        return new_line && input.text[position] == '\'' ? position : 0;
                else
                        new_line = new_line || input.text[position] == '\n' || input.text[position] == '\r';
        }
        *ret_undecided = true;
        return 0;
}

/* Skips E'...' with its continuations; `position` is its first quote. If it may go on after the end of the text, it is
 * closed, but undecided. */
static size_t skip_escaped_string(Input input, size_t position, Resume *progress, SqlToken *token) {
        size_t next = MAX(position + 1, progress->position), end;

        for (;;) {
                end = skip_escapes(input, next, progress, &token->open);
                if (token->open)
                        return end;
                next = find_continuation(input, end, &token->undecided);
                progress->position = end - 1; /* finds the closing quote again */
                if (next == 0)
                        return end;
                next++;
        }
}

/* Skips "$tag$ ... $tag$". Returns 0 if the "$" begins none. */
static size_t skip_dollar_string(Input input, size_t position, Resume *progress, bool *ret_open) {
        size_t size = 1, from;
        const char *end;

        if (is_name_start(at(input, position + 1)))
                while (is_name_byte(at(input, position + size)) && at(input, position + size) != '$')
                        size++;
        if (at(input, position + size) != '$')
                return 0;
        size++;
        from = MAX(position + size, progress->position);
        end = from < input.size ? memmem(input.text + from, input.size - from, input.text + position, size) : NULL;
        if (end)
                return (size_t) (end - input.text) + size;
        progress->position = MAX(position + size, input.size > size ? input.size - size : 0);
        *ret_open = true;
        return input.size;
}

/* Skips a placeholder's name, after its prefix. Returns 0 if there is none. */
static size_t skip_placeholder(Input input, size_t position) {
        if (!is_name_start(at(input, position)))
                return 0;
        while (is_name_byte(at(input, position)) && at(input, position) != '$')
                position++;
        return position;
}

/* Skips an operator or placeholder that begins with "?", ":", "@" or "$". */
static size_t skip_postgresql_mark(Input input, size_t position, Resume *progress, SqlToken *token) {
        char c = input.text[position], next = at(input, position + 1);
        char before = position > 0 ? input.text[position - 1] : '\0';
        size_t end = 0;

        token->type = SQL_OPERATOR;
        if ((c == '?' || c == ':') && next == c)
                return position + 2;
        if (c == '?')
                end = skip_digits(input, position + 1);
        else if (c == '$' && g_ascii_isdigit(next))
                end = skip_digits(input, position + 1);
        else if (c == '$') {
                token->type = SQL_STRING;
                end = skip_dollar_string(input, position, progress, &token->open);
                if (end > 0)
                        return end;
        }
        if (end == 0 && (c != '@' || (before != '<' && before != '@')))
                end = skip_placeholder(input, position + 1);
        token->type = end > 0 ? SQL_PARAMETER : c == '$' ? SQL_OTHER : SQL_OPERATOR;
        return end > 0 ? end : position + 1;
}

static size_t skip_postgresql_number(Input input, size_t position) {
        while (g_ascii_isalnum(at(input, position)) || at(input, position) == '_' || at(input, position) == '.')
                position++;
        return position;
}

static size_t skip_postgresql_word(Input input, size_t position, Resume *progress, SqlToken *token) {
        size_t end = skip_name(input, position);

        if (end == position + 1 && (input.text[position] | 0x20) == 'e' && at(input, end) == '\'') {
                token->type = SQL_STRING;
                return skip_escaped_string(input, end, progress, token);
        }
        token->type = sql_is_keyword(input.text + position, end - position) ? SQL_KEYWORD : SQL_NAME;
        return end;
}

/* Like sqlite_token(). */
static size_t postgresql_token(Input input, size_t position, Resume *progress, SqlToken *ret) {
        char c = input.text[position], next = at(input, position + 1);

        if (is_postgresql_space(c)) {
                ret->type = SQL_SPACE;
                while (position < input.size && is_postgresql_space(input.text[position]))
                        position++;
                return position;
        }
        if (c == '-' && next == '-') {
                ret->type = SQL_COMMENT;
                return skip_line(input, position);
        }
        if (c == '/' && next == '*') {
                ret->type = SQL_COMMENT;
                return skip_nested_comment(input, position, progress, &ret->open);
        }
        if (c == '\'' || c == '"') {
                size_t from = MAX(position + 1, progress->position);

                ret->type = c == '\'' ? SQL_STRING : SQL_QUOTED;
                progress->position = input.size;
                return skip_quoted(input, from, c, &ret->open);
        }
        if (g_ascii_isdigit(c) || (c == '.' && g_ascii_isdigit(next))) {
                ret->type = SQL_NUMBER;
                return skip_postgresql_number(input, position);
        }
        if (c == '?' || c == ':' || c == '@' || c == '$')
                return skip_postgresql_mark(input, position, progress, ret);
        if (is_name_start(c))
                return skip_postgresql_word(input, position, progress, ret);
        return skip_sign(input, position, &ret->type);
}

/* ---- Tokens ------------------------------------------------------------------------------------------------------- */

static bool scan_from(Input input, size_t *position, Resume *progress, SqlToken *ret) {
        if (*position >= input.size)
                return false;
        *ret = (SqlToken) { .start = *position };
        *position = input.dialect == SQL_DIALECT_POSTGRESQL ? postgresql_token(input, *position, progress, ret)
                                                            : sqlite_token(input, *position, progress, ret);
        ret->size = *position - ret->start;
        return true;
}

bool sql_scan_next(SqlDialect dialect, const char *text, size_t size, size_t *position, SqlToken *ret) {
        Resume progress = {};

        return scan_from((Input) { text, size, dialect }, position, &progress, ret);
}

/* ---- Statements --------------------------------------------------------------------------------------------------- */

/* The words that sqlite3_complete() distinguishes. It ignores blanks and comments. */
typedef enum Word {
        WORD_SEMICOLON,
        WORD_OTHER,
        WORD_EXPLAIN,
        WORD_CREATE,
        WORD_TEMP,
        WORD_TRIGGER,
        WORD_END,
        _WORD_MAX,
} Word;

/* The states of sqlite3_complete(). Only in CREATE TRIGGER a semicolon does not end the statement; there "; END ;" does. */
typedef enum State {
        STATE_START,
        STATE_NORMAL,
        STATE_EXPLAIN,
        STATE_CREATE,
        STATE_TRIGGER,
        STATE_SEMICOLON, /* within a trigger */
        STATE_END,       /* "; END" within a trigger */
        _STATE_MAX,
} State;

/* The columns are: ; other EXPLAIN CREATE TEMP TRIGGER END. Words keep STATE_EXPLAIN because of EXPLAIN QUERY PLAN CREATE
 * TRIGGER. */
static const uint8_t next_states[_STATE_MAX][_WORD_MAX] = {
        [STATE_START] = { STATE_START, STATE_NORMAL, STATE_EXPLAIN, STATE_CREATE, STATE_NORMAL, STATE_NORMAL, STATE_NORMAL },
        [STATE_NORMAL] = { STATE_START, STATE_NORMAL, STATE_NORMAL, STATE_NORMAL, STATE_NORMAL, STATE_NORMAL, STATE_NORMAL },
        [STATE_EXPLAIN] = { STATE_START, STATE_EXPLAIN, STATE_NORMAL, STATE_CREATE, STATE_NORMAL, STATE_NORMAL,
                            STATE_NORMAL },
        [STATE_CREATE] = { STATE_START, STATE_NORMAL, STATE_NORMAL, STATE_NORMAL, STATE_CREATE, STATE_TRIGGER,
                           STATE_NORMAL },
        [STATE_TRIGGER] = { STATE_SEMICOLON, STATE_TRIGGER, STATE_TRIGGER, STATE_TRIGGER, STATE_TRIGGER, STATE_TRIGGER,
                            STATE_TRIGGER },
        [STATE_SEMICOLON] = { STATE_SEMICOLON, STATE_TRIGGER, STATE_TRIGGER, STATE_TRIGGER, STATE_TRIGGER, STATE_TRIGGER,
                              STATE_END },
        [STATE_END] = { STATE_START, STATE_TRIGGER, STATE_TRIGGER, STATE_TRIGGER, STATE_TRIGGER, STATE_TRIGGER,
                        STATE_TRIGGER },
};

bool sql_token_is(const char *text, const SqlToken *token, const char *word) {
        return strlen(word) == token->size && g_ascii_strncasecmp(text + token->start, word, token->size) == 0;
}

static Word word_of(const char *text, const SqlToken *token) {
        if (token->type == SQL_SEMICOLON)
                return WORD_SEMICOLON;
        if (token->type != SQL_KEYWORD)
                return WORD_OTHER;
        if (sql_token_is(text, token, "EXPLAIN"))
                return WORD_EXPLAIN;
        if (sql_token_is(text, token, "CREATE"))
                return WORD_CREATE;
        if (sql_token_is(text, token, "TEMP") || sql_token_is(text, token, "TEMPORARY"))
                return WORD_TEMP;
        if (sql_token_is(text, token, "TRIGGER"))
                return WORD_TRIGGER;
        return sql_token_is(text, token, "END") ? WORD_END : WORD_OTHER;
}

/* The states of a statement of PostgreSQL. A semicolon does not end the statement in parentheses, as in CREATE RULE, and in
 * the body of a function, BEGIN ATOMIC statement; ... END. The body's END is the one after a semicolon, or after ATOMIC. */
typedef enum PostgresqlState {
        POSTGRESQL_START,
        POSTGRESQL_NORMAL,
        POSTGRESQL_CREATE,
        POSTGRESQL_BEGIN,      /* the last word was BEGIN */
        POSTGRESQL_BODY_START, /* a statement of the body, or its END, comes next */
        POSTGRESQL_BODY,
} PostgresqlState;

static PostgresqlState next_postgresql_state(SqlSplit *split, const char *text, const SqlToken *token) {
        PostgresqlState state = split->state;

        if (token->type == SQL_OPERATOR && text[token->start] == '(')
                split->parentheses++;
        else if (token->type == SQL_OPERATOR && text[token->start] == ')' && split->parentheses > 0)
                split->parentheses--;
        switch (state) {
        case POSTGRESQL_START:
                if (token->type == SQL_SEMICOLON)
                        return POSTGRESQL_START;
                return sql_token_is(text, token, "CREATE") ? POSTGRESQL_CREATE : POSTGRESQL_NORMAL;
        case POSTGRESQL_CREATE:
        case POSTGRESQL_BEGIN:
                if (state == POSTGRESQL_BEGIN && sql_token_is(text, token, "ATOMIC"))
                        return POSTGRESQL_BODY_START;
                if (token->type != SQL_SEMICOLON)
                        return sql_token_is(text, token, "BEGIN") ? POSTGRESQL_BEGIN : POSTGRESQL_CREATE;
                return split->parentheses > 0 ? POSTGRESQL_CREATE : POSTGRESQL_START;
        case POSTGRESQL_BODY_START:
        case POSTGRESQL_BODY:
                if (token->type == SQL_SEMICOLON)
                        return POSTGRESQL_BODY_START;
                return state == POSTGRESQL_BODY_START && sql_token_is(text, token, "END") ? POSTGRESQL_NORMAL
                                                                                         : POSTGRESQL_BODY;
        case POSTGRESQL_NORMAL:
                break;
        }
        return token->type == SQL_SEMICOLON && split->parentheses == 0 ? POSTGRESQL_START : POSTGRESQL_NORMAL;
}

/* Records a complete token. */
static void split_take(SqlSplit *split, const char *text, const SqlToken *token) {
        split->position = token->start + token->size;
        if (token->type == SQL_SPACE || token->type == SQL_COMMENT)
                return;
        if (!split->started && token->type != SQL_SEMICOLON) {
                split->started = true;
                split->start = token->start;
        }
        if (split->dialect == SQL_DIALECT_POSTGRESQL)
                split->state = (uint8_t) next_postgresql_state(split, text, token);
        else
                split->state = next_states[split->state][word_of(text, token)];
}

static bool begins_command(const SqlSplit *split, const char *text, const SqlToken *token) {
        return token->type == SQL_BACKSLASH || (!split->started && token->type == SQL_OPERATOR && text[token->start] == '.');
}

/* Records an incomplete token at the end of the text: it is taken when the next lines complete it. */
static void split_wait(SqlSplit *split, const Resume *progress, const SqlToken *token) {
        split->position = token->start;
        split->resume = progress->position;
        split->depth = progress->depth;
        split->open = (uint8_t) (token->open ? token->type : SQL_SPACE);
        if (!split->started && token->type != SQL_COMMENT) {
                split->started = true;
                split->start = token->start;
        }
}

SqlExtent sql_split(SqlSplit *split, const char *text, size_t size, size_t *ret_size) {
        size_t position = split->position;
        Resume progress = { .position = split->resume, .depth = split->depth };
        SqlToken token;

        split->open = SQL_SPACE;
        for (; scan_from((Input) { text, size, split->dialect }, &position, &progress, &token); progress = (Resume) {}) {
                split->resume = 0;
                if (begins_command(split, text, &token)) {
                        *ret_size = token.start;
                        return SQL_EXTENT_COMMAND;
                }
                if (token.open || token.undecided) {
                        split_wait(split, &progress, &token);
                        *ret_size = size;
                        return SQL_EXTENT_INCOMPLETE;
                }
                split_take(split, text, &token);
                if (token.type == SQL_SEMICOLON && split->state == STATE_START) {
                        *ret_size = position;
                        return SQL_EXTENT_COMPLETE;
                }
        }
        *ret_size = size;
        return split->started ? SQL_EXTENT_INCOMPLETE : SQL_EXTENT_EMPTY;
}

SqlExtent sql_scan_statement(SqlDialect dialect, const char *text, size_t size, size_t *ret_size) {
        SqlSplit split = { .dialect = dialect };

        return sql_split(&split, text, size, ret_size);
}
