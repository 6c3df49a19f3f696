/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes the SQL of an object as .schema of sqlite3's shell does, byte for byte. Pure. */
#ifndef SQLIPC_TOOLS_CLI_DUMP_SCHEMA_TEXT_H
#define SQLIPC_TOOLS_CLI_DUMP_SCHEMA_TEXT_H

#include <glib.h>
#include <stdbool.h>

/** Appends `sql` with ";" and a newline. `indent`: write each column and constraint of a long table on its own line. */
void schema_text_append(GString *text, const char *sql, bool indent);

/** The size in bytes of the first statement of `sql`, without its ";". SQLite uses only that statement to make the
 * object. */
size_t schema_text_size(const char *sql);

/** The text that `sql` needs before a ";", because a comment at its end would swallow it: static, "" for nothing. */
const char *schema_text_comment_end(const char *sql);

#endif
