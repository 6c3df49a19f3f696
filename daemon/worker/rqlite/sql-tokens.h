/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Splits SQL that SQLite has compiled into its tokens, as far as parameters must be found among them. Pure.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_SQL_TOKENS_H
#define SQLIPC_DAEMON_WORKER_RQLITE_SQL_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum SqlTokenKind {
        SQL_TOKEN_END,
        SQL_TOKEN_SPACE,     /* and comments */
        SQL_TOKEN_WORD,      /* a keyword or a name without quotes */
        SQL_TOKEN_PARAMETER, /* ?, ?NNN, :name, @name, $name */
        SQL_TOKEN_OTHER,     /* a literal, a name in quotes, or one character */
} SqlTokenKind;

typedef struct SqlToken {
        SqlTokenKind kind;
        const char *text;    /* borrowed from the SQL, not ended by a NUL */
        size_t size;
} SqlToken;

/* Returns the token at `at`, which is before `end`, or SQL_TOKEN_END. */
SqlToken sql_token(const char *at, const char *end);

/* True if the token is this keyword, given in capital letters. */
bool sql_token_is(const SqlToken *token, const char *keyword);

/* The kind of a statement, by the first of these keywords outside parentheses. */
typedef enum SqlVerb {
        SQL_VERB_OTHER,  /* CREATE, PRAGMA, EXPLAIN and all else */
        SQL_VERB_SELECT, /* or VALUES */
        SQL_VERB_INSERT, /* or REPLACE */
        SQL_VERB_CHANGE, /* UPDATE, DELETE */
} SqlVerb;
SqlVerb sql_verb(const char *sql, size_t size);

/* Finds the first SELECT (or VALUES) of a compound one: *ret_offset in bytes. False: it is not compound. */
bool sql_compound(const char *sql, size_t size, size_t *ret_offset);

/* The offset of the list after RETURNING; 0: there is none. */
size_t sql_returning(const char *sql, size_t size);

/* The end of the expression at `at` of a list: the next comma outside parentheses, or `end`. */
const char *sql_list_item_end(const char *at, const char *end);

#endif
