/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A dump as SQL, as sqlite3's shell writes it, where that loses nothing. Beside that:
 *
 *      PRAGMA encoding, application_id, user_version    where they are not what a new database has
 *      values                                           as sql-literal.h has them, so that each comes back bit by bit
 *      indexes and triggers of the tables that are dumped by name
 *
 * A dump that breaks off ends with ROLLBACK, so that who reads it gets nothing rather than a part.
 */
#ifndef CLI_DUMP_TEXT_H
#define CLI_DUMP_TEXT_H

#include "dump.h"

/** Writes a dump. `harmless`: to a terminal, escaped. As dump_run(); a stream that fails ends the dump, and is told by
 * ferror() alone. */
int dump_text(Shell *shell, const DumpOptions *options, FILE *stream, bool harmless);

#endif
