/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ADBC driver: the table of functions for each version of managers, options of each object as each type, errors of each
 * version, calls in the wrong state. No bus is needed. ADBC driver.
 */
#include <glib.h>
#include <string.h>

#include "client-lib/adbc/adbc-driver.h"
#include "client-lib/adbc/adbc-error.h"
#include "client-lib/adbc/connection-objects.h"
#include "client-lib/adbc/sql-need.h"

/* An error that a manager of version 1.1 makes. */
#define ERROR_1_1 ((struct AdbcError) { .vendor_code = ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA })

static struct AdbcDriver driver;

static void assert_error(struct AdbcError *error, const char *part) {
        g_assert_nonnull(error->message);
        if (!strstr(error->message, part))
                g_error("\"%s\" is not in \"%s\"", part, error->message);
        error->release(error);
        g_assert_null(error->release);
}

static void test_versions(void) {
        struct AdbcDriver old;
        struct AdbcError error = ERROR_1_1;

        memset(&old, 0x55, sizeof old);
        g_assert_cmpint(AdbcDriverSqlipcInit(ADBC_VERSION_1_0_0, &old, &error), ==, ADBC_STATUS_OK);
        g_assert_true(old.StatementSetSubstraitPlan == driver.StatementSetSubstraitPlan);
        for (size_t i = offsetof(struct AdbcDriver, ErrorGetDetailCount); i < sizeof old; i++)
                g_assert_cmpuint(((const uint8_t *) &old)[i], ==, 0x55); /* what an old manager has not is not touched */
        g_assert_cmpint(AdbcDriverInit(1002000, &old, &error), ==, ADBC_STATUS_NOT_IMPLEMENTED);
        assert_error(&error, "1002000");
        g_assert_cmpint(driver.release(&driver, NULL), ==, ADBC_STATUS_OK);
        g_assert_null(driver.release);
}

static void test_errors(void) {
        struct AdbcError old = { .vendor_code = 0 }, error = ERROR_1_1;

        g_assert_cmpint(adbc_error_set(&old, ADBC_STATUS_IO, "08006", "%s", "one"), ==, ADBC_STATUS_IO);
        adbc_error_add(&old, "key", "value"); /* there is no place for it */
        g_assert_null(old.private_data);
        g_assert_cmpint(adbc_error_detail_count(&old), ==, 0);
        g_assert_cmpmem(old.sqlstate, 5, "08006", 5);
        adbc_error_set(&old, ADBC_STATUS_IO, "08006", "two"); /* the first message is released */
        assert_error(&old, "two");

        adbc_error_set(&error, ADBC_STATUS_IO, "08006", "one");
        for (int i = 0; i < 20; i++)
                adbc_error_add_number(&error, "key", i);
        g_assert_cmpint(driver.ErrorGetDetailCount(&error), ==, 8);
        g_assert_cmpstr(driver.ErrorGetDetail(&error, 7).key, ==, "key");
        g_assert_cmpmem(driver.ErrorGetDetail(&error, 7).value, driver.ErrorGetDetail(&error, 7).value_length, "7", 1);
        g_assert_null(driver.ErrorGetDetail(&error, 8).key);
        g_assert_null(driver.ErrorGetDetail(&error, -1).key);
        g_assert_cmpint(error.vendor_code, ==, ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA);
        assert_error(&error, "one");
        g_assert_null(error.private_data);
        g_assert_cmpint(adbc_error_set(NULL, ADBC_STATUS_IO, "08006", "nobody asks"), ==, ADBC_STATUS_IO);
}

