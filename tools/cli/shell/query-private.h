/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by query.c (the loop), query-print.c (rows to a stream) and query-failure.c (error messages). */
#ifndef SQLIPC_TOOLS_CLI_SHELL_QUERY_PRIVATE_H
#define SQLIPC_TOOLS_CLI_SHELL_QUERY_PRIVATE_H

#include "tools/cli/shell/progress.h"
#include "tools/cli/shell/query.h"

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

/** Runs the query to its end, without messages. Returns as query_run() does. */
int query_execute(Query *query);

/** Reports the error `r` of query_execute(), and sets the exit code if `r` alone does not determine it. Returns `r`; 0 if
 * the user quit the pager, or a command of .output closed its input. */
int query_settle(Query *query, int r);

/** Returns true if the last error means that the service is gone. */
bool query_is_lost(sqlipc_connection *connection);

#endif
