/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sqlite-write.h. There is no busy handler but that of VACUUM: SQLite does not wait, and the caller tries
 * again by a timer.
 */
#include "daemon/worker/sqlite/sqlite-write.h"

#include <sqlite3.h>
#include <time.h>

#include "daemon/worker/core/monotonic.h"
#include "daemon/worker/sqlite/dumped-table.h"
#include "daemon/worker/sqlite/file-names.h"
#include "daemon/worker/sqlite/vfs.h"

/* So often, and so long each time, VACUUM waits for readers. */
#define ALONE_WAITS_MAX 20
#define ALONE_WAIT_NSEC 1000000
#define LOCK_PENDING 3 /* as SQLITE_FCNTL_LOCKSTATE says it: os.h of SQLite */

static const char *const commands[WRITE_COMMAND_N] = {
        [WRITE_SNAPSHOT] = "BEGIN",
        [WRITE_BEGIN] = "BEGIN IMMEDIATE",
        [WRITE_COMMIT] = "COMMIT",
        [WRITE_ROLLBACK] = "ROLLBACK",
        [WRITE_SAVE] = "SAVEPOINT statement",
        [WRITE_SAVE_AGAIN] = "SAVEPOINT again",
        [WRITE_KEEP] = "RELEASE statement",
        [WRITE_UNDO] = "ROLLBACK TO statement",
};

/* Executes a command, compiled once for each connection. It is not interrupted: SQLite would call COMMIT interrupted after
 * it has committed. Returns an SQLite result code. */
static int execute(SqliteConnection *c, WriteCommand command) {
        sqlite3_stmt **stmt = &c->commands[command];
        int rc = SQLITE_OK;

        sqlite_connection_let_go(c); /* the look at the schema before a compile */
        if (!*stmt)
                rc = sqlite3_prepare_v3(c->file, commands[command], -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL);
        if (rc != SQLITE_OK)
                return rc;
        sqlite_connection_set_progress(c, false);
        (void) sqlite3_step(*stmt);
        sqlite_connection_set_progress(c, true);
        return sqlite3_reset(*stmt);
}

/* In rollback mode the lock of the snapshot keeps the file as it is. In WAL mode commits go on, and one of them may have
 * come before the snapshot, but after `before` was read: then the snapshot seems older than it is. */
static void note_snapshot(SqliteConnection *c, const FileState *before) {
        c->snapshot = (FileState) {};
        sqlite_connection_state(c, &c->snapshot);
        if (c->snapshot.kind == FILE_STATE_WAL)
                c->snapshot = *before;
}

bool sqlite_write_is_current(const SqliteConnection *c, SqlError *error) {
        FileState now = {};

        sqlite_connection_state(c, &now);
        if (c->is_pin ? !c->outpaced : file_state_same(&c->snapshot, &now))
                return true;
        (void) sql_error_set(error, ERROR_BUSY,
                             "the database is locked: it has changed since this transaction has read it. Roll the "
                             "transaction back and repeat it, or begin it with BEGIN IMMEDIATE");
        error->extended_code = SQLITE_BUSY_SNAPSHOT;
        return false;
}

/* BEGIN alone reads nothing, so the snapshot would be that of the first statement. */
bool sqlite_write_snapshot(SqliteConnection *c, SqlError *error) {
        FileState before = {};
        int rc;

        if (c->exposed)
                return true;
        sqlite_connection_state(c, &before);
        rc = execute(c, WRITE_SNAPSHOT);
        if (rc != SQLITE_OK)
                return sqlite_connection_fail(c, rc, 0, error);
        c->begun = true;
        sqlite_connection_hold(c);
        note_snapshot(c, &before);
        if (c->held || sqlite3_txn_state(c->file, "main") == SQLITE_TXN_READ) /* a schema may be empty */
                return true;
        (void) sqlite_connection_fail(c, sqlite3_extended_errcode(c->file), 0, error);
        sqlite_write_rollback(c);
        return false;
}

/* ---- the log ---- */

/* 0: there is no log. */
static uint64_t log_size(const SqliteConnection *c) {
        sqlite3_file *log;
        sqlite3_int64 size;

        if (sqlite3_file_control(c->file, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) != SQLITE_OK || !log->pMethods ||
            log->pMethods->xFileSize(log, &size) != SQLITE_OK)
                return 0;
        return (uint64_t) size;
}

