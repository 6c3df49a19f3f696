/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The difference between two lists of rows (rows-difference.h). Library. Pure. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/rows-difference.h"
#include "client-lib/util.h"

typedef struct ChangeList {
        RowsChange *changes; /* room for all of them */
        size_t n;
} ChangeList;

static void add(ChangeList *c, RowsChange change) {
        c->changes[c->n++] = change;
}

/* ---- Moves -------------------------------------------------------------------------------------------------------- */

/*
 * Rows that are in both lists are kept. `order` has, for each of them in the order of the second list, its place among them
 * in the first one. The rows of a longest increasing subsequence of `order` stay, and all others move, the first of the
 * second list first, to the place after their predecessor there. So at each moment the list consists of settled rows (those
 * that stay, and those that have moved), which are in the right order, and between them rows that are still to move, at
 * their old places. A position is a number of rows of each kind, which two trees of sums count.
 */
typedef struct Kept {
        size_t *order;
        size_t n;
        bool *stays;     /* by the place in the second list */
        size_t *to_move; /* tree: 1 for each place in the first list whose row is still to move */
        size_t *settled; /* tree: the number of settled rows that follow a row that stays, by its place in the first list
                          * + 1; 0: rows in front of all of them */
} Kept;

static void kept_done(Kept *k) {
        free(k->order);
        free(k->stays);
        free(k->to_move);
        free(k->settled);
}

/* A Fenwick tree over `n` numbers: adds to the one at `i`. */
static void tree_add(size_t *tree, size_t n, size_t i, size_t delta) {
        for (i++; i <= n; i += i & -i)
                tree[i] += delta;
}

/* The sum of the first `i` numbers. */
static size_t tree_sum(const size_t *tree, size_t i) {
        size_t sum = 0;

        for (; i > 0; i -= i & -i)
                sum += tree[i];
        return sum;
}

static int kept_init(Kept *k, size_t n_before, const RowsMatch *matches, size_t n_after) {
        _cleanup_free_ size_t *place = calloc(n_before + 1, sizeof *place);
        size_t n = 0;

        *k = (Kept) { .order = calloc(n_after + 1, sizeof *k->order) };
        if (!place || !k->order)
                return -ENOMEM;
        for (size_t i = 0; i < n_after; i++)
                if (matches[i].before != ROWS_NO_MATCH)
                        place[matches[i].before] = 1;
        for (size_t i = 0; i < n_before; i++) {
                bool is_kept = place[i] > 0;

                place[i] = n;
                n += is_kept;
        }
        for (size_t i = 0; i < n_after; i++)
                if (matches[i].before != ROWS_NO_MATCH)
                        k->order[k->n++] = place[matches[i].before];
        return 0;
}

static bool is_ordered(const Kept *k) {
        for (size_t i = 1; i < k->n; i++)
                if (k->order[i - 1] > k->order[i])
                        return false;
        return true;
}

/* Finds a longest increasing subsequence of `order`: `ends` has, for each length, the index at which the sequence of that
 * length with the least last element ends; `previous` leads back through the best sequence that ends at an index. */
static int find_staying(Kept *k) {
        _cleanup_free_ size_t *ends = calloc(k->n + 1, sizeof *ends), *previous = calloc(k->n + 1, sizeof *previous);
        size_t length = 0;

        k->stays = calloc(k->n + 1, sizeof *k->stays);
        if (!ends || !previous || !k->stays)
                return -ENOMEM;
        for (size_t i = 0; i < k->n; i++) {
                size_t low = 0, high = length;

                while (low < high) {
                        size_t middle = low + (high - low) / 2;

                        if (k->order[ends[middle]] < k->order[i])
                                low = middle + 1;
                        else
                                high = middle;
                }
                previous[i] = low > 0 ? ends[low - 1] : 0;
                ends[low] = i;
                length += low == length;
        }
        for (size_t at = length > 0 ? ends[length - 1] : 0; length > 0; length--) {
                k->stays[at] = true;
                at = previous[at];
        }
        return 0;
}

static int plant_trees(Kept *k) {
        k->to_move = calloc(k->n + 1, sizeof *k->to_move);
        k->settled = calloc(k->n + 2, sizeof *k->settled);
        if (!k->to_move || !k->settled)
                return -ENOMEM;
        for (size_t i = 0; i < k->n; i++)
                if (k->stays[i])
                        tree_add(k->settled, k->n + 1, k->order[i] + 1, 1);
                else
                        tree_add(k->to_move, k->n, k->order[i], 1);
        return 0;
}

