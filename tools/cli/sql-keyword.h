/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The words that SQLite keeps to itself. A table of our own: of the shell's programs none links SQLite. Pure. */
#ifndef CLI_SQL_KEYWORD_H
#define CLI_SQL_KEYWORD_H

#include <stdbool.h>
#include <stddef.h>

/** All of them in capitals, sorted, NULL-terminated; static. */
const char *const *sql_keywords(void);

/** Those that a statement which only reads may have; as sql_keywords(). */
const char *const *sql_reading_keywords(void);

/** The PRAGMAs that only read, in small letters; as sql_keywords(). */
const char *const *sql_reading_pragmas(void);

/** In any case of letters, as sqlite3_keyword_check(). */
bool sql_is_keyword(const char *word, size_t size);

#endif
