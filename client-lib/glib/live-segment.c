/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Segments of live models (live-segment.h). GLib library. */
#include "client-lib/glib/live-segment.h"

#include <string.h>

#include "client-lib/glib/glib-row.h"
#include "client-lib/glib/key-bytes.h"

#define NONE G_MAXUINT

static void segment_free(gpointer data) {
        Segment *segment = data;

        if (!segment)
                return;
        g_clear_pointer(&segment->rows, g_ptr_array_unref);
        g_free(segment->start);
        g_free(segment);
}

Segment *segment_new(void) { return g_new0(Segment, 1); }

GPtrArray *segments_new(void) {
        GPtrArray *segments = g_ptr_array_new_with_free_func(segment_free);
        Segment *segment = segment_new();

        segment_load_empty(segment);
        g_ptr_array_add(segments, segment);
        return segments;
}

bool segment_is_held(const Segment *segment) {
        for (guint i = 0; segment->rows && i < segment->rows->len; i++)
                if (g_atomic_int_get((int *) &G_OBJECT(g_ptr_array_index(segment->rows, i))->ref_count) > 1)
                        return true;
        return false;
}

void segment_unload(Segment *segment) {
        g_clear_pointer(&segment->rows, g_ptr_array_unref);
        segment->stale = false;
}

void segment_load_empty(Segment *segment) {
        if (segment->rows)
                return;
        segment->rows = g_ptr_array_new_full(segment->n, g_object_unref);
        for (guint i = 0; i < segment->n; i++)
                g_ptr_array_add(segment->rows, row_new(NULL, NULL));
}

GPtrArray *segment_splice(Segment *segment, guint position, guint n_removed, const GPtrArray *fresh, guint first,
                          guint n_added) {
        GPtrArray *removed = g_ptr_array_new_full(n_removed, g_object_unref);
        GPtrArray *rows = segment->rows;
        const guint n = rows->len, n_after = n - position - n_removed;

        for (guint i = 0; i < n_removed; i++)
                g_ptr_array_add(removed, g_steal_pointer(&g_ptr_array_index(rows, position + i)));
        /* The array frees no element here: those that it drops are NULL or are moved before. */
        if (n_added > n_removed)
                g_ptr_array_set_size(rows, (int) (n + n_added - n_removed));
        if (n_after > 0)
                memmove(rows->pdata + position + n_added, rows->pdata + position + n_removed, n_after * sizeof(gpointer));
        if (n_added < n_removed) {
                memset(rows->pdata + n + n_added - n_removed, 0, (n_removed - n_added) * sizeof(gpointer));
                g_ptr_array_set_free_func(rows, NULL);
                g_ptr_array_set_size(rows, (int) (n + n_added - n_removed));
                g_ptr_array_set_free_func(rows, g_object_unref);
        }
        for (guint i = 0; i < n_added; i++)
                g_ptr_array_index(rows, position + i) = g_object_ref(g_ptr_array_index(fresh, first + i));
        segment->n = rows->len;
        return removed;
}

Segment *segment_divide(Segment *segment, guint n) {
        Segment *rest = segment_new();

        rest->rows = g_ptr_array_new_full(segment->rows->len - n, g_object_unref);
        for (guint i = n; i < segment->rows->len; i++)
                g_ptr_array_add(rest->rows, g_object_ref(g_ptr_array_index(segment->rows, i)));
        g_ptr_array_set_size(segment->rows, (int) n);
        segment->n = n;
        rest->n = rest->rows->len;
        rest->use = segment->use;
        return rest;
}

/* ---- Scans -------------------------------------------------------------------------------------------------------- */

struct SegmentScan {
        GHashTable *starts;  /* KeyBytes of a segment's start → its index */
        GArray *loaded;      /* of bool, for each old segment */
        guint n_terms, size, size_loaded;
        GPtrArray *new;      /* of Segment */
        GArray *first_old;   /* of guint, for each new one: the old one that it begins with; NONE: it continues a group */
        guint old;           /* the last old one that was found */
        guint n_left;        /* new ones that segment_scan_pop() has not returned */
        guint end;           /* old ones that it has not returned */
        KeyBuffer buffer;
};

static void add_new(SegmentScan *scan, const sqlipc_value *start, guint first_old) {
        Segment *segment = segment_new();

        segment->start = start ? values_copy(start, scan->n_terms) : NULL;
        g_ptr_array_add(scan->new, segment);
        g_array_append_val(scan->first_old, first_old);
        scan->n_left = scan->new->len;
}

SegmentScan *segment_scan_new(const GPtrArray *segments, guint n_terms, guint size, guint size_loaded) {
        SegmentScan *scan = g_new(SegmentScan, 1);

        *scan = (SegmentScan) { .starts = g_hash_table_new_full(key_bytes_hash, key_bytes_equal, g_free, NULL),
                                .loaded = g_array_new(FALSE, FALSE, sizeof(bool)), .n_terms = n_terms, .size = size,
                                .size_loaded = size_loaded, .new = g_ptr_array_new_with_free_func(segment_free),
                                .first_old = g_array_new(FALSE, FALSE, sizeof(guint)), .end = segments->len };
        for (guint i = 0; i < segments->len; i++) {
                const Segment *segment = g_ptr_array_index(segments, i);
                bool loaded = segment->rows && segments->len > 1;

                g_array_append_val(scan->loaded, loaded);
                if (segment->start) {
                        const KeyBytes *key = key_bytes_make(&scan->buffer, segment->start, NULL, n_terms, 0);

                        (void) g_hash_table_insert(scan->starts, key_bytes_copy(key), GUINT_TO_POINTER(i));
                }
        }
        add_new(scan, NULL, 0);
        return scan;
}

