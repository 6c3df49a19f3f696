/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The statements that are prepared on a channel: SQL by number, in bounds. What they compile to belongs to the
 * pool, so they pin nothing, and go along when the channel moves to another worker.
 */
#ifndef CHANNEL_STATEMENTS_H
#define CHANNEL_STATEMENTS_H

#include "pool.h"

typedef struct ChannelStatement {
        uint64_t number;
        char *sql;          /* owned, with a NUL behind it */
        size_t sql_size;
        StatementHint hint; /* where it is compiled */
} ChannelStatement;

typedef struct ChannelStatements {
        ChannelStatement **list; /* owned, by number */
        size_t n, capacity, n_max;
        size_t sql_size;         /* of all together */
} ChannelStatements;

void channel_statements_free(ChannelStatements *s);

/* Adds one with a copy of `sql`; its number is larger than any before. NULL with an error: LimitsExceeded, OutOfMemory. */
ChannelStatement *channel_statements_add(ChannelStatements *s, uint64_t number, const void *sql, size_t sql_size,
                                         SqlError *error);

/* NULL: there is none. Valid until it is removed. */
ChannelStatement *channel_statements_find(const ChannelStatements *s, uint64_t number);

/* Does nothing where there is none. */
void channel_statements_remove(ChannelStatements *s, uint64_t number);

#endif
