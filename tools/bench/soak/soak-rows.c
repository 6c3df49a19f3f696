/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rows of the dataset `point`, read by SQLite in process, see soak.h. Every answer is compared with them. */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "tools/bench/soak/soak.h"

static const int types[] = { SQLITE_INTEGER, SQLITE_INTEGER, SQLITE_FLOAT, SQLITE_TEXT };

/* Reads one row, which must have the next key. */
static int read_row(sqlite3_stmt *statement, GArray *rows) {
        SoakRow row = {};

        for (int i = 0; i < (int) G_N_ELEMENTS(types); i++)
                if (sqlite3_column_type(statement, i) != types[i])
                        return -EBADMSG;
        if (sqlite3_column_int64(statement, 0) != (int64_t) rows->len + 1 ||
            sqlite3_column_bytes(statement, 3) != SOAK_TEXT_LENGTH)
                return -EBADMSG;
        row.n = sqlite3_column_int64(statement, 1);
        row.r = sqlite3_column_double(statement, 2);
        memcpy(row.t, sqlite3_column_text(statement, 3), SOAK_TEXT_LENGTH);
        g_array_append_val(rows, row);
        return 0;
}

int soak_read_rows(const char *path, SoakRow **ret, int64_t *ret_n) {
        g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(SoakRow));
        sqlite3_stmt *statement = NULL;
        sqlite3 *database = NULL;
        int code = sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL), r = 0;

        if (code == SQLITE_OK)
                code = sqlite3_prepare_v2(database, "SELECT id, n, r, t FROM point ORDER BY id", -1, &statement, NULL);
        while (code == SQLITE_OK || code == SQLITE_ROW) {
                code = sqlite3_step(statement);
                if (code == SQLITE_ROW && (r = read_row(statement, rows)) < 0)
                        break;
        }
        if (r >= 0 && (code != SQLITE_DONE || rows->len == 0))
                r = -EIO;
        if (r < 0)
                fprintf(stderr, "sqlipc-bench: %s is not the dataset point: %s\n", path,
                        r == -EIO ? sqlite3_errmsg(database) : "other values");
        sqlite3_finalize(statement);
        sqlite3_close(database);
        if (r < 0)
                return r;
        *ret_n = rows->len;
        *ret = (SoakRow *) (void *) g_array_free(g_steal_pointer(&rows), FALSE);
        return 0;
}
