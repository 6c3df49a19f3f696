/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ring of pages in memory that two processes share: one writes, one reads. The memory is a memfd whose size is sealed, so
 * that neither side can truncate it while the other one uses it. Each side keeps its own position, and rejects a position of
 * the other side that is out of bounds. A side that must wait sleeps on an eventfd; the other side signals it only in that
 * case. The writer sleeps until half of the ring is free, because otherwise the two would take turns after each page.
 */
#ifndef SQLIPC_TOOLS_BENCH_CORE_SHARED_RING_H
#define SQLIPC_TOOLS_BENCH_CORE_SHARED_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Shared by both sides. The fields that one side writes have a cache line of their own. */
typedef struct SharedRingHead {
        alignas(64) _Atomic uint32_t written, reader_sleeps;
        alignas(64) _Atomic uint32_t read, writer_sleeps;
} SharedRingHead;

typedef struct SharedRing {
        SharedRingHead *head;        /* shared */
        uint8_t *slots;              /* shared */
        size_t slot_size, mapped;
        uint32_t n_slots;            /* a power of two */
        uint32_t position;           /* number of slots that this side has written or read; wraps */
        int memory, written_event, read_event;
        int peer;                    /* its hang-up shows that the other side is gone; owned by the caller */
} SharedRing;

/** Creates a ring for both sides: a child that is forked afterwards has it, too. `n_slots` is a power of two. Returns a
 * negative errno on error. The caller frees the ring with shared_ring_done(). */
int shared_ring_new(size_t slot_size, uint32_t n_slots, SharedRing *ret);
void shared_ring_done(SharedRing *ring);

/** Waits until the next slot is free and returns it. shared_ring_written() passes it to the reader. -EBADMSG: the reader's
 * position is out of bounds; -ECONNRESET: the reader is gone. */
int shared_ring_begin_write(SharedRing *ring, uint8_t **ret_slot);
void shared_ring_written(SharedRing *ring);

/** Waits until the next slot is written and returns it. The other process can still change its bytes. shared_ring_read()
 * returns it to the writer. Errors are as for shared_ring_begin_write(), about the writer. */
int shared_ring_begin_read(SharedRing *ring, const uint8_t **ret_slot);
void shared_ring_read(SharedRing *ring);

#endif
