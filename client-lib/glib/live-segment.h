/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The segments of a live model (live-model.c): ranges of its list, and how a scan of all keys divides them anew. GLib
 * library.
 *
 * A scan finds the first keys of the segments again by equality, because only SQLite can compare by a column's collation.
 * If the first row of a segment is gone, the segment joins the one before it; if a segment has become long, the scan divides
 * it. So the result of a scan is a list of groups: some old segments next to each other become some new ones.
 */
#ifndef SQLIPC_CLIENT_LIB_GLIB_LIVE_SEGMENT_H
#define SQLIPC_CLIENT_LIB_GLIB_LIVE_SEGMENT_H

#include <stdbool.h>

#include "client-lib/glib/sqlipc-glib.h"
#include "client-lib/sqlipc.h"

typedef struct Segment {
        sqlipc_value *start; /* the terms of its first row; NULL: the list begins with it */
        guint n;             /* rows; if they are loaded, the length of `rows` */
        GPtrArray *rows;     /* references; NULL: not loaded */
        bool stale;          /* the rows must be read (again) */
        bool bounded;        /* the statement that reads it has a column that tells its end */
        guint64 use;         /* when it was asked for last */
} Segment;

Segment *segment_new(void);

/* A list of one empty, loaded segment. The array owns its segments. */
GPtrArray *segments_new(void);

/* True if the program holds one of its rows. */
bool segment_is_held(const Segment *segment);

void segment_unload(Segment *segment);

/* If it is not loaded: gives it rows without values. */
void segment_load_empty(Segment *segment);

/* Replaces rows by rows of `fresh`. Returns those that were removed, with their references. */
GPtrArray *segment_splice(Segment *segment, guint position, guint n_removed, const GPtrArray *fresh, guint first,
                          guint n_added);

/* Moves the rows from `n` on to a new segment, which has no start yet. */
Segment *segment_divide(Segment *segment, guint n);

/* ---- Scans -------------------------------------------------------------------------------------------------------- */

typedef struct SegmentScan SegmentScan;

/* `n_terms` values are a row of the scan. Segments are divided at `size` rows, loaded ones at `size_loaded`. */
SegmentScan *segment_scan_new(const GPtrArray *segments, guint n_terms, guint size, guint size_loaded);
void segment_scan_free(SegmentScan *scan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SegmentScan, segment_scan_free)

/* The next row. */
void segment_scan_row(SegmentScan *scan, const sqlipc_value *terms);

/* Some old segments become some new ones. */
typedef struct SegmentGroup {
        guint first, n_old; /* in the array of segments */
        GPtrArray *new;     /* borrowed; not loaded */
        guint first_new, n_new;
} SegmentGroup;

/* The next group, from the last to the first. False: there is none. */
bool segment_scan_pop(SegmentScan *scan, SegmentGroup *ret);

/* The change of the list by a group. */
typedef struct SegmentChange {
        guint position, n_removed, n_added;
        GPtrArray *dropped; /* rows to free after the list has told its change; NULL: none */
} SegmentChange;

/* Applies a group, whose first segment is at `offset` in the list. Loaded segments whose rows the program holds keep their
 * rows and become stale; others are unloaded. */
SegmentChange segment_group_apply(GPtrArray *segments, const SegmentGroup *group, guint offset, guint n_rows_max);

#endif
