/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Creates a dataset's file, see dataset.h. One transaction without a journal: no other program knows the file yet. */
#include "tools/bench/core/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/bench/core/measure.h"

enum { ROWS_A_STEP_OF_PROGRESS = 1 << 16 };

static int failed(sqlite3 *db, const char *what) {
        fprintf(stderr, "sqlipc-bench: %s: %s\n", what, sqlite3_errmsg(db));
        return -EIO;
}

static int execute(sqlite3 *db, const char *sql) {
        return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(db, sql);
}

static int insert_rows(sqlite3 *db, sqlite3_stmt *insert, const Dataset *dataset) {
        Random random;

        random_init(&random, (uint64_t) dataset->seed);
        for (gint64 row = 1; row <= dataset->n_rows; row++) {
                if (row % ROWS_A_STEP_OF_PROGRESS == 0)
                        measure_progress(dataset->kind->name, (unsigned) row, (unsigned) dataset->n_rows);
                if (dataset->kind->bind(insert, row, &random) != SQLITE_OK)
                        return failed(db, "bind");
                if (sqlite3_step(insert) != SQLITE_DONE || sqlite3_reset(insert) != SQLITE_OK)
                        return failed(db, "insert");
        }
        measure_progress(dataset->kind->name, 1, 1);
        return 0;
}

static int fill(sqlite3 *db, const Dataset *dataset) {
        const DatasetKind *kind = dataset->kind;
        g_autofree char *create = g_strdup_printf("CREATE TABLE %s (%s)", kind->name, kind->columns);
        g_autoptr(GString) sql = g_string_new(NULL);
        sqlite3_stmt *insert;
        int r;

        r = execute(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
        if (r >= 0)
                r = execute(db, create);
        if (r >= 0 && kind->also)
                r = execute(db, kind->also);
        if (r < 0)
                return r;
        g_string_printf(sql, "INSERT INTO %s VALUES (?", kind->name);
        for (unsigned i = 1; i < kind->n_columns; i++)
                g_string_append(sql, ", ?");
        g_string_append_c(sql, ')');
        if (sqlite3_prepare_v2(db, sql->str, -1, &insert, NULL) != SQLITE_OK)
                return failed(db, sql->str);
        r = insert_rows(db, insert, dataset);
        sqlite3_finalize(insert);
        if (r < 0)
                return r;
        return execute(db, dataset->wal || kind->wal
                                   ? "COMMIT; PRAGMA synchronous = FULL; PRAGMA journal_mode = WAL"
                                        : "COMMIT; PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE");
}

static int make(const Dataset *dataset, const char *path) {
        sqlite3 *db = NULL;
        int r;

        if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
                r = fill(db, dataset);
        else
                r = failed(db, path);
        if (sqlite3_close(db) != SQLITE_OK && r >= 0)
                r = failed(db, path);
        return r;
}

/* Removes the journal files of the database that is replaced; SQLite would use them with the new one. */
static void remove_companions(const char *path) {
        static const char *const suffixes[] = { "-journal", "-wal", "-shm" };

        for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
                g_autofree char *companion = g_strconcat(path, suffixes[i], NULL);

                (void) g_unlink(companion);
        }
}

int dataset_make(const Dataset *dataset) {
        g_autofree char *temporary = g_strconcat(dataset->path, ".XXXXXX", NULL);
        int fd, r;

        if (!dataset->force && g_access(dataset->path, F_OK) == 0) {
                fprintf(stderr, "sqlipc-bench: %s exists; --force replaces it.\n", dataset->path);
                return -EEXIST;
        }
        fd = g_mkstemp_full(temporary, O_RDWR | O_CLOEXEC, 0666);
        if (fd < 0) {
                r = -errno;
                fprintf(stderr, "sqlipc-bench: cannot create %s: %s\n", temporary, g_strerror(errno));
                return r;
        }
        close(fd);

        r = make(dataset, temporary);
        if (r >= 0)
                remove_companions(dataset->path);
        if (r >= 0 && g_rename(temporary, dataset->path) < 0) {
                r = -errno;
                fprintf(stderr, "sqlipc-bench: cannot rename %s to %s: %s\n", temporary, dataset->path, g_strerror(errno));
        }
        if (r < 0)
                (void) g_unlink(temporary);
        return r;
}
