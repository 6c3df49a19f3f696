/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pure parts of live models: differences of lists, applied one after the other; and statements of windows, which cut a
 * table with NULLs, equal values and descending terms into pieces that give the whole again.
 */
#include <sqlite3.h>

#include "client-lib/glib/list-difference.h"
#include "client-lib/glib/live-sql.h"
#include "tests/unit/test.h"

#define N_MAX 40u

/* A list of different numbers below 2 * N_MAX, in any order. */
static guint random_list(GRand *chance, guint *list, const guint *from, guint n_from) {
        guint n = 0;

        for (guint i = 0; i < n_from && n < N_MAX; i++)
                if (g_rand_int_range(chance, 0, 8) > 0)
                        list[n++] = from[i];
        for (guint k = 0; k < 4 && n < N_MAX; k++) {
                guint number = (guint) g_rand_int_range(chance, 0, 2 * N_MAX);
                guint at = (guint) g_rand_int_range(chance, 0, (int) n + 1);
                bool used = false;

                for (guint i = 0; i < n; i++)
                        used = used || list[i] == number;
                if (used)
                        continue;
                memmove(list + at + 1, list + at, (n - at) * sizeof *list);
                list[at] = number;
                n++;
        }
        if (n > 2 && g_rand_boolean(chance)) { /* one moves */
                guint first = list[0];

                memmove(list, list + 1, (n - 1) * sizeof *list);
                list[n - 1] = first;
        }
        return n;
}

static void test_difference(void) {
        GRand *chance = g_rand_new_with_seed(18);
        guint before[N_MAX + 1], after[N_MAX + 1], n_before = 0;

        for (guint round = 0; round < 20000; round++) {
                guint n_after = random_list(chance, after, before, n_before), matches[N_MAX + 1], list[3 * N_MAX];
                guint n = n_before, n_changed = 0;
                GArray *ranges;

                for (guint i = 0; i < n_after; i++) {
                        matches[i] = LIST_NO_MATCH;
                        for (guint k = 0; k < n_before; k++)
                                if (before[k] == after[i])
                                        matches[i] = k;
                }
                ranges = list_difference(n_before, matches, n_after);
                memcpy(list, before, n_before * sizeof *list);
                for (guint i = 0; i < ranges->len; i++) {
                        const ListRange *range = &g_array_index(ranges, ListRange, i);

                        CHECK(range->position + range->n_removed <= n);
                        memmove(list + range->position + range->n_added, list + range->position + range->n_removed,
                                (n - range->position - range->n_removed) * sizeof *list);
                        memcpy(list + range->position, after + range->after, range->n_added * sizeof *list);
                        n += range->n_added - range->n_removed;
                        n_changed += range->n_added + range->n_removed;
                }
                CHECK(n == n_after && memcmp(list, after, n * sizeof *list) == 0);
                CHECK(n_changed > 0 || n_before == n_after);
                g_array_unref(ranges);
                memcpy(before, after, n_after * sizeof *before);
                n_before = n_after;
        }
        g_rand_free(chance);
}

/* One row that is added in the middle of many is one range. */
static void test_least(void) {
        const guint n = 1000;
        guint matches[1001];
        GArray *ranges;

        for (guint i = 0; i <= n; i++)
                matches[i] = i < 500 ? i : i == 500 ? LIST_NO_MATCH : i - 1;
        ranges = list_difference(n, matches, n + 1);
        CHECK_INT((int) ranges->len, 1);
        CHECK(g_array_index(ranges, ListRange, 0).position == 500 && g_array_index(ranges, ListRange, 0).n_added == 1);
        g_array_unref(ranges);
        ranges = list_difference(n, matches, 500); /* the end was removed */
        CHECK_INT((int) ranges->len, 1);
        CHECK(g_array_index(ranges, ListRange, 0).n_removed == 500);
        g_array_unref(ranges);
}

