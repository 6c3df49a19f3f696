/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Splits SQL into tokens as the database's own tokenizer does: to find the end of a statement and its parameters, for
 * colours, for completion. Other rules find other statements in the same text: "$$ SELECT 1; DELETE FROM t; $$" is one
 * string of PostgreSQL, and SQLite's rules find three statements in it. Pure.
 */
#ifndef SQLIPC_TOOLS_CLI_SQL_SQL_SCAN_H
#define SQLIPC_TOOLS_CLI_SQL_SQL_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum SqlDialect {
        SQL_DIALECT_SQLITE, /* also of rqlite */
        SQL_DIALECT_POSTGRESQL,
} SqlDialect;

typedef enum SqlTokenType {
        SQL_SPACE,
        SQL_COMMENT,
        SQL_KEYWORD,    /* a word of sql-keyword.h */
        SQL_NAME,       /* a bare identifier */
        SQL_QUOTED,     /* "name", [name], `name` */
        SQL_STRING,     /* 'text', E'text', $$text$$ */
        SQL_BLOB,       /* x'00' */
        SQL_NUMBER,
        SQL_PARAMETER,  /* ?1 :name @name $name, and $1 of PostgreSQL */
        SQL_OPERATOR,   /* also ( ) , . */
        SQL_SEMICOLON,
        SQL_BACKSLASH,  /* not SQL: the start of a backslash command; extends to the end of the line */
        SQL_OTHER,
} SqlTokenType;

typedef struct SqlToken {
        SqlTokenType type;
        size_t start, size; /* bytes */
        bool open;          /* a string, name or comment that the end of the text cuts off */
        bool undecided;     /* a string that ends before the end of the text, but the next line may continue it */
} SqlToken;

/** Reads the token at `*position`, and advances that past it. Returns false at the end of the text. */
bool sql_scan_next(SqlDialect dialect, const char *text, size_t size, size_t *position, SqlToken *ret);

/** Returns true if the token is this word, in any case of letters. */
bool sql_token_is(const char *text, const SqlToken *token, const char *word);

typedef enum SqlExtent {
        SQL_EXTENT_EMPTY,      /* only blanks and comments */
        SQL_EXTENT_INCOMPLETE, /* a statement without its ";", or an open comment */
        SQL_EXTENT_COMPLETE,   /* a statement with its ";", which is not one in the body of a trigger or function */
        SQL_EXTENT_COMMAND,    /* a statement, maybe empty, that is followed by a backslash command; or a dot-command */
} SqlExtent;

/** Finds the end of the first statement of the text: `*ret_size` is its size in bytes. */
SqlExtent sql_scan_statement(SqlDialect dialect, const char *text, size_t size, size_t *ret_size);

/* The scanning state for a text that grows by whole lines. Initialize with the dialect, and zeros. */
typedef struct SqlSplit {
        SqlDialect dialect;
        size_t position, resume; /* start of the next token; end of the part of it that was scanned */
        size_t start;            /* start of the statement's first token, once it has started */
        bool started;            /* there was more than blanks, comments and empty statements */
        unsigned depth;          /* of comments within comments, at .resume */
        unsigned parentheses;    /* that are open */
        uint8_t state;
        uint8_t open;            /* SqlTokenType of the token that the text ended within; SQL_SPACE: none */
} SqlSplit;

/** Does the same as sql_scan_statement(), for a text that has grown at its end since the last call, in time linear in the
 * new part. After COMPLETE and COMMAND the state is spent: use a new SqlSplit for the rest of the text. */
SqlExtent sql_split(SqlSplit *split, const char *text, size_t size, size_t *ret_size);

#endif
