/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory of a channel (channel-ring.h) as a descriptor: a memfd whose size is sealed. So no process can make it smaller.
 * A receiver of such a descriptor checks this before it maps the memory. An access to the mapping raises SIGBUS only if it
 * meets a hole that the kernel has no memory for.
 */
#ifndef SQLIPC_DBUS_INTERFACES_WIRE_CHANNEL_MEMORY_H
#define SQLIPC_DBUS_INTERFACES_WIRE_CHANNEL_MEMORY_H

#include "dbus-interfaces/wire/channel-ring.h"

/* Makes memory for a channel that rests. Returns the descriptor, which the caller owns; -errno of memfd_create(), of
 * ftruncate(), or of pwrite(). */
int channel_memory_new(void);

/* Maps the memory of a descriptor, which the caller keeps. -EBADMSG: it is no memfd of this size with these seals; -errno of
 * mmap(). */
int channel_memory_map(int fd, ChannelMemory **ret);

/* Accepts NULL. Returns NULL. */
ChannelMemory *channel_memory_unmap(ChannelMemory *memory);

/* True if requests wait that no worker has read, or if the client wrote something impossible. Maps nothing. */
bool channel_memory_has_requests(int fd);

#endif
