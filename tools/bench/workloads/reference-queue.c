/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A queue of messages in shared memory, see reference-queue.h. */
#include "tools/bench/workloads/reference-queue.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct QueueHead {
        uint64_t n_put, n_taken; /* totals; they differ by at most n_slots */
};

typedef struct Slot {
        uint64_t size;
        uint8_t bytes[];
} Slot;

static size_t slot_stride(size_t slot_size) {
        return (sizeof(Slot) + slot_size + 7) & ~(size_t) 7;
}

static Slot *slot_at(const Queue *queue, uint64_t number) {
        return (Slot *) ((uint8_t *) (queue->head + 1) + number % queue->n_slots * slot_stride(queue->slot_size));
}

int queue_open(Queue *ret, unsigned n_slots, size_t slot_size) {
        Queue queue = {
                .n_slots = n_slots, .slot_size = slot_size, .mapped = sizeof(QueueHead) + n_slots * slot_stride(slot_size)
        };
        int r = 0;

        queue.fd = memfd_create("sqlipc-bench-queue", MFD_CLOEXEC);
        if (queue.fd < 0)
                return -errno;
        if (ftruncate(queue.fd, (off_t) queue.mapped) < 0)
                r = -errno;
        if (r >= 0) {
                queue.head = mmap(NULL, queue.mapped, PROT_READ | PROT_WRITE, MAP_SHARED, queue.fd, 0);
                r = queue.head == MAP_FAILED ? -errno : 0;
        }
        if (r < 0) {
                close(queue.fd);
                return r;
        }
        *ret = queue;
        return 0;
}

void queue_close(Queue *queue) {
        if (queue->head)
                munmap(queue->head, queue->mapped);
        if (queue->fd >= 0)
                close(queue->fd);
        *queue = QUEUE_INIT;
}

static int set_lock(Queue *queue, short type) {
        struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_len = sizeof(QueueHead) };
        int r;

        do
                r = fcntl(queue->fd, F_SETLKW, &lock);
        while (r < 0 && errno == EINTR);
        return r < 0 ? -errno : 0;
}

int queue_lock(Queue *queue) {
        return set_lock(queue, F_WRLCK);
}

int queue_unlock(Queue *queue) {
        return set_lock(queue, F_UNLCK);
}

int queue_put(Queue *queue, const void *bytes, size_t size) {
        Slot *slot = slot_at(queue, queue->head->n_put);

        if (size > queue->slot_size)
                return -EMSGSIZE;
        if (queue->head->n_put - queue->head->n_taken >= queue->n_slots)
                return -EAGAIN;
        slot->size = size;
        memcpy(slot->bytes, bytes, size);
        queue->head->n_put++;
        return 0;
}

ssize_t queue_take(Queue *queue, void *buffer, size_t size) {
        const Slot *slot = slot_at(queue, queue->head->n_taken);

        if (queue->head->n_put == queue->head->n_taken)
                return -EAGAIN;
        if (slot->size > size)
                return -EMSGSIZE;
        memcpy(buffer, slot->bytes, slot->size);
        queue->head->n_taken++;
        return (ssize_t) slot->size;
}
