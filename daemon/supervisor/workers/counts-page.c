/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The counts of clients. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/base/high-descriptor.h"
#include "daemon/supervisor/workers/counts-page.h"

typedef struct CountsEntry {
        User *user;     /* not owned */
        GArray *slots;  /* of CountsOfFile */
} CountsEntry;

typedef struct CountsOfFile {
        uint32_t change_slot, slot;
} CountsOfFile;

/* ---- The memory ---- */

static int make(CountsPage *p) {
        int fd = memfd_create("sqlipc-counts", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0)
                return -errno;
        p->fd = high_descriptor(fd);
        if (p->fd < 0)
                return p->fd;
        p->size = COUNTS_N_SLOTS * sizeof(CountsSlot);
        void *slots = MAP_FAILED;
        if (ftruncate(p->fd, (off_t) p->size) >= 0 &&
            fcntl(p->fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) >= 0)
                slots = mmap(NULL, p->size, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
        if (slots == MAP_FAILED) {
                int r = -errno;
                close(p->fd);
                return r;
        }
        p->slots = slots;
        return 0;
}

int counts_page_fd(User *u) {
        CountsPage *p = &u->counts;
        int r = p->slots ? 0 : make(p);

        return r < 0 ? r : p->fd;
}

/* Memory is allocated through the descriptor, which may fail: a write to a page that the kernel cannot allocate raises
 * SIGBUS. */
static uint32_t take_slot(User *u) {
        CountsPage *p = &u->counts;

        if (counts_page_fd(u) < 0)
                return 0;
        if (p->n_used + 1 >= COUNTS_N_SLOTS)
                return GPOINTER_TO_UINT(g_queue_pop_head(&p->unused)); /* the one that is unused for longest */
        if (fallocate(p->fd, 0, (off_t) ((p->n_used + 1) * sizeof(CountsSlot)), sizeof(CountsSlot)) < 0)
                return 0;
        return ++p->n_used;
}

/* ---- The places of a peer ---- */

static void places_free(void *data) {
        CountsEntry *places = data;

        for (guint i = 0; i < places->slots->len; i++) {
                CountsOfFile *place = &g_array_index(places->slots, CountsOfFile, i);
                g_queue_push_tail(&places->user->counts.unused, GUINT_TO_POINTER(place->slot));
        }
        g_array_unref(places->slots);
        g_free(places);
}

static CountsEntry *places_of(User *u, const char *peer) {
        if (!u->counts.clients)
                u->counts.clients = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, places_free);
        CountsEntry *places = g_hash_table_lookup(u->counts.clients, peer);
        if (!places) {
                places = g_new(CountsEntry, 1);
                *places = (CountsEntry) { .user = u, .slots = g_array_new(FALSE, FALSE, sizeof(CountsOfFile)) };
                g_hash_table_insert(u->counts.clients, g_strdup(peer), places);
        }
        return places;
}

static CountsPlace place_at(const User *u, uint32_t slot) {
        return (CountsPlace) { .slot = slot, .client = u->counts.slots[slot].client };
}

CountsPlace counts_page_place(User *u, const char *peer, uint32_t change_slot) {
        if (change_slot == 0)
                return (CountsPlace) {};
        GArray *slots = places_of(u, peer)->slots;
        for (guint i = 0; i < slots->len; i++)
                if (g_array_index(slots, CountsOfFile, i).change_slot == change_slot)
                        return place_at(u, g_array_index(slots, CountsOfFile, i).slot);
        CountsOfFile place = { .change_slot = change_slot, .slot = take_slot(u) };
        if (place.slot == 0)
                return (CountsPlace) {}; /* the next statement tries again */
        u->counts.slots[place.slot] = (CountsSlot) { .client = context_next_number(u->context) };
        g_array_append_val(slots, place);
        return place_at(u, place.slot);
}

void counts_page_forget(User *u, const char *peer) {
        if (u->counts.clients)
                (void) g_hash_table_remove(u->counts.clients, peer);
}

/* ---- Idle exit ---- */

static bool has_counted(const User *u) {
        GHashTableIter i;
        void *value;

        if (!u->counts.clients)
                return false;
        g_hash_table_iter_init(&i, u->counts.clients);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                const GArray *slots = ((const CountsEntry *) value)->slots;
                for (guint n = 0; n < slots->len; n++) {
                        const CountsSlot *s = &u->counts.slots[g_array_index(slots, CountsOfFile, n).slot];
                        if ((s->counts.last_rowid | s->counts.n_changes | s->counts.n_total) != 0)
                                return true;
                }
        }
        return false;
}

bool counts_page_is_needed(const Context *context) {
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, context->users);
        while (g_hash_table_iter_next(&i, NULL, &value))
                if (has_counted(value))
                        return true;
        return false;
}
