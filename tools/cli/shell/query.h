/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs SQL and takes its rows. This is the only loop in which the shell waits for a query: for rows, the pager, Ctrl-C and
 * time limits at once.
 *
 *      query_run      passes rows to a function, for the commands (.tables, .dump, .watch, ...)
 *      query_print    writes rows through a renderer to the shell's output, with plan and footer, as for a typed statement
 *
 * query_complain() reports a failure once, here, on stderr (file, line, caret); callers only return the code.
 */
#ifndef SQLIPC_TOOLS_CLI_SHELL_QUERY_H
#define SQLIPC_TOOLS_CLI_SHELL_QUERY_H

#include "tools/cli/shell/shell.h"

typedef struct QueryTotals {
        uint64_t n_rows;
        uint64_t n_bytes;
        uint64_t server_usec;  /* from the arrival of the run to its end */
        uint64_t total_usec;   /* as measured by the client */
        uint64_t first_usec;   /* until the first row, or the end */
        sqlipc_transport transport;
} QueryTotals;

/** Called for each row; a negative result ends the query, and is returned. It is also called once before the first row, with
 * `cursor` at its columns and `is_row` false, even if the result has no rows. */
typedef int (*QueryVisitor)(sqlipc_cursor *cursor, bool is_row, void *userdata);

/** Runs `sql` on the open database with these parameters (NULL, 0: none). Returns 0; -ECANCELED after Ctrl-C; -ENODATA if no
 * database is open; the visitor's error; an error of the output, -EPIPE if its reader left; or the service's error. Reports
 * all errors except the visitor's. After a lost connection the next query connects again, and says so. `ret_totals` may be
 * NULL. */
int query_run(Shell *shell, const char *sql, const sqlipc_parameter *parameters, size_t n_parameters, QueryVisitor visit,
              void *userdata, QueryTotals *ret_totals);

/** Runs `sql` with those of the shell's parameters that it names, and writes the result to the shell's output in the current
 * mode. Returns as query_run() does; 0 if the user quit the pager; -EPIPE if the reader of standard output left, which ends
 * the shell. */
int query_print(Shell *shell, const char *sql);

/** Makes the options with which results are written to `file`, the shell's output, under the current settings. */
RenderOptions query_render_options(const Shell *shell, FILE *file);

/** Writes the result to a stream and in a mode of the caller's (.export, .watch); without pager and footer. */
int query_write(Shell *shell, const char *sql, RenderMode mode, const RenderOptions *options, QueryTotals *ret_totals);

/** Reports on stderr the connection's message for `r`, with its D-Bus name if .verbose asks for it, and the position of the
 * error in `sql` (NULL: none). */
void query_complain(Shell *shell, int r, const char *sql);

/** Explains, after a database was not found, how to list the published ones; or how to publish one, if there is none. */
void query_suggest_database(Shell *shell);

/** Opens `name`, or reports why that failed. Returns as session_open() does. */
int query_open_database(Shell *shell, const char *name);

/** Mentions the other bus if the user chose none. */
void query_suggest_other_bus(const Shell *shell);

/** Returns the exit code for `r`, as documented in options.h. */
int query_exit_code(Shell *shell, int r);

#endif
