/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where in SQL a cursor is: which word is typed, what may stand there, and which tables are meant. Pure. */
#ifndef CLI_COMPLETE_SQL_H
#define CLI_COMPLETE_SQL_H

#include <glib.h>
#include <stdbool.h>

/* What may stand there; bits. */
enum {
        WANTS_COLUMNS = 1 << 0,   /* of .tables */
        WANTS_NAMES = 1 << 1,     /* .names */
        WANTS_TABLES = 1 << 2,
        WANTS_FUNCTIONS = 1 << 3,
        WANTS_KEYWORDS = 1 << 4,
        WANTS_BEGINNINGS = 1 << 5, /* the keywords that begin a statement */
        WANTS_PRAGMAS = 1 << 6,
        WANTS_ALL_COLUMNS = 1 << 7, /* of every table: none is named yet */
};

typedef struct SqlPlace {
        size_t start;       /* of the word, with its quote: bytes of the text */
        char quote;         /* how it is quoted: '"', '`', '['; '\0': it is not */
        char *word;         /* owned; what is typed of it, without quotes */
        unsigned wants;
        bool in_parentheses;
        bool small;         /* keywords in small letters */
        GPtrArray *tables;  /* owned; whose columns are meant */
        GPtrArray *names;   /* owned; what the statement itself calls tables: aliases, or their names, and those of WITH;
                             * where a value may be, also its columns: of its queries, and after AS; after "name.", the
                             * columns of the query of that name */
} SqlPlace;

/** Looks at `text` (statements, of which one is under way) around byte `cursor`. */
void sql_place_find(const char *text, size_t cursor, SqlPlace *ret);
void sql_place_done(SqlPlace *place);

/** `name` as it is written there: quoted if it was, or if it must be. To be freed. */
char *sql_place_quote(const SqlPlace *place, const char *name);

/** Whether `name` begins with what is typed, in any case of letters. */
bool sql_place_matches(const SqlPlace *place, const char *name);

#endif
