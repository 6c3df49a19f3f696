/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: library. The virtual table: SQLite's module "sqlipc", and its connections to the
 * service.
 *
 * SQLite calls the module with the mutex of its own connection held, so one thread at a time uses the connections to the
 * service, of which each SQLite connection has its own.
 */
#ifndef SQLIPC_CLIENT_LIB_EXTENSION_MODULE_H
#define SQLIPC_CLIENT_LIB_EXTENSION_MODULE_H

typedef struct sqlite3 sqlite3;

/* Registers the module with `db`. Returns an SQLite result code. */
int module_register(sqlite3 *db);

#endif
