/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens a published database with SQLite, in a child of service-child.h, for the verbs backup, integrity and vacuum: with
 * the modules by which a worker finds and opens it (I12), so that no other user decides which file is read. A process opens
 * one database.
 */
#ifndef SQLIPC_TOOLS_CTL_OPEN_DATABASE_H
#define SQLIPC_TOOLS_CTL_OPEN_DATABASE_H

#include <sqlite3.h>

#include "daemon/configuration/configuration.h"
#include "tools/ctl/context.h"

/* Memory for SQLite in the child: enough for a row of the largest size, 1 GB, twice. */
#define OPEN_DATABASE_HEAP_MAX (UINT64_C(5) << 29)

/** The configuration, and its database `name`; NULL if there is none, which has been printed. */
Config *open_database_find(const Context *c, const char *name, const DatabaseConfig **ret);

/** Opens the file. Only `to_write` changes it, except that a crashed writer's transaction is rolled back, if this process
 * owns the file and it is published for writing. The connection waits `lock_seconds` for a lock. From now on SIGINT and
 * SIGTERM interrupt its statements. Returns NULL if it fails, which has been printed. */
sqlite3 *open_database(const DatabaseConfig *d, bool to_write, double lock_seconds);

/** True after SIGINT or SIGTERM. */
bool open_database_interrupted(void);

/** An integer that a PRAGMA returns; -1 if it fails. */
int64_t pragma_number(sqlite3 *db, const char *sql);

/** True if the database is in WAL mode. */
bool is_in_wal_mode(sqlite3 *db);

/** Prints that the work `what` on the database failed, with the error of SQLite; after an interrupt only that. Returns
 * CTL_FAILED. */
int complain_of_sqlite(const DatabaseConfig *d, const char *what, sqlite3 *db, int rc);

#endif
