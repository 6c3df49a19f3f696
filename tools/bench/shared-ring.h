/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ring of pages in memory that two processes share: one writes, one reads. The memory is a memfd whose size is sealed, so
 * that no side can take it away below the other; each counts by itself how far it came, and believes of the other's count
 * nothing that is out of bounds. Who has to wait sleeps on an eventfd, and is woken only then; the writer sleeps until half
 * of the ring is free, so that the two do not take turns page by page.
 */
#ifndef BENCH_SHARED_RING_H
#define BENCH_SHARED_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* What both see. What each of them writes has a cache line of its own. */
typedef struct SharedRingHead {
        alignas(64) _Atomic uint32_t written, reader_sleeps;
        alignas(64) _Atomic uint32_t read, writer_sleeps;
} SharedRingHead;

typedef struct SharedRing {
        SharedRingHead *head;        /* shared */
        uint8_t *slots;              /* shared */
        size_t slot_size, mapped;
        uint32_t n_slots;            /* a power of two */
        uint32_t position;           /* of this side: slots written, or read; wraps */
        int memory, written_event, read_event;
        int peer;                    /* where a hang-up tells that the other side is gone; the caller's */
} SharedRing;

/** Makes a ring, for both sides: a child that is forked from here on has it, too. `n_slots` is a power of two. Negative
 * errno. To be freed by shared_ring_done(). */
int shared_ring_new(size_t slot_size, uint32_t n_slots, SharedRing *ret);
void shared_ring_done(SharedRing *ring);

/** The slot that comes next; waits until it is free. shared_ring_written() gives it to the reader. -EBADMSG: the reader's
 * count is none; -ECONNRESET: the reader is gone. */
int shared_ring_begin_write(SharedRing *ring, uint8_t **ret_slot);
void shared_ring_written(SharedRing *ring);

/** The slot that comes next; waits until it is written. Its bytes may change all the same. shared_ring_read() gives it back.
 * Errors as above. */
int shared_ring_begin_read(SharedRing *ring, const uint8_t **ret_slot);
void shared_ring_read(SharedRing *ring);

#endif
