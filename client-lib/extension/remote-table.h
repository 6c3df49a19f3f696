/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: library. The shape of a table or view of a shared database. It is read when SQLite connects the virtual table, which
 * is declared alike, because comparisons depend on types and collations. Indexes and statistics tell the cost of a search.
 */
#ifndef SQLIPC_CLIENT_LIB_EXTENSION_REMOTE_TABLE_H
#define SQLIPC_CLIENT_LIB_EXTENSION_REMOTE_TABLE_H

#include <stdbool.h>

typedef struct sqlipc_connection sqlipc_connection;

/* Only the differences that matter for comparisons: INTEGER, REAL and NUMERIC convert alike, BLOB and none do not
 * convert. */
typedef enum ColumnAffinity {
        COLUMN_UNKNOWN, /* an expression of a view: the service does not tell its affinity */
        COLUMN_PLAIN,
        COLUMN_TEXT,
        COLUMN_NUMERIC,
} ColumnAffinity;

typedef struct RemoteColumn {
        char *name, *type;     /* owned; an empty type: none is declared */
        const char *collation; /* static; "BINARY", "NOCASE" or "RTRIM" */
        ColumnAffinity affinity;
        double rows_per_value; /* by an index that begins with the column; 0: there is none */
} RemoteColumn;

typedef struct RemoteTable {
        sqlipc_connection *connection; /* borrowed */
        char *database, *name;         /* owned */
        RemoteColumn *columns;         /* owned */
        int n_columns;
        const char *rowid; /* static; a name for the rowid that no column has; NULL: rows have none */
        double n_rows;     /* an estimate */
        bool is_view, is_virtual;
        bool knows_indexes;    /* false: of a view, a virtual table or an exposed table nothing is known */
        bool compares_as_utf8; /* the service orders text like this process: both databases are in UTF-8 */
} RemoteTable;

/* Reads the table or view `name`; the names are copied. Waits for the service, at most for the connection's timeout. Returns
 * 0 or a negative errno; the connection has the details. Must be freed with remote_table_done() in any case. */
int remote_table_read(RemoteTable *t, sqlipc_connection *connection, const char *database, const char *name);
void remote_table_done(RemoteTable *t);

/* Returns the name of a collation that SQLite always has, as a static string; NULL for any other. */
const char *remote_collation(const char *name);

/* The CREATE TABLE for sqlite3_declare_vtab(). The caller frees it with sqlite3_free(). NULL: no memory. */
char *remote_table_declaration(const RemoteTable *t);

#endif
