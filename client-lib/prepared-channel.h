/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Statements that are compiled on a channel, or wait for a channel to open (prepared.h). Library.
 */
#ifndef SQLIPC_CLIENT_LIB_PREPARED_CHANNEL_H
#define SQLIPC_CLIENT_LIB_PREPARED_CHANNEL_H

#include "client-lib/prepared.h"

/* Has the statement compiled on the channel or over the bus, as transport.h decides. Returns as prepared_prepare(). */
int prepared_channel_start(sqlipc_statement *s);

/* If the statement is PREPARING on a channel, or waits until one is open: continues as far as possible without waiting. */
void prepared_channel_advance(sqlipc_statement *s);

/* PREPARING: the descriptor to wait for beside the bus. */
struct pollfd prepared_channel_pollfd(const sqlipc_statement *s);

/* Asks the channel, which must be open, to compile the statement, without waiting. Call fetch_use_channel() first.
 * -ENOMEM. */
int prepared_channel_send(sqlipc_statement *s);

/* Takes the description from the STATEMENT frame that was read. -ENOMEM. */
int prepared_channel_read_description(sqlipc_statement *s);

#endif
