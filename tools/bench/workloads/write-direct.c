/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writers that open the file themselves, as programs do without a service, see write.h. */
#include <errno.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <stdio.h>

#include "tools/bench/core/dataset.h"
#include "tools/bench/workloads/write.h"

enum { BUSY_TIMEOUT_MSEC = 10000 };

typedef struct DirectWriter {
        sqlite3 *db;
        sqlite3_stmt *insert;
} DirectWriter;

static int failed(sqlite3 *db, const char *what) {
        fprintf(stderr, "sqlipc-bench: in process: %s: %s\n", what, sqlite3_errmsg(db));
        return -EIO;
}

static int direct_clear(const WriteTarget *target) {
        for (const DatasetKind *kind = dataset_kinds; kind->name; kind++)
                if (g_str_equal(kind->name, target->table))
                        return dataset_make(&(Dataset) { .kind = kind, .force = true, .path = target->file });
        return -ENOENT;
}

static int ask_count(sqlite3 *db, const char *table, WriteCount *ret) {
        g_autofree char *sql = g_strdup_printf("SELECT count(*), count(DISTINCT n) FROM %s", table);
        sqlite3_stmt *statement = NULL;
        int r = 0;

        if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
                *ret = (WriteCount) { sqlite3_column_int64(statement, 0), sqlite3_column_int64(statement, 1) };
        else
                r = failed(db, sql);
        (void) sqlite3_finalize(statement);
        return r;
}

static int direct_count(const WriteTarget *target, WriteCount *ret) {
        sqlite3 *db = NULL;
        int r;

        if (sqlite3_open_v2(target->file, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
                r = ask_count(db, target->table, ret);
        else
                r = failed(db, target->file);
        (void) sqlite3_close(db);
        return r;
}

static void direct_close(void *userdata) {
        DirectWriter *writer = userdata;

        (void) sqlite3_finalize(writer->insert);
        (void) sqlite3_close(writer->db);
        g_free(writer);
}

static int direct_open(const WriteTarget *target, void **ret_writer) {
        g_autofree char *sql = g_strdup_printf("INSERT INTO %s(n, r, t) VALUES (?1, " WRITE_VALUES ")", target->table);
        DirectWriter *writer = g_new0(DirectWriter, 1);
        int r = 0;

        if (sqlite3_open_v2(target->file, &writer->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
            sqlite3_busy_timeout(writer->db, BUSY_TIMEOUT_MSEC) != SQLITE_OK ||
            sqlite3_exec(writer->db, "PRAGMA synchronous = FULL", NULL, NULL, NULL) != SQLITE_OK ||
            sqlite3_prepare_v2(writer->db, sql, -1, &writer->insert, NULL) != SQLITE_OK)
                r = failed(writer->db, target->file);
        if (r < 0)
                direct_close(writer);
        else
                *ret_writer = writer;
        return r;
}

static int direct_write(void *userdata, int64_t number, const char **ret_message) {
        DirectWriter *writer = userdata;
        int code;

        (void) sqlite3_bind_int64(writer->insert, 1, number);
        (void) sqlite3_step(writer->insert);
        code = sqlite3_reset(writer->insert); /* the result of the step */
        if (code == SQLITE_OK)
                return 0;
        *ret_message = sqlite3_errmsg(writer->db);
        return -EIO;
}

WriterKind write_direct(const WriteTarget *target) {
        return (WriterKind) {
                .name = "each opens the file", .clear = direct_clear, .count = direct_count, .open = direct_open,
                .write = direct_write, .close = direct_close, .target = target,
        };
}

void write_direct_remove(const WriteTarget *target) {
        static const char *const suffixes[] = { "", "-journal", "-wal", "-shm" };

        for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
                g_autofree char *path = g_strconcat(target->file, suffixes[i], NULL);

                (void) g_unlink(path);
        }
}
