/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The least changes that make one list of another, as ranges for GListModel::items-changed. GLib library. Pure.
 *
 * The caller has matched the items, so this module sees only their places. Takes O(n log n) time, of the part between the
 * items that both lists have at their start and at their end.
 */
#ifndef SQLIPC_CLIENT_LIB_GLIB_LIST_DIFFERENCE_H
#define SQLIPC_CLIENT_LIB_GLIB_LIST_DIFFERENCE_H

#include <glib.h>

/* An item of the second list that the first does not have. */
#define LIST_NO_MATCH G_MAXUINT

/* More ranges than this become one: each range costs a signal and a shift of the list. */
#define LIST_RANGES_MAX 256

/* One range: `n_removed` items at `position` are replaced by `n_added` items, the first of which is item `after` of the
 * second list. */
typedef struct ListRange {
        guint position, n_removed, n_added, after;
} ListRange;

/* The ranges in the order in which they are applied: from the end of the list to its start, so that a range does not move
 * those after it. `matches`: for each item of the second list its index in the first one. The caller frees the array. */
GArray *list_difference(guint n_before, const guint *matches, guint n_after);

#endif
