/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A ring of pages that two processes share, see shared-ring.h. */
#include "tools/bench/core/shared-ring.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEAD_SIZE = 4096 };

static int map(SharedRing *ring) {
        void *memory;

        ring->mapped = HEAD_SIZE + ring->slot_size * ring->n_slots;
        ring->memory = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (ring->memory < 0 || ftruncate(ring->memory, (off_t) ring->mapped) < 0 ||
            fcntl(ring->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                return -errno;
        memory = mmap(NULL, ring->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, ring->memory, 0);
        if (memory == MAP_FAILED)
                return -errno;
        ring->head = memory;
        ring->slots = (uint8_t *) memory + HEAD_SIZE;
        return 0;
}

int shared_ring_new(size_t slot_size, uint32_t n_slots, SharedRing *ret) {
        SharedRing ring = { .slot_size = slot_size, .n_slots = n_slots, .memory = -1, .peer = -1 };
        int r;

        ring.written_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        ring.read_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r = ring.written_event < 0 || ring.read_event < 0 ? -errno : map(&ring);
        if (r < 0) {
                shared_ring_done(&ring);
                return r;
        }
        *ret = ring;
        return 0;
}

void shared_ring_done(SharedRing *ring) {
        int fds[] = { ring->memory, ring->written_event, ring->read_event };

        if (ring->head)
                (void) munmap(ring->head, ring->mapped);
        for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
        *ring = (SharedRing) { .memory = -1, .written_event = -1, .read_event = -1, .peer = -1 };
}

static void wake(_Atomic uint32_t *sleeps, int event) {
        if (atomic_exchange(sleeps, 0))
                (void) eventfd_write(event, 1);
}

/* Sleeps until the event is signalled or the peer is gone. */
static int sleep_for(const SharedRing *ring, int event) {
        struct pollfd fds[] = { { .fd = event, .events = POLLIN }, { .fd = ring->peer, .events = POLLRDHUP } };
        eventfd_t value;

        if (poll(fds, 2, -1) < 0)
                return errno == EINTR ? 0 : -errno;
        if (fds[0].revents)
                return eventfd_read(event, &value) < 0 && errno != EAGAIN ? -errno : 0;
        return -ECONNRESET;
}

/* Waits until at least `wanted` slots are `available`. This side announces its sleep before it checks for the last time, and
 * the other side changes its position before it checks for a sleeper. Thus at least one of them sees the other's change. */
static int wait_for(SharedRing *ring, uint32_t (*available)(const SharedRing *ring), uint32_t wanted,
                    _Atomic uint32_t *sleeps, int event) {
        while (available(ring) < wanted) {
                int r;

                atomic_store(sleeps, 1);
                if (available(ring) >= wanted)
                        break;
                r = sleep_for(ring, event);
                if (r < 0)
                        return r;
        }
        return available(ring) > ring->n_slots ? -EBADMSG : 0;
}

static uint32_t n_free(const SharedRing *ring) {
        return ring->n_slots - (ring->position - atomic_load_explicit(&ring->head->read, memory_order_seq_cst));
}

static uint32_t n_full(const SharedRing *ring) {
        return atomic_load_explicit(&ring->head->written, memory_order_seq_cst) - ring->position;
}

int shared_ring_begin_write(SharedRing *ring, uint8_t **ret_slot) {
        uint32_t wanted = n_free(ring) > 0 ? 1 : (ring->n_slots + 1) / 2;
        int r;

        r = wait_for(ring, n_free, wanted, &ring->head->writer_sleeps, ring->read_event);
        *ret_slot = ring->slots + (size_t) (ring->position & (ring->n_slots - 1)) * ring->slot_size;
        return r;
}

void shared_ring_written(SharedRing *ring) {
        atomic_store(&ring->head->written, ++ring->position);
        wake(&ring->head->reader_sleeps, ring->written_event);
}

int shared_ring_begin_read(SharedRing *ring, const uint8_t **ret_slot) {
        int r;

        r = wait_for(ring, n_full, 1, &ring->head->reader_sleeps, ring->written_event);
        *ret_slot = ring->slots + (size_t) (ring->position & (ring->n_slots - 1)) * ring->slot_size;
        return r;
}

void shared_ring_read(SharedRing *ring) {
        atomic_store(&ring->head->read, ++ring->position);
        if ((uint32_t) (atomic_load(&ring->head->written) - ring->position) <= ring->n_slots / 2)
                wake(&ring->head->writer_sleeps, ring->read_event);
}
