/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. How an exposed object is searched: xBestIndex's constraints -> a plan -> SQL for the database file.
 *
 * For all constraints that are pushed here, SQLite checks each row again. So the search of the file may return too many
 * rows, but never fewer than SQLite's own check would accept. That check compares by an affinity that depends on the other
 * side of the comparison, which a virtual table is not told. Therefore:
 *
 *   1. A constraint is pushed only if it compares by the column's own collation.
 *   2. In a column of numeric affinity every comparison is numeric: its constraints are pushed as they are.
 *   3. For other columns the value decides, once it is known (ValueUse). A number may have to match text that looks like it.
 *      Text that comes from a numeric column compares above all numbers, even above those that are stored as text in this
 *      column.
 *
 * A plan is text, the idxStr. It names columns by their numbers, so it reveals no names.
 *
 *      ORDER ';' USED ';' CONSTRAINT...        a0d3;5;e2L1n0
 *
 * ORDER: for each term 'a'scending or 'd'escending, and a column. USED: the columns that are read, one bit each, in
 * hexadecimal. CONSTRAINT: the letter of an operator and a column. The letter is upper case if the value is certainly text
 * that no column converted.
 */
#ifndef SQLIPC_DAEMON_WORKER_EXPOSED_EXPOSED_PLAN_H
#define SQLIPC_DAEMON_WORKER_EXPOSED_EXPOSED_PLAN_H

#include <stdint.h>

#include "daemon/worker/exposed/exposed-schema.h"

typedef struct sqlite3_index_info sqlite3_index_info;
typedef struct sqlite3_value sqlite3_value;

#define PLAN_N_CONSTRAINTS 16 /* at most so many are pushed, and so many terms of ORDER BY */

/* How a constraint goes into the SQL, once its value is known. */
typedef enum ValueUse {
        VALUE_PUSHED = 'p',
        VALUE_WIDENED = 'w', /* rows with any text in the column match as well */
        VALUE_LEFT = '-',    /* not in the SQL: SQLite's own check decides */
        VALUE_NEVER = '0',   /* no row can match: the value is NULL */
} ValueUse;

typedef struct Plan {
        struct {
                int column;
                bool descending;
        } order[PLAN_N_CONSTRAINTS];
        int n_order;
        uint64_t used;
        struct {
                char operator;
                bool text; /* the value is certainly text */
                int column;
        } constraints[PLAN_N_CONSTRAINTS];
        int n_constraints;
} Plan;

/* Hints from the words of a statement before it is compiled (exposed_expect()). True if in doubt. */
typedef struct PlanHints {
        bool rowids; /* SQLite may ask for rowids: an object without them is read whole, each time in the same order */
        bool row_in; /* there may be "(a, b) IN ...", of which each part looks like "=" */
} PlanHints;

/* Implements xBestIndex. Returns an SQLite result code. */
int exposed_plan_choose(const ExposedObject *o, PlanHints hints, sqlite3_index_info *info);

/* Parses an idxStr, which only exposed_plan_choose() makes. */
void exposed_plan_parse(const char *text, Plan *ret);

/* Decides how constraint `i` is used with `value`, the i-th of xFilter. */
ValueUse exposed_plan_value_use(const ExposedObject *o, const Plan *plan, int i, sqlite3_value *value);

/* True if column `i` is read. Columns after the 63rd are all read if one of them is. */
bool exposed_plan_reads(const Plan *plan, int i);

/* True if at most one row can match: the constraints that `uses` marks as pushed fix all columns of a unique index. */
bool exposed_plan_is_single(const ExposedObject *o, const Plan *plan, const char *uses);

/* Makes the SELECT for the file's connection: the rowid if there is one, then each column that is read. `uses` has a
 * ValueUse for each constraint; the value of constraint `i` is parameter i + 1. The caller frees the result with
 * sqlite3_free(). NULL: no memory. */
char *exposed_plan_sql(const ExposedObject *o, const Plan *plan, const char *uses);

#endif
