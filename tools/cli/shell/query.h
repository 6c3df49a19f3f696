/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A query: the only loop in which the shell waits, for rows, the pager, Ctrl-C and time limits at once.
 *
 *      query-run.h      passes rows to a function, for the commands (.tables, .dump, .watch, ...)
 *      query-print.h    writes rows through a renderer to the shell's output, with plan and footer, as for a typed statement
 *      query-failure.h  reports a failure once, on stderr (file, line, caret); callers only return the code
 */
#ifndef SQLIPC_TOOLS_CLI_SHELL_QUERY_H
#define SQLIPC_TOOLS_CLI_SHELL_QUERY_H

#include "tools/cli/shell/shell.h"
#include "tools/terminal/progress.h"

typedef struct QueryTotals {
        uint64_t n_rows;
        unsigned n_columns;
        int64_t n_changes;     /* rows that it inserted, updated or deleted */
        uint64_t n_bytes;
        uint64_t server_usec;  /* from the arrival of the run to its end */
        uint64_t total_usec;   /* as measured by the client */
        uint64_t first_usec;   /* until the first row, or the end */
        sqlipc_transport transport;
} QueryTotals;

/** Called for each row; a negative result ends the query, and is returned. It is also called once before the first row, with
 * `cursor` at its columns and `is_row` false, even if the result has no rows. */
typedef int (*QueryVisitor)(sqlipc_cursor *cursor, bool is_row, void *userdata);

typedef struct Query {
        Shell *shell;
        const char *sql;
        const sqlipc_parameter *parameters; /* borrowed */
        size_t n_parameters;
        QueryVisitor visit;
        void *userdata;
        /* Called if no row came for a while, to write the rows that are held back. Errors as of `visit`. NULL: nothing is
         * held back. */
        int (*pause)(void *userdata);
        unsigned pause_msec; /* length of that while */
        unsigned hold_msec;  /* called at the latest so long after the first row that is held back; 0: only after a pause */
        bool on_terminal;    /* rows go to the terminal on which progress would be shown */
        bool last_reader;    /* rows go to standard output, and not to a terminal: without a reader nothing is left to do */

        uint64_t n_bytes;    /* size of the values, counted by `visit` */

        /* Results. */
        QueryTotals totals;  /* up to the point that was reached */
        bool is_over;        /* the run itself ended or failed: an error is the service's or the connection's */
        bool from_output;    /* the error is one of writing, from output_pump() or `visit` */
        bool timed_out;      /* settings.timeout_usec has passed */
        unsigned n_interrupts;

        /* State of the run. */
        sqlipc_connection *connection;
        sqlipc_cursor *cursor;
        bool has_columns;    /* `visit` was called for the columns */
        bool dirty;          /* rows came since the last pause, */
        uint64_t dirty_since; /* the time of the first of them; microseconds */
        uint64_t begin, last; /* start of the run; since when the loop waits for a row, 0: it does not; microseconds */
        Progress progress;
} Query;

/** Makes a query whose rows go to the current output of the shell. */
Query query_init(Shell *shell, const char *sql, QueryVisitor visit, void *userdata);

/** Runs the query to its end, without messages. Returns 0; -ECANCELED after Ctrl-C; -ENODATA if no database is open; the
 * visitor's error; an error of the output, -EPIPE if its reader left; or the service's error. */
int query_execute(Query *query);

/** Returns true if the last error means that the service is gone. */
bool query_is_lost(sqlipc_connection *connection);

#endif
