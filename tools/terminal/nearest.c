/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Distances between words (nearest.h). */
#include "tools/terminal/nearest.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

enum { NAME_MAX_COMPARED = 32 };

static bool same(char a, char b) {
        return g_ascii_tolower(a) == g_ascii_tolower(b);
}

/* The number of keystrokes that change `a` into `b`; two exchanged letters count as one. Compares only the beginnings of
 * long words. */
static unsigned edit_distance(const char *a, const char *b) {
        size_t n_a = MIN(strlen(a), NAME_MAX_COMPARED), n_b = MIN(strlen(b), NAME_MAX_COMPARED);
        unsigned cost[NAME_MAX_COMPARED + 1][NAME_MAX_COMPARED + 1];

        for (size_t i = 0; i <= n_a; i++)
                for (size_t j = 0; j <= n_b; j++) {
                        if (i == 0 || j == 0) {
                                cost[i][j] = (unsigned) (i + j);
                                continue;
                        }
                        cost[i][j] = MIN(cost[i - 1][j], cost[i][j - 1]) + 1;
                        cost[i][j] = MIN(cost[i][j], cost[i - 1][j - 1] + !same(a[i - 1], b[j - 1]));
                        if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                                cost[i][j] = MIN(cost[i][j], cost[i - 2][j - 2] + 1);
                }
        return cost[n_a][n_b];
}

Nearest nearest_begin(const char *word) {
        return (Nearest) { .word = word, .distance = strlen(word) < 4 ? 2 : 3 };
}

void nearest_consider(Nearest *nearest, const char *candidate, const char *name) {
        unsigned distance = edit_distance(nearest->word, candidate);

        if (distance >= nearest->distance)
                return;
        nearest->distance = distance;
        g_free(nearest->name);
        nearest->name = g_strdup(name);
}
