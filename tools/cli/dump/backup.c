/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A dump into an SQLite file, see backup.h. */
#include "tools/cli/dump/backup.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <string.h>

#include "tools/terminal/format.h"

enum { STATEMENT_SHOWN_MAX = 100 };

typedef struct Backup {
        Shell *shell;
        sqlite3 *db;
        sqlite3_stmt *insert;
        const SnapshotTable *table; /* whose rows `insert` takes */
} Backup;

static int complain(const Backup *backup, int rc) {
        shell_complain(backup->shell, "cannot write the file: %s", sqlite3_errmsg(backup->db));
        return rc == SQLITE_NOMEM ? -ENOMEM : rc == SQLITE_FULL ? -ENOSPC : -EIO;
}

static int execute(const Backup *backup, const char *sql) {
        int rc = sqlite3_exec(backup->db, sql, NULL, NULL, NULL);

        return rc == SQLITE_OK ? 0 : complain(backup, rc);
}

/* Sets the properties of the whole file while it is still empty. No other process uses the file before it is complete, so
 * neither journal nor sync are needed. Constraints are off, because the database may contain rows that they would refuse
 * today. */
static int begin(void *userdata, const DumpHeader *header) {
        Backup *backup = userdata;
        g_autofree char *sql = g_strdup_printf(
                        "PRAGMA encoding='%s'; PRAGMA page_size=%" PRId64 "; PRAGMA auto_vacuum=%" PRId64 ";"
                        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA foreign_keys=OFF;"
                        "PRAGMA ignore_check_constraints=ON; BEGIN;"
                        "PRAGMA application_id=%" PRId64 "; PRAGMA user_version=%" PRId64,
                        header->encoding, header->page_size, header->auto_vacuum, header->application_id,
                        header->user_version);

        return execute(backup, sql);
}

/* Most of these make an object, and this SQLite may lack the collation or function that it needs. */
static int statement(void *userdata, const char *sql) {
        Backup *backup = userdata;
        g_autoptr(GString) shown = NULL;

        if (sqlite3_exec(backup->db, sql, NULL, NULL, NULL) == SQLITE_OK)
                return 0;
        shown = g_string_new(NULL);
        format_shown_text(shown, sql, strlen(sql), STATEMENT_SHOWN_MAX);
        shell_complain(backup->shell, "the file cannot be filled, because SQLite cannot run this statement: %s: %s",
                       shown->str, sqlite3_errmsg(backup->db));
        return -EIO;
}

static int prepare_insert(Backup *backup, const SnapshotTable *table) {
        g_autoptr(GString) sql = g_string_new("INSERT INTO ");
        int rc;

        schema_append_quoted(sql, table->object->name);
        g_string_append_printf(sql, "(%s", table->with_rowid ? table->object->rowid : "");
        for (guint i = 0; i < table->columns->len; i++) {
                g_string_append(sql, i > 0 || table->with_rowid ? "," : "");
                schema_append_quoted(sql, g_ptr_array_index(table->columns, i));
        }
        g_string_append(sql, ")VALUES(?");
        for (size_t i = 1; i < table->n_values; i++)
                g_string_append(sql, ",?");
        g_string_append_c(sql, ')');

        (void) sqlite3_finalize(backup->insert);
        backup->table = table;
        rc = sqlite3_prepare_v2(backup->db, sql->str, -1, &backup->insert, NULL);
        return rc == SQLITE_OK ? 0 : complain(backup, rc);
}

/* `whole`: the values stay valid until the row is inserted; otherwise each piece is valid only until the next one. */
static int bind(sqlite3_stmt *insert, int place, const Value *value, bool whole) {
        sqlite3_destructor_type keep = whole ? SQLITE_STATIC : SQLITE_TRANSIENT;

        switch (value->type) {
        case SQLIPC_INTEGER:
                return sqlite3_bind_int64(insert, place, value->integer);
        case SQLIPC_REAL:
                return sqlite3_bind_double(insert, place, value->real);
        case SQLIPC_TEXT:
                return sqlite3_bind_text64(insert, place, value->bytes, value->size, keep, SQLITE_UTF8);
        case SQLIPC_BLOB:
                return sqlite3_bind_blob64(insert, place, value->bytes, value->size, keep);
        default:
                return sqlite3_bind_null(insert, place);
        }
}

static int values(void *userdata, const SnapshotTable *table, const Value *values, size_t first, size_t n) {
        Backup *backup = userdata;
        int r, rc = SQLITE_OK;

        if (backup->table != table) {
                r = prepare_insert(backup, table);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < n && rc == SQLITE_OK; i++)
                rc = bind(backup->insert, (int) (first + i) + 1, &values[i], n == table->n_values);
        if (rc == SQLITE_OK && first + n == table->n_values) {
                (void) sqlite3_step(backup->insert);
                rc = sqlite3_reset(backup->insert);
        }
        return rc == SQLITE_OK ? 0 : complain(backup, rc);
}

static int fill(Backup *backup, const DumpOptions *options) {
        static const DumpSink sink = { .begin = begin, .statement = statement, .values = values };
        int r = dump_run(backup->shell, options, &sink, backup);

        (void) sqlite3_finalize(backup->insert);
        return r < 0 ? r : execute(backup, "COMMIT");
}

int backup_write(Shell *shell, const DumpOptions *options, const char *path) {
        Backup backup = { .shell = shell };
        int r, rc;

        rc = sqlite3_open_v2(path, &backup.db, SQLITE_OPEN_READWRITE, NULL);
        if (backup.db) /* the SQL of the database must not reach other files */
                (void) sqlite3_limit(backup.db, SQLITE_LIMIT_ATTACHED, 0);
        r = rc == SQLITE_OK ? fill(&backup, options) : complain(&backup, rc);
        (void) sqlite3_close(backup.db);
        return r;
}
