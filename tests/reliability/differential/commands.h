/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Input from the generator, on standard input: commands of a letter, a size (u32), and so many bytes; numbers are
 * little-endian. Tests only.
 *
 *      D   name of a published database, its file, name under which its tables are exposed (may be ""): three strings with
 *          a NUL after each. Later queries are about this database.
 *      Q   u32 number, u32 page size, u8 flags (QUERY_...), u8 zero, u16 number of parameters, the SQL and a NUL; then of
 *          each parameter: u8 type, its name ("" for a positional one) and a NUL, u32 size, bytes (8 for numbers).
 *      G   Run the queries since the last G, and answer.
 */
#ifndef SQLIPC_TESTS_RELIABILITY_DIFFERENTIAL_COMMANDS_H
#define SQLIPC_TESTS_RELIABILITY_DIFFERENTIAL_COMMANDS_H

#include "tests/reliability/differential/query.h"

enum { QUERY_ON_CHANNEL = 1, QUERY_PREPARED = 2, QUERY_EXPOSED = 4 };

typedef struct Command {
        char letter;
        const char *name, *path, *exposed; /* D */
        Query query;                       /* Q: the caller's, for query_done() */
        uint8_t *bytes;                    /* what was read; reused */
} Command;

/* 1; 0 at the end of input; -EBADMSG for a malformed command. */
int command_read(Command *c);

#endif
