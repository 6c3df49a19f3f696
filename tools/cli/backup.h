/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A dump into an SQLite file of our own: the same objects and values, bound rather than written as SQL. The file is not the
 * same by its bytes: pages are filled anew.
 */
#ifndef CLI_BACKUP_H
#define CLI_BACKUP_H

#include "dump.h"

/** Fills the file at `path`, which is there and empty. As dump_run(), and tells what SQLite says here. */
int backup_write(Shell *shell, const DumpOptions *options, const char *path);

#endif