/* Truncates the log if it is larger than `max`. False: readers are in the way. */
static bool bound_log(SqliteConnection *c, uint64_t max) {
        int rc;

        if (log_size(c) <= max)
                return true;
        rc = sqlite3_wal_checkpoint_v2(c->file, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        if (rc == SQLITE_OK)
                c->log_size_borne = 0;
        return (rc & 0xff) != SQLITE_BUSY;
}

/* SQLite starts the log again only at a moment without readers of it. If they overlap, there is none, and the log grows
 * for ever. A new reader does not use a log that is written back as a whole. So if nothing is written for as long as the
 * longest of them takes, the moment comes. The pause ends before BusyTimeoutSec= has passed. If readers stay for longer, the
 * next pause is made when the log has grown as much again. */
static bool pauses_for_log(SqliteConnection *c) {
        uint64_t max = c->setup->wal_size_max, now;

        if (bound_log(c, c->log_size_borne > 0 ? c->log_size_borne : max)) {
                c->log_until_usec = 0;
                return false;
        }
        now = now_usec();
        if (c->log_until_usec == 0)
                c->log_until_usec = now + c->setup->busy_usec / 2;
        if (now < c->log_until_usec)
                return true;
        c->log_size_borne = log_size(c) + max;
        c->log_until_usec = 0;
        return false;
}

/* ---- transactions ---- */

/* The setting is that of the transaction's client, and each transaction begins with its own, so that no statement meets that
 * of another client. SQLite compiles statements again if it changes. */
static int begin(SqliteConnection *c, WriteCommand command, bool enforces) {
        int rc = sqlite3_db_config(c->file, SQLITE_DBCONFIG_ENABLE_FKEY, enforces, NULL);

        if (rc == SQLITE_OK)
                rc = execute(c, command);
        c->begun = rc == SQLITE_OK;
        c->outpaced = c->is_alone = false;
        return rc;
}

bool sqlite_write_begin(SqliteConnection *c, bool enforces, SqlError *error) {
        int rc;

        dumped_tables_forget(c);
        (void) file_names_disk_was_full(); /* a checkpoint may have met a full disk, which was no error */
        if (pauses_for_log(c))
                return sql_error_set(error, ERROR_BUSY, "readers keep the log from being truncated");
        rc = begin(c, WRITE_BEGIN, enforces);
        if (rc != SQLITE_OK)
                return sqlite_connection_fail(c, rc, 0, error);
        commit_point_begin(&c->place.commit);
        return true;
}

bool sqlite_write_begin_temp(SqliteConnection *c, bool enforces, SqlError *error) {
        int rc = begin(c, WRITE_SNAPSHOT, enforces);

        return rc == SQLITE_OK || sqlite_connection_fail(c, rc, 0, error);
}

/* SQLite takes the lock of a writer for a statement that writes. This one is taken back, and the lock stays. */
bool sqlite_write_upgrade(SqliteConnection *c, SqlError *error) {
        static const char take[] = "PRAGMA main.user_version = 0", leave[] = "ROLLBACK TO lock; RELEASE lock";
        int rc, left = SQLITE_OK;
        bool has_savepoint;

        if (pauses_for_log(c))
                return sql_error_set(error, ERROR_BUSY, "readers keep the log from being truncated");
        sqlite_connection_let_go(c);
        access_pause(c->file, &c->access, true);
        sqlite_connection_set_progress(c, false);
        rc = sqlite3_exec(c->file, "SAVEPOINT lock", NULL, NULL, NULL);
        has_savepoint = rc == SQLITE_OK;
        if (has_savepoint)
                rc = sqlite3_exec(c->file, take, NULL, NULL, NULL);
        if (rc != SQLITE_OK)
                (void) sqlite_connection_fail(c, rc, 0, error);
        if (has_savepoint) /* or else the client's may have this name */
                left = sqlite3_exec(c->file, leave, NULL, NULL, NULL);
        sqlite_connection_set_progress(c, true);
        access_pause(c->file, &c->access, false);
        c->outpaced = rc == SQLITE_BUSY_SNAPSHOT;
        if (rc == SQLITE_OK && left != SQLITE_OK)
                (void) sqlite_connection_fail(c, left, 0, error);
        if (left != SQLITE_OK)
                sqlite_write_rollback(c);
        if (rc != SQLITE_OK || left != SQLITE_OK)
                return false;
        commit_point_begin(&c->place.commit);
        return true;
}

/* SQLite looks for violated keys before it writes anything, so the transaction is as it was. But if tables of a dump were
 * checked before, no part of it may be taken back after that (dumped_tables_check()), so it ends. */
static bool refuses(const SqliteConnection *c, int rc) {
        return rc == SQLITE_CONSTRAINT_FOREIGNKEY && !c->doubtful && sqlite_write_is_in_transaction(c);
}

/* If the worker has erred about the changes of a statement, this is an error, and no commit that others do not notice. */
bool sqlite_write_commit_temp(SqliteConnection *c, SqlError *error) {
        int rc;

        if (sqlite3_txn_state(c->file, "main") == SQLITE_TXN_WRITE) {
                sqlite_write_rollback(c);
                return sql_error_set(error, ERROR_INTERNAL, "the transaction changed the file, which it should not: nothing "
                                                            "was written");
        }
        rc = execute(c, WRITE_COMMIT);
        c->begun = rc != SQLITE_OK;
        if (rc == SQLITE_OK)
                return true;
        (void) sqlite_connection_fail(c, rc, 0, error);
        if (refuses(c, rc))
                error->error = ERROR_COMMIT_REFUSED;
        else
                sqlite_write_rollback(c);
        return false;
}

/* In WAL mode the transaction exists once the log is recovered, unless another one is written before. The connection must
 * be closed: it takes the commit before this one for the last. */
static bool fail_unknown(SqliteConnection *c, int rc, SqlError *error) {
        c->doubtful = true;
        sqlite_write_rollback(c);
        (void) sql_error_set(error, ERROR_OUTCOME_UNKNOWN,
                             "the end of the commit failed (%s), so it is not known if the changes were written: look "
                             "before you repeat them", sqlite3_errstr(rc));
        error->extended_code = rc;
        return false;
}

/* In WAL mode SQLite commits the file, and only then writes pages of TEMP tables, which may exceed a limit. So these are
 * written before. Pages of the file go to the log, too, as when a transaction is larger than the cache: without the mark of
 * a commit no reader sees them. */
static bool write_temporary(SqliteConnection *c, SqlError *error) {
        FileState now = {};
        int rc;

        if (!c->is_pin || sqlite3_txn_state(c->file, "temp") != SQLITE_TXN_WRITE)
                return true;
        sqlite_connection_state(c, &now);
        if (now.kind != FILE_STATE_WAL)
                return true;
        rc = sqlite3_db_cacheflush(c->file);
        return rc == SQLITE_OK || sqlite_connection_fail(c, rc, 0, error);
}

bool sqlite_write_commit(SqliteConnection *c, SqlError *error) {
        int rc;

        if (c->is_alone) {
                c->is_alone = false;
                if (c->late_rc != SQLITE_OK)
                        return fail_unknown(c, c->late_rc, error);
                (void) bound_log(c, c->setup->wal_size_max);
                return true;
        }
        if (!dumped_tables_check(c, error) || !write_temporary(c, error)) {
                sqlite_write_rollback(c);
                return false;
        }
        commit_point_expect(&c->place.commit);
        rc = execute(c, WRITE_COMMIT);
        if (rc == SQLITE_OK) {
                c->begun = false;
                (void) commit_point_was_passed(&c->place.commit);
                (void) bound_log(c, c->setup->wal_size_max); /* if readers are in the way, the next transaction waits */
                return true;
        }
        (void) sqlite_connection_fail(c, rc, 0, error);
        if (commit_point_was_passed(&c->place.commit))
                return fail_unknown(c, rc, error);
        if (refuses(c, rc))
                error->error = ERROR_COMMIT_REFUSED;
        else if ((rc & 0xff) != SQLITE_BUSY)
                sqlite_write_rollback(c);
        return false;
}

bool sqlite_write_leave(SqliteConnection *c, EngineCommitting committing, void *userdata, SqlError *error) {
        int rc = execute(c, WRITE_ROLLBACK);

        if (rc != SQLITE_OK)
                return sqlite_connection_fail(c, rc, 0, error);
        c->begun = false;
        c->is_alone = true;
        c->committing = committing;
        c->committing_userdata = userdata;
        c->late_rc = SQLITE_OK;
        return true;
}

/* In rollback mode VACUUM begins with the lock against readers. While this waits, SQLite keeps new readers of other
 * processes out; otherwise those that overlap would keep VACUUM out for ever. Those of this worker cannot go on. */
static int wait_for_readers(void *userdata, int n_waits) {
        const struct timespec pause = { .tv_nsec = ALONE_WAIT_NSEC };
        SqliteConnection *c = userdata;
        int level;

        if (n_waits >= ALONE_WAITS_MAX || reader_lock_others_hold(c->lock) || c->progress(c->userdata) != 0 ||
            sqlite3_file_control(c->file, "main", SQLITE_FCNTL_LOCKSTATE, &level) != SQLITE_OK || level != LOCK_PENDING)
                return 0;
        (void) nanosleep(&pause, NULL);
        return 1;
}

/* SQLite commits the temporary database, too, after it has copied it back. For that it writes the pages that were only in
 * memory until then, and a lack of room for them must not make the outcome unknown. */
static bool may_commit_alone(void *userdata) {
        const SqliteConnection *c = userdata;

        if (!c->committing(c->committing_userdata))
                return false;
        vfs_end_temp_writes();
        return true;
}

/* SQLite attaches a temporary database, for which there is room only now, and commits the copy of it. It takes care of
 * changes(), but to copy the tables of FTS sets last_insert_rowid(). */
int sqlite_write_alone(SqliteConnection *c, sqlite3_stmt *stmt) {
        const int64_t last_rowid = sqlite3_last_insert_rowid(c->file);
        const int n_attached_max = sqlite3_limit(c->file, SQLITE_LIMIT_ATTACHED, -1);
        int rc;

        if (!c->is_alone)
                return SQLITE_MISUSE;
        sqlite_connection_let_go(c);
        commit_point_expect(&c->place.commit);
        c->place.commit.may_commit = may_commit_alone;
        c->place.commit.userdata = c;
        vfs_set_temp_progress(c->progress, c->userdata); /* SQLite calls none while it copies the temporary database back */
        c->access.may_attach = true;
        (void) sqlite3_limit(c->file, SQLITE_LIMIT_ATTACHED, n_attached_max > 0 ? n_attached_max : 1);
        (void) sqlite3_busy_handler(c->file, wait_for_readers, c);
        rc = access_step(&c->access, stmt);
        (void) sqlite3_busy_handler(c->file, NULL, NULL);
        (void) sqlite3_limit(c->file, SQLITE_LIMIT_ATTACHED, n_attached_max);
        c->access.may_attach = false;
        vfs_set_temp_progress(NULL, NULL);
        c->place.commit.may_commit = NULL;
        sqlite3_set_last_insert_rowid(c->file, last_rowid);
        if (commit_point_was_passed(&c->place.commit) && rc != SQLITE_DONE) {
                c->late_rc = rc;
                return SQLITE_DONE;
        }
        return rc;
}

/* A commit point that was refused leaves a journal, which readers that may not write cannot play back.
 * ROLLBACK may lack the memory to be compiled. Then the transaction must not be used, and least of all committed: it still
 * has what a statement wrote before it failed. */
void sqlite_write_rollback(SqliteConnection *c) {
        bool was_alone = c->is_alone;

        c->begun = c->is_alone = false;
        if (was_alone)
                sqlite_connection_look(c);
        if (sqlite_write_is_in_transaction(c) && execute(c, WRITE_ROLLBACK) != SQLITE_OK)
                c->doubtful = c->is_stuck = true; /* closing it takes the transaction back */
}

bool sqlite_write_is_in_transaction(const SqliteConnection *c) {
        return !c->is_stuck && !sqlite3_get_autocommit(c->file);
}

/* FTS5 of SQLite 3.46 writes the words that it has collected only when the outer one of two savepoints ends. */
static int save(SqliteConnection *c) {
        int rc = execute(c, WRITE_SAVE);

        if (rc == SQLITE_OK && sqlite3_libversion_number() > 3040001) {
                rc = execute(c, WRITE_SAVE_AGAIN);
                if (rc != SQLITE_OK)
                        (void) execute(c, WRITE_KEEP);
        }
        return rc;
}

/* Rows that FTS5 writes when a savepoint begins or ends count for total_changes(), and not for changes(). */
static int execute_savepoint(SqliteConnection *c, WriteCommand command) {
        ClientCounts before = sqlite_counts_leave(&c->counts), after;
        int rc = command == WRITE_SAVE ? save(c) : execute(c, command);

        after = sqlite_counts_leave(&c->counts);
        if (after.n_total != before.n_total) {
                after.n_changes = before.n_changes;
                sqlite_counts_enter(&c->counts, &after);
        }
        return rc;
}

bool sqlite_write_save(SqliteConnection *c, SqlError *error) {
        int rc = execute_savepoint(c, WRITE_SAVE);

        return rc == SQLITE_OK || sqlite_connection_fail(c, rc, 0, error);
}

bool sqlite_write_keep(SqliteConnection *c, SqlError *error) {
        int rc = execute_savepoint(c, WRITE_KEEP);

        return rc == SQLITE_OK || sqlite_connection_fail(c, rc, 0, error);
}

/* If the savepoint cannot be taken back, the whole transaction must be. */
void sqlite_write_undo(SqliteConnection *c) {
        if (sqlite_write_is_in_transaction(c) &&
            (execute_savepoint(c, WRITE_UNDO) != SQLITE_OK || execute_savepoint(c, WRITE_KEEP) != SQLITE_OK))
                sqlite_write_rollback(c);
}
