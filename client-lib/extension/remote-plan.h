/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: library. How a remote table is searched: xBestIndex's constraints -> a plan -> SQL
 * for the service.
 *
 * SQLite checks each row again for all constraints that are pushed here. So the service may return too many rows, but never
 * fewer than that check would accept. The check compares by an affinity that depends on the other side of the comparison,
 * which a virtual table is not told. Therefore:
 *
 *   1. A constraint is pushed only with a collation that every SQLite has. The SQL names it if it is not the column's own.
 *   2. In a column of numeric affinity every comparison is numeric: its constraints are pushed as they are.
 *   3. For other columns the value decides, once it is known (remote_plan_use()). A number may have to match text that looks
 *      like it: without a type, all text of the column matches as well; a column of text is not searched for numbers. Text
 * that comes from a numeric column compares above all numbers, even above those that are stored as text in this column.
 *   4. Of a column whose affinity is unknown, only text and BLOBs that no affinity changes are searched, and only by "=".
 *   5. LIMIT is pushed only if nothing is left for SQLite to check. A range of text may be one that SQLite derived from
 * LIKE, which it then still has to check.
 *
 * A plan is text, the idxStr. It consists of words:
 *
 *      USED (('+'|'-') COLUMN)... (OPERATOR ('t'|'w'|'-') COLUMN COLLATION)... '#' SQL       5 +3 e-2B l-0B # SELECT
 *
 * USED: the columns that are read, one bit each, in hexadecimal. '+' and '-': the order, ascending or descending. Then each
 * constraint, with 't' if its value is certainly text that no column converted, and 'w' if its collation was widened. The
 * value of constraint i is argument i of xFilter. SQL is for people: the statement if all values can be used.
 */
#ifndef SQLIPC_CLIENT_LIB_EXTENSION_REMOTE_PLAN_H
#define SQLIPC_CLIENT_LIB_EXTENSION_REMOTE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "client-lib/extension/remote-table.h"

typedef struct sqlite3_index_info sqlite3_index_info;
typedef struct sqlite3_value sqlite3_value;

#define REMOTE_PLAN_N 16       /* at most so many constraints are pushed, and so many terms of ORDER BY */
#define REMOTE_PLAN_IN_BITS 10 /* at most 2^10 values of IN are pushed */

/* Operators whose values are not bound one for one. */
#define REMOTE_PLAN_IS_NULL 'n'
#define REMOTE_PLAN_IN 'v' /* "=" with all values of IN at once */
#define REMOTE_PLAN_LIMIT 'x'
#define REMOTE_PLAN_OFFSET 'y' /* only adds to LIMIT: SQLite itself skips the rows */

/* Facts about a value. */
#define REMOTE_PLAN_TEXT 't'
#define REMOTE_PLAN_WIDENED 'w' /* SQLite may compare it by a collation by which less is equal */

typedef struct RemotePlan {
        uint64_t used;
        struct {
                int column;
                bool descending;
        } order[REMOTE_PLAN_N];
        int n_order;
        struct {
                char op;
                int column;
                char value;     /* a fact about the value, or '-' */
                char collation; /* its first letter */
        } constraints[REMOTE_PLAN_N];
        int n_constraints;
} RemotePlan;

/* How the constraints of a plan go into the SQL, once their values are known: a letter for each, as a string. */
#define REMOTE_USE_LEFT '-' /* not in the SQL: SQLite's own check decides */
#define REMOTE_USE_PUSHED 'p'
#define REMOTE_USE_WIDENED 'w' /* rows with any text in the column match as well */
#define REMOTE_USE_IN 'A'      /* IN with one parameter; the next letter: with two; then four, and so on */
typedef char RemoteUses[REMOTE_PLAN_N + 1];

/* Implements xBestIndex. Returns an SQLite result code. */
int remote_plan_choose(const RemoteTable *t, sqlite3_index_info *info);

/* Parses an idxStr, which only remote_plan_choose() makes. */
void remote_plan_parse(const char *text, RemotePlan *ret);

/* Decides how each constraint is used with its value in xFilter's `values`. False: no row can match. */
bool remote_plan_use(const RemoteTable *t, const RemotePlan *plan, sqlite3_value **values, RemoteUses ret_uses);

/* True if column `i` is read. Columns after the 63rd are all read if one of them is. */
bool remote_plan_reads(const RemotePlan *plan, int i);

/* Makes the SELECT: the rowid if there is one, then each column that is read. Its parameters are the values of the
 * constraints that are used, in their order; IN has as many as its use says, IS NULL none, and LIMIT one. The caller frees
 * the result with sqlite3_free(). NULL: no memory. */
char *remote_plan_sql(const RemoteTable *t, const RemotePlan *plan, const char *uses);

#endif
