/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See sqlite-connection.h.
 */
#include "daemon/worker/sqlite/sqlite-connection.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/worker/sqlite/database-state.h"
#include "daemon/worker/sqlite/sqlite-error.h"
#include "daemon/worker/sqlite/vfs.h"

#define PROGRESS_OPCODES 1000
/* Limits the memory of one stalled reader: with the default of 2 MiB, 200 of them took 412 MiB. */
#define CACHE_SETTINGS "PRAGMA cache_size = -256; PRAGMA mmap_size = 0"
/* A transaction that fits in here is written once, and in rollback mode keeps readers out only during its commit. */
#define CACHE_SETTINGS_TO_WRITE "PRAGMA cache_size = -2000; PRAGMA mmap_size = 0"
#define CHECKPOINT_PAGES 1000
#define PROBE "SELECT 1 FROM sqlite_schema LIMIT 1"

static FileIdentity identity_of(const struct stat *st) {
        return (FileIdentity) { .device = st->st_dev, .inode = st->st_ino };
}

bool sqlite_connection_identify(const Setup *setup, FileIdentity *ret, SqlError *error) {
        struct stat st;

        if (fstatat(AT_FDCWD, setup->path, &st, 0) < 0)
                return path_fail(errno, error);
        if (!path_check_kind(&st, error))
                return false;
        *ret = identity_of(&st);
        return true;
}

static const FilePlace *place_of_error(const SqliteConnection *c) {
        return c->about ?: &c->place;
}

static bool readable(const SqliteConnection *c, const char *suffix) {
        return file_place_readable(place_of_error(c), suffix);
}

/* The database is in WAL mode, and cannot be read with the files beside it. */
static void set_needs_owner(const SqliteConnection *c, SqlError *error) {
        if (place_of_error(c)->own)
                (void) sql_error_set(
                        error, ERROR_NEEDS_OWNER,
                        "the service can neither open nor create the \"-wal\" and \"-shm\" files of this WAL database. Let "
                        "its user write to the folder, or set Immutable=yes if the database never changes.");
        else if (readable(c, "-wal") && readable(c, "-shm"))
                (void) sql_error_set(
                        error, ERROR_NEEDS_OWNER,
                        "the \"-shm\" file of this WAL database is in a state that only a writer can repair. Open the "
                        "database once with a program that may write to it.");
        else
                (void) sql_error_set(
                        error, ERROR_NEEDS_OWNER,
                        "the database is in WAL mode and its %s cannot be read by the service. Keep a program open that "
                        "writes to it, with \"-wal\" and \"-shm\" readable, or set Immutable=yes if it never changes.",
                        readable(c, "-wal") ? "\"-shm\" file" : "\"-wal\" file");
}

static void set_read_only(const SqliteConnection *c, SqlError *error) {
        (void) sql_error_set(
                error, ERROR_READ_ONLY,
                "the service sees the file system of this database read-only%s: mount it read-write, or let the service "
                "write there, which \"sqlipcctl check\" explains",
                c->writes ? "" : ", and in WAL mode it cannot even read without files beside it");
}

/* Sets the error for trouble with a file for which SQLite has no code. False: there was no trouble. */
static bool set_trouble(const SqliteConnection *c, FileTrouble trouble, SqlError *error) {
        switch (trouble) {
        case FILE_TROUBLE_IRREGULAR:
                (void) sql_error_set(error, ERROR_CANNOT_OPEN,
                                     "the database file, or its \"-wal\", \"-shm\" or \"-journal\", is not a regular file "
                                     "(but a FIFO or a link, for example): its owner must remove it");
                return true;
        case FILE_TROUBLE_LEASED:
                (void) sql_error_set(error, ERROR_BUSY, "another program has a lease on a file of this database: try again");
                return true;
        case FILE_TROUBLE_REPLACED:
                (void) sql_error_set(error, ERROR_BUSY, "the file of this database was just replaced: try again");
                return true;
        case FILE_TROUBLE_READ_ONLY:
                if (c->setup->writes) /* others could not write anyway */
                        set_read_only(c, error);
                return c->setup->writes;
        case FILE_TROUBLE_TOO_LARGE:
                (void) sql_error_set(error, ERROR_NO_SPACE,
                                     "a file may not grow any more, because of LimitFSIZE= of the service or the limit of "
                                     "its file system, so nothing was written");
                return true;
        case FILE_TROUBLE_NONE:
                return false;
        }
        return false;
}

