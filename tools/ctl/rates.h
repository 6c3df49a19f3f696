/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What clients did between two looks at them. Pure. */
#ifndef CTL_RATES_H
#define CTL_RATES_H

#include <glib.h>

/** A dictionary for each client of `now` (a(sa{sv}), as ListClients gives them): "client", all that the service says, and
 * where `before` is not NULL "rows-per-second" and "bytes-per-second" (t), over `elapsed_usec`. A client that was not there
 * before did all it did since. The highest of `sort_key` comes first, then the name decides. Caller unrefs. */
GVariant *rates_of(GVariant *before, GVariant *now, guint64 elapsed_usec, const char *sort_key);

/** The sum of a number over all rows. */
guint64 rates_sum(GVariant *rows, const char *key);

#endif
