/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQL by its tokens, as SQLite's tokenizer takes it: for where a statement ends, for colours, for completion. Pure. */
#ifndef CLI_SQL_SCAN_H
#define CLI_SQL_SCAN_H

#include <stdbool.h>
#include <stddef.h>

typedef enum SqlTokenType {
        SQL_SPACE,
        SQL_COMMENT,
        SQL_KEYWORD,    /* sqlite3_keyword_check() knows it */
        SQL_NAME,       /* a bare identifier */
        SQL_QUOTED,     /* "name", [name], `name` */
        SQL_STRING,     /* 'text' */
        SQL_BLOB,       /* x'00' */
        SQL_NUMBER,
        SQL_PARAMETER,  /* ?1 :name @name $name */
        SQL_OPERATOR,   /* also ( ) , . */
        SQL_SEMICOLON,
        SQL_BACKSLASH,  /* none of SQL's: where a backslash command begins; reaches to the end of the line */
        SQL_OTHER,
} SqlTokenType;

typedef struct SqlToken {
        SqlTokenType type;
        size_t start, size; /* bytes */
        bool open;          /* a string, name or comment that the text ends within */
} SqlToken;

/** The token at `*position`, which moves behind it. False at the end of the text. */
bool sql_scan_next(const char *text, size_t size, size_t *position, SqlToken *ret);

typedef enum SqlExtent {
        SQL_EXTENT_EMPTY,      /* blanks and comments alone */
        SQL_EXTENT_INCOMPLETE, /* a statement that has no ";" yet */
        SQL_EXTENT_COMPLETE,   /* up to and with its ";", which a trigger's body does not end (sqlite3_complete) */
        SQL_EXTENT_COMMAND,    /* a statement, maybe empty, that a backslash command follows */
} SqlExtent;

/** How far the first statement of the text reaches: `*ret_size` bytes. */
SqlExtent sql_scan_statement(const char *text, size_t size, size_t *ret_size);

#endif
