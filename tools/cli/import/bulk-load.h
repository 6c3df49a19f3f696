/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads many rows into the open database, with a progress bar, until Ctrl-C. Reports no errors. */
#ifndef SQLIPC_TOOLS_CLI_IMPORT_BULK_LOAD_H
#define SQLIPC_TOOLS_CLI_IMPORT_BULK_LOAD_H

#include <glib.h>

#include "tools/cli/shell/shell.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/value.h"

typedef struct BulkLoad {
        Shell *shell;       /* borrowed */
        const char *action; /* borrowed: "checking" */
        double done;        /* the part of the work that is done, from 0 to 1 */
        uint64_t n_rows;    /* that the bar shows */
        Progress progress;
        sqlipc_load *load;  /* owned; NULL: none is open */
        GArray *parameters; /* owned; of sqlipc_parameter */
} BulkLoad;

void bulk_load_init(BulkLoad *bulk, Shell *shell);
/** Ends a load that is open, without its rows. */
void bulk_load_done(BulkLoad *bulk);

/** Draws the bar when it is due. Returns -ECANCELED after Ctrl-C, else 0. Called every few hundred rows. */
int bulk_load_look_around(BulkLoad *bulk);
/** Erases the bar; called before something is written to the terminal. */
void bulk_load_erase(BulkLoad *bulk);

/** Begins to load rows of `n_values` values. The connection does not block until the load is finished or closed. Returns 0,
 * or an error of the library, as do the next ones; -ECANCELED after Ctrl-C. */
int bulk_load_open(BulkLoad *bulk, const char *sql, guint n_values);
int bulk_load_row(BulkLoad *bulk, const Value *values);
int bulk_load_finish(BulkLoad *bulk, int64_t *ret_changes);
/** Gives up a load that is open. */
void bulk_load_close(BulkLoad *bulk);

#endif