void segment_scan_free(SegmentScan *scan) {
        if (!scan)
                return;
        g_hash_table_unref(scan->starts);
        g_array_unref(scan->loaded);
        g_ptr_array_unref(scan->new);
        g_array_unref(scan->first_old);
        key_buffer_done(&scan->buffer);
        g_free(scan);
}

void segment_scan_row(SegmentScan *scan, const sqlipc_value *terms) {
        Segment *current = g_ptr_array_index(scan->new, scan->new->len - 1);
        gpointer found = g_hash_table_lookup(scan->starts, key_bytes_make(&scan->buffer, terms, NULL, scan->n_terms, 0));
        guint index = GPOINTER_TO_UINT(found); /* 0: none, because the first segment has no start */
        bool loaded = g_array_index(scan->loaded, bool, scan->old);

        if (index > scan->old) {
                add_new(scan, terms, index);
                scan->old = index;
        } else if (current->n >= (loaded ? scan->size_loaded : scan->size)) {
                add_new(scan, terms, NONE);
        }
        current = g_ptr_array_index(scan->new, scan->new->len - 1);
        current->n++;
}

bool segment_scan_pop(SegmentScan *scan, SegmentGroup *ret) {
        guint first = scan->n_left;

        if (scan->n_left == 0)
                return false;
        do
                first--;
        while (g_array_index(scan->first_old, guint, first) == NONE);
        *ret = (SegmentGroup) { .first = g_array_index(scan->first_old, guint, first), .new = scan->new, .first_new = first,
                                .n_new = scan->n_left - first };
        ret->n_old = scan->end - ret->first;
        scan->end = ret->first;
        scan->n_left = first;
        return true;
}

/* ---- Groups ------------------------------------------------------------------------------------------------------- */

static Segment *old_at(const GPtrArray *segments, const SegmentGroup *group, guint i) {
        return g_ptr_array_index(segments, group->first + i);
}

/* Takes a new segment out of the scan. */
static Segment *take_new(const SegmentGroup *group, guint i) {
        return g_steal_pointer(&g_ptr_array_index(group->new, group->first_new + i));
}

/* Joins the old segments in the first one. Rows that are not loaded have no values yet. */
static void join(GPtrArray *segments, const SegmentGroup *group) {
        Segment *joined = old_at(segments, group, 0);

        segment_load_empty(joined);
        for (guint i = 1; i < group->n_old; i++) {
                Segment *segment = old_at(segments, group, i);

                segment_load_empty(segment);
                for (guint k = 0; k < segment->rows->len; k++)
                        g_ptr_array_add(joined->rows, g_object_ref(g_ptr_array_index(segment->rows, k)));
                joined->use = MAX(joined->use, segment->use);
        }
        joined->n = joined->rows->len;
        joined->stale = true;
        if (group->n_old > 1)
                g_ptr_array_remove_range(segments, group->first + 1, group->n_old - 1);
}

static guint insert_new(GPtrArray *segments, const SegmentGroup *group, guint first, guint at) {
        guint n = 0;

        for (guint i = first; i < group->n_new; i++) {
                Segment *segment = take_new(group, i);

                n += segment->n;
                g_ptr_array_insert(segments, (int) (at + i - first), segment);
        }
        return n;
}

SegmentChange segment_group_apply(GPtrArray *segments, const SegmentGroup *group, guint offset, guint n_rows_max) {
        guint n_old = 0, n_unloaded = 0, n_new;
        bool held = false;
        SegmentChange change = { .position = offset };

        for (guint i = 0; i < group->n_old; i++) {
                Segment *segment = old_at(segments, group, i);

                if (segment->rows && !segment_is_held(segment))
                        segment_unload(segment);
                held = held || segment->rows;
                n_old += segment->n;
                n_unloaded += segment->rows ? 0 : segment->n;
        }
        if (held && n_unloaded <= n_rows_max) {
                join(segments, group);
                change.position = offset + n_old;
                change.n_added = insert_new(segments, group, 1, group->first + 1);
                return change;
        }
        if (held) { /* too much is between the rows that are held: the list tells that all are others */
                change.dropped = g_ptr_array_new_with_free_func(g_object_unref);
                for (guint i = 0; i < group->n_old; i++) {
                        Segment *segment = old_at(segments, group, i);

                        if (segment->rows)
                                g_ptr_array_extend_and_steal(change.dropped, g_steal_pointer(&segment->rows));
                }
        }
        g_ptr_array_remove_range(segments, group->first, group->n_old);
        n_new = insert_new(segments, group, 0, group->first);
        if (held) {
                change.n_removed = n_old;
                change.n_added = n_new;
                return change;
        }
        /* No program was given these rows, so any place in them is as good as another. */
        change.position = offset + MIN(n_old, n_new);
        change.n_removed = n_old > n_new ? n_old - n_new : 0;
        change.n_added = n_new > n_old ? n_new - n_old : 0;
        return change;
}
