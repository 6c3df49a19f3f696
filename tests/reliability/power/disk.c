/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See disk.h. Tests only. */
#include "tests/reliability/power/disk.h"

#include <stdbool.h>
#include <string.h>

#define SECTOR_SIZE 512

typedef struct FolderEvent {
        DiskName name;
        DiskFile *file; /* NULL: a deletion */
} FolderEvent;

typedef enum Fate {
        FATE_WRITTEN,
        FATE_LOST,
        FATE_TORN,
        FATE_GARBAGE, /* lost, but if the file would have grown, other bytes are in it */
} Fate;

/* ---- files ---- */

static void file_free(void *file) {
        DiskFile *f = file;

        g_byte_array_unref(f->bytes);
        g_ptr_array_unref(f->pending);
        g_free(f);
}

static DiskFile *file_new(Disk *d) {
        DiskFile *f = g_new0(DiskFile, 1);

        f->bytes = g_byte_array_new();
        f->pending = g_ptr_array_new();
        g_ptr_array_add(d->files, f);
        return f;
}

static void set_size(GByteArray *bytes, size_t size) {
        guint old = bytes->len;

        g_byte_array_set_size(bytes, (guint) size);
        if (size > old)
                memset(bytes->data + old, 0, size - old);
}

static void put_garbage(GByteArray *bytes, size_t from, size_t end, GRand *chance) {
        if (end <= bytes->len)
                return;
        from = MAX(from, bytes->len);
        set_size(bytes, end);
        for (size_t i = from; i < end; i++)
                bytes->data[i] = (uint8_t) g_rand_int(chance);
}

/* `chance` is only used for the two fates that need it. */
static void put_write(GByteArray *bytes, const DiskEvent *event, Fate fate, GRand *chance) {
        size_t size, end;
        const uint8_t *data = g_bytes_get_data(event->bytes, &size);

        end = event->offset + size;
        if (fate == FATE_GARBAGE)
                put_garbage(bytes, event->offset, end, chance);
        if (fate == FATE_GARBAGE || fate == FATE_LOST)
                return;
        for (size_t at = event->offset, next; at < end; at = next) {
                next = MIN(end, (at / SECTOR_SIZE + 1) * SECTOR_SIZE);
                if (fate == FATE_TORN && g_rand_boolean(chance))
                        continue;
                if (next > bytes->len)
                        set_size(bytes, next);
                memcpy(bytes->data + at, data + (at - event->offset), next - at);
        }
}

static void put_event(GByteArray *bytes, const DiskEvent *event, Fate fate, GRand *chance) {
        if (event->action == DISK_WRITE)
                put_write(bytes, event, fate, chance);
        else if (fate == FATE_WRITTEN)
                set_size(bytes, event->offset);
}

static void sync_file(DiskFile *f) {
        for (guint i = 0; i < f->pending->len; i++)
                put_event(f->bytes, f->pending->pdata[i], FATE_WRITTEN, NULL);
        g_ptr_array_set_size(f->pending, 0);
}

/* ---- the disk ---- */

void disk_init(Disk *d, const GByteArray *database, DiskLies lies) {
        *d = (Disk) { .lies = lies };
        d->files = g_ptr_array_new_with_free_func(file_free);
        d->pending = g_array_new(false, false, sizeof(FolderEvent));
        d->current[DISK_DATABASE] = d->durable[DISK_DATABASE] = file_new(d);
        (void) g_byte_array_append(d->durable[DISK_DATABASE]->bytes, database->data, database->len);
}

void disk_done(Disk *d) {
        g_ptr_array_unref(d->files);
        g_array_unref(d->pending);
}

static void change_folder(Disk *d, DiskName name, DiskFile *file) {
        FolderEvent event = { .name = name, .file = file };

        d->current[name] = file;
        g_array_append_val(d->pending, event);
}

void disk_apply(Disk *d, const DiskEvent *event) {
        switch (event->action) {
        case DISK_CREATE:
                change_folder(d, event->name, file_new(d));
                return;
        case DISK_DELETE:
                change_folder(d, event->name, NULL);
                return;
        case DISK_SYNC_FOLDER:
                if (d->lies & DISK_LIES_ABOUT_FOLDER)
                        return;
                memcpy(d->durable, d->current, sizeof d->durable);
                g_array_set_size(d->pending, 0);
                return;
        case DISK_SYNC:
                if (!(d->lies & DISK_LIES_ABOUT_FILES))
                        sync_file(d->current[event->name]);
                return;
        default:
                g_ptr_array_add(d->current[event->name]->pending, (void *) event);
        }
}

/* ---- the power failure ---- */

static bool keeps_folder_event(DiskDamage damage, GRand *chance) {
        if (damage == DISK_LOSES_ALL || damage == DISK_LOSES_FOLDER)
                return false;
        return damage == DISK_KEEPS_ALL || damage == DISK_LOSES_WRITES || g_rand_boolean(chance);
}

static Fate choose_fate(DiskDamage damage, guint i, guint torn, GRand *chance) {
        static const Fate some[] = { FATE_WRITTEN, FATE_LOST }, torn_ones[] = { FATE_WRITTEN, FATE_LOST, FATE_TORN },
                garbage[] = { FATE_WRITTEN, FATE_GARBAGE, FATE_GARBAGE };

        switch (damage) {
        case DISK_LOSES_ALL:
        case DISK_LOSES_WRITES: return FATE_LOST;
        case DISK_KEEPS_SOME: return some[g_rand_int_range(chance, 0, 2)];
        case DISK_TEARS_ONE: return i == torn ? FATE_TORN : i < torn ? FATE_WRITTEN : FATE_LOST;
        case DISK_TEARS_SOME: return torn_ones[g_rand_int_range(chance, 0, 3)];
        case DISK_ADDS_GARBAGE: return garbage[g_rand_int_range(chance, 0, 3)];
        default: return FATE_WRITTEN;
        }
}

static GByteArray *fail_file(const DiskFile *f, DiskDamage damage, GRand *chance) {
        GByteArray *bytes = g_byte_array_sized_new(f->bytes->len);
        guint torn = f->pending->len > 0 ? (guint) g_rand_int_range(chance, 0, (gint32) f->pending->len) : 0;

        (void) g_byte_array_append(bytes, f->bytes->data, f->bytes->len);
        for (guint i = 0; i < f->pending->len; i++)
                put_event(bytes, f->pending->pdata[i], choose_fate(damage, i, torn, chance), chance);
        return bytes;
}

void disk_fail(const Disk *d, DiskDamage damage, GRand *chance, GByteArray *ret[static DISK_N_NAMES]) {
        DiskFile *folder[DISK_N_NAMES];

        memcpy(folder, d->durable, sizeof folder);
        for (guint i = 0; i < d->pending->len; i++) {
                const FolderEvent *event = &g_array_index(d->pending, FolderEvent, i);

                if (keeps_folder_event(damage, chance))
                        folder[event->name] = event->file;
        }
        for (DiskName name = 0; name < DISK_N_NAMES; name++)
                ret[name] = folder[name] ? fail_file(folder[name], damage, chance) : NULL;
}
