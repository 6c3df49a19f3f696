/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/ctl/schema-check: a writer in rollback mode locks the file after the check has opened it. The writer is a second
 * connection in the child, for which SQLite reports the lock as it does for another process. */
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <unistd.h>

#include "daemon/configuration/configuration-limits.h"
#include "tests/unit/test.h"
#include "tools/ctl/schema-check.h"

#define FOREVER UINT_MAX

/* The steps of the check after which the writer takes its lock. */
typedef enum Step { STEP_OPENED = 1, STEP_LISTED } Step;

static char *path;
static Step locked_after, done;
static unsigned polls; /* of the check; then the writer gives its lock up */
static sqlite3 *writer;

int __real_sqlite3_open_v2(const char *name, sqlite3 **ret, int flags, const char *vfs);
int __wrap_sqlite3_open_v2(const char *name, sqlite3 **ret, int flags, const char *vfs);
int __real_sqlite3_finalize(sqlite3_stmt *stmt);
int __wrap_sqlite3_finalize(sqlite3_stmt *stmt);
void __wrap_g_usleep(gulong usec);

static void run(sqlite3 *db, const char *sql) {
        char *error = NULL;

        if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
                CHECK_STRING(error, "");
}

static void reach(Step step) {
        done = step;
        if (step != locked_after || polls == 0)
                return;
        CHECK_INT(__real_sqlite3_open_v2(path, &writer, SQLITE_OPEN_READWRITE, "unix"), SQLITE_OK);
        run(writer, "BEGIN EXCLUSIVE");
}

int __wrap_sqlite3_open_v2(const char *name, sqlite3 **ret, int flags, const char *vfs) {
        if (strcmp(name, ":memory:") == 0) /* it follows the file */
                reach(STEP_OPENED);
        return __real_sqlite3_open_v2(name, ret, flags, vfs);
}

int __wrap_sqlite3_finalize(sqlite3_stmt *stmt) {
        bool list = done == STEP_OPENED && stmt && strstr(sqlite3_sql(stmt), "FROM main.sqlite_schema");
        int rc = __real_sqlite3_finalize(stmt);

        if (list)
                reach(STEP_LISTED);
        return rc;
}

void __wrap_g_usleep(gulong usec) {
        (void) usec;
        if (polls != FOREVER && --polls == 0)
                run(writer, "ROLLBACK");
}

/* The findings must be these, one a line. */
static void check(Step step, unsigned n_polls, const char *exposed, const char *expected) {
        const char *expose[] = { exposed, NULL };
        const DatabaseConfig d = {
                .name = (char *) "x",
                .path = path,
                .mode = (char *) "read-only",
                .expose = (char **) expose,
                .foreign_keys = true,
        };
        const ServiceUser user = { .uid = geteuid() };
        const Limits limits = limits_default();
        g_autoptr(GPtrArray) findings = findings_new();
        g_autoptr(GString) texts = g_string_new(NULL);

        locked_after = step;
        polls = n_polls;
        schema_check(&d, &limits, false, &user, findings);
        for (guint i = 0; i < findings->len; i++)
                g_string_append_printf(texts, "%s\n", ((const Finding *) findings->pdata[i])->text);
        CHECK_STRING(texts->str, expected);
}

#define LOCKED "checked, because other programs kept the file locked: try again\n"

static const char broken[] =
        "the view \"broken\" fails (no such table: main.gone): correct it, or drop it if it is not needed\n";

static void test_without_lock(void) {
        check(STEP_OPENED, 0, NULL, broken);
        check(STEP_OPENED, 0, "good", "");
}

/* It is not an empty schema, nor one without the exposed table. */
static void test_locked_before_the_list(void) {
        static const char nothing[] = "its schema was not " LOCKED;

        check(STEP_OPENED, 3, NULL, broken);
        check(STEP_OPENED, 3, "good", "");
        check(STEP_OPENED, FOREVER, NULL, nothing);
        check(STEP_OPENED, FOREVER, "good", nothing);
}

/* Then no statement can be said to fail: the lock may hide a newer schema, and a virtual table reads the file. */
static void test_locked_after_the_list(void) {
        static const char rest[] = "not all of its schema was " LOCKED;

        check(STEP_LISTED, 3, NULL, broken);
        check(STEP_LISTED, FOREVER, NULL, rest);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_without_lock), TEST(test_locked_before_the_list), TEST(test_locked_after_the_list),
        };
        g_autofree char *folder = g_dir_make_tmp("sqlipc-schema-check-XXXXXX", NULL);
        sqlite3 *db;
        int r;

        CHECK(folder);
        path = g_build_filename(folder, "x.sqlite", NULL);
        CHECK_INT(__real_sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL), SQLITE_OK);
        run(db, "CREATE TABLE good(a); CREATE VIRTUAL TABLE words USING fts5(body);"
                "CREATE VIEW broken AS SELECT * FROM gone");
        (void) sqlite3_close(db);
        r = test_main(tests, N_ELEMENTS(tests));
        (void) g_unlink(path);
        (void) g_rmdir(folder);
        g_free(path);
        return r;
}
