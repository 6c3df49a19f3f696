/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The SQL of an object as .schema of sqlite3's shell writes it, byte for byte. Pure. */
#ifndef CLI_SCHEMA_TEXT_H
#define CLI_SCHEMA_TEXT_H

#include <glib.h>
#include <stdbool.h>

/** Appends `sql` with ";" and a newline. `indent`: a long table has a line for each of its columns and constraints. */
void schema_text_append(GString *text, const char *sql, bool indent);

/** Bytes of the statement that `sql` begins with, without its ";". SQLite makes an object of that alone. */
size_t schema_text_size(const char *sql);

/** What `sql` needs before a ";", which a comment that reaches to its end would swallow: static, "" for nothing. */
const char *schema_text_comment_end(const char *sql);

#endif
