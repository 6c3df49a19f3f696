/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One of the two databases of a migration, as a client of the service sees it. Failures are printed here. */
#ifndef SQLIPC_TOOLS_CTL_MIGRATE_SIDE_H
#define SQLIPC_TOOLS_CTL_MIGRATE_SIDE_H

#include <stdint.h>

#include "client-lib/sqlipc.h"

typedef struct Side {
        sqlipc_connection *connection; /* borrowed */
        const char *database;          /* borrowed; its published name */
} Side;

/** Is called for each row. A negative result ends the query, and becomes its result. */
typedef int (*SideVisitor)(sqlipc_cursor *cursor, void *userdata);

/** Runs a statement to its end. `argument`: its parameter; NULL: it has none. `visit`: NULL if rows do not matter.
 * `ret_sequence`: the change sequence of the result; NULL: not wanted. Returns 0, or an error, which has been printed unless
 * `visit` returned it. */
int side_query(const Side *side, const char *sql, const char *argument, SideVisitor visit, void *userdata,
               uint64_t *ret_sequence);

/** Is called for each row, with the values of its columns, which are valid until it returns. As SideVisitor. */
typedef int (*SideRowVisitor)(const sqlipc_value *row, void *userdata);

/** Reads many rows, as side_query(), but prints nothing: side_message() has the reason. */
int side_read_rows(const Side *side, const char *sql, const char *argument, SideRowVisitor visit, void *userdata);

/** Finds out if the database can be used, so that an unreachable server or a wrong password is told before long work. `what`
 * names the database to people. Errors have been printed. */
int side_check(const Side *side, const char *what);

/** Runs a statement whose failure its caller handles: nothing is printed, and side_message() has the reason. */
int side_try(const Side *side, const char *sql);

/** Reads one integer: the first value of the first row; `otherwise` if it is NULL or there is no row. */
int side_number(const Side *side, const char *sql, int64_t otherwise, int64_t *ret);

/** Carries out `n` statements together, or none of them. Returns as side_try() does. */
int side_try_together(const Side *side, const char *const *statements, size_t n);

/** The reason of the last failure on this connection with the error `r`, for people; valid until the next call. */
const char *side_message(const Side *side, int r);
/** Prints the failure of the last call, with `what` was being done. Returns `r`. */
int side_fail(const Side *side, const char *what, int r);

#endif
