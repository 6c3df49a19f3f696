/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The progress of a migration, in a table of the target itself, so that it cannot differ from the contents of the target:
 * each entry is committed together with the statement that it is about.
 *
 *      kind "source"       the database that is migrated, and the digest of the plan
 *      kind "table"        STATE_COPYING: the table was made; STATE_COPIED: it has all rows
 *      any other kind      the digest of the statement that made this object
 */
#ifndef SQLIPC_TOOLS_CTL_MIGRATE_STATE_H
#define SQLIPC_TOOLS_CTL_MIGRATE_STATE_H

#include <glib.h>
#include <stdbool.h>

#include "tools/ctl/migrate/side.h"

#define STATE_TABLE "sqlipc_migration"
#define STATE_COPYING "copying"
#define STATE_COPIED "copied"

typedef struct State {
        const Side *side;    /* borrowed */
        GHashTable *entries; /* owned; "KIND NAME" -> text */
        bool has_table;
} State;

/** Reads the progress, and leaves the target as it is. `names_sql` returns the names of the target's tables and views.
 * Returns 0; -ENOTEMPTY: it has tables, and not by a migration; or another error, for example if the target cannot be
 * written. It has been printed. */
int state_open(State *state, const Side *side, const char *names_sql);
void state_close(State *state);

/** Makes the table if it does not exist. Errors have been printed. */
int state_make_table(State *state);

/** The text of an entry; NULL: there is none. Borrowed until the next change. */
const char *state_get(const State *state, const char *kind, const char *name);

/** Carries out `before`; then `sql`, and sets the entry, together. Both may be NULL. `before` drops what `sql` makes, and is
 * on its own because all statements of a batch for rqlite are compiled before the first one is run. Prints nothing. */
int state_set(State *state, const char *before, const char *sql, const char *kind, const char *name, const char *text);

/** Carries out `sql`, and removes the entries that `is_gone` tells of, together. Prints nothing. */
int state_forget(State *state, const char *sql, gboolean (*is_gone)(const char *entry, void *userdata), void *userdata);

#endif
