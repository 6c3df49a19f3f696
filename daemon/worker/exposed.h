/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. What Expose= publishes, and nothing else (I11): a connection in memory with one virtual table for each
 * exposed table or view, over the connection to the file, which no SQL of a client ever reaches.
 *
 *      client's SQL --> [ :memory: | virtual table "album" ] --SELECT ... FROM main."album"--> [ the file ]
 *
 * 1. What is not exposed is not hidden there but missing, for names, PRAGMA and messages alike.
 * 2. A message of the file's connection never comes through, only its code: it may hold names.
 * 3. All of one statement is read in one transaction of the file's connection, from exposed_begin() to exposed_end().
 *    Between them the schema is the one that the virtual tables were declared by.
 * 4. Compiled searches are kept for the next cursor, reset: they hold no lock.
 */
#ifndef EXPOSED_H
#define EXPOSED_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol.h"

typedef struct sqlite3 sqlite3;
typedef struct Exposed Exposed;

/* Opens the connection in memory, with what setup->exposed names of `file`, which is borrowed and must outlive it. A name
 * that is not there, or that nobody could read, is left out, and told on standard error. An SQLite result code; *ret and
 * *ret_db (borrowed from it) are set where it is SQLITE_OK. The caller guards *ret_db and then calls exposed_seal(). */
int exposed_open(Exposed **ret, sqlite3 *file, const Setup *setup, sqlite3 **ret_db);

/* Removes every module that could tell more than its arguments hold. */
int exposed_seal(Exposed *e);

/* NULL is allowed. Statements of its connection must be finalized. Returns NULL. */
Exposed *exposed_close(Exposed *e);

/* Begins to read. SQLITE_SCHEMA: the schema is another now, so this connection is of no use any more. Other codes are the
 * file connection's. Not SQLITE_OK: nothing was begun. */
int exposed_begin(Exposed *e);
void exposed_end(Exposed *e);

/* The statement that is compiled or run next, by its SQL. */
void exposed_expect(Exposed *e, const char *sql, size_t sql_size);

#endif
