/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Point queries in process with a statement that is prepared once, see point.h. */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>

#include "tools/bench/core/copy-sqlite.h"
#include "tools/bench/workloads/point.h"

typedef struct InProcess {
        sqlite3 *db;
        sqlite3_stmt *statement;
} InProcess;

static int failed(sqlite3 *db) {
        fprintf(stderr, "sqlipc-bench: in process: %s\n", sqlite3_errmsg(db));
        return -EIO;
}

static void in_process_close(void *client) {
        InProcess *in_process = client;

        (void) sqlite3_finalize(in_process->statement);
        (void) sqlite3_close(in_process->db);
        g_free(in_process);
}

static int open_and_prepare(const char *file, const char *sql, InProcess **ret) {
        InProcess *in_process = g_new0(InProcess, 1);

        if (sqlite3_open_v2(file, &in_process->db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
            sqlite3_prepare_v2(in_process->db, sql, -1, &in_process->statement, NULL) != SQLITE_OK) {
                int r = failed(in_process->db);

                in_process_close(in_process);
                return r;
        }
        *ret = in_process;
        return 0;
}

static int in_process_open(void *userdata, void **ret_client) {
        const Point *point = userdata;
        InProcess *in_process;
        int r;

        r = open_and_prepare(point->options->file, POINT_SQL, &in_process);
        if (r >= 0)
                *ret_client = in_process;
        return r;
}

static int ask_one(void *client, int64_t key, Copy *copy) {
        InProcess *in_process = client;
        int n_columns = sqlite3_column_count(in_process->statement), r;

        if (sqlite3_bind_int64(in_process->statement, 1, key) != SQLITE_OK)
                return failed(in_process->db);
        while ((r = sqlite3_step(in_process->statement)) == SQLITE_ROW) {
                for (int i = 0; i < n_columns; i++)
                        copy_sqlite_column(copy, in_process->statement, i);
                copy->n_rows++;
        }
        if (r != SQLITE_DONE || sqlite3_reset(in_process->statement) != SQLITE_OK)
                return failed(in_process->db);
        return 0;
}

static int in_process_ask(void *client, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy) {
        return clients_ask_each(ask_one, client, keys, n, ret_usec, copy);
}

ClientKind point_in_process(const Point *point) {
        return (ClientKind) {
                .name = "in process", .open = in_process_open, .ask = in_process_ask, .close = in_process_close,
                .userdata = (void *) point, .answers_rows = true,
        };
}

int point_count_keys(const char *file, int64_t *ret) {
        InProcess *in_process;
        int r;

        r = open_and_prepare(file, "SELECT max(id) FROM " POINT_TABLE, &in_process);
        if (r < 0)
                return r;
        if (sqlite3_step(in_process->statement) == SQLITE_ROW && sqlite3_column_int64(in_process->statement, 0) > 0)
                *ret = sqlite3_column_int64(in_process->statement, 0);
        else
                r = failed(in_process->db);
        in_process_close(in_process);
        return r;
}
