/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A dump into a new SQLite file: the same objects and values, but bound as parameters instead of written as SQL. The file is
 * not identical byte by byte, because SQLite fills its pages anew.
 */
#ifndef SQLIPC_TOOLS_CLI_DUMP_BACKUP_H
#define SQLIPC_TOOLS_CLI_DUMP_BACKUP_H

#include "tools/cli/dump/dump.h"

/** Fills the file at `path`, which exists and is empty. Returns as dump_run() does, and reports errors of SQLite. */
int backup_write(Shell *shell, const DumpOptions *options, const char *path);

#endif
