/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of databases.d/NAME.conf, sqlipc.databases(5), from what it shall say. Pure. */
#ifndef CTL_DATABASE_FILE_H
#define CTL_DATABASE_FILE_H

#include <glib.h>
#include <stdbool.h>

typedef struct DatabaseFile {
        const char *path, *description;              /* description: NULL for none */
        char **allow_users, **allow_groups, **expose; /* NULL for none */
        bool immutable, polkit;
} DatabaseFile;

/** The text; caller frees. Read by config_add_database(), it says the same again, whatever bytes the words hold. */
char *database_file_text(const DatabaseFile *file);

#endif
