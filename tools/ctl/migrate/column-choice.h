/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Chooses the type of a column in PostgreSQL, by its declared type and by the values that it really has. Pure. */
#ifndef SQLIPC_TOOLS_CTL_MIGRATE_COLUMN_CHOICE_H
#define SQLIPC_TOOLS_CTL_MIGRATE_COLUMN_CHOICE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/ctl/migrate/column-kind.h"

/* The contents of a column: numbers of rows. */
typedef struct ColumnFound {
        uint64_t n[SQLIPC_NULL + 1]; /* by sqlipc_type */
        uint64_t n_large;            /* integers that no double holds exactly */
        int64_t largest;             /* the largest integer; 0 if all are smaller */
        uint64_t n_with_nul, n_not_utf8; /* texts that not every engine can store */
        uint64_t n_dates, n_timestamps;  /* texts in the form in which PostgreSQL writes these */
} ColumnFound;

/** Counts a value. */
void column_found_add(ColumnFound *found, const sqlipc_value *value);
/** "3503 text, 2 null"; "" for a column of an empty table. The caller frees it. */
char *column_found_describe(const ColumnFound *found);

/** Chooses. `with_dates`: columns that are declared DATE, DATETIME or TIMESTAMP, and whose texts all have that form, become
 * dates and timestamps. `*ret_note`: a remark for the user, static; NULL: none. */
ColumnKind column_choose(const char *declared, const ColumnFound *found, bool with_dates, const char **ret_note);

#endif
