/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Draws the rows of EXPLAIN QUERY PLAN as a tree, in the format of sqlite3's shell. Pure. */
#ifndef SQLIPC_TOOLS_CLI_RENDER_PLAN_H
#define SQLIPC_TOOLS_CLI_RENDER_PLAN_H

#include <glib.h>
#include <stdint.h>

#include "tools/cli/sql/sql-scan.h"

typedef enum Explain {
        EXPLAIN_NOT,  /* any other statement */
        EXPLAIN_CODE, /* EXPLAIN ... */
        EXPLAIN_PLAN, /* EXPLAIN QUERY PLAN ... */
} Explain;

/** Returns the kind of EXPLAIN that `sql` begins with. */
Explain explain_of(SqlDialect dialect, const char *sql);

typedef struct Plan Plan;

Plan *plan_new(void);
/** NULL is allowed. Returns NULL. */
Plan *plan_free(Plan *plan);

/** Adds a row; `detail` is any text of `size` bytes, which is copied. */
void plan_add(Plan *plan, int64_t id, int64_t parent, const char *detail, size_t size);

/** Appends the tree under "QUERY PLAN", safe to show; nothing if the plan is empty. */
void plan_append(const Plan *plan, GString *text);

#endif
