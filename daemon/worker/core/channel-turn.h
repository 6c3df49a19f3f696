/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The turns of a channel: it answers one request after the other, sends the answers, and ends. Channels that
 * share a read transaction have their turns together, in a round (channel-round.h).
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_CHANNEL_TURN_H
#define SQLIPC_DAEMON_WORKER_CORE_CHANNEL_TURN_H

#include "daemon/worker/core/served-channel.h"

typedef struct ChannelRound ChannelRound; /* channel-round.h */

/* A turn of a channel that is READY: continues the request under way, takes requests for about a millisecond, sends
 * answers. */
ChannelState channel_turn(ServedChannel *c);

/* The same in three parts. begin() sends what is left of earlier answers, and must be called before the round's read
 * transaction begins. False: the turn is over, because the channel is DRAINING or OVER. */
bool channel_turn_begin(ServedChannel *c);

/* Continues the request under way, and takes requests until the round ends. False: the turn is over, because a request is
 * under way. True: the answers wait in the page, and the turn continues with end(). */
bool channel_turn_run(ServedChannel *c, ChannelRound *round);

/* Sends the answers. No read transaction may be shared now. */
ChannelState channel_turn_end(ServedChannel *c);

/* Sends the answers that are in the page: a result of page_writer_flush(). */
int channel_turn_send(ServedChannel *c);

/* Called from inside the channel's own step: reports progress, and reads more from the socket, to see a CANCEL. */
void channel_turn_look(ServedChannel *c);

/* Ends the request under way, if there is one, with `error` and a sentence. Must not be called from inside the channel's
 * own step. */
void channel_turn_cancel(ServedChannel *c, ErrorNumber error, const char *message);

/* Takes no more requests. The channel is over as soon as the answer to the request under way is sent, which may be at once.
 * Can also be called from inside the channel's own step. */
void channel_turn_drain(ServedChannel *c);

/* The supervisor wants the channel closed: ends the request under way, and sends as much as the socket takes. From inside
 * the channel's own step it only makes the turn end. */
void channel_turn_drop(ServedChannel *c, bool in_step);

/* Handles deadlines and retries of the request under way, and a client that does not read. */
void channel_turn_on_time(ServedChannel *c, uint64_t now_usec);

/* Takes the answers that the socket of a SLOW channel did not take; the caller frees them. `*ret_can_go_on`: another worker
 * can continue with the channel after them. -ENOMEM. */
int channel_turn_take_unread(ServedChannel *c, uint8_t **ret, size_t *ret_size, bool *ret_can_go_on);

#endif
