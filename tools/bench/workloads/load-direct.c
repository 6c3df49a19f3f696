/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A load in process: a prepared INSERT in one transaction, see load.h. */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>

#include "tools/bench/core/copy-sqlite.h"
#include "tools/bench/workloads/load.h"

typedef struct DirectLoader {
        const LoadTask *task;
        sqlite3 *db;
} DirectLoader;

static int failed(const DirectLoader *loader, const char *what) {
        fprintf(stderr, "sqlipc-bench: in process: %s: %s\n", what, sqlite3_errmsg(loader->db));
        return -EIO;
}

static int execute(const DirectLoader *loader, const char *sql) {
        return sqlite3_exec(loader->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(loader, sql);
}

static void direct_close(void *userdata) {
        DirectLoader *loader = userdata;

        (void) sqlite3_close(loader->db);
        g_free(loader);
}

static int make_file(const char *path) {
        for (const DatasetKind *kind = dataset_kinds; kind->name; kind++)
                if (g_str_equal(kind->name, LOAD_TABLE))
                        return dataset_make(&(Dataset) { .kind = kind, .force = true, .path = path });
        return -ENOENT;
}

static int direct_open(const LoadTask *task, void **ret_loader) {
        DirectLoader *loader;
        int r = make_file(task->file);

        if (r < 0)
                return r;
        loader = g_new(DirectLoader, 1);
        *loader = (DirectLoader) { .task = task };
        if (sqlite3_open_v2(task->file, &loader->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
                r = failed(loader, task->file);
        else
                r = execute(loader, "PRAGMA synchronous = FULL");
        if (r < 0)
                direct_close(loader);
        else
                *ret_loader = loader;
        return r;
}

static int direct_clear(void *userdata) {
        const DirectLoader *loader = userdata;
        sqlite3_stmt *delete = NULL;
        int code = sqlite3_prepare_v2(loader->db, LOAD_DELETE, -1, &delete, NULL);

        for (int64_t row = 0; code == SQLITE_OK && row < loader->task->rows->n; row += LOAD_DELETE_ROWS) {
                (void) sqlite3_bind_int64(delete, 1, row + LOAD_DELETE_ROWS);
                (void) sqlite3_step(delete);
                code = sqlite3_reset(delete);
        }
        (void) sqlite3_finalize(delete);
        return code == SQLITE_OK ? 0 : failed(loader, LOAD_DELETE);
}

static int insert_row(sqlite3_stmt *insert, const LoadRows *rows, int64_t row) {
        int code = sqlite3_bind_int64(insert, 1, row + 1);

        for (int i = 0; code == SQLITE_OK && i < DATASET_STUDY_COLUMNS; i++)
                code = sqlite3_bind_text(insert, i + 2, load_rows_text(rows, row, i), DATASET_STUDY_LENGTH, SQLITE_STATIC);
        if (code != SQLITE_OK)
                return code;
        (void) sqlite3_step(insert);
        return sqlite3_reset(insert); /* the result of the step */
}

static int insert_rows(const DirectLoader *loader) {
        const LoadRows *rows = loader->task->rows;
        sqlite3_stmt *insert = NULL;
        int code = sqlite3_prepare_v2(loader->db, LOAD_INSERT, -1, &insert, NULL);

        for (int64_t row = 0; code == SQLITE_OK && row < rows->n; row++)
                code = insert_row(insert, rows, row);
        (void) sqlite3_finalize(insert);
        return code == SQLITE_OK ? 0 : failed(loader, LOAD_INSERT);
}

static int direct_load(void *loader) {
        int r = execute(loader, "BEGIN IMMEDIATE");

        if (r >= 0)
                r = insert_rows(loader);
        return r < 0 ? r : execute(loader, "COMMIT");
}

static int direct_copy(void *userdata, Copy *copy) {
        static const char sql[] = "SELECT * FROM " LOAD_TABLE " ORDER BY id";
        const DirectLoader *loader = userdata;
        sqlite3_stmt *select = NULL;
        int code = sqlite3_prepare_v2(loader->db, sql, -1, &select, NULL);

        if (code != SQLITE_OK)
                return failed(loader, sql);
        while ((code = sqlite3_step(select)) == SQLITE_ROW) {
                for (int i = 0; i < 1 + DATASET_STUDY_COLUMNS; i++)
                        copy_sqlite_column(copy, select, i);
                copy->n_rows++;
        }
        if (code != SQLITE_DONE)
                (void) failed(loader, sql);
        (void) sqlite3_finalize(select);
        return code == SQLITE_DONE ? 0 : -EIO;
}

const LoaderKind load_direct = {
        .name = "in process", .open = direct_open, .clear = direct_clear, .load = direct_load, .copy = direct_copy,
        .close = direct_close,
};
