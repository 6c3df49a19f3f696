/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SHA3 of the contents of tables, compatible with .sha3sum of sqlite3's shell. */
#ifndef SQLIPC_TOOLS_CLI_DUMP_CHECKSUM_H
#define SQLIPC_TOOLS_CLI_DUMP_CHECKSUM_H

#include "tools/cli/shell/shell.h"

typedef struct ChecksumOptions {
        const char *pattern; /* of LIKE: a checksum for each matching table; NULL: one for all tables */
        unsigned bits;       /* 224, 256, 384 or 512 */
        bool with_schema;    /* include the tables whose names begin with sqlite_ */
} ChecksumOptions;

/** Appends a line for each checksum: hexadecimal, followed with a pattern by "|" and the table. Returns 0, or an error as
 * query_run() does, which has been reported. One query reads all tables, so that they are from one moment. If limits of the
 * service do not allow one query, several are run, and a warning on stderr says so. */
int checksum_append(Shell *shell, const ChecksumOptions *options, GString *text);

#endif
