/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A dump as SQL in the format of sqlite3's shell, except that nothing is lost:
 *
 *      PRAGMA encoding, application_id, user_version    are written if they differ from those of a new database
 *      values                                           are written as sql-literal.h does, so that each is restored exactly
 *      indexes and triggers                             of tables that are dumped by name are dumped, too
 *
 * A dump that fails midway ends with ROLLBACK, so that its reader restores nothing rather than a part.
 */
#ifndef SQLIPC_TOOLS_CLI_DUMP_DUMP_TEXT_H
#define SQLIPC_TOOLS_CLI_DUMP_DUMP_TEXT_H

#include "tools/cli/dump/dump.h"

/** Writes a dump. `harmless`: escape control characters, for a terminal. Returns as dump_run() does. A write error ends the
 * dump; only ferror() tells it. */
int dump_text(Shell *shell, const DumpOptions *options, FILE *stream, bool harmless);

#endif
