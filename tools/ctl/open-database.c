/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens a published database, see open-database.h. */
#include "tools/ctl/open-database.h"

#include <signal.h>

#include "daemon/configuration/configuration-database.h"
#include "daemon/configuration/configuration-files.h"
#include "daemon/worker/core/sql-error.h"
#include "daemon/worker/sqlite/file-names.h"
#include "daemon/worker/sqlite/path.h"
#include "daemon/worker/sqlite/vfs.h"

enum {
        LOCK_POLL_MS = 2,         /* short, because other writers leave only short gaps */
        PROGRESS_OPCODES = 10000,
};

static volatile sig_atomic_t interrupted;
static double lock_seconds_max;

Config *open_database_find(const Context *c, const char *name, const DatabaseConfig **ret) {
        g_auto(GStrv) directories = context_directories(c);
        g_autoptr(Config) config = config_load((const char *const *) directories);
        const char *problem = g_hash_table_lookup(config->broken, name);

        *ret = g_hash_table_lookup(config->databases, name);
        if (*ret)
                return g_steal_pointer(&config);
        if (problem)
                complain("The configuration of \"%s\" is broken: %s", name, problem);
        else
                complain("The configuration in %s has no database \"%s\".", directories[0], name);
        return NULL;
}

static void on_signal(int number) {
        interrupted = 1;
}

bool open_database_interrupted(void) {
        return interrupted != 0;
}

static void catch_signals(void) {
        static const int ending[] = { SIGHUP, SIGINT, SIGTERM };
        struct sigaction action = { .sa_handler = on_signal }, before;

        for (size_t i = 0; i < G_N_ELEMENTS(ending); i++)
                if (sigaction(ending[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
                        (void) sigaction(ending[i], &action, NULL);
}

static int on_progress(void *userdata) {
        return interrupted;
}

static int on_busy(void *userdata, int n_calls) {
        if (interrupted || n_calls * (LOCK_POLL_MS / 1000.0) >= lock_seconds_max)
                return 0;
        (void) sqlite3_sleep(LOCK_POLL_MS);
        return 1;
}

/* ---- Opening ------------------------------------------------------------------------------------------------------ */

int complain_of_sqlite(const DatabaseConfig *d, const char *what, sqlite3 *db, int rc) {
        const char *error = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc);

        if (interrupted)
                complain("Interrupted: %s was not %s.", d->name, what);
        else if ((rc & 0xff) == SQLITE_BUSY)
                complain("%s was not %s: other programs kept it locked for %g s.", d->name, what, lock_seconds_max);
        else
                complain("%s was not %s: %s", d->name, what, error);
        return CTL_FAILED;
}

/* Prints why the file could not be opened, as far as the modules of the worker know more than SQLite. */
static void complain_of_file(const DatabaseConfig *d, const FilePlace *place, sqlite3 *db, int rc) {
        switch (file_names_trouble()) {
        case FILE_TROUBLE_IRREGULAR:
                complain("%s: %s, or its \"-wal\", \"-shm\" or \"-journal\", is no regular file (but a link or a FIFO, for "
                         "example): its owner must remove it.", d->name, d->path);
                return;
        case FILE_TROUBLE_REPLACED:
                complain("%s: %s was just replaced: try again.", d->name, d->path);
                return;
        case FILE_TROUBLE_LEASED:
                complain("%s: another program has a lease on %s: try again.", d->name, d->path);
                return;
        case FILE_TROUBLE_READ_ONLY:
        case FILE_TROUBLE_TOO_LARGE:
        case FILE_TROUBLE_NONE:
                break;
        }
        if (!place->own && !d->immutable && (rc & 0xff) == SQLITE_CANTOPEN && file_place_readable(place, ""))
                complain("%s: %s is in WAL mode and belongs to another user, and its \"-wal\" and \"-shm\" cannot be read: "
                         "try again while a program has it open to write.", d->name, d->path);
        else
                (void) complain_of_sqlite(d, "opened", db, rc);
}

static int open_name(const DatabaseConfig *d, const FilePlace *place, const char *name, sqlite3 **ret) {
        g_autofree char *uri = g_strdup_printf("file:%s?readonly_shm=%d%s", name, !place->own,
                                               d->immutable ? "&immutable=1" : "");
        int rc = sqlite3_open_v2(uri, ret,
                                 (place->writes ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_URI |
                                         SQLITE_OPEN_NOFOLLOW, VFS_NAME);

        if (rc != SQLITE_OK)
                return rc;
        (void) sqlite3_busy_handler(*ret, on_busy, NULL);
        sqlite3_progress_handler(*ret, PROGRESS_OPCODES, on_progress, NULL);
        (void) sqlite3_db_config(*ret, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        return sqlite3_exec(*ret, "PRAGMA synchronous=EXTRA; SELECT 1 FROM sqlite_schema", NULL, NULL, NULL);
}

/* Finds the file as a worker does, so that no other user decides which file it is. */
static bool find_place(const DatabaseConfig *d, FilePlace *place, char ret_name[static FILE_NAME_SIZE]) {
        SqlError error = SQL_ERROR_INIT;
        FoundFile found;
        bool ok = path_resolve(d->path, &found, &error);

        if (ok)
                file_place_add(place, found, ret_name);
        else
                complain("%s: %s cannot be opened: %s", d->name, d->path, sql_error_as_failure(&error).message);
        sql_error_done(&error);
        return ok;
}

sqlite3 *open_database(const DatabaseConfig *d, bool to_write, double lock_seconds) {
        static FilePlace place; /* until the process ends: SQLite may open files beside it at any time */
        char name[FILE_NAME_SIZE];
        sqlite3 *db = NULL;
        bool may_write;
        int rc;

        if (database_config_is_server(d)) {
                complain("%s is a database of Engine=%s: use the programs of its server.", d->name,
                         engine_kind_name(d->engine));
                return NULL;
        }
        catch_signals();
        lock_seconds_max = lock_seconds;
        (void) sqlite3_initialize();
        rc = vfs_register(UINT64_MAX);
        if (rc != SQLITE_OK) {
                (void) complain_of_sqlite(d, "opened", NULL, rc);
                return NULL;
        }
        if (!find_place(d, &place, name))
                return NULL;
        may_write = file_place_may_be_written(&place);
        if (to_write && !may_write) {
                complain("%s: the service's user does not own %s and its folder, so it is not changed.", d->name, d->path);
                return NULL;
        }
        place.writes = to_write || (may_write && database_config_is_writable(d));
        rc = open_name(d, &place, name, &db);
        if (rc == SQLITE_OK)
                return db;
        complain_of_file(d, &place, db, rc);
        (void) sqlite3_close(db);
        return NULL;
}

int64_t pragma_number(sqlite3 *db, const char *sql) {
        sqlite3_stmt *statement = NULL;
        int64_t number = -1;

        if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
                number = sqlite3_column_int64(statement, 0);
        (void) sqlite3_finalize(statement);
        return number;
}

bool is_in_wal_mode(sqlite3 *db) {
        sqlite3_stmt *statement = NULL;
        bool wal = false;

        if (sqlite3_prepare_v2(db, "PRAGMA journal_mode", -1, &statement, NULL) == SQLITE_OK &&
            sqlite3_step(statement) == SQLITE_ROW)
                wal = g_strcmp0((const char *) sqlite3_column_text(statement, 0), "wal") == 0;
        (void) sqlite3_finalize(statement);
        return wal;
}