/* SQLite returns CANTOPEN for the database, for files beside it, and for temporary files alike. */
static void explain_cannot_open(const SqliteConnection *c, bool temporary, SqlError *error) {
        FileIdentity now;

        if (temporary)
                (void) sql_error_set(
                        error, ERROR_INPUT_OUTPUT,
                        "the query needs a temporary file, which the service cannot create: sort or group less at a time, "
                        "or let the service's user write to /var/tmp");
        else if (!c->about && !sqlite_connection_identify(c->setup, &now, error))
                return;
        else if (!readable(c, ""))
                (void) sql_error_set(error, ERROR_CANNOT_OPEN,
                                     "the service may not read the file of this database: give its user read access");
        else if (c->opened) /* it was another file that SQLite could not open */
                set_needs_owner(c, error);
        else
                (void) sql_error_set(error, ERROR_CANNOT_OPEN, "the file of this database cannot be opened: %s",
                                     strerror(sqlite3_system_errno(c->file) ?: EIO));
}

/* True if a table with AUTOINCREMENT has had the largest rowid. The query is not the client's, so the authorizer's notes of
 * it are taken back. */
static bool rowids_are_used_up(SqliteConnection *c) {
        const Access access = c->access;
        sqlite3_stmt *stmt;
        bool used_up;

        c->access.tables = NULL;
        used_up = sqlite3_prepare_v2(c->file, "SELECT 1 FROM main.sqlite_sequence WHERE seq = 9223372036854775807", -1,
                                     &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW;
        (void) sqlite3_finalize(stmt);
        c->access = access;
        return used_up;
}

/* SQLite returns FULL for temporary files, for the database and the files beside it, for a database that has reached its
 * largest size, and for a table with AUTOINCREMENT that has reached its largest rowid. */
static void explain_no_space(SqliteConnection *c, bool limit_hit, bool temporary, bool disk_full, SqlError *error) {
        if (c->is_alone && (limit_hit || temporary))
                (void) sql_error_set(
                        error, limit_hit ? ERROR_LIMITS_EXCEEDED : ERROR_NO_SPACE,
                        "VACUUM makes a copy of the database in temporary files, %s, so nothing was written: "
                        "\"sqlipcctl vacuum\" is another way",
                        limit_hit ? "which TempSizeMax= does not allow for one of this size"
                                  : "and the disk that they go to is full");
        else if (limit_hit)
                (void) sql_error_set(
                        error, ERROR_LIMITS_EXCEEDED,
                        "the %s fills more temporary space than TempSizeMax= allows%s",
                        c->writes ? "statement" : "query",
                        c->writes ? ", in which SQLite keeps what is replaced or deleted: change fewer rows at a time"
                                  : ": sort or group less at a time");
        else if (temporary || (!c->writes && !disk_full))
                (void) sql_error_set(
                        error, ERROR_NO_SPACE,
                        "the disk that temporary files go to is full: free some of it, or sort or group less at a time");
        else if (!disk_full && rowids_are_used_up(c))
                (void) sql_error_set(
                        error, ERROR_LIMITS_EXCEEDED,
                        "AUTOINCREMENT has no rowid left for this table, which has had the largest one, so nothing was "
                        "written: give new rows a rowid that is free%s",
                        c->setup->database_size_max == UINT64_MAX
                                        ? ""
                                        : "; or else the database has reached DatabaseSizeMax=");
        else if (disk_full || c->setup->database_size_max == UINT64_MAX)
                (void) sql_error_set(
                        error, ERROR_NO_SPACE,
                        "the disk of this database is full%s: free some of it",
                        c->writes ? ", so nothing was written" : ", and has no room for the files beside it");
        else
                (void) sql_error_set(
                        error, ERROR_LIMITS_EXCEEDED,
                        "the database has reached the %llu bytes of DatabaseSizeMax=, so nothing was written: delete some "
                        "of its rows", (unsigned long long) c->setup->database_size_max);
}

/* SQLite takes a journal that it cannot open for a hot one, so all of these may be about opening files. */
static bool is_about_files(ErrorNumber error) {
        return error == ERROR_NEEDS_RECOVERY || error == ERROR_NEEDS_OWNER || error == ERROR_CANNOT_OPEN;
}

/* A file beside the database had no room, or the disk had none when a file was synced. A checkpoint may meet a full disk,
 * too, which is no error. */
static bool is_full(const SqlError *error, bool disk_full) {
        return error->error == ERROR_NO_SPACE ||
                (disk_full && (is_about_files(error->error) || error->extended_code == SQLITE_IOERR_SHMSIZE ||
                               error->extended_code == SQLITE_IOERR_FSYNC));
}

static bool is_trouble(const SqlError *error, FileTrouble trouble) {
        return is_about_files(error->error) ||
                (error->error == ERROR_INPUT_OUTPUT &&
                 (trouble == FILE_TROUBLE_READ_ONLY || trouble == FILE_TROUBLE_TOO_LARGE));
}

/* Sets the error for the failure `rc` of the connection `db`. */
static bool fail_on(SqliteConnection *c, sqlite3 *db, int rc, size_t offset_base, SqlError *error) {
        /* all of these are called in any case, because each call clears the state for the next failure */
        bool limit_hit = vfs_temp_limit_was_hit(), no_temporary = vfs_temp_open_failed();
        bool temporary_full = vfs_temp_disk_was_full(), disk_full = file_names_disk_was_full();
        FileTrouble trouble = file_names_trouble();
        int32_t code;

        /* a message of the file's own connection may name objects that are not exposed, so only its code is used */
        (void) sqlite_error_take(error, c->setup->n_exposed > 0 && db == c->file ? NULL : db, rc, offset_base);
        code = error->extended_code;
        c->doubtful = c->doubtful || error->error == ERROR_CORRUPT || error->error == ERROR_INPUT_OUTPUT ||
                trouble == FILE_TROUBLE_READ_ONLY || (c->writes && code == SQLITE_READONLY);
        if ((error->error == ERROR_NOT_ALLOWED || error->error == ERROR_SQL) && c->access.needs_pin)
                (void) sql_error_set(error, ERROR_NEEDS_PIN,
                                     "%s needs a connection of its client's own, for which a newer libsqlipc asks by "
                                     "itself; other clients begin a pin (Begin with the mode \"pin\")",
                                     c->access.refused);
        else if ((error->error == ERROR_NOT_ALLOWED || error->error == ERROR_SQL) && c->access.refused[0])
                (void) sql_error_set(error, ERROR_NOT_ALLOWED, "%s is not allowed: %s", c->access.refused, c->access.reason);
        else if (is_full(error, disk_full))
                explain_no_space(c, limit_hit, temporary_full, disk_full, error);
        else if (code == SQLITE_READONLY_DBMOVED)
                (void) set_trouble(c, FILE_TROUBLE_REPLACED, error);
        else if (is_trouble(error, trouble) && set_trouble(c, trouble, error))
                ;
        else if (code == SQLITE_READONLY && c->writes) /* the "-shm" was opened when it could not be written to */
                set_read_only(c, error);
        else if (error->error == ERROR_NEEDS_RECOVERY)
                (void) sql_error_set(
                        error, ERROR_NEEDS_RECOVERY,
                        "a writer died in the middle of a transaction and left a hot journal, which a reader must not roll "
                        "back: open the database once with a program that may write to it");
        else if (error->error == ERROR_NEEDS_OWNER)
                set_needs_owner(c, error);
        else if (error->error == ERROR_CANNOT_OPEN)
                explain_cannot_open(c, no_temporary, error);
        else if (error->error == ERROR_OUT_OF_MEMORY)
                (void) sql_error_set(
                        error, ERROR_OUT_OF_MEMORY,
                        "the statement is too large to compile, or needs more memory than HeapMax= allows its worker: make "
                        "it smaller");
        else
                return false;
        error->extended_code = code;
        return false;
}

bool sqlite_connection_fail(SqliteConnection *c, int rc, size_t offset_base, SqlError *error) {
        return fail_on(c, c->db, rc, offset_base, error);
}

static int run_silently(sqlite3 *db, const char *sql) {
        return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* Makes SQLite check the schema's number and the files beside the database. Returns an SQLite result code. */
static int probe(SqliteConnection *c) {
        (void) sqlite3_step(c->probe);
        return sqlite3_reset(c->probe);
}

/* Opens the connection for clients' SQL, from which the file is out of reach. */
static int put_before(SqliteConnection *c) {
        int rc = exposed_open(&c->exposed, c->file, c->setup, &c->db);

        if (rc == SQLITE_OK)
                rc = access_install(c->db, c->setup, &c->access);
        return rc == SQLITE_OK ? exposed_seal(c->exposed) : rc;
}

/* Sets the size that the database may have. This reads its page size, and so rolls back a hot journal. */
static int limit_size(SqliteConnection *c) {
        const uint64_t pages_max = UINT32_MAX - 1;
        uint64_t page_size, pages;
        sqlite3_stmt *stmt;
        char sql[64];
        int rc;

        if (c->setup->database_size_max == UINT64_MAX)
                return SQLITE_OK;
        rc = sqlite3_prepare_v2(c->file, "PRAGMA page_size", -1, &stmt, NULL);
        if (rc != SQLITE_OK)
                return rc;
        page_size = sqlite3_step(stmt) == SQLITE_ROW ? (uint64_t) sqlite3_column_int64(stmt, 0) : 1;
        rc = sqlite3_finalize(stmt);
        if (rc != SQLITE_OK)
                return rc;
        pages = c->setup->database_size_max / page_size;
        pages = pages == 0 ? 1 : pages > pages_max ? pages_max : pages; /* 0 would only ask for the limit */
        (void) snprintf(sql, sizeof sql, "PRAGMA max_page_count = %llu", (unsigned long long) pages);
        return run_silently(c->file, sql);
}

static int set_up_to_write(SqliteConnection *c) {
        int rc = run_silently(c->file, CACHE_SETTINGS_TO_WRITE);

        if (rc == SQLITE_OK)
                /* with FULL a deleted journal can come back after a power failure, and take the transaction back */
                rc = run_silently(c->file, c->setup->sync_full ? "PRAGMA synchronous = EXTRA"
                                                               : "PRAGMA synchronous = NORMAL");
        if (rc == SQLITE_OK)
                rc = limit_size(c);
        return rc == SQLITE_OK ? sqlite3_wal_autocheckpoint(c->file, CHECKPOINT_PAGES) : rc;
}

static int set_up(SqliteConnection *c) {
        int rc = c->writes ? set_up_to_write(c) : run_silently(c->file, CACHE_SETTINGS);

        c->access.no_modules = c->setup->n_exposed > 0;
        if (rc == SQLITE_OK)
                rc = access_install(c->file, c->setup, c->setup->n_exposed > 0 ? &c->file_access : &c->access);
        if (rc == SQLITE_OK)
                rc = sqlite3_prepare_v3(c->file, PROBE, -1, SQLITE_PREPARE_PERSISTENT, &c->probe, NULL);
        if (rc == SQLITE_OK)
                rc = probe(c);
        if (rc == SQLITE_OK && c->setup->n_exposed > 0)
                rc = put_before(c);
        else
                c->db = c->file;
        if (rc == SQLITE_OK)
                rc = sqlite_counts_install(&c->counts, c->file, c->db, &c->access, c->writes);
        /* the last writer leaves the database in one file, as SQLite does everywhere */
        if (rc == SQLITE_OK && c->writes)
                rc = sqlite3_db_config(c->file, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
        return rc;
}

/* Returns an SQLite result code. */
static int open_file(SqliteConnection *c, const char *name) {
        sqlite3_file *file;
        int rc;

        c->place.never_changes = c->setup->immutable;
        rc = sqlite3_open_v2(name, &c->file, (c->writes ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) |
                             SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW, VFS_NAME);
        c->opened = rc == SQLITE_OK;
        if (rc == SQLITE_OK)
                rc = sqlite3_file_control(c->file, "main", SQLITE_FCNTL_FILE_POINTER, &file);
        if (rc == SQLITE_OK)
                c->lock = reader_lock_of(file);
        return rc;
}

/* The database and the files beside it were opened one after the other. They belong together only if the same file is still
 * at the path. */
static bool check_not_replaced(const SqliteConnection *c, SqlError *error) {
        FileIdentity now;

        if (!sqlite_connection_identify(c->setup, &now, error))
                return false;
        return file_identity_equal(&now, &c->identity) || !set_trouble(c, FILE_TROUBLE_REPLACED, error);
}

void sqlite_connection_set_progress(SqliteConnection *c, bool on) {
        sqlite3_progress_handler(c->file, PROGRESS_OPCODES, on ? c->progress : NULL, c->userdata);
        if (c->db != c->file)
                sqlite3_progress_handler(c->db, PROGRESS_OPCODES, on ? c->progress : NULL, c->userdata);
}

/* Opens the file at c->place. False: with an error. */
static bool open_place(SqliteConnection *c, const char *name, SqlError *error) {
        int rc;

        if (c->writes && !file_place_may_be_written(&c->place))
                return sql_error_set(error, ERROR_READ_ONLY,
                                     "the service can only write to a database if its user owns the file and the folder "
                                     "that it is in: change their owner, or have \"sqlipcctl create\" make the database");
        c->place.writes = c->writes;
        rc = open_file(c, name);
        if (rc == SQLITE_OK && c->writes && sqlite3_db_readonly(c->file, "main"))
                return set_trouble(c, file_names_trouble(), error)
                        ? false
                        : sql_error_set(error, ERROR_READ_ONLY,
                                        "the service may not write to the file of this database: give its owner, the "
                                        "service's user, write permission");
        if (rc == SQLITE_OK)
                rc = set_up(c);
        return rc == SQLITE_OK ? check_not_replaced(c, error) : fail_on(c, c->file, rc, 0, error);
}

static bool open_as(SqliteConnection *c, bool writes, const Setup *setup, EngineProgress progress, void *userdata,
                    SqlError *error) {
        char name[FILE_NAME_SIZE];
        FoundFile found;

        *c = (SqliteConnection) { .setup = setup, .progress = progress, .userdata = userdata, .writes = writes };
        if (!path_resolve(setup->path, &found, error))
                return false;
        c->identity = identity_of(&found.st);
        file_place_add(&c->place, found, name);
        (void) file_names_disk_was_full();
        if (!open_place(c, name, error)) {
                sqlite_connection_close(c);
                return false;
        }
        sqlite_connection_set_progress(c, true);
        (void) file_names_trouble(); /* if there was trouble, SQLite has recovered from it */
        return true;
}

bool sqlite_connection_open(SqliteConnection *c, const Setup *setup, EngineProgress progress, void *userdata,
                            SqlError *error) {
        return open_as(c, false, setup, progress, userdata, error) ||
                (sqlite_connection_recover(setup, error) && open_as(c, false, setup, progress, userdata, error));
}

bool sqlite_connection_open_to_write(SqliteConnection *c, const Setup *setup, EngineProgress progress, void *userdata,
                                     SqlError *error) {
        return open_as(c, true, setup, progress, userdata, error);
}

bool sqlite_connection_open_unread(SqliteConnection *c, const Setup *setup, SqlError *error) {
        char name[FILE_NAME_SIZE];
        FoundFile found;
        bool ok;

        *c = (SqliteConnection) { .setup = setup };
        if (!path_resolve(setup->path, &found, error))
                return false;
        c->identity = identity_of(&found.st);
        file_place_add(&c->place, found, name);
        ok = open_file(c, name) == SQLITE_OK && check_not_replaced(c, error);
        if (!ok)
                sqlite_connection_close(c);
        return ok;
}

bool sqlite_connection_complete(SqliteConnection *c, SqlError *error) {
        int rc = set_up(c);

        return rc == SQLITE_OK || fail_on(c, c->file, rc, 0, error);
}

bool sqlite_connection_recover(const Setup *setup, SqlError *error) {
        SqlError why = SQL_ERROR_INIT;
        SqliteConnection c;
        bool ok;

        if (error->extended_code != SQLITE_READONLY_ROLLBACK || !setup->writes || setup->n_exposed > 0)
                return false;
        ok = open_as(&c, true, setup, NULL, NULL, &why);
        if (ok)
                sqlite_connection_close(&c);
        if (ok || why.error == ERROR_BUSY) {
                sql_error_done(error);
                *error = why;
                why = SQL_ERROR_INIT;
        }
        sql_error_done(&why);
        return ok;
}

void sqlite_connection_close(SqliteConnection *c) {
        for (size_t i = 0; i < WRITE_COMMAND_N; i++)
                (void) sqlite3_finalize(c->commands[i]);
        (void) sqlite3_finalize(c->probe);
        dumped_tables_forget(c);
        sqlite_counts_done(&c->counts);
        c->exposed = exposed_close(c->exposed);
        (void) sqlite3_close(c->file);
        attached_done(&c->attached);
        file_place_remove(&c->place);
        *c = (SqliteConnection) {};
}

SqliteBegin sqlite_connection_begin(SqliteConnection *c, SqlError *error) {
        int rc = c->exposed ? exposed_begin(c->exposed) : SQLITE_OK;

        if (rc == SQLITE_OK)
                return SQLITE_CONNECTION_BEGUN;
        if (rc == SQLITE_SCHEMA)
                return SQLITE_CONNECTION_STALE;
        (void) fail_on(c, c->file, rc, 0, error);
        return SQLITE_CONNECTION_FAILED;
}

void sqlite_connection_hold(SqliteConnection *c) {
        if (c->exposed || c->held) /* an exposed connection has a transaction already, and has checked the schema */
                return;
        c->held = sqlite3_step(c->probe) == SQLITE_ROW;
        c->probe_rc = c->held ? SQLITE_OK : sqlite3_reset(c->probe);
        /* a schema may be empty; and the progress handler may interrupt this, which says nothing about the file */
        c->unseen = (c->probe_rc & 0xff) == SQLITE_BUSY;
        c->n_schemas += (unsigned) sqlite3_stmt_status(c->probe, SQLITE_STMTSTATUS_REPREPARE, 1);
}

bool sqlite_connection_may_step(SqliteConnection *c, SqlError *error) {
        if ((c->is_pin ? !c->begun : !c->writes) || !sqlite3_get_autocommit(c->file))
                return true;
        if (error->error == ERROR_NONE)
                (void) fail_on(c, c->file, c->probe_rc != SQLITE_OK ? c->probe_rc : SQLITE_ABORT_ROLLBACK, 0, error);
        return false;
}

void sqlite_connection_let_go(SqliteConnection *c) {
        if (c->held)
                (void) sqlite3_reset(c->probe);
        c->held = false;
}

void sqlite_connection_end(SqliteConnection *c) {
        sqlite_connection_let_go(c);
        if (c->exposed)
                exposed_end(c->exposed);
}

bool sqlite_connection_is_untouched(const SqliteConnection *c) {
        return c->is_pin && c->begun && sqlite3_txn_state(c->file, "main") == SQLITE_TXN_NONE;
}

void sqlite_connection_look(SqliteConnection *c) {
        if (sqlite_connection_is_untouched(c))
                return;
        sqlite_connection_hold(c);
        sqlite_connection_let_go(c);
        if (sqlite3_get_autocommit(c->file))
                attached_look(&c->attached, c->file);
}

void sqlite_connection_state(const SqliteConnection *c, FileState *ret) {
        sqlite3_file *file;

        if (sqlite3_file_control(c->file, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK)
                database_state_read(file, ret);
}

bool sqlite_connection_keeps_writers_out(const SqliteConnection *c) {
        return c->lock->held || attached_keep_writers_out(&c->attached);
}

bool sqlite_connection_keeps_log(const SqliteConnection *c) {
        return (c->lock->mark >= 0 &&
                (!c->writes || (c->is_pin && sqlite3_txn_state(c->file, "main") == SQLITE_TXN_READ))) ||
                attached_keep_log(&c->attached);
}

bool sqlite_connection_writer_waits(const SqliteConnection *c) {
        sqlite3_file *file;

        if (attached_writer_waits(&c->attached, c->setup->wal_size_max))
                return true;
        if (c->lock->held)
                return reader_lock_writer_waits(c->lock);
        return sqlite_connection_keeps_log(c) && c->lock->mark >= 0 &&
               sqlite3_file_control(c->file, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK &&
               database_state_log_behind(file, c->lock->mark) > c->setup->wal_size_max;
}
