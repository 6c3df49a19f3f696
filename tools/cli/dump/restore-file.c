/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The SQLite file of .restore, see restore-file.h. */
#include "tools/cli/dump/restore-file.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

/* The file may come from anywhere, so its schema runs no functions with effects, and SQLite distrusts its structure. */
static int begin(RestoreFile *file) {
        int r;

        (void) sqlite3_db_config(file->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        (void) sqlite3_db_config(file->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        (void) sqlite3_limit(file->db, SQLITE_LIMIT_ATTACHED, 0);
        if (sqlite3_exec(file->db, "PRAGMA cell_size_check = ON; BEGIN", NULL, NULL, NULL) != SQLITE_OK)
                return -EIO;
        r = restore_file_query(file, "PRAGMA page_count", NULL);
        if (r >= 0)
                r = restore_file_next(file);
        return r < 0 ? r : g_array_index(file->row, Value, 0).integer > 0 ? 0 : -ENODATA;
}

int restore_file_open(RestoreFile *file, const char *path) {
        *file = (RestoreFile) { .row = g_array_new(false, true, sizeof(Value)) };
        return sqlite3_open_v2(path, &file->db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK ? begin(file) : -EIO;
}

void restore_file_close(RestoreFile *file) {
        (void) sqlite3_finalize(file->stmt);
        (void) sqlite3_close(file->db);
        g_array_unref(file->row);
        *file = (RestoreFile) {};
}

const char *restore_file_message(const RestoreFile *file) {
        return sqlite3_errmsg(file->db);
}

int restore_file_query(RestoreFile *file, const char *sql, const char *argument) {
        (void) sqlite3_finalize(file->stmt);
        if (sqlite3_prepare_v2(file->db, sql, -1, &file->stmt, NULL) != SQLITE_OK)
                return -EIO;
        if (argument)
                (void) sqlite3_bind_text64(file->stmt, 1, argument, strlen(argument), SQLITE_TRANSIENT, SQLITE_UTF8);
        g_array_set_size(file->row, (guint) sqlite3_column_count(file->stmt));
        return 0;
}

static Value value_of(sqlite3_stmt *stmt, int column) {
        Value value = { .type = (sqlipc_type) sqlite3_column_type(stmt, column) };

        switch (value.type) {
        case SQLIPC_INTEGER:
                value.integer = sqlite3_column_int64(stmt, column);
                break;
        case SQLIPC_REAL:
                value.real = sqlite3_column_double(stmt, column);
                break;
        case SQLIPC_TEXT:
                value.bytes = (const char *) sqlite3_column_text(stmt, column);
                value.size = (size_t) sqlite3_column_bytes(stmt, column);
                break;
        case SQLIPC_BLOB:
                value.bytes = sqlite3_column_blob(stmt, column) ?: "";
                value.size = (size_t) sqlite3_column_bytes(stmt, column);
                break;
        case SQLIPC_NULL:
                break;
        }
        return value;
}

int restore_file_next(RestoreFile *file) {
        int rc = sqlite3_step(file->stmt);

        if (rc == SQLITE_DONE)
                return 0;
        if (rc != SQLITE_ROW)
                return -EIO;
        for (guint i = 0; i < file->row->len; i++)
                g_array_index(file->row, Value, i) = value_of(file->stmt, (int) i);
        return 1;
}
