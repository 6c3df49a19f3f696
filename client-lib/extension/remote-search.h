/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: library. One search of a remote table: a prepared SELECT, and its run while a cursor
 * reads it. A search that is not in use is kept for the next cursor, so that in a join each row of the other table costs one
 * request.
 */
#ifndef SQLIPC_CLIENT_LIB_EXTENSION_REMOTE_SEARCH_H
#define SQLIPC_CLIENT_LIB_EXTENSION_REMOTE_SEARCH_H

#include <stddef.h>

#include "client-lib/extension/remote-plan.h"
#include "client-lib/sqlipc.h"

typedef struct sqlite3 sqlite3;

typedef struct RemoteSearch RemoteSearch;
struct RemoteSearch {
        RemoteSearch *next; /* only while it is kept */
        char *text;         /* owned; the text of the plan */
        RemotePlan plan;
        RemoteUses uses;
        sqlipc_statement *statement; /* owned */
        sqlipc_cursor *run;          /* owned; NULL: not running */
        const sqlipc_value *values;  /* borrowed from the run: the rows that have arrived */
        size_t n_rows, row;          /* of them; the current row is `row` */
        unsigned n_columns;          /* of each row */
        int at[];                    /* position of each column of the table in the row, -1: the column is not read */
};

/* A table with the searches that are kept. */
typedef struct SearchedTable {
        RemoteTable remote;
        sqlite3 *db;        /* borrowed; the connection that has the virtual table */
        RemoteSearch *kept; /* owned */
} SearchedTable;

void searched_table_done(SearchedTable *t);

/* Takes a kept search for this plan and these uses, or prepares one. Returns 0 or a negative errno. The caller gives it back
 * by remote_search_keep(). */
int remote_search_take(SearchedTable *t, const char *text, const RemotePlan *plan, const char *uses, RemoteSearch **ret);

/* Ends the run, if any, and keeps the search. NULL is allowed. */
void remote_search_keep(SearchedTable *t, RemoteSearch *s);

/* Begins a run with the values of xFilter. A run under way ends. Returns 0 or a negative errno. */
int remote_search_run(const SearchedTable *t, RemoteSearch *s, sqlite3_value **values);

/* Goes to the next row, and waits for it until it comes or sqlite3_interrupt() is called. Returns 1: there is one; 0: there
 * is no more; -EINTR: interrupted; -ESTALE: the columns of the table have changed; or the failure of the run. */
int remote_search_next(const SearchedTable *t, RemoteSearch *s);

/* Returns the value of column `i` of the table in the current row; NULL if it is not read. */
static inline const sqlipc_value *remote_search_value(const RemoteSearch *s, int i) {
        return s->at[i] < 0 ? NULL : &s->values[s->row * s->n_columns + (unsigned) s->at[i]];
}

#endif
