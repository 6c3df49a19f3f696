/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A queue of messages in memory that two processes share, each of which locks it by fcntl() while it looks at it or copies.
 * It is made before the second process is forked, and wakes nobody: who puts has to tell who takes.
 */
#ifndef BENCH_REFERENCE_QUEUE_H
#define BENCH_REFERENCE_QUEUE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct QueueHead QueueHead;

typedef struct Queue {
        int fd;
        QueueHead *head; /* shared */
        unsigned n_slots;
        size_t slot_size;
        size_t mapped;
} Queue;

#define QUEUE_INIT ((Queue) { .fd = -1 })

/** Makes one of `n_slots` messages of `slot_size` bytes at most. */
int queue_open(Queue *ret, unsigned n_slots, size_t slot_size);
void queue_close(Queue *queue);

/** Waits until no other process has it. Locks are a process's: within one they exclude nothing. */
int queue_lock(Queue *queue);
int queue_unlock(Queue *queue);

/* Between the two: */

/** Copies a message in. -EAGAIN: it is full; -EMSGSIZE. */
int queue_put(Queue *queue, const void *bytes, size_t size);
/** Copies the oldest message out and returns its size. -EAGAIN: there is none; -EMSGSIZE: it is larger than `size`. */
ssize_t queue_take(Queue *queue, void *buffer, size_t size);

#endif
