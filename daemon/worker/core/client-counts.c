/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See client-counts.h.
 */
#include "daemon/worker/core/client-counts.h"

#include <sys/mman.h>
#include <sys/stat.h>

static CountsSlot *slots;

void client_counts_open(int fd) {
        size_t size = COUNTS_N_SLOTS * sizeof *slots;
        struct stat st;
        void *mapped;

        if (fstat(fd, &st) < 0 || (uint64_t) st.st_size != size)
                return;
        mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        slots = mapped == MAP_FAILED ? NULL : mapped;
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
