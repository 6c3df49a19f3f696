/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Turns failures of the server and of libpq into an SqlError, by the server's SQLSTATE. Messages have the
 * server's first line, never a password: libpq puts none into its messages.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_ERROR_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_ERROR_H

#include <libpq-fe.h>

#include "daemon/worker/core/sql-error.h"
#include "daemon/worker/postgresql/pg-text.h"

/* The failure of a statement. `text` NULL: it was not a client's. An error that is set already stays. Always returns
 * false. */
bool pg_error_take(SqlError *error, const PGresult *result, const PgText *text);

/* The connection was lost. An error that is set already stays. Always returns false. */
bool pg_error_lost(SqlError *error, const PGconn *pq);

/* No connection could be made; libpq's message is verbose. Only its reason is taken, without host and port.
 * `to_trust`: this was while the two sides identified each other. Always returns false. */
bool pg_error_connect(SqlError *error, const PGconn *pq, bool to_trust);

/* True if the server ends the connection. */
bool pg_error_is_loss(const PGresult *result);

/* True if the failure is one of the whole transaction, all of which must be repeated: a conflict with another transaction or
 * a deadlock (class 40). A statement that failed only because the one before it in the pipeline had (25P02) is none: the
 * savepoint takes both back. */
bool pg_error_is_of_transaction(const PGresult *result);

/* True if the statement can be prepared and run again: the tables have changed since it was prepared, or the server no
 * longer has it. */
bool pg_error_is_outdated(const PGresult *result);

#endif
