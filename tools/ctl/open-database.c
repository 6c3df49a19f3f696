/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens a published database, see open-database.h. */
#include "tools/ctl/open-database.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/configuration/configuration-files.h"

enum {
        HEADER_READ_VERSION = 19, /* the byte of the header that is 2 in WAL mode */
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

/* ---- Rules -------------------------------------------------------------------------------------------------------- */

static bool is_wal_file(const char *path) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
        uint8_t version = 0;

        if (fd < 0)
                return false;
        if (pread(fd, &version, 1, HEADER_READ_VERSION) != 1)
                version = 0;
        (void) close(fd);
        return version == 2;
}

static bool is_beside(const char *path, const char *suffix) {
        g_autofree char *name = g_strconcat(path, suffix, NULL);

        return access(name, R_OK) == 0;
}

/* The rules of the service (I12): it changes only files that its user owns, in folders that its user owns, and it makes no
 * file beside a database of another user. */
static bool check_rules(const DatabaseConfig *d, const char *path, bool own, bool to_write) {
        g_autofree char *folder = g_path_get_dirname(path);
        struct stat st;

        if (to_write && (!own || stat(folder, &st) < 0 || st.st_uid != geteuid()))
                complain("%s: the service's user does not own %s and its folder, so it is not changed.", d->name, path);
        else if (!own && !d->immutable && is_wal_file(path) && !(is_beside(path, "-wal") && is_beside(path, "-shm")))
                complain("%s: %s is in WAL mode and belongs to another user, and its \"-wal\" and \"-shm\" cannot be read: "
                         "try again while a program has it open to write.", d->name, path);
        else
                return true;
        return false;
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

static int open_path(const DatabaseConfig *d, const char *path, bool own, bool to_write, sqlite3 **ret) {
        bool writable = to_write || (own && g_str_equal(d->mode, "read-write"));
        g_autofree char *escaped = g_uri_escape_string(path, "/", FALSE);
        g_autofree char *uri = g_strdup_printf("file:%s?readonly_shm=%d%s", escaped, !own,
                                               d->immutable ? "&immutable=1" : "");
        int rc = sqlite3_open_v2(uri, ret,
                                 (writable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_URI |
                                         SQLITE_OPEN_NOFOLLOW, NULL);

        if (rc != SQLITE_OK)
                return rc;
        (void) sqlite3_busy_handler(*ret, on_busy, NULL);
        sqlite3_progress_handler(*ret, PROGRESS_OPCODES, on_progress, NULL);
        (void) sqlite3_db_config(*ret, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        return sqlite3_exec(*ret, "PRAGMA synchronous=EXTRA; SELECT 1 FROM sqlite_schema", NULL, NULL, NULL);
}

sqlite3 *open_database(const DatabaseConfig *d, bool to_write, double lock_seconds) {
        if (database_config_is_server(d)) {
                complain("%s is a database of Engine=%s: use the programs of its server.", d->name,
                         engine_kind_name(d->engine));
                return NULL;
        }

        char *path = realpath(d->path, NULL); /* SQLite then refuses links */
        sqlite3 *db = NULL;
        struct stat st;
        int rc;

        catch_signals();
        lock_seconds_max = lock_seconds;
        if (!path || lstat(path, &st) < 0)
                complain("%s: %s cannot be opened: %s", d->name, d->path, g_strerror(errno));
        else if (!S_ISREG(st.st_mode))
                complain("%s: %s is no regular file.", d->name, d->path);
        else if (check_rules(d, path, st.st_uid == geteuid(), to_write)) {
                rc = open_path(d, path, st.st_uid == geteuid(), to_write, &db);
                if (rc != SQLITE_OK) {
                        (void) complain_of_sqlite(d, "opened", db, rc);
                        (void) sqlite3_close(db);
                        db = NULL;
                }
        }
        free(path);
        return db;
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
