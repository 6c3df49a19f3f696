/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of tables and columns in SQL: quoted if necessary, as by sqlite3's shell, and without their quotes. Pure. */
#ifndef SQLIPC_TOOLS_CLI_SQL_SQL_NAME_H
#define SQLIPC_TOOLS_CLI_SQL_SQL_NAME_H

#include "tools/terminal/sink.h"

/** Writes `name`, which may be any bytes except NUL: verbatim, or as "the ""name""" if it is a keyword or not a plain
 * word. */
void sql_name_write(Sink *sink, const char *name);
/** Returns true if `name` needs no quotes. */
bool sql_name_is_plain(const char *name);
/** Appends `name` in quotes of the kind `quote`; those inside the name are doubled. */
void sql_name_append_quoted(GString *sql, const char *name, char quote);
/** Returns the name that `size` bytes between quotes are: doubled quotes are made single. `quote`: the closing one. The
 * caller frees it. */
char *sql_name_unquote(const char *text, size_t size, char quote);

#endif
