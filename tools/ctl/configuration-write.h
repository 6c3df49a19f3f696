/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds and writes the files of a database, for the verbs add, cat, edit and remove. */
#ifndef SQLIPC_TOOLS_CTL_CONFIGURATION_WRITE_H
#define SQLIPC_TOOLS_CTL_CONFIGURATION_WRITE_H

#include <glib.h>
#include <stdbool.h>

#define DATABASES "databases.d"
/* The drop-in that edit writes. */
#define OVERRIDE "override.conf"

/** Writes the file `name` in `directory`, and makes the directory if it does not exist. Users who may not read the directory
 * may not read the file, which gets the directory's group. A failure leaves no incomplete file.
 * -EEXIST: the file exists already, and `replace` is false. */
int configuration_write(const char *directory, const char *name, const char *text, bool replace);

/** The file databases.d/NAME.conf that applies: that of the first directory that has one. NULL: there is none. The caller
 * frees it. */
char *configuration_find(char **directories, const char *name);

#endif
