/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of databases.d/NAME.conf, sqlipc.databases(5), from its values. Pure. */
#ifndef SQLIPC_TOOLS_CTL_DATABASE_FILE_H
#define SQLIPC_TOOLS_CTL_DATABASE_FILE_H

#include <glib.h>
#include <stdbool.h>

typedef struct DatabaseFile {
        const char *path, *description;              /* description: NULL for none */
        const char *mode;                            /* NULL for the default */
        char **allow_users, **allow_groups, **expose; /* NULL for none */
        char **write_users, **write_groups;
        const char *foreign_keys;                    /* NULL for the default */
        bool immutable, polkit, write_polkit;
} DatabaseFile;

/** The text; the caller frees it. config_add_database() reads the same values from it, whatever bytes these contain. */
char *database_file_text(const DatabaseFile *file);

#endif