static void bind(sqlite3_stmt *statement, const GArray *parameters) {
        for (guint i = 0; i < parameters->len; i++) {
                const sqlipc_parameter *p = &g_array_index(parameters, sqlipc_parameter, i);
                int index = sqlite3_bind_parameter_index(statement, p->name);

                CHECK(index > 0);
                if (p->type == SQLIPC_INTEGER)
                        sqlite3_bind_int64(statement, index, p->integer);
                else
                        sqlite3_bind_text(statement, index, p->bytes, (int) p->size, SQLITE_TRANSIENT);
        }
}

static sqlipc_value value_of(sqlite3_stmt *statement, int column) {
        sqlipc_value value = { .type = (sqlipc_type) sqlite3_column_type(statement, column) };

        if (value.type == SQLIPC_INTEGER) {
                value.as.integer = sqlite3_column_int64(statement, column);
        } else if (value.type == SQLIPC_TEXT) {
                value.size = (uint32_t) sqlite3_column_bytes(statement, column);
                value.as.text = g_intern_string((const char *) sqlite3_column_text(statement, column));
        }
        return value;
}

/* Reads the table by windows between each seventh row. */
static void check_order(sqlite3 *db, const char *const *order) {
        const char *const key[] = { "id", NULL };
        GArray *terms = live_sql_terms(key, order), *starts = g_array_new(FALSE, FALSE, 2 * sizeof(sqlipc_value));
        GArray *all = g_array_new(FALSE, FALSE, sizeof(sqlite3_int64));
        char *sql = live_sql_scan("SELECT * FROM t", terms);
        sqlite3_stmt *statement;
        guint n = 0;

        CHECK(sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK);
        for (guint i = 0; sqlite3_step(statement) == SQLITE_ROW; i++) {
                sqlipc_value start[2] = { value_of(statement, 0), value_of(statement, (int) terms->len - 1) };
                sqlite3_int64 id = sqlite3_column_int64(statement, (int) terms->len - 1);

                g_array_append_val(all, id);
                if (i % 7 == 0)
                        g_array_append_val(starts, start);
        }
        sqlite3_finalize(statement);
        g_free(sql);
        CHECK(all->len > 50);
        for (guint i = 0; i < starts->len; i++) {
                const sqlipc_value *at = &g_array_index(starts, sqlipc_value, 2 * i);
                const sqlipc_value *end = i + 1 < starts->len ? &g_array_index(starts, sqlipc_value, 2 * (i + 1)) : NULL;
                GArray *parameters = g_array_new(FALSE, FALSE, sizeof(sqlipc_parameter));

                sql = live_sql_window("SELECT * FROM t", terms, i > 0 ? at : NULL, end, 100, parameters);
                CHECK(sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK);
                bind(statement, parameters);
                while (sqlite3_step(statement) == SQLITE_ROW && !(end && sqlite3_column_int(statement, 2)))
                        CHECK(n < all->len && sqlite3_column_int64(statement, 0) == g_array_index(all, sqlite3_int64, n++));
                sqlite3_finalize(statement);
                g_array_unref(parameters);
                g_free(sql);
        }
        CHECK_INT((int) n, (int) all->len);
        g_array_unref(starts);
        g_array_unref(all);
        g_array_unref(terms);
}

static void test_windows(void) {
        sqlite3 *db;

        CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK);
        CHECK(sqlite3_exec(db,
                           "CREATE TABLE t(id INTEGER PRIMARY KEY, \"a \"\"name\" COLLATE NOCASE);"
                           "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n WHERE x < 60)"
                           "INSERT INTO t SELECT x, CASE x % 4 WHEN 0 THEN NULL WHEN 1 THEN x % 3 WHEN 2 THEN 'Ab'"
                           " ELSE 'aB' END"
                           " FROM n",
                           NULL, NULL, NULL) == SQLITE_OK);
        check_order(db, (const char *const[]) { "a \"name", NULL });
        check_order(db, (const char *const[]) { "a \"name DESC", NULL });
        sqlite3_close(db);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_difference),
                TEST(test_least),
                TEST(test_windows),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
