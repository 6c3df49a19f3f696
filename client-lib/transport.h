/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which way a run goes: over the bus and down a pipe, over the database's channel, or all of it over the bus. Library.
 *
 * A channel saves a small, quick query most of its time, and is nothing for others: a large result goes faster down a
 * pipe, and what comes behind a slow one waits for it. So with SQLIPC_TRANSPORT_AUTO a database's channel is opened once
 * small, quick results come in quick succession, and from then on carries all runs but those of statements and queries
 * whose last result was large or slow, and those that would have to wait there for another. Nothing waits until a channel
 * is open, but parameters that no bus carries.
 *
 * Where the bus passes no descriptors there are neither pipes nor channels, and rows come in replies.
 */
#ifndef SQLIPC_TRANSPORT_H
#define SQLIPC_TRANSPORT_H

#include "channel.h"

/* What a statement or a query is known for. */
typedef struct Habit {
        bool large;      /* its last results were, or slow */
        unsigned n_small; /* in a row since */
} Habit;

typedef enum Way {
        WAY_BUS,
        WAY_CHANNEL,
        WAY_ROWS,   /* over the bus, with the rows in replies */
        WAY_WAIT,   /* for the channel to open, or the bus to be ready */
        WAY_NONE,   /* the channel does not open, or no descriptor comes through: its error */
} Way;

/* `bus_only`: the run was on the channel, and may not be again; `opened`: it has had a channel opened for it, kept by
 * the run; `parameters_size`: of their row. */
Way transport_choose(Channel *ch, bool large, bool bus_only, bool *opened, size_t parameters_size);

/* Only a channel carries them, or is wanted to. */
bool transport_needs_channel(const Channel *ch, size_t parameters_size);

/* The result of a run was `n_bytes` long and took `usec`. `habit` NULL: a query, `sql_sum` is its. */
void transport_on_result(Channel *ch, Habit *habit, uint32_t sql_sum, uint64_t n_bytes, uint64_t usec);

bool transport_is_large(const Channel *ch, const Habit *habit, uint32_t sql_sum);

/* Stands for a query's SQL. Two of the same sum only share what is known of them. */
uint32_t transport_sql_sum(const char *sql);

/* It did not open, or closed before it answered: not again for a while. It answered: no reason to wait the next time. */
void transport_on_channel_failed(Channel *ch);
void transport_on_channel_answered(Channel *ch);

#endif
