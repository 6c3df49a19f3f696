/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The difference between two lists of rows: the changes that make the second list of the first, one after the other.
 * Library. Pure.
 *
 * The caller has matched the rows (live-rows.h), so this module sees only their places. The order of the changes is fixed:
 * removals from the end to the start, then moves, then additions and changed values from the start to the end. Each position
 * is the index in the list at the moment when the change is applied. The number of removals, additions and changed values
 * follows from the matches; that of the moves is the least possible: all rows that were kept, less the longest sequence of
 * them that is in the right order already. Takes O(n log n) time, and O(n) memory.
 */
#ifndef SQLIPC_CLIENT_LIB_ROWS_DIFFERENCE_H
#define SQLIPC_CLIENT_LIB_ROWS_DIFFERENCE_H

#include <stdbool.h>
#include <stddef.h>

/* For `before`: the second list has a row that the first one does not have. */
#define ROWS_NO_MATCH ((size_t) -1)

/* The fate of a row: one for each row of the second list. */
typedef struct RowsMatch {
        size_t before; /* its index in the first list; no two rows have the same */
        bool changed;  /* its values differ */
} RowsMatch;

typedef enum RowsChangeKind {
        ROWS_REMOVED, /* at `position` */
        ROWS_MOVED,   /* from `position`, and after its removal there inserted at `to` */
        ROWS_ADDED,   /* inserted at `position` */
        ROWS_CHANGED, /* the values at `position` */
} RowsChangeKind;

typedef struct RowsChange {
        RowsChangeKind kind;
        size_t position, to;
        size_t before, after; /* the row's index in the first and in the second list, if it is there */
} RowsChange;

/* Finds the changes from a list of `n_before` rows to one of `n_after` rows. The caller frees `*ret`, which is NULL if
 * there are none. -ENOMEM. */
int rows_difference(size_t n_before, const RowsMatch *matches, size_t n_after, RowsChange **ret, size_t *ret_n);

#endif
