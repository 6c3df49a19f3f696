/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of tables and columns as SQL, quoted where they must be, as sqlite3's shell does it. Pure. */
#ifndef CLI_SQL_NAME_H
#define CLI_SQL_NAME_H

#include "sink.h"

/** Writes `name`, any bytes but NUL: as it stands, or "the ""name""" where it is a keyword or no plain word. */
void sql_name_write(Sink *sink, const char *name);
/** Whether that is as it stands. */
bool sql_name_is_plain(const char *name);
/** Appends `name` between two of `quote`, which stand twice where they are in it. */
void sql_name_append_quoted(GString *sql, const char *name, char quote);

#endif
