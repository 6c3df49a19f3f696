/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The SELECT that reads many tables at once. Each run on the service is a read transaction of its own, so what has to be of
 * one moment has to be one statement: a UNION ALL of all tables, each row led by whose it is.
 *
 *      0,  type, name, tbl_name, sql             of sqlite_schema: what is read is what was planned for
 *      -1, application_id, user_version, encoding, page_size
 *      1,  the columns of the first table, NULL, NULL
 *      2,  the first columns of a table that is wider than the statement, then
 *      2,  its next ones, a row for each piece
 *
 * What the service's limits do not let into one statement is several, and so are the moments. Pure.
 */
#ifndef CLI_SNAPSHOT_H
#define CLI_SNAPSHOT_H

#include "schema.h"

enum {
        SNAPSHOT_SCHEMA = 0,
        SNAPSHOT_HEADER = -1,
};

typedef struct SnapshotLimits {
        uint64_t sql_size, compound_selects, vdbe_ops;
} SnapshotLimits;

/* A table, and what is read of it. */
typedef struct SnapshotTable {
        const SchemaObject *object; /* borrowed */
        bool with_rowid;            /* its rowid comes first; it has one */
        GPtrArray *columns;         /* names, borrowed, of those that are stored or computed by nobody */
        size_t n_values;            /* of a row: rowid and columns */
} SnapshotTable;

typedef struct SnapshotStatement {
        char *sql;
        size_t width;      /* values of a row behind the first column: a longer row comes in so many pieces */
        bool has_schema;   /* it begins with what sqlite_schema holds */
} SnapshotStatement;

/** The tables of `schema` that are wanted, in the order in which sqlite3's .dump has them; virtual ones have no values. Of
 * SnapshotTable; to be freed with g_ptr_array_unref(), before the schema. */
GPtrArray *snapshot_tables(const Schema *schema, bool with_rowids);

/** The statements that read these tables, in this order, numbered from 1. The fewest that the limits allow; one that passes
 * them by itself is there all the same. Of SnapshotStatement; to be freed with g_ptr_array_unref(). */
GPtrArray *snapshot_plan(const GPtrArray *tables, const SnapshotLimits *limits);

#endif
