/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQLite's keywords, in our own table, because the library of the shell's parts does not link SQLite. Pure. */
#ifndef SQLIPC_TOOLS_CLI_SQL_SQL_KEYWORD_H
#define SQLIPC_TOOLS_CLI_SQL_SQL_KEYWORD_H

#include <stdbool.h>
#include <stddef.h>

/** All keywords in capitals, sorted, NULL-terminated; static. */
const char *const *sql_keywords(void);

/** The keywords of statements that only read; format as sql_keywords(). */
const char *const *sql_reading_keywords(void);

/** The PRAGMAs that SQLite runs when they have no value, in small letters; format as sql_keywords(). */
const char *const *sql_reading_pragmas(void);

/** Matches in any case of letters, as sqlite3_keyword_check() does. */
bool sql_is_keyword(const char *word, size_t size);

#endif
