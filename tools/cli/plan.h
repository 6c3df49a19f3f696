/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of EXPLAIN QUERY PLAN as the tree that they are, as sqlite3's shell draws it. Pure. */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include <glib.h>
#include <stdint.h>

typedef enum Explain {
        EXPLAIN_NOT,  /* a statement like any other */
        EXPLAIN_CODE, /* EXPLAIN ... */
        EXPLAIN_PLAN, /* EXPLAIN QUERY PLAN ... */
} Explain;

/** Which one `sql` begins with. */
Explain explain_of(const char *sql);

typedef struct Plan Plan;

Plan *plan_new(void);
/** NULL is allowed. Returns NULL. */
Plan *plan_free(Plan *plan);

/** The row's columns; `detail` is any text of `size` bytes, copied. */
void plan_add(Plan *plan, int64_t id, int64_t parent, const char *detail, size_t size);

/** Appends the tree under "QUERY PLAN", safe to show; nothing where the plan is empty. */
void plan_append(const Plan *plan, GString *text);

#endif
