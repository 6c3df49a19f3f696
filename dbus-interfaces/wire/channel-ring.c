/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See channel-ring.h. */
#include "dbus-interfaces/wire/channel-ring.h"

#include <errno.h>
#include <string.h>

#define MASK ((uint32_t) CHANNEL_RING_SIZE - 1)

ChannelSide channel_side_of_client(ChannelMemory *memory) {
        return (ChannelSide) {
                .memory = memory,
                .in = { .head = &memory->answers, .bytes = memory->answer_bytes, .own = memory->answers.read },
                .out = { .head = &memory->requests, .bytes = memory->request_bytes, .own = memory->requests.written },
        };
}

ChannelSide channel_side_of_worker(ChannelMemory *memory) {
        return (ChannelSide) {
                .memory = memory,
                .in = { .head = &memory->requests, .bytes = memory->request_bytes, .own = memory->requests.read },
                .out = { .head = &memory->answers, .bytes = memory->answer_bytes, .own = memory->answers.written },
        };
}

ssize_t channel_ring_fill(const ChannelRing *ring) {
        uint32_t fill = atomic_load_explicit(&ring->head->written, memory_order_acquire) - ring->own;

        return fill <= CHANNEL_RING_SIZE ? (ssize_t) fill : -EBADMSG;
}

ssize_t channel_ring_read(ChannelRing *ring, uint8_t *to, size_t size) {
        ssize_t fill = channel_ring_fill(ring);
        size_t at = ring->own & MASK, first;

        if (fill <= 0)
                return fill;
        if (size > (size_t) fill)
                size = (size_t) fill;
        first = CHANNEL_RING_SIZE - at < size ? CHANNEL_RING_SIZE - at : size;
        memcpy(to, ring->bytes + at, first);
        memcpy(to + first, ring->bytes, size - first);
        ring->own += (uint32_t) size;
        atomic_store_explicit(&ring->head->read, ring->own, memory_order_release);
        return (ssize_t) size;
}

ssize_t channel_ring_write(ChannelRing *ring, const uint8_t *from, size_t size) {
        uint32_t fill = ring->own - atomic_load_explicit(&ring->head->read, memory_order_acquire);
        size_t at = ring->own & MASK, room, first;

        if (fill > CHANNEL_RING_SIZE)
                return -EBADMSG;
        room = CHANNEL_RING_SIZE - fill;
        if (size > room)
                size = room;
        first = CHANNEL_RING_SIZE - at < size ? CHANNEL_RING_SIZE - at : size;
        memcpy(ring->bytes + at, from, first);
        memcpy(ring->bytes, from + first, size - first);
        ring->own += (uint32_t) size;
        atomic_store_explicit(&ring->head->written, ring->own, memory_order_release);
        return (ssize_t) size;
}

static uint32_t unread(const ChannelRing *ring) {
        return ring->own - atomic_load_explicit(&ring->head->read, memory_order_acquire);
}

bool channel_ring_has_room(const ChannelRing *ring) {
        return unread(ring) != CHANNEL_RING_SIZE;
}

/* The fences order a side's index and the other side's flag: one of the two sides always sees what the other has set. */

static bool take_away(_Atomic uint32_t *flag) {
        atomic_thread_fence(memory_order_seq_cst);
        return atomic_load_explicit(flag, memory_order_relaxed) != 0 && atomic_exchange(flag, 0) != 0;
}

static void set(_Atomic uint32_t *flag) {
        atomic_store_explicit(flag, 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
}

bool channel_ring_wake_reader(ChannelRing *ring) {
        return take_away(&ring->head->reader_sleeps);
}

bool channel_ring_wake_writer(ChannelRing *ring, bool *ret_withdrawn) {
        bool slept = take_away(&ring->head->writer_sleeps);

        *ret_withdrawn = atomic_load_explicit(&ring->head->withdrawn, memory_order_relaxed) != 0;
        return slept;
}

void channel_ring_reader_sleeps(ChannelRing *ring) {
        set(&ring->head->reader_sleeps);
}

bool channel_ring_reader_is_asleep(const ChannelRing *ring) {
        return atomic_load_explicit(&ring->head->reader_sleeps, memory_order_relaxed) != 0;
}

void channel_ring_writer_sleeps(ChannelRing *ring) {
        set(&ring->head->writer_sleeps);
}

size_t channel_ring_withdraw(ChannelRing *ring) {
        uint32_t size;

        set(&ring->head->withdrawn);
        size = unread(ring);
        return size <= CHANNEL_RING_SIZE ? size : 0;
}
