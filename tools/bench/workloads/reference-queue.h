/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A queue of messages in memory that two processes share. Each process locks it with fcntl() while it inspects it or copies
 * messages. The queue is created before the second process is forked. It wakes no process: the sender must notify the
 * receiver in another way.
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_REFERENCE_QUEUE_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_REFERENCE_QUEUE_H

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

/** Creates a queue for `n_slots` messages of at most `slot_size` bytes. */
int queue_open(Queue *ret, unsigned n_slots, size_t slot_size);
void queue_close(Queue *queue);

/** Waits for the lock. A process owns the lock, not a thread: it has no effect within one process. */
int queue_lock(Queue *queue);
int queue_unlock(Queue *queue);

/* The following need the lock. */

/** Copies a message into the queue. -EAGAIN: the queue is full; -EMSGSIZE: the message is larger than a slot. */
int queue_put(Queue *queue, const void *bytes, size_t size);
/** Takes the oldest message out and returns its size. -EAGAIN: the queue is empty; -EMSGSIZE: it is larger than `size`. */
ssize_t queue_take(Queue *queue, void *buffer, size_t size);

#endif
