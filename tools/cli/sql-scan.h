/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQL by its tokens, as SQLite's tokenizer takes it: for where a statement ends, for colours, for completion. Pure. */
#ifndef CLI_SQL_SCAN_H
#define CLI_SQL_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum SqlTokenType {
        SQL_SPACE,
        SQL_COMMENT,
        SQL_KEYWORD,    /* sql-keyword.h knows it */
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

/** Whether it is this word, in any case of letters. */
bool sql_token_is(const char *text, const SqlToken *token, const char *word);

typedef enum SqlExtent {
        SQL_EXTENT_EMPTY,      /* blanks and comments alone */
        SQL_EXTENT_INCOMPLETE, /* a statement that has no ";" yet, or a comment that is open */
        SQL_EXTENT_COMPLETE,   /* up to and with its ";", which a trigger's body does not end (sqlite3_complete) */
        SQL_EXTENT_COMMAND,    /* a statement, maybe empty, that a backslash command follows; or a dot-command */
} SqlExtent;

/** How far the first statement of the text reaches: `*ret_size` bytes. */
SqlExtent sql_scan_statement(const char *text, size_t size, size_t *ret_size);

/* How far a text has been looked through that grows by whole lines. Zeroed: not at all. */
typedef struct SqlSplit {
        size_t position, resume; /* the next token; how much of it is known to be within it */
        size_t start;            /* of the statement, where it has started: of its first token */
        bool started;            /* more than blanks, comments and empty statements were there */
        uint8_t state;
        uint8_t open;            /* SqlTokenType of what the text ended within; SQL_SPACE: nothing */
} SqlSplit;

/** sql_scan_statement() for a text that grew at its end since the last call, in time linear in what is new. After
 * COMPLETE and COMMAND it is over: a new SqlSplit looks at what follows. */
SqlExtent sql_split(SqlSplit *split, const char *text, size_t size, size_t *ret_size);

#endif
