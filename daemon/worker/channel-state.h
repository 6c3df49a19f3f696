/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. What a channel is while no worker has it, as bytes: its statements, and what its client sent that nobody has
 * looked at. Pure. The supervisor keeps them unseen, and whoever packed them is not believed.
 *
 *      u64 number of the last request that was taken, u64 bytes to discard, u32 n_statements, u32 input_size,
 *      n_statements of (u64 number, u32 size, SQL), the input
 */
#ifndef CHANNEL_STATE_H
#define CHANNEL_STATE_H

#include "channel-input.h"
#include "channel-statements.h"

/* What they take. */
size_t channel_state_size(const ChannelInput *in, const ChannelStatements *statements);

/* The bytes, which the caller frees. -ENOMEM, -E2BIG. */
int channel_state_pack(const ChannelInput *in, const ChannelStatements *statements, uint8_t **ret, size_t *ret_size);

/* Into an input and statements that are new. -EBADMSG, -ENOMEM: they can be freed, no more. */
int channel_state_unpack(Bytes state, ChannelInput *in, ChannelStatements *statements);

#endif
