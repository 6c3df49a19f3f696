/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Analyzes the SQL around the cursor: the word that is being typed, the kinds of names that fit there, and their tables.
 * Pure. */
#ifndef SQLIPC_TOOLS_CLI_SQL_COMPLETE_SQL_H
#define SQLIPC_TOOLS_CLI_SQL_COMPLETE_SQL_H

#include <glib.h>
#include <stdbool.h>

#include "tools/cli/sql/sql-scan.h"

/* The kinds of words that fit at the cursor; bits. */
enum {
        WANTS_COLUMNS = 1 << 0,   /* of .tables */
        WANTS_NAMES = 1 << 1,     /* .names */
        WANTS_TABLES = 1 << 2,
        WANTS_FUNCTIONS = 1 << 3,
        WANTS_KEYWORDS = 1 << 4,
        WANTS_BEGINNINGS = 1 << 5, /* the keywords that begin a statement */
        WANTS_PRAGMAS = 1 << 6,
        WANTS_ALL_COLUMNS = 1 << 7, /* of every table, because the statement names none yet */
};

typedef struct SqlPlace {
        size_t start;       /* byte offset of the word, including its quote */
        char quote;         /* how the word is quoted: '"', '`', '['; '\0': not at all */
        char *word;         /* owned; the typed part, without quotes */
        unsigned wants;
        bool in_parentheses;
        bool small;         /* keywords are offered in small letters */
        GPtrArray *tables;  /* owned; the tables whose columns fit */
        GPtrArray *names;   /* owned; names that the statement itself defines: tables or their aliases, and common tables of
                             * WITH; in an expression also columns: of its queries, and after AS; after "name.", the columns
                             * of the query of that name */
} SqlPlace;

/** Looks at `text` (statements, one of them unfinished) around byte `cursor`. */
void sql_place_find(SqlDialect dialect, const char *text, size_t cursor, SqlPlace *ret);
void sql_place_done(SqlPlace *place);

/** `name` in the form to insert there: quoted if the word was, or if the name needs it. The caller frees it. */
char *sql_place_quote(const SqlPlace *place, const char *name);

/** Returns true if `name` begins with the typed part, in any case of letters. */
bool sql_place_matches(const SqlPlace *place, const char *name);

#endif
