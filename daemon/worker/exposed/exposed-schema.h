/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The shape of an exposed table or view. It is read from the database file once for each connection, so
 * that the virtual table in its place can be declared alike (exposed.h), and searched with the same result (exposed-plan.h).
 *
 * "Alike" means all that comparisons depend on: the name, type and collation of each column. If the declared type tells less
 * than SQLite knows, a type with the right affinity takes its place. The columns of a view have the affinities and
 * collations of its expressions.
 */
#ifndef SQLIPC_DAEMON_WORKER_EXPOSED_EXPOSED_SCHEMA_H
#define SQLIPC_DAEMON_WORKER_EXPOSED_EXPOSED_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sqlite3 sqlite3;

/* Only the differences that matter for comparisons: INTEGER, REAL and NUMERIC convert alike, BLOB and none do not
 * convert. */
typedef enum Affinity {
        AFFINITY_NONE,
        AFFINITY_TEXT,
        AFFINITY_NUMERIC,
} Affinity;

typedef struct ExposedColumn {
        char *name, *type, *collation; /* owned; an empty type: none is declared */
        Affinity affinity;
        bool hidden;                   /* of a virtual table: not in SELECT *, but a parameter of a search */
} ExposedColumn;

#define COLUMN_ROWID (-1)
#define COLUMN_OTHER (-2) /* of an index: an expression, or a column with another collation than its own */

/* One order in which rows can be found. The rowid counts as one, and so does the column that is its alias. */
typedef struct ExposedIndex {
        int *columns;     /* owned; numbers of the object's columns */
        bool *descending; /* owned */
        double *n_rows;   /* owned; [i]: rows with the same first i + 1 columns, by sqlite_stat1 or SQLite's own guess */
        int n_columns;
        bool unique;      /* no two rows are equal in all columns, except for NULL */
} ExposedIndex;

typedef struct ExposedObject {
        char *name;         /* owned, as the schema writes it */
        bool is_view, is_virtual;
        bool is_barrier;    /* no constraint or order is passed to the view: timing must not reveal hidden rows */
        bool is_strict;     /* a STRICT table with a column of type ANY: it must be declared STRICT, too */
        const char *rowid;  /* a name for the rowid that no column has; NULL: rows have none that can be asked for */
        ExposedColumn *columns;
        int n_columns;
        ExposedIndex *indexes;
        int n_indexes;
        double n_rows;      /* by sqlite_stat1, or a guess */
} ExposedObject;

/* Reads the table or view `name` of the main schema of `db`. Returns an SQLite result code; SQLITE_NOTFOUND: there is no
 * table or view of that name, or it cannot be read (a view of a missing table, a damaged virtual table). Must be freed with
 * exposed_object_done() in any case. */
int exposed_object_read(ExposedObject *o, sqlite3 *db, const char *name);
void exposed_object_done(ExposedObject *o);

/* The columns as CREATE TABLE has them between its parentheses. The caller frees them with sqlite3_free(). NULL: no
 * memory. */
char *exposed_object_columns(const ExposedObject *o);

#endif
