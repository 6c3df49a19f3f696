/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SHA3 of what tables hold, as the .sha3sum of sqlite3's shell computes it. */
#ifndef CLI_CHECKSUM_H
#define CLI_CHECKSUM_H

#include "shell.h"

typedef struct ChecksumOptions {
        const char *pattern; /* of LIKE: a checksum for each of these tables; NULL: one of all tables */
        unsigned bits;       /* 224, 256, 384 or 512 */
        bool with_schema;    /* the tables whose names begin with sqlite_, too */
} ChecksumOptions;

/** Appends a line for each checksum: hexadecimal, and with a pattern "|" and the table. 0, or as query_run(), which tells
 * failures. All tables are read by one query, and so are of one moment; where limits of the service do not let it be one,
 * that is said on stderr, and no failure. */
int checksum_append(Shell *shell, const ChecksumOptions *options, GString *text);

#endif
