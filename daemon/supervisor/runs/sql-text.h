/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The SQL of statements and runs: its size, and its start for lists. Supervisor. */
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_SQL_TEXT_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_SQL_TEXT_H

#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/base/user.h"
#include "daemon/supervisor/calls/argument-file.h"

/* The largest number of characters that are kept for lists. */
#define SQL_EXCERPT_LENGTH 200

/* Sets `*ret_size` to the size of the SQL in bytes. LIMITS_EXCEEDED if it is larger than SQLSizeMax=; such SQL is charged to
 * the user (pacing.h). */
int sql_text_check(User *u, const Database *d, const char *sql, size_t *ret_size, Refusal *refusal);

/* Returns the first characters of the SQL, for lists. The caller frees the result. */
char *sql_text_excerpt(GBytes *sql);

/* The same of SQL in a file, which may be any bytes. */
char *sql_text_excerpt_of_file(const ArgumentFile *file);

#endif
