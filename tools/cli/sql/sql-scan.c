/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Splits SQL into tokens, see sql-scan.h. Follows sqlite3GetToken() and sqlite3_complete(). Pure. */
#include "tools/cli/sql/sql-scan.h"

#include <glib.h>
#include <string.h>

#include "tools/cli/sql/sql-keyword.h"

/* The text to scan; only `size` bytes of it are valid. */
typedef struct Input {
        const char *text;
        size_t size;
} Input;

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

/* Returns the end of the token at `position`. A token that the text ended in last time was scanned up to `resume`. */
static size_t scan_token(Input input, size_t position, size_t resume, SqlToken *ret) {
        static const char byte_order_mark[] = "\357\273\277";
        char c = input.text[position], next = at(input, position + 1);

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

static bool scan_from(const char *text, size_t size, size_t *position, size_t resume, SqlToken *ret) {
        if (*position >= size)
                return false;
        *ret = (SqlToken) { .start = *position };
        *position = scan_token((Input) { text, size }, *position, resume, ret);
        ret->size = *position - ret->start;
        return true;
}

bool sql_scan_next(const char *text, size_t size, size_t *position, SqlToken *ret) {
        return scan_from(text, size, position, 0, ret);
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

/* Records a complete token. */
static void split_take(SqlSplit *split, const char *text, const SqlToken *token) {
        split->position = token->start + token->size;
        if (token->type == SQL_SPACE || token->type == SQL_COMMENT)
                return;
        if (!split->started && token->type != SQL_SEMICOLON) {
                split->started = true;
                split->start = token->start;
        }
        split->state = next_states[split->state][word_of(text, token)];
}

static bool begins_command(const SqlSplit *split, const char *text, const SqlToken *token) {
        return token->type == SQL_BACKSLASH || (!split->started && token->type == SQL_OPERATOR && text[token->start] == '.');
}

/* Records an incomplete token at the end of the text: it is taken when the next lines complete it. */
static void split_wait(SqlSplit *split, size_t size, const SqlToken *token) {
        split->position = token->start;
        split->resume = size;
        split->open = (uint8_t) token->type;
        if (!split->started && token->type != SQL_COMMENT) {
                split->started = true;
                split->start = token->start;
        }
}

SqlExtent sql_split(SqlSplit *split, const char *text, size_t size, size_t *ret_size) {
        size_t position = split->position;
        SqlToken token;

        split->open = SQL_SPACE;
        while (scan_from(text, size, &position, split->resume, &token)) {
                split->resume = 0;
                if (begins_command(split, text, &token)) {
                        *ret_size = token.start;
                        return SQL_EXTENT_COMMAND;
                }
                if (token.open) {
                        split_wait(split, size, &token);
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

SqlExtent sql_scan_statement(const char *text, size_t size, size_t *ret_size) {
        SqlSplit split = {};

        return sql_split(&split, text, size, ret_size);
}
