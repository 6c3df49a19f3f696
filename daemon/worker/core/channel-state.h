/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The state of a channel that no worker has, as bytes: its statements, and the bytes of its client that no
 * worker has processed yet. Pure. The supervisor keeps these bytes without reading them. The worker that unpacks them treats
 * them as hostile.
 *
 *      u64 number of the last request that was taken, u64 bytes to discard, u32 n_statements, u32 input_size,
 *      u32 ForeignKeys, u32 keeps, u64 size of the time zone, u64 lock_wait_usec, the time zone, n_statements of (u64
 *      number, u32 size, SQL), the input
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_CHANNEL_STATE_H
#define SQLIPC_DAEMON_WORKER_CORE_CHANNEL_STATE_H

#include "daemon/worker/core/channel-input.h"
#include "daemon/worker/core/channel-statements.h"
#include "dbus-interfaces/wire/time-zone.h"

/* The client's settings for the requests that come. */
typedef struct ChannelSettings {
        ForeignKeys foreign_keys;
        bool keeps;        /* the client has sent a setting, so it knows that it must keep them */
        char time_zone[TIME_ZONE_SIZE_MAX + 1]; /* "": the service's own */
        uint64_t lock_wait_usec; /* as in JobSpec */
} ChannelSettings;

/* The size of the packed state. */
size_t channel_state_size(const ChannelInput *in, const ChannelStatements *statements, const ChannelSettings *settings);

/* Packs the state into bytes that the caller frees. -ENOMEM; -E2BIG: it is over CHANNEL_STATE_SIZE_MAX. */
int channel_state_pack(const ChannelInput *in, const ChannelStatements *statements, const ChannelSettings *settings,
                       uint8_t **ret, size_t *ret_size);

/* Unpacks `state` into a new input and new statements. After -EBADMSG or -ENOMEM these can only be freed. */
int channel_state_unpack(Bytes state, ChannelInput *in, ChannelStatements *statements, ChannelSettings *ret_settings);

#endif
