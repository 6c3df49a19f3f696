/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQLite in process, see baseline.h. */
#include "tools/bench/core/baseline.h"

#include <errno.h>
#include <glib.h>
#include <sqlite3.h>
#include <stdio.h>

#include "tools/bench/core/copy-sqlite.h"

struct Baseline {
        sqlite3 *db;
        sqlite3 *alone; /* the same file without SQLite's mutexes, for BASELINE_FASTEST */
};

static int failed(sqlite3 *db, const char *what) {
        fprintf(stderr, "sqlipc-bench: in process: %s: %s\n", what, sqlite3_errmsg(db));
        return -EIO;
}

static int open_file(const char *path, int flags, sqlite3 **ret) {
        return sqlite3_open_v2(path, ret, SQLITE_OPEN_READONLY | flags, NULL) == SQLITE_OK ? 0 : failed(*ret, path);
}

int baseline_open(const char *path, Baseline **ret) {
        Baseline *baseline = g_new0(Baseline, 1);
        int r = open_file(path, 0, &baseline->db);

        if (r >= 0)
                r = open_file(path, SQLITE_OPEN_NOMUTEX, &baseline->alone);
        if (r < 0)
                baseline_close(baseline);
        else
                *ret = baseline;
        return r;
}

Baseline *baseline_close(Baseline *baseline) {
        if (!baseline)
                return NULL;
        (void) sqlite3_close(baseline->db);
        (void) sqlite3_close(baseline->alone);
        g_free(baseline);
        return NULL;
}

void baseline_closep(Baseline **baseline) {
        *baseline = baseline_close(*baseline);
}

int baseline_copy(Baseline *baseline, const char *sql, BaselineMethod method, Copy *copy) {
        sqlite3 *db = method == BASELINE_FASTEST ? baseline->alone : baseline->db;
        sqlite3_stmt *statement;
        int r, n_columns;

        if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
                return failed(db, sql);
        n_columns = sqlite3_column_count(statement);
        while ((r = sqlite3_step(statement)) == SQLITE_ROW) {
                if (method == BASELINE_USUAL)
                        for (int i = 0; i < n_columns; i++)
                                copy_sqlite_column(copy, statement, i);
                else
                        for (int i = 0; i < n_columns; i++)
                                copy_sqlite_value(copy, sqlite3_column_value(statement, i));
                copy->n_rows++;
        }
        if (r != SQLITE_DONE)
                failed(db, sql);
        (void) sqlite3_finalize(statement);
        return r == SQLITE_DONE ? 0 : -EIO;
}

int baseline_first_row(Baseline *baseline, const char *sql) {
        sqlite3_stmt *statement;
        int r;

        if (sqlite3_prepare_v2(baseline->db, sql, -1, &statement, NULL) != SQLITE_OK)
                return failed(baseline->db, sql);
        r = sqlite3_step(statement);
        if (r != SQLITE_ROW && r != SQLITE_DONE)
                failed(baseline->db, sql);
        (void) sqlite3_finalize(statement);
        return r == SQLITE_ROW || r == SQLITE_DONE ? 0 : -EIO;
}

const char *baseline_version(void) {
        return sqlite3_libversion();
}
