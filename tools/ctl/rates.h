/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The activity of clients between two samples. Pure. */
#ifndef SQLIPC_TOOLS_CTL_RATES_H
#define SQLIPC_TOOLS_CTL_RATES_H

#include <glib.h>

/** A dictionary for each client of `now` (a(sa{sv}), as from ListClients): "client", all data of the service, and, if
 * `before` is not NULL, "rows-per-second" and "bytes-per-second" (t), over `elapsed_usec`. For a client that is not in
 * `before` its totals count as new. Sorted by `sort_key`, the highest value first, then by name. The caller unrefs the
 * result. */
GVariant *rates_of(GVariant *before, GVariant *now, guint64 elapsed_usec, const char *sort_key);

/** The sum of a number over all rows. */
guint64 rates_sum(GVariant *rows, const char *key);

#endif
