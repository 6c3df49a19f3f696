/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/sql/sql-control: statements that begin, divide and end transactions. */
#include <glib.h>

#include "tools/cli/sql/sql-control.h"

static void check(const char *sql, SqlControl control, const char *name) {
        g_autofree char *found = NULL;

        g_assert_cmpint(sql_control_of(SQL_DIALECT_SQLITE, sql, &found), ==, control);
        g_assert_cmpstr(found, ==, name);
}

static void test_begin(void) {
        check("BEGIN", SQL_CONTROL_BEGIN, NULL);
        check(" -- now\n begin /* it */ Deferred transaction;", SQL_CONTROL_BEGIN, NULL);
        check("BEGIN TRANSACTION name", SQL_CONTROL_BEGIN, NULL);
        check("BEGIN IMMEDIATE", SQL_CONTROL_BEGIN_WRITE, NULL);
        check("begin exclusive transaction", SQL_CONTROL_BEGIN_WRITE, NULL);
        check("BEGIN READ ONLY", SQL_CONTROL_BEGIN_READ, NULL);
        check("BEGIN TRANSACTION READ ONLY", SQL_CONTROL_BEGIN_READ, NULL);
        check("BEGIN IMMEDIATE READ ONLY", SQL_CONTROL_NONE, NULL);
        check("BEGIN READ", SQL_CONTROL_NONE, NULL);
        check("BEGIN 1", SQL_CONTROL_NONE, NULL);
}

static void test_end(void) {
        check("COMMIT", SQL_CONTROL_COMMIT, NULL);
        check("END TRANSACTION;", SQL_CONTROL_COMMIT, NULL);
        check("commit transaction name", SQL_CONTROL_COMMIT, NULL);
        check("ROLLBACK", SQL_CONTROL_ROLLBACK, NULL);
        check("ROLLBACK TRANSACTION", SQL_CONTROL_ROLLBACK, NULL);
        check("COMMIT 1", SQL_CONTROL_NONE, NULL);
}

static void test_savepoints(void) {
        check("SAVEPOINT a", SQL_CONTROL_SAVEPOINT, "a");
        check("savepoint \"a b\"", SQL_CONTROL_SAVEPOINT, "\"a b\"");
        check("RELEASE a", SQL_CONTROL_RELEASE, "a");
        check("RELEASE SAVEPOINT 'a';", SQL_CONTROL_RELEASE, "'a'");
        check("ROLLBACK TO a", SQL_CONTROL_ROLLBACK_TO, "a");
        check("ROLLBACK TRANSACTION TO SAVEPOINT a", SQL_CONTROL_ROLLBACK_TO, "a");
        check("SAVEPOINT", SQL_CONTROL_NONE, NULL);
        check("ROLLBACK TO", SQL_CONTROL_NONE, NULL);
        check("SAVEPOINT a b", SQL_CONTROL_NONE, NULL);
}

static void test_others(void) {
        check("", SQL_CONTROL_NONE, NULL);
        check("SELECT 1", SQL_CONTROL_NONE, NULL);
        check("\"BEGIN\"", SQL_CONTROL_NONE, NULL);
        check("EXPLAIN COMMIT", SQL_CONTROL_NONE, NULL);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/cli/control/begin", test_begin);
        g_test_add_func("/cli/control/end", test_end);
        g_test_add_func("/cli/control/savepoints", test_savepoints);
        g_test_add_func("/cli/control/others", test_others);
        return g_test_run();
}
