/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See client-counts.h.
 */
#include "daemon/worker/core/client-counts.h"

#include <errno.h>
#include <sys/mman.h>

static CountsSlot *slots;

/* The supervisor has sealed the size. */
int client_counts_open(int fd) {
        void *mapped = mmap(NULL, COUNTS_N_SLOTS * sizeof *slots, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (mapped == MAP_FAILED)
                return -errno;
        slots = mapped;
        return 0;
}

static CountsSlot *find(const CountsPlace *place) {
        bool is_known = slots && place->slot > 0 && place->slot < COUNTS_N_SLOTS &&
                __atomic_load_n(&slots[place->slot].client, __ATOMIC_ACQUIRE) == place->client;

        return is_known ? &slots[place->slot] : NULL;
}

ClientCounts client_counts_load(const CountsPlace *place) {
        const CountsSlot *s = find(place);

        if (!s)
                return (ClientCounts) {};
        return (ClientCounts) {
                .last_rowid = __atomic_load_n(&s->counts.last_rowid, __ATOMIC_RELAXED),
                .n_changes = __atomic_load_n(&s->counts.n_changes, __ATOMIC_RELAXED),
                .n_total = __atomic_load_n(&s->counts.n_total, __ATOMIC_RELAXED),
        };
}

void client_counts_store(const CountsPlace *place, const ClientCounts *counts) {
        CountsSlot *s = find(place);

        if (!s)
                return;
        __atomic_store_n(&s->counts.last_rowid, counts->last_rowid, __ATOMIC_RELAXED);
        __atomic_store_n(&s->counts.n_changes, counts->n_changes, __ATOMIC_RELAXED);
        __atomic_store_n(&s->counts.n_total, counts->n_total, __ATOMIC_RELAXED);
}
