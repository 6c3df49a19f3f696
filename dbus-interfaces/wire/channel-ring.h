/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rings of a channel with memory (sqlipc-channel.h): a byte stream in each direction, in memory that client and worker
 * share. Pure. The other side is hostile: it may write anything at any time into the whole memory. So a side's own index
 * is a private copy, the other side's index is read once and checked, and bytes are copied out before
 * anyone looks at them.
 *
 * A side that sleeps until the socket is readable sets a flag. The other side takes the flag away and sends one byte
 * through the socket. So at any time a sleeper has its flag set, or a byte is on its way to it. To go to sleep, a side
 * empties the socket, sets the flag, looks at the ring again, and only then waits, in this order. A byte that comes after
 * the flag was set ends the wait, even if it is late and the ring is still empty: then the flag must be set again. A side
 * never takes its own flag away: if it finds bytes without having slept, the byte that comes costs nothing until it wants to
 * sleep the next time.
 *
 * When the channel has ended, the client takes back the requests that no worker has read: it may send these again elsewhere.
 * It sets `withdrawn` and then reads the worker's index. The worker first stores its index and then reads `withdrawn`. So
 * either the client sees that the bytes were read, or the worker sees that it must not use them.
 */
#ifndef SQLIPC_DBUS_INTERFACES_WIRE_CHANNEL_RING_H
#define SQLIPC_DBUS_INTERFACES_WIRE_CHANNEL_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CHANNEL_RING_SIZE ((size_t) 64 * 1024) /* bytes that one direction holds; a power of two */
#define CHANNEL_MEMORY_HEAD_SIZE ((size_t) 4096)
#define CHANNEL_MEMORY_SIZE (CHANNEL_MEMORY_HEAD_SIZE + 2 * CHANNEL_RING_SIZE)

/* One direction's head. The numbers count bytes modulo 2^32. Each side writes in a cache line of its own. */
typedef struct ChannelRingHead {
        _Alignas(64) _Atomic uint32_t written; /* by the writer */
        _Atomic uint32_t writer_sleeps;        /* set by the writer, which waits for room; taken away by the reader */
        _Atomic uint32_t withdrawn;            /* set by the writer: bytes that were not read must not be read any more */
        _Alignas(64) _Atomic uint32_t read;    /* by the reader */
        _Atomic uint32_t reader_sleeps;        /* set by the reader, which waits for bytes; taken away by the writer */
} ChannelRingHead;

/* The memory, as it is mapped. */
typedef struct ChannelMemory {
        union {
                struct {
                        ChannelRingHead requests, answers;
                };
                uint8_t head[4096];
        };
        uint8_t request_bytes[64 * 1024], answer_bytes[64 * 1024];
} ChannelMemory;
_Static_assert(sizeof(ChannelMemory) == CHANNEL_MEMORY_SIZE && offsetof(ChannelMemory, answers) == 128 &&
                       offsetof(ChannelRingHead, withdrawn) == 8 && offsetof(ChannelRingHead, reader_sleeps) == 68,
               "the memory's layout is a format");

/* One side's view of a direction. */
typedef struct ChannelRing {
        ChannelRingHead *head;
        uint8_t *bytes;
        uint32_t own; /* this side's index, of which the memory has a copy */
} ChannelRing;

/* The ends of client or worker. Zeroed: no memory, only the socket. */
typedef struct ChannelSide {
        ChannelMemory *memory; /* the mapping, not owned */
        ChannelRing in, out;
} ChannelSide;

/* Makes an end of mapped memory. Continues at the indices in the memory: zero at first, later those of the side's
 * predecessor (the worker's end moves). No index in the memory leads to a byte outside the rings. */
ChannelSide channel_side_of_client(ChannelMemory *memory);
ChannelSide channel_side_of_worker(ChannelMemory *memory);

/* Bytes that can be read. -EBADMSG: the other side's index is impossible. */
ssize_t channel_ring_fill(const ChannelRing *ring);

/* Copies up to `size` bytes out of the ring. Returns their number; 0: the ring is empty. -EBADMSG, as above. */
ssize_t channel_ring_read(ChannelRing *ring, uint8_t *to, size_t size);

/* Copies up to `size` bytes into the ring. Returns their number; 0: the ring is full. -EBADMSG, as above. */
ssize_t channel_ring_write(ChannelRing *ring, const uint8_t *from, size_t size);

/* Of the ring that this side writes: false if it is full. True if the other side's index is impossible: the next write
 * tells. */
bool channel_ring_has_room(const ChannelRing *ring);

/* After a write: true if the reader slept; the caller must send a byte. */
bool channel_ring_wake_reader(ChannelRing *ring);

/* After a read: true if the writer slept; the caller must send a byte. `*ret_withdrawn`: the bytes must be dropped. */
bool channel_ring_wake_writer(ChannelRing *ring, bool *ret_withdrawn);

/* Sets the flag of the side that reads (that writes). The caller has emptied the socket, and then looks at the ring
 * again. */
void channel_ring_reader_sleeps(ChannelRing *ring);
void channel_ring_writer_sleeps(ChannelRing *ring);

/* True if the reader's flag is set since it last slept: no byte is on its way. */
bool channel_ring_reader_is_asleep(const ChannelRing *ring);

/* Takes back the bytes that were not read. Returns their number; 0 if the other side's index is impossible. */
size_t channel_ring_withdraw(ChannelRing *ring);

#endif
