/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds and writes the files of a database, for the verbs add, cat, edit and remove. */
#ifndef SQLIPC_TOOLS_CTL_CONFIGURATION_WRITE_H
#define SQLIPC_TOOLS_CTL_CONFIGURATION_WRITE_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "tools/ctl/context.h"

#define DATABASES "databases.d"
/* The drop-in that edit writes. */
#define OVERRIDE "override.conf"

/** Makes a folder databases.d, if it does not exist, that only its owner and `group` may read. If that is (gid_t) -1, or the
 * caller may not give the folder to the group, all users may read it. */
int configuration_make_databases(const char *directory, gid_t group);

/** Writes the file `name` in `directory`, a folder databases.d or one of drop-ins in it, which is made if it does not exist:
 * the former for the group of the service, the latter as closed as the former. Users who may not read the directory may not
 * read the file, which gets the directory's group. A failure leaves no incomplete file, and those that killed writers of it
 * have left are removed.
 * -EEXIST: the file exists already, and `replace` is false. */
int configuration_write(const Context *c, const char *directory, const char *name, const char *text, bool replace);

/** The file databases.d/NAME.conf that applies: that of the first directory that has one. NULL: there is none. The caller
 * frees it. */
char *configuration_find(char **directories, const char *name);

#endif
