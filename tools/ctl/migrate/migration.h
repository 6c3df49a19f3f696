/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One migration: the data that its steps share.
 *
 *      scan ──> make: tables, rows, objects ──> compare ──> switch
 *                └─────── drop the tables that differ ◀────────┘
 *
 * The source is only read. Each step may be interrupted anywhere: the state in the target (state.h) tells what is done.
 */
#ifndef SQLIPC_TOOLS_CTL_MIGRATE_MIGRATION_H
#define SQLIPC_TOOLS_CTL_MIGRATE_MIGRATION_H

#include "tools/ctl/migrate/copy-plan.h"
#include "tools/ctl/migrate/row-sum.h"
#include "tools/ctl/migrate/state.h"
#include "tools/terminal/progress.h"

typedef struct TableResult {
        RowSum source, sum;       /* of the source's table and the target's, when they were compared */
        bool is_compared, is_equal;
        bool is_inexact;          /* it was copied again and still differs, though the source has the same rows as before */
} TableResult;

typedef struct Migration {
        Side source, target;
        Plan *plan;               /* borrowed */
        State state;
        GArray *results;          /* of TableResult, one for each table of the plan */
        GPtrArray *refused;       /* of char *: objects that are not required, and that the target does not accept */
        uint64_t n_copied;        /* rows */

        bool (*keep)(void *userdata); /* is called once a second; NULL: nothing needs it */
        void *keep_userdata;
        uint64_t kept;            /* when it was called last */

        Progress progress;
        const char *doing, *table; /* for the progress */
        uint64_t n_rows;          /* of this table */
} Migration;

/** Is called for each row that is read: shows the progress, and calls `keep`. Returns -ECANCELED after Ctrl-C. */
int migration_tick(Migration *m);
/** Begins to count for `table`. */
void migration_begin_work(Migration *m, const char *doing, const char *table);
/** Prints that the work failed. Returns `r`. */
int migration_fail(Migration *m, const Side *side, int r);

/** From now on Ctrl-C and SIGTERM interrupt calls on this connection. */
void migration_catch_signals(sqlipc_connection *connection);
bool migration_is_interrupted(void);

/** Finds what is in the columns of the source. */
int migration_scan(Migration *m);

/** Make the tables that the target does not have yet, with their rows; and then the other objects. A required object that it
 * refuses is an error. */
int migration_make_tables(Migration *m);
int migration_make_objects(Migration *m);

/** Drops the copy of the table `n` with all that belongs to it. */
int migration_drop(Migration *m, guint n);

/** Compares all tables. `*ret_n_different`: the number of those that are not equal; `*ret_sequence`: the change sequence of
 * the source, if no change came between the first table and the last; 0 otherwise. */
int migration_compare(Migration *m, guint *ret_n_different, uint64_t *ret_sequence);

#endif
