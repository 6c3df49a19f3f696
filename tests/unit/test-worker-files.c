/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The worker: files that change, are locked, or belong to somebody else (I12). */
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <unistd.h>

#include "worker-rig.h"

/* Another program changes the schema between two runs of a compiled statement, and its column count. */
static void test_schema_change(void) {
        Rig rig;

        rig_init(&rig, wide);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        exec_sql(rig.database, "ALTER TABLE t ADD COLUMN extra; INSERT INTO t(i, extra) VALUES(5, 6)");
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 3);
        exec_sql(rig.database, "DROP TABLE t; CREATE TABLE t(only)");
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 0);
        exec_sql(rig.database, "DROP TABLE t");
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_SQL);
        rig_done(&rig);
}

static void test_file_replaced(void) {
        Rig rig;
        g_autofree char *other = NULL;

        rig_init(&rig, wide);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 2);
        other = g_build_filename(rig.folder, "other.db", NULL);
        exec_sql(other, "CREATE TABLE t(i); INSERT INTO t VALUES(1), (2), (3)");
        g_assert_cmpint(g_rename(other, rig.database), ==, 0);
        g_assert_cmpuint(run(&rig, "SELECT * FROM t").n_rows, ==, 3);
        g_assert_cmpint(g_unlink(rig.database), ==, 0);
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_FILE_MISSING);
        g_assert_cmpint(g_mkdir(rig.database, 0700), ==, 0);
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_CANNOT_OPEN);
        g_assert_cmpint(g_rmdir(rig.database), ==, 0);
        g_assert_true(g_file_set_contents(rig.database, "this is no database, and long enough to be seen as none.....", -1, NULL));
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_CORRUPT);
        rig_done(&rig);
}

/* A writer holds the file: tried again until it lets go, or the time for that is over. */
static void test_busy(void) {
        Setup setup = wide;
        Rig rig;
        sqlite3 *writer;
        uint64_t number;
        int fd;

        setup.busy_usec = 200000;
        rig_init(&rig, setup);
        g_assert_cmpint(sqlite3_open(rig.database, &writer), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(writer, "BEGIN EXCLUSIVE", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpint(run(&rig, "SELECT * FROM t").error, ==, ERROR_BUSY);
        fd = send_run(&rig, "SELECT * FROM t", &number);
        expect_number(&rig, number, MESSAGE_TAKEN);
        g_assert_cmpint(sqlite3_exec(writer, "COMMIT", NULL, NULL, NULL), ==, SQLITE_OK);
        g_assert_cmpuint(read_stream(fd, number).n_rows, ==, 2);
        expect_started(&rig, number);
        expect_ended(&rig, number, ERROR_NONE);
        close(fd);
        sqlite3_close(writer);
        rig_done(&rig);
}

int main(int argc, char **argv) {
        rig_main_init(&argc, &argv);
        g_test_add_func("/worker/schema-change", test_schema_change);
        g_test_add_func("/worker/file-replaced", test_file_replaced);
        g_test_add_func("/worker/busy", test_busy);
        return g_test_run();
}
