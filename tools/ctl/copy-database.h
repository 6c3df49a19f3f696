/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies a database by SQLite's online backup, in a child of service-child.h, while other programs write to it. */
#ifndef SQLIPC_TOOLS_CTL_COPY_DATABASE_H
#define SQLIPC_TOOLS_CTL_COPY_DATABASE_H

#include "daemon/configuration/configuration.h"

/** Copies one moment of the database into the file `fd`, which is empty, and checks the copy. Returns an exit code; a
 * failure has been printed. `progress`: shows a line on a terminal. */
int copy_database(const DatabaseConfig *d, int fd, bool progress);

#endif
