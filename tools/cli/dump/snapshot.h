/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the SELECT that reads many tables at once. Each run on the service is a read transaction of its own, so rows that
 * must be from one moment need one statement: a UNION ALL of all tables. The first column of each row tells its origin.
 *
 *      0,  type, name, tbl_name, sql             of sqlite_schema, to check that the schema is still the planned one
 *      -1, application_id, user_version, encoding, page_size, auto_vacuum
 *      1,  the columns of the first table, NULL, NULL
 *      2,  the first columns of a table that is wider than the statement, then
 *      2,  its next ones, a row for each piece
 *
 * If the service's limits do not allow one statement, there are several, which then see different moments. Pure.
 */
#ifndef SQLIPC_TOOLS_CLI_DUMP_SNAPSHOT_H
#define SQLIPC_TOOLS_CLI_DUMP_SNAPSHOT_H

#include "tools/cli/dump/schema.h"

enum {
        SNAPSHOT_SCHEMA = 0,
        SNAPSHOT_HEADER = -1,
};

typedef struct SnapshotLimits {
        uint64_t sql_size, compound_selects, vdbe_ops;
} SnapshotLimits;

/* A table, and the values that are read from it. */
typedef struct SnapshotTable {
        const SchemaObject *object; /* borrowed */
        bool with_rowid;            /* its rowid is read first */
        GPtrArray *columns;         /* borrowed names of the columns that are neither hidden nor generated */
        size_t n_values;            /* of a row: rowid and columns */
} SnapshotTable;

typedef struct SnapshotStatement {
        char *sql;
        size_t width;      /* values of a row after the first column: a longer row comes in pieces of this width */
        bool has_schema;   /* it begins with the rows of sqlite_schema */
} SnapshotStatement;

/** The wanted tables of `schema`, in the order of sqlite3's .dump; virtual tables have no values. Elements are
 * SnapshotTable; the caller frees the array with g_ptr_array_unref(), before the schema. */
GPtrArray *snapshot_tables(const Schema *schema, bool with_rowids);

/** The statements that read these tables, in this order, numbered from 1. There are as few as the limits allow; a table that
 * exceeds them by itself gets its statement nevertheless. Elements are SnapshotStatement; freed with g_ptr_array_unref(). */
GPtrArray *snapshot_plan(const GPtrArray *tables, const SnapshotLimits *limits);

#endif
