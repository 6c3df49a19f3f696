/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See pg-number.h.
 */
#include "daemon/worker/postgresql/pg-number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t pg_number_write(double real, bool is_text, char room[static PG_NUMBER_SIZE]) {
        size_t n = 0;

        if (isnan(real))
                return (size_t) (stpcpy(room, "NaN") - room);
        if (isinf(real))
                return (size_t) (stpcpy(room, real > 0 ? "Infinity" : "-Infinity") - room);
        for (int digits = 15; digits <= 17; digits++) {
                n = (size_t) snprintf(room, PG_NUMBER_SIZE, "%.*g", digits, real);
                if (strtod(room, NULL) == real)
                        break;
        }
        if (is_text && strspn(room, "-0123456789") == n)
                n = (size_t) (stpcpy(room + n, ".0") - room);
        return n;
}