static void test_database_options(void) {
        static const struct {
                const char *uri, *bus, *name;
        } uris[] = {
                { "sqlipc://user/chinook", "user", "chinook" },
                { "sqlipc://system/a-b", "system", "a-b" },
                { "chinook", NULL, "chinook" },
                { "sqlipc:///x", NULL, "x" },
                { "sqlipc://unix:path=/run/bus/x", "unix:path=/run/bus", "x" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(uris); i++) {
                struct AdbcDatabase database = { .private_data = NULL };
                char value[64];
                size_t length = sizeof value;

                g_assert_cmpint(driver.DatabaseNew(&database, NULL), ==, ADBC_STATUS_OK);
                g_assert_cmpint(driver.DatabaseSetOption(&database, "uri", uris[i].uri, NULL), ==, ADBC_STATUS_OK);
                g_assert_cmpint(driver.DatabaseGetOption(&database, "adbc.sqlipc.database", value, &length, NULL), ==,
                                ADBC_STATUS_OK);
                g_assert_cmpstr(value, ==, uris[i].name);
                g_assert_cmpuint(length, ==, strlen(value) + 1);
                length = sizeof value;
                g_assert_cmpint(driver.DatabaseGetOption(&database, "adbc.sqlipc.bus", value, &length, NULL), ==,
                                ADBC_STATUS_OK);
                if (uris[i].bus)
                        g_assert_cmpstr(value, ==, uris[i].bus);
                g_assert_cmpint(driver.DatabaseRelease(&database, NULL), ==, ADBC_STATUS_OK);
        }
}

static void test_option_types(void) {
        struct AdbcDatabase database = { .private_data = NULL };
        struct AdbcError error = ERROR_1_1;
        char text[8];
        size_t length = 2;
        int64_t number;
        double real;

        driver.DatabaseNew(&database, NULL);
        g_assert_cmpint(driver.DatabaseSetOptionInt(&database, "adbc.sqlipc.batch_rows", 77, NULL), ==, ADBC_STATUS_OK);
        g_assert_cmpint(driver.DatabaseGetOptionInt(&database, "adbc.sqlipc.batch_rows", &number, NULL), ==, ADBC_STATUS_OK);
        g_assert_cmpint(number, ==, 77);
        g_assert_cmpint(driver.DatabaseGetOptionDouble(&database, "adbc.sqlipc.batch_rows", &real, NULL), ==,
                        ADBC_STATUS_OK);
        g_assert_cmpfloat(real, ==, 77);
        strcpy(text, "same");
        g_assert_cmpint(driver.DatabaseGetOption(&database, "adbc.sqlipc.batch_rows", text, &length, NULL), ==,
                        ADBC_STATUS_OK);
        g_assert_cmpuint(length, ==, 3); /* too small a buffer: nothing is written */
        g_assert_cmpstr(text, ==, "same");
        g_assert_cmpint(driver.DatabaseGetOptionBytes(&database, "adbc.sqlipc.batch_rows", (uint8_t *) text, &length, NULL),
                        ==, ADBC_STATUS_OK);
        g_assert_cmpuint(length, ==, 2);
        g_assert_cmpint(driver.DatabaseSetOptionDouble(&database, "adbc.sqlipc.timeout", 0.25, NULL), ==, ADBC_STATUS_OK);
        g_assert_cmpint(driver.DatabaseGetOptionDouble(&database, "adbc.sqlipc.timeout", &real, NULL), ==, ADBC_STATUS_OK);
        g_assert_cmpfloat(real, ==, 0.25);
        g_assert_cmpint(driver.DatabaseSetOptionBytes(&database, "adbc.sqlipc.text", (const uint8_t *) "binary", 6, NULL),
                        ==, ADBC_STATUS_OK);
        g_assert_cmpint(driver.DatabaseGetOptionInt(&database, "adbc.sqlipc.text", &number, &error), ==,
                        ADBC_STATUS_NOT_FOUND);
        assert_error(&error, "not an integer");
        driver.DatabaseRelease(&database, NULL);
}

static void test_wrong_options(void) {
        static const struct {
                const char *key, *value;
                AdbcStatusCode status;
        } cases[] = {
                { "adbc.sqlipc.batch_rows", "0", ADBC_STATUS_INVALID_ARGUMENT },
                { "adbc.sqlipc.batch_rows", "16777217", ADBC_STATUS_INVALID_ARGUMENT },
                { "adbc.sqlipc.batch_rows", "16777216", ADBC_STATUS_OK },
                { "adbc.sqlipc.batch_bytes", "536870912", ADBC_STATUS_OK },
                { "adbc.sqlipc.batch_bytes", "536870913", ADBC_STATUS_INVALID_ARGUMENT },
                { "adbc.sqlipc.infer_rows", "1x", ADBC_STATUS_INVALID_ARGUMENT },
                { "adbc.sqlipc.infer_rows", "", ADBC_STATUS_INVALID_ARGUMENT },
                { "adbc.sqlipc.types", "auto", ADBC_STATUS_OK },
                { "adbc.sqlipc.types", "aut", ADBC_STATUS_INVALID_ARGUMENT },
                { "adbc.sqlipc.types", "auto|declared", ADBC_STATUS_INVALID_ARGUMENT },
                { "adbc.sqlipc.timeout", "-1", ADBC_STATUS_INVALID_ARGUMENT },
                { "adbc.sqlipc.timeout", "nan", ADBC_STATUS_INVALID_ARGUMENT },
                { "adbc.sqlipc.timeout", "inf", ADBC_STATUS_INVALID_ARGUMENT },
                { "adbc.sqlipc.transaction", "write", ADBC_STATUS_OK },
                { "adbc.sqlipc.nothing", "1", ADBC_STATUS_NOT_IMPLEMENTED },
                { "uri", "file:x", ADBC_STATUS_INVALID_ARGUMENT },
                { "uri", NULL, ADBC_STATUS_INVALID_ARGUMENT },
                { "uri", "sqlipc://chinook", ADBC_STATUS_INVALID_ARGUMENT },
        };
        struct AdbcDatabase database = { .private_data = NULL };

        driver.DatabaseNew(&database, NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                struct AdbcError error = ERROR_1_1;

                g_assert_cmpint(driver.DatabaseSetOption(&database, cases[i].key, cases[i].value, &error), ==,
                                cases[i].status);
                g_assert_cmpint(!error.message, ==, cases[i].status == ADBC_STATUS_OK);
                if (error.release)
                        error.release(&error);
        }
        driver.DatabaseRelease(&database, NULL);
}

/* A connection to a bus that does not exist fails, and can be released; one that is not initialized refuses to work. */
static void test_wrong_states(void) {
        struct AdbcDatabase database = { .private_data = NULL };
        struct AdbcConnection connection = { .private_data = NULL };
        struct AdbcStatement statement = { .private_data = NULL };
        struct AdbcError error = ERROR_1_1;
        int64_t number;

        driver.DatabaseNew(&database, NULL);
        driver.DatabaseSetOption(&database, "adbc.sqlipc.bus", "unix:path=/nonexistent", NULL);
        driver.DatabaseInit(&database, NULL);
        driver.ConnectionNew(&connection, NULL);
        g_assert_cmpint(driver.StatementNew(&connection, &statement, &error), ==, ADBC_STATUS_INVALID_STATE);
        assert_error(&error, "not open");
        g_assert_cmpint(driver.ConnectionCancel(&connection, &error), ==, ADBC_STATUS_INVALID_STATE);
        assert_error(&error, "nothing to cancel");
        g_assert_cmpint(driver.ConnectionCommit(&connection, &error), ==, ADBC_STATUS_INVALID_STATE);
        assert_error(&error, "not open");
        g_assert_cmpint(driver.ConnectionSetOption(&connection, "adbc.sqlipc.batch_rows", "5", &error), ==, ADBC_STATUS_OK);
        g_assert_cmpint(driver.ConnectionInit(&connection, &database, &error), ==, ADBC_STATUS_IO);
        assert_error(&error, "unix:path=/nonexistent");
        g_assert_cmpint(driver.ConnectionGetOptionInt(&connection, "adbc.sqlipc.batch_rows", &number, NULL), ==,
                        ADBC_STATUS_OK);
        g_assert_cmpint(number, ==, 5); /* what was set first takes precedence over the database's */
        g_assert_cmpint(driver.ConnectionRelease(&connection, NULL), ==, ADBC_STATUS_OK);
        g_assert_null(connection.private_data);
        g_assert_cmpint(driver.ConnectionRelease(&connection, &error), ==, ADBC_STATUS_INVALID_STATE);
        assert_error(&error, "released");
        g_assert_cmpint(driver.StatementRelease(&statement, &error), ==, ADBC_STATUS_INVALID_STATE);
        assert_error(&error, "released");
        driver.DatabaseRelease(&database, NULL);
}

static void test_patterns(void) {
        static const struct {
                const char *pattern, *name;
                bool match;
        } cases[] = {
                { NULL, "x", true },        { "", "", true },          { "", "x", false },       { "%", "", true },
                { "%", "abc", true },       { "a%c", "abbc", true },   { "a%c", "abbd", false }, { "_", "", false },
                { "_", "x", true },         { "_", "\xc3\xbc", true }, { "_", "xy", false },     { "TRACK", "Track", true },
                { "a%b%c", "a1b2c", true }, { "%%x", "x", true },      { "[", "{", false },      { "@", "`", false },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
                g_assert_cmpint(connection_objects_match(cases[i].pattern, cases[i].name), ==, cases[i].match);
}

static void test_needs(void) {
        static const struct {
                const char *sql;
                SqlNeed need;
        } cases[] = {
                { "CREATE TEMP TABLE t(a)", SQL_MAKES_TEMP },
                { "/* a */ -- b\n ;create temporary view v AS SELECT 1", SQL_MAKES_TEMP },
                { "CREATE TABLE temp.t(a)", SQL_MAKES_TEMP },
                { "CREATE TABLE IF NOT EXISTS \"Temp\" . t(a)", SQL_MAKES_TEMP },
                { "CREATE VIEW [temp].v AS SELECT 1", SQL_MAKES_TEMP },
                { "EXPLAIN QUERY PLAN CREATE TEMP TABLE t(a)", SQL_NEEDS_PIN },
                { "EXPLAIN CREATE TABLE t(a)", SQL_NEEDS_NO_PIN },
                { "CREATE TABLE temp(a)", SQL_NEEDS_NO_PIN },
                { "CREATE TABLE temperature AS SELECT * FROM temp.t", SQL_NEEDS_NO_PIN },
                { "CREATE TABLE main.temp(a)", SQL_NEEDS_NO_PIN },
                { "INSERT INTO temp.t VALUES('CREATE TEMP')", SQL_NEEDS_NO_PIN },
                { "PRAGMA recursive_triggers = ON", SQL_NEEDS_PIN },
                { "pragma main.\"Count_Changes\"(1)", SQL_NEEDS_PIN },
                { "PRAGMA recursive_triggers", SQL_NEEDS_NO_PIN },
                { "PRAGMA main.recursive_triggers;", SQL_NEEDS_NO_PIN },
                { "PRAGMA foreign_keys = ON", SQL_NEEDS_NO_PIN },
                { "CREATE TABLE \"temp", SQL_NEEDS_NO_PIN },
                { "CREATE", SQL_NEEDS_NO_PIN },
                { "/* CREATE TEMP", SQL_NEEDS_NO_PIN },
                { "-- PRAGMA", SQL_NEEDS_NO_PIN },
                { "", SQL_NEEDS_NO_PIN },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
                g_assert_cmpint(sql_need_of(cases[i].sql), ==, cases[i].need);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_assert_cmpint(AdbcDriverInit(ADBC_VERSION_1_1_0, &driver, NULL), ==, ADBC_STATUS_OK);
        g_test_add_func("/adbc/driver/errors", test_errors);
        g_test_add_func("/adbc/driver/database-options", test_database_options);
        g_test_add_func("/adbc/driver/option-types", test_option_types);
        g_test_add_func("/adbc/driver/wrong-options", test_wrong_options);
        g_test_add_func("/adbc/driver/wrong-states", test_wrong_states);
        g_test_add_func("/adbc/driver/patterns", test_patterns);
        g_test_add_func("/adbc/driver/needs", test_needs);
        g_test_add_func("/adbc/driver/versions", test_versions);
        return g_test_run();
}
