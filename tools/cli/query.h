/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs SQL and takes its rows: the one loop in which the shell waits. It waits for rows, the pager, Ctrl-C and time limits
 * at once.
 *
 *      query_run      rows to a function, for the commands (.tables, .dump, .watch, ...)
 *      query_print    rows through a renderer to the shell's output, with plan, footer and all, as a typed statement
 *
 * Failures are told on stderr by query_complain() (file, line, caret), once, here; callers only pass the code on.
 */
#ifndef CLI_QUERY_H
#define CLI_QUERY_H

#include "shell.h"

typedef struct QueryTotals {
        uint64_t n_rows;
        uint64_t n_bytes;
        uint64_t server_usec;  /* from the arrival of the run to its end */
        uint64_t total_usec;   /* what we saw */
        uint64_t first_usec;   /* until the first row, or the end */
        sqlipc_transport transport;
} QueryTotals;

/** `row`: called for each; negative ends the query, and is returned. Before the first row, and for a result without any,
 * with `cursor` at its columns and `is_row` false. */
typedef int (*QueryVisitor)(sqlipc_cursor *cursor, bool is_row, void *userdata);

/** Runs `sql` on the open database with these parameters (NULL, 0: none). 0; -ECANCELED after Ctrl-C; -ENODATA where no
 * database is open; the visitor's; the output's, -EPIPE where its reader left; or the service's failure. Tells failures,
 * but not the visitor's. If the service is lost the next query connects again, and says so. `ret_totals` may be NULL. */
int query_run(Shell *shell, const char *sql, const sqlipc_parameter *parameters, size_t n_parameters, QueryVisitor visit,
              void *userdata, QueryTotals *ret_totals);

/** Runs `sql` with the shell's parameters as far as it has them, and writes the result to its output in its mode. Returns as
 * query_run(); 0 where a pager was quit, -EPIPE where the reader of standard output left, which ends the shell. */
int query_print(Shell *shell, const char *sql);

/** How the settings have results written to `file`, which is the shell's output. */
RenderOptions query_render_options(const Shell *shell, FILE *file);

/** The same to a stream and in a mode of the caller's (.export, .watch); no pager, no footer. */
int query_write(Shell *shell, const char *sql, RenderMode mode, const RenderOptions *options, QueryTotals *ret_totals);

/** Says on stderr what the connection knows about `r`, with its D-Bus name if that is wanted (.verbose), and where in
 * `sql` it is (NULL: none). */
void query_complain(Shell *shell, int r, const char *sql);

/** Says, after a database was not found, how to see the published ones; or how to publish one, if there is none. */
void query_suggest_database(Shell *shell);

/** Opens `name`, or says why that failed. As session_open(). */
int query_open_database(Shell *shell, const char *name);

/** Names the other bus to a user who chose none. */
void query_suggest_other_bus(const Shell *shell);

/** The exit code that stands for `r`, as options.h documents them. */
int query_exit_code(Shell *shell, int r);

#endif
