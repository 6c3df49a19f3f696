/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. A statement of a client, compiled on the shadow.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_RQLITE_STATEMENT_H
#define SQLIPC_DAEMON_WORKER_RQLITE_RQLITE_STATEMENT_H

#include "daemon/worker/rqlite/rqlite-pool.h"

/* As compile() of the engine. */
bool rqlite_statement_compile(RqliteConnection *c, const char *sql, size_t sql_size, bool describe, RqliteStatement **ret,
                              SqlError *error);

/* Compiles it again on the pool's shadow, which is a newer one. Its parameters stay. */
bool rqlite_statement_compile_again(RqliteStatement *s, SqlError *error);

/* As bind() of the engine. */
bool rqlite_statement_bind(RqliteStatement *s, const JobSpec *spec, SqlError *error);

/* Makes room for the values of one row, and of a row of a load. OutOfMemory. */
bool rqlite_statement_prepare_rows(RqliteStatement *s, SqlError *error);

/* The statement as statement-text.h needs it. Borrowed until it is compiled again. */
StatementText rqlite_statement_text(const RqliteStatement *s);

/* Frees a statement, which no transaction has. NULL is allowed. */
RqliteStatement *rqlite_statement_free(RqliteStatement *s);

#endif
