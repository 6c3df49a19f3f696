/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Differences of lists (list-difference.h). GLib library. Pure. */
#include "client-lib/glib/list-difference.h"

#include <stdbool.h>

/* Marks the items of matches[from..to) that keep their place: the longest sequence with rising matches. */
static void mark_kept(const guint *matches, guint from, guint to, bool *kept) {
        g_autofree guint *ends = g_new(guint, to - from + 1);   /* ends[k]: the item that ends a sequence of k + 1 items */
        g_autofree guint *before = g_new(guint, to - from + 1); /* the item before it in its sequence */
        guint n = 0;

        for (guint i = from; i < to; i++) {
                guint low = 0, high = n;

                if (matches[i] == LIST_NO_MATCH)
                        continue;
                while (low < high) {
                        guint middle = (low + high) / 2;

                        if (matches[ends[middle]] < matches[i])
                                low = middle + 1;
                        else
                                high = middle;
                }
                before[i - from] = low > 0 ? ends[low - 1] : LIST_NO_MATCH;
                ends[low] = i;
                n = MAX(n, low + 1);
        }
        for (guint i = n > 0 ? ends[n - 1] : LIST_NO_MATCH; i != LIST_NO_MATCH; i = before[i - from])
                kept[i - from] = true;
}

GArray *list_difference(guint n_before, const guint *matches, guint n_after) {
        GArray *ranges = g_array_new(FALSE, FALSE, sizeof(ListRange));
        guint first = 0, end = 0; /* items that both lists have at their start, and at their end */
        g_autofree bool *kept = NULL;
        guint next_before, next_after;

        while (first < n_before && first < n_after && matches[first] == first)
                first++;
        while (end < n_before - first && end < n_after - first && matches[n_after - end - 1] == n_before - end - 1)
                end++;
        if (first + end == n_before && first + end == n_after)
                return ranges;
        kept = g_new0(bool, n_after - end - first + 1);
        mark_kept(matches, first, n_after - end, kept);

        /* From the end: a gap lies between two items that keep their place. */
        next_before = n_before - end;
        next_after = n_after - end;
        for (guint i = n_after - end;; i--) {
                bool at_start = i == first;
                guint gap_before = at_start ? first : 0, gap_after = i;

                if (!at_start && !kept[i - 1 - first])
                        continue;
                if (!at_start)
                        gap_before = matches[i - 1] + 1;
                if (next_before > gap_before || next_after > gap_after) {
                        ListRange range = { gap_before, next_before - gap_before, next_after - gap_after, gap_after };

                        g_array_append_val(ranges, range);
                }
                if (at_start)
                        break;
                next_before = gap_before - 1;
                next_after = i - 1;
        }
        if (ranges->len > LIST_RANGES_MAX) {
                ListRange all = { first, n_before - end - first, n_after - end - first, first };

                g_array_set_size(ranges, 0);
                g_array_append_val(ranges, all);
        }
        return ranges;
}
