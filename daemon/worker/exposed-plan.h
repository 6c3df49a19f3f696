/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. How an exposed object is searched: xBestIndex's constraints -> a plan -> SQL for the database file.
 *
 * What the file's own connection filters must never be less than what SQLite would let through that checks each row again,
 * as it does for all that is pushed here. It compares by an affinity that depends on the other side of the comparison, of
 * which a virtual table learns nothing. So:
 *
 *   1. A constraint is pushed where it compares by the column's own collation.
 *   2. A column of numeric affinity makes every comparison a numeric one: pushed as it is.
 *   3. For other columns the value decides, when it is there (ValueUse). A number may meet text that looks like it; text
 *      that comes from a column of numbers is above all numbers, those that were text in this column among them.
 *
 * A plan is text, the idxStr: it names columns by their numbers, so it tells nobody anything.
 *
 *      ORDER ';' USED ';' CONSTRAINT...        a0d3;5;e2L1n0
 *
 * ORDER: 'a'scending or 'd'escending and a column, each; USED: columns that are read, a bit each in hexadecimal;
 * CONSTRAINT: an operator's letter, upper case where its value is text for certain that no column converted, and a column.
 */
#ifndef EXPOSED_PLAN_H
#define EXPOSED_PLAN_H

#include <stdint.h>

#include "exposed-schema.h"

typedef struct sqlite3_index_info sqlite3_index_info;
typedef struct sqlite3_value sqlite3_value;

#define PLAN_N_CONSTRAINTS 16

/* How a constraint goes into the SQL, once its value is known. */
typedef enum ValueUse {
        VALUE_PUSHED = 'p',
        VALUE_WIDENED = 'w', /* and whatever is text */
        VALUE_LEFT = '-',    /* to SQLite's own check */
        VALUE_NEVER = '0',   /* nothing compares so with NULL */
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
                bool text; /* for certain */
                int column;
        } constraints[PLAN_N_CONSTRAINTS];
        int n_constraints;
} Plan;

/* What the words of a statement tell beforehand (exposed_expect()), true where in doubt. */
typedef struct PlanHints {
        bool rowids; /* SQLite may ask for them: an object without is read as it is, each time in the same order */
        bool row_in; /* there may be "(a, b) IN ...", of which each part looks like "=" */
} PlanHints;

/* xBestIndex. An SQLite result code. */
int exposed_plan_choose(const ExposedObject *o, PlanHints hints, sqlite3_index_info *info);

/* From idxStr, which only exposed_plan_choose() makes. */
void exposed_plan_parse(const char *text, Plan *ret);

/* Constraint `i` with its `value`, which is the i-th of xFilter. */
ValueUse exposed_plan_value_use(const ExposedObject *o, const Plan *plan, int i, sqlite3_value *value);

/* Whether column `i` is read: those past the 63rd all are if one is. */
bool exposed_plan_reads(const Plan *plan, int i);

/* Whether no two rows can match: the constraints that `uses` has pushed fix all columns of a unique index. */
bool exposed_plan_is_single(const ExposedObject *o, const Plan *plan, const char *uses);

/* SELECT for the file's connection: the rowid if there is one, then each column that is read. `uses` has a ValueUse for each
 * constraint, whose value is parameter i + 1. To be freed with sqlite3_free(); NULL: no memory. */
char *exposed_plan_sql(const ExposedObject *o, const Plan *plan, const char *uses);

#endif
