/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bytes of a channel (channel-link.h): through its socket, or through its memory (channel-ring.h), whose socket then
 * only wakes the other side and tells the end. Both look like send() and recv(). Library.
 *
 * With memory, only channel_bytes_receive() may be followed by a wait for the socket: it has told the worker to send a byte.
 */
#ifndef SQLIPC_CLIENT_LIB_CHANNEL_BYTES_H
#define SQLIPC_CLIENT_LIB_CHANNEL_BYTES_H

#include "client-lib/channel-link.h"

/* The channel gets the memory of `fd`, which stays the caller's. -EBADMSG: it is no channel's memory; -errno of mmap(). */
int channel_bytes_map(ChannelLink *ch, int fd);

/* The channel is closed. Requests that no worker has read are taken back; returns the size of these. Without memory 0. */
size_t channel_bytes_unmap(ChannelLink *ch);

/* Sends like send() without waiting. -1 with EAGAIN: when there is room, the socket becomes writable, or with memory
 * readable. */
ssize_t channel_bytes_send(ChannelLink *ch, const uint8_t *bytes, size_t size);

/* After channel_bytes_send(): wakes the worker if it sleeps. 1: it slept; -errno: the channel is lost. */
int channel_bytes_wake_worker(ChannelLink *ch);

/* Looks for bytes, like recv() without waiting. */
ssize_t channel_bytes_look(ChannelLink *ch, uint8_t *room, size_t size);

/* The same. After -1 with EAGAIN the socket becomes readable when bytes come. */
ssize_t channel_bytes_receive(ChannelLink *ch, uint8_t *room, size_t size);

/* The same, if the socket has not been polled since channel_bytes_look() found nothing: without memory does nothing, and
 * with memory leaves the socket alone unless a byte may be there. */
ssize_t channel_bytes_prepare_wait(ChannelLink *ch, uint8_t *room, size_t size);

#endif
