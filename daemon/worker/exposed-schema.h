/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. What an exposed table or view looks like: read from the database file once for each connection, so that the
 * virtual table in its place can be declared alike (exposed.h), and searched with the same result (exposed-plan.h).
 *
 * "Alike" is what comparisons depend on: names, the declared type or, where that tells less than SQLite knows, the
 * affinity, and the collation of each column. A view's are those that its expressions have.
 */
#ifndef EXPOSED_SCHEMA_H
#define EXPOSED_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sqlite3 sqlite3;

/* As far as comparisons differ by it: INTEGER, REAL and NUMERIC convert alike, BLOB and none do not. */
typedef enum Affinity {
        AFFINITY_NONE,
        AFFINITY_TEXT,
        AFFINITY_NUMERIC,
} Affinity;

typedef struct ExposedColumn {
        char *name, *type, *collation; /* owned; the type is empty where there is none */
        Affinity affinity;
        bool hidden;                   /* of a virtual table: not in SELECT *, and a parameter of a search */
} ExposedColumn;

#define COLUMN_ROWID (-1)
#define COLUMN_OTHER (-2) /* of an index: an expression, or a column by another collation than its own */

/* One order that rows can be found by. The rowid, and the column that is its alias, count as one each. */
typedef struct ExposedIndex {
        int *columns;     /* owned; of the object */
        bool *descending; /* owned */
        double *n_rows;   /* owned; [i]: with the same first i + 1 columns, as sqlite_stat1 or SQLite's own guess have it */
        int n_columns;
        bool unique;      /* no two rows are equal in all columns, but for NULL */
} ExposedIndex;

typedef struct ExposedObject {
        char *name;         /* owned, as the schema writes it */
        bool is_view, is_virtual;
        bool is_barrier;    /* nothing is searched or sorted below it, so that the time tells nothing of hidden rows */
        bool is_strict;     /* a STRICT table with a column of ANY: it must be declared so, too */
        const char *rowid;  /* a name of the rowid that no column has; NULL: rows have none that could be asked for */
        ExposedColumn *columns;
        int n_columns;
        ExposedIndex *indexes;
        int n_indexes;
        double n_rows;      /* as sqlite_stat1 has it, or a guess */
} ExposedObject;

/* Reads what `name` is in the main schema of `db`. An SQLite result code; SQLITE_NOTFOUND: no table or view of that name,
 * or one that cannot be read (a view of a missing table, a damaged virtual table). To be freed with exposed_object_done() in
 * any case. */
int exposed_object_read(ExposedObject *o, sqlite3 *db, const char *name);
void exposed_object_done(ExposedObject *o);

/* Its columns as they stand between the parentheses of CREATE TABLE. To be freed with sqlite3_free(); NULL: no memory. */
char *exposed_object_columns(const ExposedObject *o);

#endif
