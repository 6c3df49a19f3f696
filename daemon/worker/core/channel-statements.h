/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The statements that are prepared on a channel: SQL by number, with limits on their number and size. The
 * compiled statements belong to the engine. So a channel's statements pin no connection, and move with the channel to
 * another worker.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_CHANNEL_STATEMENTS_H
#define SQLIPC_DAEMON_WORKER_CORE_CHANNEL_STATEMENTS_H

#include "daemon/worker/core/engine.h"

typedef struct ChannelStatement {
        uint64_t number;
        char *sql;          /* owned, with a NUL after it */
        size_t sql_size;
        EngineHint hint;    /* the place of the compiled statement */
        bool quick;         /* its last run was */
} ChannelStatement;

typedef struct ChannelStatements {
        ChannelStatement **list; /* owned, in order of number */
        size_t n, capacity, n_max;
        size_t sql_size;         /* of all statements together */
} ChannelStatements;

/* Frees all statements, and leaves `s` empty. */
void channel_statements_free(ChannelStatements *s);

/* Adds a statement with a copy of `sql`. Its number must be larger than any before. NULL with an error: LimitsExceeded,
 * OutOfMemory. */
ChannelStatement *channel_statements_add(ChannelStatements *s, uint64_t number, const void *sql, size_t sql_size,
                                         SqlError *error);

/* NULL: there is no such statement. Valid until it is removed. */
ChannelStatement *channel_statements_find(const ChannelStatements *s, uint64_t number);

/* Does nothing if there is no such statement. */
void channel_statements_remove(ChannelStatements *s, uint64_t number);

#endif
