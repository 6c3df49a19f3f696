/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a query of the shell's own: its rows go to a function. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_QUERY_RUN_H
#define SQLIPC_TOOLS_CLI_SHELL_QUERY_RUN_H

#include "tools/cli/shell/query.h"

/** Runs `sql` on the open database with these parameters (NULL, 0: none). Returns as query_execute() does, and reports all
 * errors except the visitor's. After a lost connection the next query connects again, and says so. `ret_totals` may be
 * NULL. */
int query_run(Shell *shell, const char *sql, const sqlipc_parameter *parameters, size_t n_parameters, QueryVisitor visit,
              void *userdata, QueryTotals *ret_totals);

#endif
