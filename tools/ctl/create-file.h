/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the file of a database with SQLite. A child does it as the service's user, so that the file is this user's, and so
 * that neither a link in a folder of this user nor the SQL of a schema can use root's rights.
 */
#ifndef SQLIPC_TOOLS_CTL_CREATE_FILE_H
#define SQLIPC_TOOLS_CTL_CREATE_FILE_H

#include "tools/ctl/service-user.h"

typedef struct NewFile {
        const char *path;        /* absolute */
        bool make_folder;        /* its folder is made if it does not exist */
        const char *schema;      /* SQL; NULL: none */
        const char *schema_name; /* the name of its file, for messages */
} NewFile;

/** Makes a database in WAL mode with this schema. It appears complete or not at all, and replaces no file. Returns 0 or -1;
 * a message was printed then. */
int create_file(const NewFile *file, const ServiceUser *user);

/** Removes the file again. */
void create_file_undo(const NewFile *file, const ServiceUser *user);

#endif
