/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Queries by name: ~/.config/ipcq/queries/NAME.sql, for nobody else to read. NAME is of letters, digits, "-", "_" and
 * ".". */
#ifndef CLI_SAVED_H
#define CLI_SAVED_H

#include <glib.h>

/** Keeps `sql` under `name`, whatever was there. -errno, with a sentence in `ret_message` to be freed, as from all of
 * these. */
int saved_write(const char *name, const char *sql, char **ret_message);

/** Reads it; `*ret_sql` and `*ret_path` are to be freed. -ENOENT: there is none. */
int saved_read(const char *name, char **ret_sql, char **ret_path, char **ret_message);

int saved_remove(const char *name, char **ret_message);

/** Their names, sorted; to be freed with g_strfreev(). Never NULL. */
char **saved_list(void);

#endif
