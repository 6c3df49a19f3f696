/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Chooses how a run travels: over the bus and through a pipe, over the database's channel, or completely over the bus.
 * Library.
 *
 * A channel saves a small, quick query most of its time, but suits no others: a large result is faster through a pipe, and
 * other requests on the channel have to wait for a slow one. So with SQLIPC_TRANSPORT_AUTO a database's channel is opened
 * when another query soon follows a small, quick result on the connection, of this database or another. That query waits for
 * the channel. From then on the channel carries all runs, except those of statements and queries whose last result was large
 * or slow, and those that would have to wait for another run on it. Parameters that are too large for the bus wait for a
 * channel, too.
 *
 * If the bus passes no descriptors, there are neither pipes nor channels, and rows come in replies.
 */
#ifndef SQLIPC_CLIENT_LIB_TRANSPORT_H
#define SQLIPC_CLIENT_LIB_TRANSPORT_H

#include "client-lib/channel-link.h"

/* The kind of results that a statement gives, as far as it is known. */
typedef struct Habit {
        bool large;       /* its last results were large or slow */
        unsigned n_small; /* small results in a row since then */
} Habit;

typedef enum Way {
        WAY_BUS,
        WAY_CHANNEL,
        WAY_ROWS,   /* over the bus, with the rows in replies */
        WAY_WAIT,   /* wait for the channel to open, or the bus to be ready */
        WAY_NONE,   /* the channel does not open, or the bus passes no descriptors: see its error */
} Way;

/* Previous attempts to send a request. */
typedef enum Attempt {
        ATTEMPT_ANY,
        ATTEMPT_OPENED, /* a channel was opened for it, which is done once */
        ATTEMPT_BUS,    /* it was on a channel, and must not be again */
} Attempt;

/* Chooses the way of a request. `*attempt` is kept with it; `parameters_size`: of the row of parameters, and
 * of SQL that is sent with it. */
Way transport_choose(ChannelLink *ch, bool large, Attempt *attempt, size_t parameters_size);

/* Parameters of this size are sent over a channel rather than in a file, which older services do not know. */
#define BUS_PARAMETERS_SIZE_MAX ((size_t) 1024 * 1024)

/* True if a channel should carry the parameters, or the program wants only channels. */
bool transport_needs_channel(const ChannelLink *ch, size_t parameters_size);

/* Notes the result of a run: `n_bytes` long, after `usec`. `habit` is NULL for a query, which `sql_sum` identifies. */
void transport_on_result(ChannelLink *ch, Habit *habit, uint32_t sql_sum, uint64_t n_bytes, uint64_t usec);

/* True if the statement with `habit`, or the query (`habit` NULL), is known to give large or slow results. */
bool transport_is_large(const ChannelLink *ch, const Habit *habit, uint32_t sql_sum);

/* A hash of a query's SQL. If two queries have the same hash, they only share what is known of them. */
uint32_t transport_sql_sum(const char *sql);

#endif
