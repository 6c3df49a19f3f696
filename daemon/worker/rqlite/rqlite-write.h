/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Statements that write. The server has no transactions that outlast a request, so a transaction of the core
 * is one request:
 *
 *      begin --> save, step: the statement is noted, keep --> ... --> commit: the request is sent --> outcomes
 *
 * The server carries out all statements of the request, or none. If one of them fails, commit() fails with its error, and
 * the core runs each job alone, as it does after other commits that fail.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_RQLITE_WRITE_H
#define SQLIPC_DAEMON_WORKER_RQLITE_RQLITE_WRITE_H

#include "daemon/worker/core/row-source.h"
#include "daemon/worker/rqlite/rqlite-pool.h"

void rqlite_write_begin(RqliteConnection *c);

/* As save() and undo() of the engine. keep() has nothing to do. */
void rqlite_write_save(RqliteConnection *c);
void rqlite_write_undo(RqliteConnection *c);

/* Notes a statement, as its step. LimitsExceeded, OutOfMemory. */
bool rqlite_write_note(RqliteStatement *s, SqlError *error);

/* As load() of the engine: notes the statement for each row. */
bool rqlite_write_load(RqliteStatement *s, RowSource *source, SqlError *error);

/* Called when a noted statement is released: the transaction has it from now on. */
void rqlite_write_keep(RqliteStatement *s);

/* As commit() of the engine. */
bool rqlite_write_commit(RqliteConnection *c, SqlError *error);

/* Returns the statements that were carried out one after the other, in their order; NULL: there are no more. */
RqliteStatement *rqlite_write_outcome(RqliteConnection *c);

/* Ends the transaction. Statements that were not sent are forgotten. */
void rqlite_write_end(RqliteConnection *c);

#endif
