/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Decides if the rows of a SELECT can be read in windows of its table (statement-text.h), by the programs that
 * SQLite compiles on the shadow:
 *
 * 1. The program of the statement reads one table from its first row to its last, in the order of its rowid, and computes
 *    each row of the result from one row of the table. It has no other loop, no sorter, no counter of rows. So the result is
 *    made row by row, and any part of the table gives its part of the result.
 * 2. The program of the statement in a window reads the same table once, and begins at the window's key. So the window takes
 *    effect: the statement does not name its table as main.t, nor by a view.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_WINDOW_PLAN_H
#define SQLIPC_DAEMON_WORKER_RQLITE_WINDOW_PLAN_H

#include "daemon/worker/rqlite/shadow-schema.h"
#include "daemon/worker/rqlite/statement-text.h"

typedef struct WindowPlan {
        char *table;        /* owned; NULL: the statement cannot be read in windows */
        const char *key;    /* static: the name of the rowid that no column has */
} WindowPlan;

/* Fails only if there is no memory, and then plans no windows. */
void window_plan_make(ShadowSchema *shadow, const StatementText *s, WindowPlan *ret);

void window_plan_done(WindowPlan *plan);

#endif
