/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bulk ingest: a table gets the bound rows. Creating or replacing the table and loading the rows are one transaction. ADBC
 * driver.
 *
 *      adbc.ingest.target_table      the table; setting it takes the place of SQL
 *      adbc.ingest.mode              create (the default), append, replace or create_append, as adbc.ingest.mode.X
 *      adbc.ingest.target_catalog    the database; by default the current catalog
 *      adbc.ingest.target_db_schema  only ""
 *      adbc.ingest.temporary         only "false": a TEMP table is made by SQL
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_INGEST_TARGET_H
#define SQLIPC_CLIENT_LIB_ADBC_INGEST_TARGET_H

#include "client-lib/adbc/bound-rows.h"
#include "client-lib/adbc/driver-connection.h"

typedef enum IngestMode { INGEST_CREATE, INGEST_APPEND, INGEST_REPLACE, INGEST_CREATE_APPEND } IngestMode;

typedef struct IngestTarget {
        char *table;   /* NULL: the statement is no ingest */
        char *catalog; /* NULL: the current one */
        IngestMode mode;
} IngestTarget;

void ingest_target_done(IngestTarget *target);

/* True if `key` is an option of an ingest. */
bool ingest_target_has(const char *key);

AdbcStatusCode ingest_target_set(IngestTarget *target, const char *key, const char *value, struct AdbcError *error);
AdbcStatusCode ingest_target_get(const IngestTarget *target, const char *key, char **ret_value, struct AdbcError *error);

/* Runs the ingest, with the connection's mutex held. `*ret_changes` is the number of rows that were inserted. */
AdbcStatusCode ingest_target_run(const IngestTarget *target, DriverConnection *connection, BoundRows *rows,
                                 int64_t *ret_changes, struct AdbcError *error);

/* Gives all bound rows to a load of `sql`, and finishes it. `order` has the parameter, from 0, of each column; NULL: their
 * own order. `*ret_refused` is set, and nothing was done, if the statement is none that can be loaded. */
AdbcStatusCode ingest_target_load(DriverConnection *connection, const char *catalog, const char *sql, BoundRows *rows,
                                  const size_t *order, bool *ret_refused, int64_t *ret_changes, struct AdbcError *error);

#endif
