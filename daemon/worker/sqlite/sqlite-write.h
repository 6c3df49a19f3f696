/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Transactions of many statements: those of the connection that writes, in which each statement has a
 * savepoint, with the log that they leave in WAL mode; and those of other connections, which read one snapshot.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_WRITE_H
#define SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_WRITE_H

#include "daemon/worker/sqlite/sqlite-connection.h"

/* Begins a transaction that reads, on a connection that does not write. A connection to exposed tables has one already.
 * ERROR_BUSY: worth another try in a moment. */
bool sqlite_write_snapshot(SqliteConnection *c, SqlError *error);

/* True if no commit was made since then; of a pin, see sqlite_write_upgrade(). False: Busy with SQLITE_BUSY_SNAPSHOT. */
bool sqlite_write_is_current(const SqliteConnection *c, SqlError *error);

/* Begins a transaction, as the only writer. ERROR_BUSY: worth another try in a moment; also if the log is too large, and
 * readers keep it from being truncated. */
bool sqlite_write_begin(SqliteConnection *c, bool enforces, SqlError *error);

/* Makes the transaction durable, and truncates the log if it is too large. ERROR_BUSY: readers are in the way, the
 * transaction goes on. ERROR_COMMIT_REFUSED: deferred foreign keys are violated; it goes on, too. ERROR_OUTCOME_UNKNOWN: it
 * may exist (commit-point.h), and the connection must be closed. Any other error: it was rolled back. */
bool sqlite_write_commit(SqliteConnection *c, SqlError *error);

/* Of a pin. begin_temp() begins a transaction that changes only TEMP tables, as yet. upgrade() has it write the file, too:
 * ERROR_BUSY as for begin(), and sqlite_write_is_current() then tells if the transaction has read an old state, so that it
 * never can. commit_temp() commits one that changed only TEMP tables; on failure it is rolled back, or open with
 * COMMIT_REFUSED. */
bool sqlite_write_begin_temp(SqliteConnection *c, bool enforces, SqlError *error);
bool sqlite_write_upgrade(SqliteConnection *c, SqlError *error);
bool sqlite_write_commit_temp(SqliteConnection *c, SqlError *error);

/* Ends the transaction in which nothing was done yet, for one statement that SQLite runs in none: VACUUM, which
 * sqlite_write_alone() steps. `committing` is called before its commit point. The result is SQLite's. If its changes may
 * exist although it has failed, this is SQLITE_DONE, and sqlite_write_commit(), which must be next, says
 * ERROR_OUTCOME_UNKNOWN. */
bool sqlite_write_leave(SqliteConnection *c, EngineCommitting committing, void *userdata, SqlError *error);
int sqlite_write_alone(SqliteConnection *c, sqlite3_stmt *stmt);

/* Takes the transaction back. Without one it does nothing. */
void sqlite_write_rollback(SqliteConnection *c);

bool sqlite_write_is_in_transaction(const SqliteConnection *c);

/* Begins a savepoint; keeps what was done since then; or takes it back. Statements must be reset. */
bool sqlite_write_save(SqliteConnection *c, SqlError *error);
bool sqlite_write_keep(SqliteConnection *c, SqlError *error);
void sqlite_write_undo(SqliteConnection *c);

#endif
