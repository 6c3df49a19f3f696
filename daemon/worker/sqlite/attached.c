/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See attached.h.
 */
#include "daemon/worker/sqlite/attached.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/worker/sqlite/database-state.h"
#include "daemon/worker/sqlite/path.h"
#include "daemon/worker/sqlite/reader-lock.h"
#include "daemon/worker/sqlite/vfs.h"

struct AttachedFile {
        AttachedFile *next;
        FilePlace place;
        char *path; /* owned */
};

/* ---- answers ---- */

static void forget_answer(AttachedSet *set) {
        free(set->name);
        free(set->path);
        set->name = set->path = NULL;
        sql_error_done(&set->refusal);
}

void attached_answer(AttachedSet *set, const Attach *answer) {
        if (strcmp(answer->name, set->wanted) != 0)
                return;
        forget_answer(set);
        set->name = strdup(answer->name);
        set->never_changes = answer->immutable;
        if (answer->path)
                set->path = strdup(answer->path);
        else
                (void) sql_error_set(&set->refusal, (ErrorNumber) answer->error, "%s", answer->message);
        if (!set->name || (answer->path && !set->path))
                forget_answer(set);
}

/* ---- files ---- */

static void free_file(AttachedFile *f) {
        file_place_remove(&f->place);
        free(f->path);
        free(f);
}

static const ReaderLock *lock_of(const AttachedFile *f) {
        return reader_lock_of(f->place.commit.database);
}

typedef struct Opening {
        AttachedSet *set;
        SqlError *error;
} Opening;

/* Called by SQLite, in ATTACH, for the name that this opens. */
static int find_name(const char *name, char ret[static FILE_NAME_SIZE], void *userdata) {
        Opening *o = userdata;
        AttachedFile *f;
        FoundFile found;

        if (!o->set->name || strcmp(o->set->name, name) != 0) {
                if (strlen(name) > ATTACH_NAME_SIZE_MAX) {
                        (void) sql_error_set(o->error, ERROR_UNKNOWN_DATABASE, "no database can have this name");
                        return SQLITE_CANTOPEN;
                }
                (void) strcpy(o->set->wanted, name);
                (void) sql_error_set(o->error, ERROR_BUSY, "the service looks for the database \"%s\": try again", name);
                return SQLITE_BUSY;
        }
        if (!o->set->path)
                sql_error_copy(o->error, &o->set->refusal);
        if (!o->set->path || !path_resolve(o->set->path, &found, o->error)) {
                o->error->extended_code = SQLITE_CANTOPEN;
                return SQLITE_CANTOPEN;
        }
        f = calloc(1, sizeof *f);
        if (f)
                f->path = strdup(o->set->path);
        if (!f || !f->path) {
                free(f);
                found_file_done(&found);
                return SQLITE_NOMEM;
        }
        file_place_add(&f->place, found, ret);
        f->place.is_attached = true;
        f->place.never_changes = o->set->never_changes;
        f->next = o->set->files;
        o->set->files = f;
        o->set->has_opened = true;
        return SQLITE_OK;
}

/* ---- schemas ---- */

/* The name of the schema is the client's, so all SQL of the worker that has it is made here. */
static int run_on(sqlite3 *db, const char *format, const char *schema) {
        char *sql = sqlite3_mprintf(format, schema);
        int rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;

        sqlite3_free(sql);
        return rc;
}

/* Its commits would need a journal beside the database, and its pages the memory of other clients. */
static int refuse_own(AttachedSet *set, sqlite3 *db, const char *schema, SqlError *error) {
        set->is_stuck = run_on(db, "DETACH \"%w\"", schema) != SQLITE_OK;
        (void) sql_error_set(error, ERROR_NOT_ALLOWED,
                             "ATTACH of a new database in memory or in a temporary file is not allowed: create TEMP tables");
        return SQLITE_AUTH;
}

/* The last schema is new, unless the statement was DETACH. */
static int set_up(AttachedSet *set, sqlite3 *db, SqlError *error) {
        const char *schema = NULL, *file;

        for (int i = 2; sqlite3_db_name(db, i); i++)
                schema = sqlite3_db_name(db, i);
        if (!schema)
                return SQLITE_DONE;
        file = sqlite3_db_filename(db, schema);
        if (!file || !*file)
                return refuse_own(set, db, schema, error);
        (void) run_on(db, "PRAGMA \"%w\".cache_size = -256", schema); /* KiB */
        return SQLITE_DONE;
}

int attached_step(AttachedSet *set, sqlite3 *db, Access *access, sqlite3_stmt *stmt, SqlError *error) {
        Opening opening = { .set = set, .error = error };
        int rc;

        set->wanted[0] = 0;
        set->has_opened = false;
        vfs_set_find_name(find_name, &opening);
        rc = access_step(access, stmt);
        vfs_set_find_name(NULL, NULL);
        if (rc == SQLITE_DONE) {
                access_pause(db, access, true);
                rc = set_up(set, db, error);
                access_pause(db, access, false);
        }
        if ((rc & 0xff) != SQLITE_BUSY)
                forget_answer(set);
        return rc;
}

const FilePlace *attached_opened(const AttachedSet *set) {
        return set->has_opened ? &set->files->place : NULL;
}

static bool is_used(const AttachedFile *f, sqlite3 *db) {
        sqlite3_file *file;

        for (int i = 2; sqlite3_db_name(db, i); i++)
                if (sqlite3_file_control(db, sqlite3_db_name(db, i), SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK &&
                    file && file == f->place.commit.database)
                        return true;
        return false;
}

void attached_settle(AttachedSet *set, sqlite3 *db) {
        for (AttachedFile **link = &set->files, *f = *link; f; f = *link) {
                if (is_used(f, db))
                        link = &f->next;
                else {
                        *link = f->next;
                        free_file(f);
                }
        }
        set->has_opened = false;
}

void attached_look(const AttachedSet *set, sqlite3 *db) {
        for (int i = 2; set->files && sqlite3_db_name(db, i); i++)
                (void) run_on(db, "SELECT 1 FROM \"%w\".sqlite_schema LIMIT 1", sqlite3_db_name(db, i));
}

bool attached_are_current(const AttachedSet *set) {
        struct stat st;

        for (const AttachedFile *f = set->files; f; f = f->next)
                if (fstatat(AT_FDCWD, f->path, &st, 0) < 0 || st.st_dev != f->place.found.st.st_dev ||
                    st.st_ino != f->place.found.st.st_ino)
                        return false;
        return true;
}

bool attached_keep_writers_out(const AttachedSet *set) {
        for (const AttachedFile *f = set->files; f; f = f->next)
                if (lock_of(f)->held)
                        return true;
        return false;
}

bool attached_keep_log(const AttachedSet *set) {
        for (const AttachedFile *f = set->files; f; f = f->next)
                if (lock_of(f)->mark >= 0)
                        return true;
        return false;
}

bool attached_writer_waits(const AttachedSet *set, uint64_t log_size_max) {
        for (const AttachedFile *f = set->files; f; f = f->next) {
                const ReaderLock *lock = lock_of(f);

                if (lock->held ? reader_lock_writer_waits(lock)
                               : lock->mark >= 0 &&
                                        database_state_log_behind(f->place.commit.database, lock->mark) > log_size_max)
                        return true;
        }
        return false;
}

void attached_done(AttachedSet *set) {
        while (set->files) {
                AttachedFile *f = set->files;

                set->files = f->next;
                free_file(f);
        }
        forget_answer(set);
}
