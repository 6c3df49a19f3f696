/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The transaction that the user has begun: BEGIN, COMMIT and ROLLBACK are calls of the library, and savepoints are
 * statements within it. SAVEPOINT outside of a transaction begins one, which the RELEASE of that savepoint commits, as in
 * SQLite.
 *
 * A transaction that the service has ended stays until COMMIT or ROLLBACK, so that no statement runs outside of it
 * unnoticed.
 */
#ifndef SQLIPC_TOOLS_CLI_SHELL_TRANSACTION_H
#define SQLIPC_TOOLS_CLI_SHELL_TRANSACTION_H

#include "tools/cli/shell/shell.h"
#include "tools/cli/sql/sql-control.h"

/** Begins a transaction. Returns 0; -EBUSY: there is one; -ECANCELED after Ctrl-C; or the service's error. Reports
 * errors. */
int transaction_begin(Shell *shell, sqlipc_transaction_mode mode);

/** The same for a whole script: to write, so that others cannot make it fail in the middle; to read if the user may not. */
int transaction_begin_script(Shell *shell);

/** Commits, or rolls back; afterwards there is no transaction, also after an error, which is reported. */
int transaction_commit(Shell *shell);
int transaction_rollback(Shell *shell);

/** Carries out a statement of sql-control.h; `name` is that of the savepoint. Reports errors. */
int transaction_run(Shell *shell, SqlControl control, const char *name, const char *sql);

/** True within a transaction that the script itself has begun, as a dump does, within that of the whole script. */
bool transaction_is_within_script(const Shell *shell);

/** Returns the mark for the prompt: "" no transaction, "*" an open one, "!" one that the service has ended. */
const char *transaction_mark(const Session *session);

/** Reports a command that is not possible while a transaction is open. Returns 0, if there is none, or -EBUSY. */
int transaction_check_none(Shell *shell);

#endif
