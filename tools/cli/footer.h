/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What stands below a result: rows, times, .stats. Below the rows on a terminal; else on stderr, what was asked for alone.
 * */
#ifndef CLI_FOOTER_H
#define CLI_FOOTER_H

#include <stdio.h>

#include "query-private.h"

/** `file`: where the rows went. `complete`: they were all. */
void footer_write(const Query *query, bool complete, FILE *file);

#endif
