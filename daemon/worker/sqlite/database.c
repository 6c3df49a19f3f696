/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See database.h.
 */
#include "daemon/worker/sqlite/database.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/worker/sqlite/heap.h"
#include "daemon/worker/sqlite/vfs.h"

#define PROGRESS_OPCODES 1000
/* Limits the memory of one stalled reader: with the default of 2 MiB, 200 of them took 412 MiB. */
#define CACHE_SETTINGS "PRAGMA cache_size = -256; PRAGMA mmap_size = 0"
#define PROBE "SELECT 1 FROM sqlite_schema LIMIT 1"
/* Pages (1 MiB) that a sorter fills before it uses a temporary file. When it merges these pieces, it keeps a buffer of a
 * page and a row for each piece as long as it lives: for 200 MB of rows 1.1 MiB. With half as many pages the buffers would
 * take twice that. */
#define SORTER_PAGES 256

int database_setup_sqlite(const Setup *setup) {
        int rc;

        rc = sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
        if (rc == SQLITE_OK)
                rc = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 1); /* sqlite3_memory_highwater() needs it */
        if (rc == SQLITE_OK)
                rc = heap_limit(setup->heap_size_max);
        if (rc == SQLITE_OK)
                rc = sqlite3_config(SQLITE_CONFIG_PMASZ, SORTER_PAGES);
        if (rc == SQLITE_OK) /* allocates row by row: one large block would outlive its rows, which go to a file */
                rc = sqlite3_config(SQLITE_CONFIG_SMALL_MALLOC, 1);
        if (rc == SQLITE_OK)
                rc = sqlite3_config(SQLITE_CONFIG_MMAP_SIZE, (sqlite3_int64) 0, (sqlite3_int64) 0);
        if (rc == SQLITE_OK)
                rc = sqlite3_initialize();
        return rc == SQLITE_OK ? vfs_register(setup->temp_size_max) : rc;
}

static FileIdentity identity_of(const struct stat *st) {
        return (FileIdentity) { .device = st->st_dev, .inode = st->st_ino };
}

bool database_identify(const Setup *setup, FileIdentity *ret, SqlError *error) {
        struct stat st;

        if (fstatat(AT_FDCWD, setup->path, &st, 0) < 0)
                return path_fail(errno, error);
        if (!path_check_kind(&st, error))
                return false;
        *ret = identity_of(&st);
        return true;
}

static bool readable(const Database *d, const char *suffix) {
        return file_place_readable(&d->place, suffix);
}

/* The database is in WAL mode, and cannot be read with the files beside it. */
static void set_needs_owner(const Database *d, SqlError *error) {
        if (d->place.own)
                (void) sql_error_set(
                        error, ERROR_NEEDS_OWNER,
                        "the service can neither open nor create the \"-wal\" and \"-shm\" files of this WAL database. Let "
                        "its user write to the folder, or set Immutable=yes if the database never changes.");
        else if (readable(d, "-wal") && readable(d, "-shm"))
                (void) sql_error_set(
                        error, ERROR_NEEDS_OWNER,
                        "the \"-shm\" file of this WAL database is in a state that only a writer can repair. Open the "
                        "database once with a program that may write to it.");
        else
                (void) sql_error_set(
                        error, ERROR_NEEDS_OWNER,
                        "the database is in WAL mode and its %s cannot be read by the service. Keep a program open that "
                        "writes to it, with \"-wal\" and \"-shm\" readable, or set Immutable=yes if it never changes.",
                        readable(d, "-wal") ? "\"-shm\" file" : "\"-wal\" file");
}

/* Sets the error for trouble of open() for which SQLite has no code. */
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
static void explain_cannot_open(const Database *d, const Setup *setup, bool temporary, SqlError *error) {
        FileIdentity now;

        if (temporary)
                (void) sql_error_set(
                        error, ERROR_INPUT_OUTPUT,
                        "the query needs a temporary file, which the service cannot create: sort or group less at a time, "
                        "or let the service's user write to /var/tmp");
        else if (!database_identify(setup, &now, error))
                return;
        else if (!readable(d, ""))
                (void) sql_error_set(error, ERROR_CANNOT_OPEN,
                                     "the service may not read the file of this database: give its user read access");
        else if (d->opened) /* it was another file that SQLite could not open */
                set_needs_owner(d, error);
        else
                (void) sql_error_set(error, ERROR_CANNOT_OPEN, "the file of this database cannot be opened: %s",
                                     strerror(sqlite3_system_errno(d->file) ?: EIO));
}

/* SQLite takes a journal that it cannot open for a hot one, so all of these may be about files. */
static bool is_about_files(ErrorNumber error) {
        return error == ERROR_NEEDS_RECOVERY || error == ERROR_NEEDS_OWNER || error == ERROR_CANNOT_OPEN;
}

