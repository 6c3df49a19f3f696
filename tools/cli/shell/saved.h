/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Saved queries: ~/.config/ipcq/queries/NAME.sql, readable only by the user. NAME consists of letters, digits, "-", "_" and
 * ".". */
#ifndef SQLIPC_TOOLS_CLI_SHELL_SAVED_H
#define SQLIPC_TOOLS_CLI_SHELL_SAVED_H

#include <glib.h>

/** Saves `sql` under `name`, replacing an earlier query. Returns -errno, with a sentence in `ret_message`, which the caller
 * frees; the other functions do so, too. */
int saved_write(const char *name, const char *sql, char **ret_message);

/** Reads a query; the caller frees `*ret_sql` and `*ret_path`. -ENOENT: there is none. */
int saved_read(const char *name, char **ret_sql, char **ret_path, char **ret_message);

int saved_remove(const char *name, char **ret_message);

/** The names of all saved queries, sorted; freed with g_strfreev(). Never NULL. */
char **saved_list(void);

#endif
