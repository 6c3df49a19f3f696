/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Finds the collation by which a column of a view compares.
 *
 * SQLite tells it in one place only: to a virtual table with which such a column is compared. So this module has a virtual
 * table for that purpose.
 */
#ifndef SQLIPC_DAEMON_WORKER_EXPOSED_EXPOSED_COLLATION_H
#define SQLIPC_DAEMON_WORKER_EXPOSED_EXPOSED_COLLATION_H

#define EXPOSED_COLLATION_MODULE "exposed_collation"

typedef struct sqlite3 sqlite3;

/* Installs the virtual table. Must be called before exposed_collation(). Returns an SQLite result code. */
int exposed_collation_setup(sqlite3 *db);

/* Finds the collation of main.`view`.`column`; the caller frees it. Returns an SQLite result code. */
int exposed_collation(sqlite3 *db, const char *view, const char *column, char **ret);

#endif
