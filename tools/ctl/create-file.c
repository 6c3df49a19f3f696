/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the file of a database, see create-file.h. */
#include "tools/ctl/create-file.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/ctl/complain.h"
#include "tools/ctl/service-child.h"

/* ---- SQL ---------------------------------------------------------------------------------------------------------- */

static unsigned line_at(const char *text, const char *at) {
        unsigned line = 1;

        for (; text < at; text++)
                line += *text == '\n';
        return line;
}

static int complain_of_schema(sqlite3 *db, const NewFile *file, const char *statement) {
        int offset = sqlite3_error_offset(db);

        statement += offset > 0 ? (size_t) offset : strspn(statement, " \t\r\n");
        complain("%s:%u: %s", file->schema_name, line_at(file->schema, statement), sqlite3_errmsg(db));
        return -1;
}

static int run_schema(sqlite3 *db, const NewFile *file) {
        const char *rest = file->schema, *at;

        while (rest && *rest) {
                sqlite3_stmt *statement = NULL;
                int r;

                at = rest;
                if (sqlite3_prepare_v2(db, at, -1, &statement, &rest) != SQLITE_OK)
                        return complain_of_schema(db, file, at);
                while (statement && (r = sqlite3_step(statement)) == SQLITE_ROW)
                        continue;
                if (sqlite3_finalize(statement) != SQLITE_OK)
                        return complain_of_schema(db, file, at);
        }
        if (!sqlite3_get_autocommit(db)) {
                complain("%s begins a transaction, and does not end it.", file->schema_name);
                return -1;
        }
        return 0;
}

static int is_wal(void *ret, int n, char **values, char **names) {
        *(bool *) ret = n == 1 && g_strcmp0(values[0], "wal") == 0;
        return 0;
}

/* The mode comes last, because PRAGMA page_size and encoding of a schema have no effect after it. No other process uses the
 * file yet, so neither a journal on the disk nor syncs are needed before the end. */
static int fill(sqlite3 *db, const NewFile *file) {
        bool wal = false;

        if (sqlite3_exec(db, "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF", NULL, NULL, NULL) != SQLITE_OK)
                complain("%s cannot be made: %s", file->path, sqlite3_errmsg(db));
        else if (run_schema(db, file) < 0)
                return -1;
        else if (sqlite3_exec(db, "PRAGMA journal_mode=WAL", is_wal, &wal, NULL) != SQLITE_OK || !wal)
                complain("%s cannot be put into WAL mode: %s", file->path, sqlite3_errmsg(db));
        else
                return 0;
        return -1;
}

/* Makes the file, so that SQLite does not open one that another user has put there. */
static int claim(const char *temporary) {
        int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (fd < 0) {
                complain("%s cannot be made: %s", temporary, g_strerror(errno));
                return -1;
        }
        (void) close(fd);
        return 0;
}

static int make_database(const char *temporary, const NewFile *file) {
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, r = -1;
        sqlite3 *db = NULL;

        if (sqlite3_open_v2(temporary, &db, flags, NULL) == SQLITE_OK)
                r = fill(db, file);
        else
                complain("%s cannot be made: %s", file->path, db ? sqlite3_errmsg(db) : g_strerror(ENOMEM));
        if (sqlite3_close(db) != SQLITE_OK && r == 0) {
                complain("%s cannot be closed: %s", file->path, sqlite3_errmsg(db));
                r = -1;
        }
        return r;
}

/* ---- Files -------------------------------------------------------------------------------------------------------- */

static void remove_all(const char *path) {
        static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };

        for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
                g_autofree char *one = g_strconcat(path, suffixes[i], NULL);

                (void) unlink(one);
        }
}

static int sync_path(const char *path, int flags) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | flags), r;

        if (fd < 0)
                return -errno;
        r = fsync(fd) < 0 ? -errno : 0;
        (void) close(fd);
        return r;
}

/* Everything must be in the one file that is renamed: SQLite keeps its log if it could not write it back. */
static int put_in_place(const char *temporary, const char *path) {
        g_autofree char *folder = g_path_get_dirname(path), *log = g_strconcat(temporary, "-wal", NULL);
        int r = access(log, F_OK) == 0 ? -EIO : sync_path(temporary, 0);

        if (r >= 0 && renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) < 0)
                r = -errno;
        return r < 0 ? r : sync_path(folder, O_DIRECTORY);
}

typedef struct Making {
        const NewFile *file;
        char *temporary; /* the path at which it is made */
} Making;

static int make(void *userdata) {
        const Making *making = userdata;
        const NewFile *file = making->file;
        g_autofree char *folder = g_path_get_dirname(file->path);
        int r;

        if (file->make_folder && g_mkdir_with_parents(folder, 0700) < 0) {
                complain("%s cannot be made: %s", folder, g_strerror(errno));
                return 1;
        }
        if (access(file->path, F_OK) == 0) {
                complain("%s is there already.", file->path);
                return 1;
        }
        if (claim(making->temporary) < 0) /* the file there is not ours */
                return 1;
        r = make_database(making->temporary, file);
        if (r == 0) {
                r = put_in_place(making->temporary, file->path);
                if (r < 0)
                        complain("%s cannot be made: %s", file->path, g_strerror(-r));
        }
        if (r < 0)
                remove_all(making->temporary);
        return r < 0 ? 1 : 0;
}

static int undo(void *path) {
        remove_all(path);
        return 0;
}

/* A child that was killed, for example by Ctrl-C, leaves its file to another one. */
int create_file(const NewFile *file, const ServiceUser *user) {
        g_autofree char *temporary = g_strdup_printf("%s.%d.new", file->path, (int) getpid());
        const ServiceChild child = { .user = user, .kept_fd = -1 };
        int r = service_child_run(&child, make, &(Making) { .file = file, .temporary = temporary });

        if (r < 0)
                (void) service_child_run(&child, undo, temporary);
        return r == 0 ? 0 : -1;
}

void create_file_undo(const NewFile *file, const ServiceUser *user) {
        (void) service_child_run(&(ServiceChild) { .user = user, .kept_fd = -1 }, undo, (void *) file->path);
}
