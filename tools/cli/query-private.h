/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What query.c (the loop), query-print.c (rows to a stream) and query-failure.c (what is said) share. */
#ifndef CLI_QUERY_PRIVATE_H
#define CLI_QUERY_PRIVATE_H

#include "progress.h"
#include "query.h"

typedef struct Query {
        Shell *shell;
        const char *sql;
        const sqlipc_parameter *parameters; /* borrowed */
        size_t n_parameters;
        QueryVisitor visit;
        void *userdata;
        /* No row came for a while: what is held back may be written. Negative: as of `visit`. NULL: nothing is held back. */
        int (*pause)(void *userdata);
        unsigned pause_msec; /* the while */
        unsigned hold_msec;  /* also called so long after the first row that is held back; 0: only after a pause */
        bool on_terminal;    /* rows go to the terminal that progress would be shown on */
        bool last_reader;    /* they go to standard output, and to a program: without it there is nothing to do */

        uint64_t n_bytes;    /* of values, which `visit` counts */

        /* Returned. */
        QueryTotals totals;  /* as far as it came */
        bool is_over;        /* the failure is the run's: the service's, or the connection's */
        bool from_output;    /* it is one of writing: output_pump() said so, or `visit` */
        bool timed_out;      /* by settings.timeout_usec */
        unsigned n_interrupts;

        /* The run's own. */
        sqlipc_connection *connection;
        sqlipc_cursor *cursor;
        bool has_columns;    /* `visit` had them */
        bool dirty;          /* rows came since the last pause, */
        uint64_t dirty_since; /* the first of them then; microseconds */
        uint64_t begin, last; /* when it began, and since when no row comes, 0: they do; microseconds */
        Progress progress;
} Query;

/** One whose rows go to the shell's output, as that is now. */
Query query_init(Shell *shell, const char *sql, QueryVisitor visit, void *userdata);

/** Runs it to its end, tells nothing. As query_run(). */
int query_execute(Query *query);

/** Tells why query_execute() gave `r`, and notes the exit code where `r` would not tell that. Returns `r`; 0 where a pager
 * was quit, or a command of .output had enough. */
int query_settle(Query *query, int r);

/** Whether the last failure was that the service went away. */
bool query_is_lost(sqlipc_connection *connection);

#endif
