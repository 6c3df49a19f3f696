/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The values of a row are found without a call for each of them only if SQLite returned all of them at equal distances.
 * sqlite3_column_value() is counted, and moves one value of a row.
 */
#include <glib.h>
#include <sqlite3.h>
#include <stdbool.h>

#include "daemon/worker/sqlite/row-layout.h"

#define N_COLUMNS 5

sqlite3_value *__real_sqlite3_column_value(sqlite3_stmt *stmt, int i);
sqlite3_value *__wrap_sqlite3_column_value(sqlite3_stmt *stmt, int i);

static int moved = -1; /* the column whose value is elsewhere */
static unsigned n_calls;
static uint64_t elsewhere[16];

sqlite3_value *__wrap_sqlite3_column_value(sqlite3_stmt *stmt, int i) {
        n_calls++;
        return i == moved ? (sqlite3_value *) elsewhere : __real_sqlite3_column_value(stmt, i);
}

typedef struct Fixture {
        sqlite3 *db;
        sqlite3_stmt *stmt;
        RowLayout layout;
} Fixture;

static void set_up(Fixture *f, const char *sql) {
        *f = (Fixture) { .db = NULL };
        moved = -1;
        n_calls = 0;
        g_assert_cmpint(sqlite3_open(":memory:", &f->db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_prepare_v2(f->db, sql, -1, &f->stmt, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_step(f->stmt), ==, SQLITE_ROW);
}

static void tear_down(Fixture *f) {
        g_assert_cmpint(sqlite3_finalize(f->stmt), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_close(f->db), ==, SQLITE_OK);
}

static void next_row(Fixture *f) {
        g_assert_cmpint(sqlite3_step(f->stmt), ==, SQLITE_ROW);
        n_calls = 0;
}

/* True if the values are found, each of which is then the one that SQLite returns. */
static bool finds(Fixture *f, unsigned n_columns) {
        sqlite3_value *first = row_layout_first(&f->layout, f->stmt, n_columns);

        for (unsigned i = 0; first && i < n_columns; i++)
                g_assert_true(row_layout_value(&f->layout, first, i) == __real_sqlite3_column_value(f->stmt, (int) i));
        return first;
}

/* Two sources of rows, which SQLite puts into different registers. */
static const char rows[] = "SELECT 1, 2.5, 'three', x'04', NULL UNION ALL "
                           "VALUES (-1, 'b', NULL, zeroblob(9), 5.5), (6, 7, 8, 9, 0)";

static void test_array(void) {
        Fixture f;

        set_up(&f, rows);
        g_assert_true(finds(&f, N_COLUMNS));
        for (unsigned i = 0; i < 2; i++) {
                next_row(&f);
                g_assert_true(finds(&f, N_COLUMNS));
                g_assert_cmpuint(n_calls, ==, 2);
        }
        tear_down(&f);
}

/* A first row that is not in an array. */
static void test_first_row(void) {
        for (int i = 0; i < N_COLUMNS; i++) {
                Fixture f;

                set_up(&f, rows);
                moved = i;
                g_assert_false(finds(&f, N_COLUMNS));
                moved = -1;
                next_row(&f);
                g_assert_false(finds(&f, N_COLUMNS));
                g_assert_cmpuint(n_calls, ==, 0); /* it is not tried again */
                tear_down(&f);
        }
}

/* A later row whose first or last value is elsewhere. */
static void test_later_row(void) {
        for (int i = 0; i < N_COLUMNS; i += N_COLUMNS - 1) {
                Fixture f;

                set_up(&f, rows);
                g_assert_true(finds(&f, N_COLUMNS));
                moved = i;
                next_row(&f);
                g_assert_false(finds(&f, N_COLUMNS));
                tear_down(&f);
        }
}

/* SQLite compiled the statement again, and it has other columns. */
static void test_other_columns(void) {
        Fixture f;

        set_up(&f, rows);
        g_assert_true(finds(&f, N_COLUMNS));
        n_calls = 0;
        g_assert_true(finds(&f, N_COLUMNS - 1));
        g_assert_cmpuint(n_calls, >=, N_COLUMNS - 1); /* all are asked for again */
        tear_down(&f);
}

/* One or two values are asked for anyway. */
static void test_few_columns(void) {
        Fixture f;

        set_up(&f, rows);
        for (unsigned n = 1; n <= 2; n++)
                g_assert_false(finds(&f, n));
        g_assert_cmpuint(n_calls, ==, 0);
        tear_down(&f);
}

/* Without a row, SQLite returns the same value for each column. */
static void test_no_row(void) {
        Fixture f;

        set_up(&f, rows);
        g_assert_cmpint(sqlite3_reset(f.stmt), ==, SQLITE_OK);
        g_assert_false(finds(&f, N_COLUMNS));
        tear_down(&f);

        set_up(&f, rows);
        g_assert_true(finds(&f, N_COLUMNS));
        g_assert_cmpint(sqlite3_reset(f.stmt), ==, SQLITE_OK);
        g_assert_false(finds(&f, N_COLUMNS));
        tear_down(&f);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/worker/row-layout/array", test_array);
        g_test_add_func("/worker/row-layout/first-row", test_first_row);
        g_test_add_func("/worker/row-layout/later-row", test_later_row);
        g_test_add_func("/worker/row-layout/other-columns", test_other_columns);
        g_test_add_func("/worker/row-layout/few-columns", test_few_columns);
        g_test_add_func("/worker/row-layout/no-row", test_no_row);
        return g_test_run();
}