/* Sets the error for the failure `rc` of the connection `db`. */
static bool fail_on(Database *d, sqlite3 *db, const Setup *setup, int rc, size_t offset_base, SqlError *error) {
        /* all three are called in any case, because each call clears the state for the next failure */
        bool limit_hit = vfs_temp_limit_was_hit(), no_temporary = vfs_temp_open_failed();
        FileTrouble trouble = file_names_trouble();
        int32_t code;

        /* a message of the file's own connection may name objects that are not exposed, so only its code is used */
        (void) sql_error_take(error, setup->n_exposed > 0 && db == d->file ? NULL : db, rc, offset_base);
        code = error->extended_code;
        d->doubtful = d->doubtful || error->error == ERROR_CORRUPT || error->error == ERROR_INPUT_OUTPUT;
        if ((error->error == ERROR_NOT_ALLOWED || error->error == ERROR_SQL) && d->access.refused[0])
                (void) sql_error_set(
                        error, ERROR_NOT_ALLOWED,
                        "%s is not allowed: databases are shared for reading, one SELECT at a time",
                        d->access.refused);
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
                set_needs_owner(d, error);
        else if (error->error == ERROR_CANNOT_OPEN)
                explain_cannot_open(d, setup, no_temporary, error);
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

bool database_fail(Database *d, const Setup *setup, int rc, size_t offset_base, SqlError *error) {
        return fail_on(d, d->db, setup, rc, offset_base, error);
}

static int run_silently(sqlite3 *db, const char *sql) {
        return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* Makes SQLite check the schema's number and the files beside the database. Returns an SQLite result code. */
static int probe(Database *d) {
        (void) sqlite3_step(d->probe);
        return sqlite3_reset(d->probe);
}

/* Opens the connection for clients' SQL, from which the file is out of reach. */
static int put_before(Database *d, const Setup *setup) {
        int rc = exposed_open(&d->exposed, d->file, setup, &d->db);

        if (rc == SQLITE_OK)
                rc = access_install(d->db, setup, &d->access);
        return rc == SQLITE_OK ? exposed_seal(d->exposed) : rc;
}

static int set_up(Database *d, const Setup *setup) {
        int rc = run_silently(d->file, CACHE_SETTINGS);

        d->file_access.ours = true;
        if (rc == SQLITE_OK)
                rc = access_install(d->file, setup, setup->n_exposed > 0 ? &d->file_access : &d->access);
        if (rc == SQLITE_OK)
                rc = sqlite3_prepare_v3(d->file, PROBE, -1, SQLITE_PREPARE_PERSISTENT, &d->probe, NULL);
        if (rc == SQLITE_OK)
                rc = probe(d);
        if (rc == SQLITE_OK && setup->n_exposed > 0)
                return put_before(d, setup);
        d->db = d->file;
        return rc;
}

/* Returns an SQLite result code. */
static int open_file(Database *d, const char *name, const Setup *setup) {
        char uri[FILE_NAME_SIZE + sizeof "file:?readonly_shm=1&immutable=1"];
        sqlite3_file *file;
        int rc;

        (void) snprintf(uri, sizeof uri, "file:%s?readonly_shm=%d%s", name, !d->place.own,
                        setup->immutable ? "&immutable=1" : "");
        rc = sqlite3_open_v2(uri, &d->file, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX |
                             SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW, VFS_NAME);
        d->opened = rc == SQLITE_OK;
        if (rc == SQLITE_OK)
                rc = sqlite3_file_control(d->file, "main", SQLITE_FCNTL_FILE_POINTER, &file);
        if (rc == SQLITE_OK)
                d->lock = reader_lock_of(file);
        return rc;
}

/* The database and the files beside it were opened one after the other. They belong together only if the same file is still
 * at the path. */
static bool check_not_replaced(const Database *d, const Setup *setup, SqlError *error) {
        FileIdentity now;

        if (!database_identify(setup, &now, error))
                return false;
        return file_identity_equal(&now, &d->identity) || !set_trouble(FILE_TROUBLE_REPLACED, error);
}

bool database_open(Database *d, const Setup *setup, ProgressHandler progress, void *userdata, SqlError *error) {
        char name[FILE_NAME_SIZE];
        FoundFile found;
        int rc;

        *d = (Database) {};
        if (!path_resolve(setup->path, &found, error))
                return false;
        d->identity = identity_of(&found.st);
        file_place_add(&d->place, found, name);
        rc = open_file(d, name, setup);
        if (rc == SQLITE_OK)
                rc = set_up(d, setup);
        if (rc != SQLITE_OK) {
                (void) fail_on(d, d->file, setup, rc, 0, error);
                database_close(d);
                return false;
        }
        sqlite3_progress_handler(d->file, PROGRESS_OPCODES, progress, userdata);
        sqlite3_progress_handler(d->db, PROGRESS_OPCODES, progress, userdata);
        (void) file_names_trouble(); /* if there was trouble, SQLite has recovered from it */
        if (!check_not_replaced(d, setup, error)) {
                database_close(d);
                return false;
        }
        return true;
}

void database_close(Database *d) {
        (void) sqlite3_finalize(d->probe);
        d->exposed = exposed_close(d->exposed);
        (void) sqlite3_close(d->file);
        file_place_remove(&d->place);
        *d = (Database) {};
}

DatabaseBegin database_begin(Database *d, const Setup *setup, SqlError *error) {
        int rc = d->exposed ? exposed_begin(d->exposed) : SQLITE_OK;

        if (rc == SQLITE_OK)
                return DATABASE_BEGUN;
        if (rc == SQLITE_SCHEMA)
                return DATABASE_STALE;
        (void) fail_on(d, d->file, setup, rc, 0, error);
        return DATABASE_FAILED;
}

void database_hold(Database *d) {
        if (d->exposed || d->held) /* an exposed connection has a transaction already */
                return;
        d->held = sqlite3_step(d->probe) == SQLITE_ROW;
        if (!d->held)
                (void) sqlite3_reset(d->probe);
}

void database_let_go(Database *d) {
        if (d->held)
                (void) sqlite3_reset(d->probe);
        d->held = false;
}

void database_end(Database *d) {
        database_let_go(d);
        if (d->exposed)
                exposed_end(d->exposed);
}

bool database_schema_changed(Database *d) {
        if (d->exposed) /* database_begin() has checked it */
                return false;
        database_hold(d);
        return sqlite3_stmt_status(d->probe, SQLITE_STMTSTATUS_REPREPARE, 1) > 0;
}

bool database_keeps_writers_out(const Database *d) {
        return d->lock->held;
}

bool database_writer_waits(const Database *d) {
        return d->lock->held && reader_lock_writer_waits(d->lock);
}