/* `rank`: counts the kept rows before this one in the second list; all of them are settled. `anchor`: the place + 1 of the
 * last one of them that stays, 0 for none. */
static RowsChange move(Kept *k, size_t rank, size_t anchor) {
        size_t place = k->order[rank];
        RowsChange change = { .kind = ROWS_MOVED,
                              .position = tree_sum(k->to_move, place) + tree_sum(k->settled, place + 1) };

        tree_add(k->to_move, k->n, place, (size_t) -1);
        change.to = rank + tree_sum(k->to_move, anchor);
        tree_add(k->settled, k->n + 1, anchor, 1);
        return change;
}

static int add_moves(ChangeList *c, Kept *k, const RowsMatch *matches, size_t n_after) {
        size_t rank = 0, anchor = 0;
        int r;

        if (is_ordered(k))
                return 0;
        r = find_staying(k);
        if (r >= 0)
                r = plant_trees(k);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n_after; i++) {
                if (matches[i].before == ROWS_NO_MATCH)
                        continue;
                if (k->stays[rank])
                        anchor = k->order[rank] + 1;
                else {
                        RowsChange change = move(k, rank, anchor);

                        change.before = matches[i].before;
                        change.after = i;
                        add(c, change);
                }
                rank++;
        }
        return 0;
}

/* ---- All changes -------------------------------------------------------------------------------------------------- */

static int add_removals(ChangeList *c, size_t n_before, const RowsMatch *matches, size_t n_after) {
        _cleanup_free_ bool *is_kept = calloc(n_before + 1, sizeof *is_kept);

        if (!is_kept)
                return -ENOMEM;
        for (size_t i = 0; i < n_after; i++)
                if (matches[i].before != ROWS_NO_MATCH)
                        is_kept[matches[i].before] = true;
        for (size_t i = n_before; i-- > 0;)
                if (!is_kept[i])
                        add(c, (RowsChange) { .kind = ROWS_REMOVED, .position = i, .before = i, .after = ROWS_NO_MATCH });
        return 0;
}

/* All rows before row `i` of the second list are there already, so that `i` is its position. */
static void add_rest(ChangeList *c, const RowsMatch *matches, size_t n_after) {
        for (size_t i = 0; i < n_after; i++)
                if (matches[i].before == ROWS_NO_MATCH || matches[i].changed)
                        add(c, (RowsChange) { .kind = matches[i].before == ROWS_NO_MATCH ? ROWS_ADDED : ROWS_CHANGED,
                                              .position = i, .before = matches[i].before, .after = i });
}

/* An upper bound of the number of changes. */
static size_t count_most(size_t n_before, const Kept *k, const RowsMatch *matches, size_t n_after) {
        size_t n = n_before - k->n + (is_ordered(k) ? 0 : k->n);

        for (size_t i = 0; i < n_after; i++)
                n += matches[i].before == ROWS_NO_MATCH || matches[i].changed;
        return n;
}

static int find(ChangeList *c, Kept *k, size_t n_before, const RowsMatch *matches, size_t n_after) {
        size_t n_max;
        int r = kept_init(k, n_before, matches, n_after);

        if (r < 0)
                return r;
        n_max = count_most(n_before, k, matches, n_after);
        if (n_max == 0)
                return 0;
        c->changes = calloc(n_max, sizeof *c->changes);
        if (!c->changes)
                return -ENOMEM;
        r = add_removals(c, n_before, matches, n_after);
        if (r >= 0)
                r = add_moves(c, k, matches, n_after);
        if (r >= 0)
                add_rest(c, matches, n_after);
        return r;
}

int rows_difference(size_t n_before, const RowsMatch *matches, size_t n_after, RowsChange **ret, size_t *ret_n) {
        _cleanup_(kept_done) Kept kept = { .n = 0 };
        ChangeList c = { .n = 0 };
        int r = find(&c, &kept, n_before, matches, n_after);

        if (r < 0) {
                free(c.changes);
                return r;
        }
        *ret = c.changes;
        *ret_n = c.n;
        return 0;
}
