/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sqlite-write.h. There is no busy handler: SQLite never waits, and the caller tries again by a timer.
 */
#include "daemon/worker/sqlite/sqlite-write.h"

#include <sqlite3.h>

#include "daemon/worker/sqlite/file-names.h"

static const char *const commands[WRITE_COMMAND_N] = {
        [WRITE_SNAPSHOT] = "BEGIN",
        [WRITE_BEGIN] = "BEGIN IMMEDIATE",
        [WRITE_COMMIT] = "COMMIT",
        [WRITE_ROLLBACK] = "ROLLBACK",
        [WRITE_SAVE] = "SAVEPOINT statement",
        [WRITE_KEEP] = "RELEASE statement",
        [WRITE_UNDO] = "ROLLBACK TO statement",
};

/* A client's SQL must not contain any of the commands, so the authorizer must know whose SQL this is. */
static int compile(SqliteConnection *c, WriteCommand command) {
        bool ours = c->access.ours;
        int rc;

        c->access.ours = true;
        rc = sqlite3_prepare_v3(c->file, commands[command], -1, SQLITE_PREPARE_PERSISTENT, &c->commands[command], NULL);
        c->access.ours = ours;
        return rc;
}

/* Executes a command, compiled once for each connection. It is not interrupted: SQLite would call COMMIT interrupted after
 * it has committed. Returns an SQLite result code. */
static int execute(SqliteConnection *c, WriteCommand command) {
        sqlite3_stmt **stmt = &c->commands[command];
        int rc = SQLITE_OK;

        sqlite_connection_let_go(c); /* the look at the schema before a compile */
        if (!*stmt)
                rc = compile(c, command);
        if (rc != SQLITE_OK)
                return rc;
        sqlite_connection_set_progress(c, false);
        (void) sqlite3_step(*stmt);
        sqlite_connection_set_progress(c, true);
        return sqlite3_reset(*stmt);
}

/* BEGIN alone reads nothing, so the snapshot would be that of the first statement. */
bool sqlite_write_snapshot(SqliteConnection *c, SqlError *error) {
        int rc;

        if (c->exposed)
                return true;
        rc = execute(c, WRITE_SNAPSHOT);
        if (rc != SQLITE_OK)
                return sqlite_connection_fail(c, rc, 0, error);
        sqlite_connection_hold(c);
        if (c->held)
                return true;
        (void) sqlite_connection_fail(c, sqlite3_extended_errcode(c->file), 0, error);
        sqlite_write_rollback(c);
        return false;
}

bool sqlite_write_begin(SqliteConnection *c, SqlError *error) {
        int rc;

        (void) file_names_disk_was_full(); /* a checkpoint may have met a full disk, which was no error */
        rc = execute(c, WRITE_BEGIN);
        return rc == SQLITE_OK || sqlite_connection_fail(c, rc, 0, error);
}

/* A reader that stays keeps SQLite from starting the log again from its beginning. If one is there now, a later commit tries
 * again. */
static void bound_log(SqliteConnection *c) {
        sqlite3_file *log;
        sqlite3_int64 size;

        if (sqlite3_file_control(c->file, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log->pMethods &&
            log->pMethods->xFileSize(log, &size) == SQLITE_OK && (uint64_t) size > c->setup->wal_size_max)
                (void) sqlite3_wal_checkpoint_v2(c->file, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

bool sqlite_write_commit(SqliteConnection *c, SqlError *error) {
        int rc = execute(c, WRITE_COMMIT);

        if (rc == SQLITE_OK) {
                bound_log(c);
                return true;
        }
        (void) sqlite_connection_fail(c, rc, 0, error);
        if ((rc & 0xff) != SQLITE_BUSY)
                sqlite_write_rollback(c);
        return false;
}

void sqlite_write_rollback(SqliteConnection *c) {
        if (sqlite_write_is_in_transaction(c) && execute(c, WRITE_ROLLBACK) != SQLITE_OK)
                c->doubtful = true; /* closing it takes the transaction back */
}

bool sqlite_write_is_in_transaction(const SqliteConnection *c) {
        return !sqlite3_get_autocommit(c->file);
}

bool sqlite_write_save(SqliteConnection *c, SqlError *error) {
        int rc = execute(c, WRITE_SAVE);

        if (rc != SQLITE_OK)
                return sqlite_connection_fail(c, rc, 0, error);
        sqlite3_set_last_insert_rowid(c->file, 0); /* otherwise a statement that inserts nothing reports that of another */
        return true;
}

bool sqlite_write_keep(SqliteConnection *c, SqlError *error) {
        int rc = execute(c, WRITE_KEEP);

        return rc == SQLITE_OK || sqlite_connection_fail(c, rc, 0, error);
}

/* If the savepoint cannot be taken back, the whole transaction must be. */
void sqlite_write_undo(SqliteConnection *c) {
        if (sqlite_write_is_in_transaction(c) &&
            (execute(c, WRITE_UNDO) != SQLITE_OK || execute(c, WRITE_KEEP) != SQLITE_OK))
                sqlite_write_rollback(c);
}
