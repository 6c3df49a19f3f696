/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Publishes what Expose= names, and nothing else (I11): a connection in memory with one virtual table for each
 * exposed table or view. It reads through the connection to the file, which no SQL of a client ever reaches.
 *
 *      client's SQL --> [ :memory: | virtual table "album" ] --SELECT ... FROM main."album"--> [ the file ]
 *
 * 1. Objects that are not exposed are not hidden on that connection but missing from it, for names, PRAGMA and messages
 *    alike.
 * 2. No message of the file's connection is passed on, because it may hold names; only its code is.
 * 3. One statement reads everything in one transaction of the file's connection, from exposed_begin() to exposed_end(). In
 *    between, the schema is the one by which the virtual tables were declared.
 * 4. Compiled searches are kept for the next cursor. They are reset, so they hold no lock.
 */
#ifndef SQLIPC_DAEMON_WORKER_EXPOSED_EXPOSED_H
#define SQLIPC_DAEMON_WORKER_EXPOSED_EXPOSED_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/protocol/protocol.h"

typedef struct sqlite3 sqlite3;
typedef struct Exposed Exposed;

/* Opens the connection in memory, with the objects of `file` that setup->exposed names. `file` is borrowed and must outlive
 * it. A name that does not exist, or that cannot be read, is left out, which is reported on standard error. Returns an
 * SQLite result code. On SQLITE_OK *ret and *ret_db (borrowed from it) are set; the caller then guards *ret_db and calls
 * exposed_seal(). */
int exposed_open(Exposed **ret, sqlite3 *file, const Setup *setup, sqlite3 **ret_db);

/* Removes all modules that could reveal more than their arguments hold. Returns an SQLite result code. */
int exposed_seal(Exposed *e);

/* NULL is allowed. The statements of its connection must be finalized. Returns NULL. */
Exposed *exposed_close(Exposed *e);

/* Begins to read. SQLITE_SCHEMA: the schema has changed, so this connection is of no more use. Other codes are those of the
 * file's connection. Unless the result is SQLITE_OK, nothing was begun. exposed_end() may be called in any case. */
int exposed_begin(Exposed *e);
void exposed_end(Exposed *e);

/* Announces the SQL of the statement that is compiled or run next. */
void exposed_expect(Exposed *e, const char *sql, size_t sql_size);

#endif
