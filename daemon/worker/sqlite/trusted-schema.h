/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Makes schemas harmless. Any user may have made a database, and its views, triggers, CHECKs, DEFAULTs,
 * generated columns and indexes run with all functions and virtual tables of the connection. SQLite's own switch for this,
 * SQLITE_DBCONFIG_TRUSTED_SCHEMA, is too strict when it is off: SQLite 3.40 then takes all JSON functions, FTS and R-Tree
 * for unsafe, and a CHECK that calls json_valid() makes the whole file "malformed". So it is on, and everything that SQLite
 * then lets a schema use is harmless by itself:
 *
 *   - functions that SQLite flags as innocuous, or that are listed here. All others either are SQLITE_DIRECTONLY already, or
 *     are replaced by a function of this kind that fails;
 *   - virtual tables of the modules that are listed here. All others are removed.
 *
 * In views and triggers the authorizer is asked as well, and refuses what access.c says.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_TRUSTED_SCHEMA_H
#define SQLIPC_DAEMON_WORKER_SQLITE_TRUSTED_SCHEMA_H

typedef struct sqlite3 sqlite3;

/* Replaces and removes functions and modules of a new connection, before its schema is read. Returns an SQLite result
 * code. */
int trusted_schema_set_up(sqlite3 *db);

#endif
