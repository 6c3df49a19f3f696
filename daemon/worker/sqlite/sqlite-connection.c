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

#include "daemon/worker/sqlite/sqlite-error.h"
#include "daemon/worker/sqlite/vfs.h"

#define PROGRESS_OPCODES 1000
/* Limits the memory of one stalled reader: with the default of 2 MiB, 200 of them took 412 MiB. */
#define CACHE_SETTINGS "PRAGMA cache_size = -256; PRAGMA mmap_size = 0"
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

static bool readable(const SqliteConnection *c, const char *suffix) {
        return file_place_readable(&c->place, suffix);
}

/* The database is in WAL mode, and cannot be read with the files beside it. */
static void set_needs_owner(const SqliteConnection *c, SqlError *error) {
        if (c->place.own)
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

/* Sets the error for trouble of open() for which SQLite has no code. False: there was no trouble. */
static bool set_trouble(FileTrouble trouble, SqlError *error) {
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
        else if (!sqlite_connection_identify(c->setup, &now, error))
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

/* SQLite takes a journal that it cannot open for a hot one, so all of these may be about files. */
static bool is_about_files(ErrorNumber error) {
        return error == ERROR_NEEDS_RECOVERY || error == ERROR_NEEDS_OWNER || error == ERROR_CANNOT_OPEN;
}

/* Sets the error for the failure `rc` of the connection `db`. */
static bool fail_on(SqliteConnection *c, sqlite3 *db, int rc, size_t offset_base, SqlError *error) {
        /* all three are called in any case, because each call clears the state for the next failure */
        bool limit_hit = vfs_temp_limit_was_hit(), no_temporary = vfs_temp_open_failed();
        FileTrouble trouble = file_names_trouble();
        int32_t code;

        /* a message of the file's own connection may name objects that are not exposed, so only its code is used */
        (void) sqlite_error_take(error, c->setup->n_exposed > 0 && db == c->file ? NULL : db, rc, offset_base);
        code = error->extended_code;
        c->doubtful = c->doubtful || error->error == ERROR_CORRUPT || error->error == ERROR_INPUT_OUTPUT;
        if ((error->error == ERROR_NOT_ALLOWED || error->error == ERROR_SQL) && c->access.refused[0])
                (void) sql_error_set(
                        error, ERROR_NOT_ALLOWED,
                        "%s is not allowed: databases are shared for reading, one SELECT at a time",
                        c->access.refused);
        else if (error->error == ERROR_NO_SPACE && limit_hit)
                (void) sql_error_set(
                        error, ERROR_LIMITS_EXCEEDED,
                        "the query fills more temporary space than TempSizeMax= allows: sort or group less at a time");
        else if (error->error == ERROR_NO_SPACE)
                (void) sql_error_set(
                        error, ERROR_NO_SPACE,
                        "the disk that temporary files go to is full: free some of it, or sort or group less at a time");
        else if (is_about_files(error->error) && set_trouble(trouble, error))
                ;
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

static int set_up(SqliteConnection *c) {
        int rc = run_silently(c->file, CACHE_SETTINGS);

        c->file_access.ours = true;
        if (rc == SQLITE_OK)
                rc = access_install(c->file, c->setup, c->setup->n_exposed > 0 ? &c->file_access : &c->access);
        if (rc == SQLITE_OK)
                rc = sqlite3_prepare_v3(c->file, PROBE, -1, SQLITE_PREPARE_PERSISTENT, &c->probe, NULL);
        if (rc == SQLITE_OK)
                rc = probe(c);
        if (rc == SQLITE_OK && c->setup->n_exposed > 0)
                return put_before(c);
        c->db = c->file;
        return rc;
}

/* Returns an SQLite result code. */
static int open_file(SqliteConnection *c, const char *name) {
        char uri[FILE_NAME_SIZE + sizeof "file:?readonly_shm=1&immutable=1"];
        sqlite3_file *file;
        int rc;

        (void) snprintf(uri, sizeof uri, "file:%s?readonly_shm=%d%s", name, !c->place.own,
                        c->setup->immutable ? "&immutable=1" : "");
        rc = sqlite3_open_v2(uri, &c->file, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX |
                             SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW, VFS_NAME);
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
        return file_identity_equal(&now, &c->identity) || !set_trouble(FILE_TROUBLE_REPLACED, error);
}

bool sqlite_connection_open(SqliteConnection *c, const Setup *setup, EngineProgress progress, void *userdata,
                            SqlError *error) {
        char name[FILE_NAME_SIZE];
        FoundFile found;
        int rc;

        *c = (SqliteConnection) { .setup = setup };
        if (!path_resolve(setup->path, &found, error))
                return false;
        c->identity = identity_of(&found.st);
        file_place_add(&c->place, found, name);
        rc = open_file(c, name);
        if (rc == SQLITE_OK)
                rc = set_up(c);
        if (rc != SQLITE_OK) {
                (void) fail_on(c, c->file, rc, 0, error);
                sqlite_connection_close(c);
                return false;
        }
        sqlite3_progress_handler(c->file, PROGRESS_OPCODES, progress, userdata);
        sqlite3_progress_handler(c->db, PROGRESS_OPCODES, progress, userdata);
        (void) file_names_trouble(); /* if there was trouble, SQLite has recovered from it */
        if (!check_not_replaced(c, error)) {
                sqlite_connection_close(c);
                return false;
        }
        return true;
}

void sqlite_connection_close(SqliteConnection *c) {
        (void) sqlite3_finalize(c->probe);
        c->exposed = exposed_close(c->exposed);
        (void) sqlite3_close(c->file);
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
        if (c->exposed || c->held) /* an exposed connection has a transaction already */
                return;
        c->held = sqlite3_step(c->probe) == SQLITE_ROW;
        if (!c->held)
                (void) sqlite3_reset(c->probe);
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

bool sqlite_connection_schema_changed(SqliteConnection *c) {
        if (c->exposed) /* sqlite_connection_begin() has checked it */
                return false;
        sqlite_connection_hold(c);
        return sqlite3_stmt_status(c->probe, SQLITE_STMTSTATUS_REPREPARE, 1) > 0;
}

bool sqlite_connection_keeps_writers_out(const SqliteConnection *c) {
        return c->lock->held;
}

bool sqlite_connection_writer_waits(const SqliteConnection *c) {
        return c->lock->held && reader_lock_writer_waits(c->lock);
}
