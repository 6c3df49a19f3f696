/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes results through a renderer: for a typed statement, or to a stream of the caller's. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_QUERY_PRINT_H
#define SQLIPC_TOOLS_CLI_SHELL_QUERY_PRINT_H

#include "tools/cli/shell/query.h"

/** Runs `sql` with those of the shell's parameters that it names, and writes the result to the shell's output in the current
 * mode. Returns as query_execute() does; 0 if the user quit the pager; -EPIPE if the reader of standard output left, which
 * ends the shell. */
int query_print(Shell *shell, const char *sql);

/** Makes the options with which results are written to `file`, the shell's output, under the current settings. */
RenderOptions query_render_options(const Shell *shell, FILE *file);

/** Writes the result to a stream and in a mode of the caller's (.export, .watch); without pager and footer. */
int query_write(Shell *shell, const char *sql, RenderMode mode, const RenderOptions *options, QueryTotals *ret_totals);

#endif
