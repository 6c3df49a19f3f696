/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds and writes the files of a database, for the verbs add, cat, edit and remove. */
#ifndef CTL_CONFIGURATION_WRITE_H
#define CTL_CONFIGURATION_WRITE_H

#include <glib.h>
#include <stdbool.h>

#define DATABASES "databases.d"
/* The drop-in that edit writes. */
#define OVERRIDE "override.conf"

/** Writes `name` in `directory`, which is made if it is absent; the file is there whole, or not at all. -EEXIST: it is there
 * already, and `replace` is false. */
int configuration_write(const char *directory, const char *name, const char *text, bool replace);

/** The file databases.d/NAME.conf that counts, of the first directory that has one; NULL: there is none. Caller frees. */
char *configuration_find(char **directories, const char *name);

#endif
