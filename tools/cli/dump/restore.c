/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* .restore, see restore.h. */
#include "tools/cli/dump/restore.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tools/cli/dump/restore-file.h"
#include "tools/cli/dump/schema-text.h"
#include "tools/cli/dump/schema.h"
#include "tools/cli/dump/table-order.h"
#include "tools/cli/import/bulk-load.h"
#include "tools/cli/render/human.h"
#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/options.h"
#include "tools/cli/shell/query-failure.h"
#include "tools/cli/shell/query-run.h"
#include "tools/cli/shell/transaction.h"

/* SQLITE_CONSTRAINT_FOREIGNKEY */
enum { CODE_FOREIGN_KEY = 787 };
enum { ROWS_UNWATCHED = 256 }; /* between two looks at Ctrl-C and the progress */

/* Each table, with a row for each of its parents. */
#define TABLES_SQL                                                                                      \
        "SELECT s.name, f.\"table\" FROM sqlite_schema AS s "                                           \
        "LEFT JOIN pragma_foreign_key_list(s.name, 'main') AS f "                                       \
        "WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite^_%' ESCAPE '^' ORDER BY s.rowid"
#define VIRTUAL_SQL "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage = 0"
/* A name of the rowid of a table, if it has one that is no column: see schema.c. */
#define ROWID_SQL                                                                                       \
        "SELECT n.column1 FROM (VALUES('rowid'), ('_rowid_'), ('oid')) AS n "                           \
        "WHERE NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1) WHERE name = n.column1 COLLATE NOCASE) " \
        "AND NOT EXISTS (SELECT 1 FROM pragma_index_info(?1)) "                                         \
        "AND ((SELECT count(*) FROM pragma_table_info(?1) WHERE pk > 0) <> 1 "                          \
        "     OR EXISTS (SELECT 1 FROM pragma_index_list(?1) WHERE origin = 'pk'))"

typedef struct Restore {
        Shell *shell;
        const char *path;
        RestoreFile file;
        BulkLoad bulk;
        bool is_deferred;         /* foreign keys are checked at the end */
        uint64_t n_rows, n_total; /* loaded; in the file */
} Restore;

/* ---- The file ----------------------------------------------------------------------------------------------------- */

static int fail(Restore *restore, int r, const char *message) {
        bulk_load_erase(&restore->bulk);
        shell_complain(restore->shell, "%s: %s; nothing was changed", restore->path, message);
        shell_note_failure(restore->shell, EXIT_QUERY);
        return r;
}

static int fail_file(Restore *restore, int r) {
        return fail(restore, r, r == -ENODATA ? "it is empty" : restore_file_message(&restore->file));
}

static const char *text_at(const Restore *restore, guint column) {
        return g_array_index(restore->file.row, Value, column).bytes;
}

/* Returns the texts of the first column; NULL after an error, which has been reported. */
static GPtrArray *list(Restore *restore, const char *sql, const char *argument) {
        GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);
        int r = restore_file_query(&restore->file, sql, argument);

        while (r >= 0 && (r = restore_file_next(&restore->file)) > 0)
                g_ptr_array_add(texts, g_strdup(text_at(restore, 0) ?: ""));
        if (r >= 0)
                return texts;
        (void) fail_file(restore, r);
        g_ptr_array_unref(texts);
        return NULL;
}

/* Reads one number. */
static int read_number(Restore *restore, const char *sql, int64_t *ret) {
        int r = restore_file_query(&restore->file, sql, NULL);

        if (r >= 0)
                r = restore_file_next(&restore->file);
        if (r < 0)
                return fail_file(restore, r);
        *ret = r > 0 ? g_array_index(restore->file.row, Value, 0).integer : 0;
        return 0;
}

static int count_rows(Restore *restore, const char *table, uint64_t *ret) {
        g_autoptr(GString) sql = g_string_new("SELECT count(*) FROM ");
        int64_t n;
        int r;

        schema_append_quoted(sql, table);
        r = read_number(restore, sql->str, &n);
        if (r >= 0)
                *ret = (uint64_t) n;
        return r;
}

static int check_file(Restore *restore) {
        g_autoptr(GPtrArray) virtual = list(restore, VIRTUAL_SQL, NULL);
        g_autofree char *message = NULL;

        if (!virtual)
                return -EIO;
        if (virtual->len == 0)
                return 0;
        message = g_strdup_printf("the virtual table %s cannot be copied", (const char *) virtual->pdata[0]);
        return fail(restore, -EOPNOTSUPP, message);
}

/* ---- Statements of the service ------------------------------------------------------------------------------------ */

static int ignore_row(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        (void) cursor, (void) is_row, (void) userdata;
        return 0;
}

static int take_name(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        if (is_row)
                g_ptr_array_add(userdata, g_strdup(sqlipc_column_text(cursor, 0, NULL)));
        return 0;
}

static int take_table(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        if (is_row)
                table_order_add(userdata, sqlipc_column_text(cursor, 0, NULL) ?: "", sqlipc_column_text(cursor, 1, NULL));
        return 0;
}

/* Returns true if a statement or load has failed because of a foreign key whose check can be deferred. */
static bool can_defer(const Restore *restore, int r) {
        const sqlipc_connection *connection = restore->shell->session.connection;

        return r < 0 && !restore->is_deferred && connection &&
               sqlipc_error_sqlite_extended_code(connection) == CODE_FOREIGN_KEY;
}

static int defer(Restore *restore) {
        restore->is_deferred = true;
        return query_run(restore->shell, "PRAGMA defer_foreign_keys = ON", NULL, 0, ignore_row, NULL, NULL);
}

static int run(Restore *restore, const char *sql) {
        Query query = query_init(restore->shell, sql, ignore_row, NULL);
        int r = query_execute(&query);

        if (!can_defer(restore, r))
                return query_settle(&query, r);
        r = defer(restore);
        return r < 0 ? r : query_run(restore->shell, sql, NULL, 0, ignore_row, NULL, NULL);
}

static int drop(Restore *restore, const char *type, const char *name) {
        g_autoptr(GString) sql = g_string_new("DROP ");

        g_string_append_printf(sql, "%s main.", type);
        schema_append_quoted(sql, name);
        return run(restore, sql->str);
}

/* Drops the views, or the virtual tables with the tables that belong to them. */
static int drop_listed(Restore *restore, const char *type, const char *sql) {
        g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
        int r = query_run(restore->shell, sql, NULL, 0, take_name, names, NULL);

        for (guint i = 0; r >= 0 && i < names->len; i++)
                r = drop(restore, type, names->pdata[i]);
        return r;
}

static int drop_tables(Restore *restore) {
        TableOrder *order = table_order_new();
        int r = query_run(restore->shell, TABLES_SQL, NULL, 0, take_table, order, NULL);
        g_autoptr(GPtrArray) names = table_order_sort(order);

        for (guint i = names->len; r >= 0 && i > 0; i--)
                r = drop(restore, "TABLE", names->pdata[i - 1]);
        table_order_free(order);
        return r;
}

static int check_empty(Restore *restore) {
        g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
        int r = query_run(restore->shell, "SELECT name FROM sqlite_schema LIMIT 1", NULL, 0, take_name, names, NULL);

        if (r < 0 || names->len == 0)
                return r;
        shell_complain(restore->shell, "%s is not empty; --force replaces all that it has",
                       restore->shell->session.database);
        shell_note_failure(restore->shell, EXIT_QUERY);
        return -EEXIST;
}

static int drop_all(Restore *restore) {
        int r = drop_listed(restore, "VIEW", "SELECT name FROM sqlite_schema WHERE type = 'view'");

        if (r >= 0)
                r = drop_listed(restore, "TABLE", VIRTUAL_SQL);
        if (r >= 0)
                r = drop_listed(restore, "TABLE", "SELECT name FROM sqlite_schema "
                                "WHERE name LIKE 'sqlite^_stat%' ESCAPE '^' AND type = 'table'");
        return r < 0 ? r : drop_tables(restore);
}

/* ---- Objects ------------------------------------------------------------------------------------------------------ */

/* An index or trigger without the name of a schema would belong to a TEMP table that has the name of its table. SQLite keeps
 * these statements without that name. */
static char *create_sql(const char *text) {
        static const char *const beginnings[] = { "CREATE INDEX ", "CREATE UNIQUE INDEX ", "CREATE TRIGGER " };
        int size = (int) schema_text_size(text);

        for (size_t i = 0; i < G_N_ELEMENTS(beginnings); i++) {
                int n = (int) strlen(beginnings[i]);

                if (g_str_has_prefix(text, beginnings[i]))
                        return g_strdup_printf("%smain.%.*s", beginnings[i], size - n, text + n);
        }
        return g_strndup(text, (gsize) size);
}

/* Runs the CREATE statements that `sql` selects. */
static int create(Restore *restore, const char *sql, const char *argument) {
        g_autoptr(GPtrArray) texts = list(restore, sql, argument);
        int r = texts ? 0 : -EIO;

        for (guint i = 0; r >= 0 && i < texts->len; i++) {
                g_autofree char *text = create_sql(texts->pdata[i]);

                r = run(restore, text);
        }
        return r;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

/* Appends the columns that can be written, and the rowid if it is none of them; "" if `*ret_n` is 0. */
static int list_columns(Restore *restore, const char *table, GString *text, guint *ret_n) {
        g_autoptr(GPtrArray) rowid = list(restore, ROWID_SQL, table);
        g_autoptr(GPtrArray) names =
                rowid ? list(restore, "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0 ORDER BY cid", table) : NULL;

        if (!names)
                return -EIO;
        if (rowid->len > 0)
                g_string_append(text, rowid->pdata[0]);
        for (guint i = 0; i < names->len; i++) {
                g_string_append(text, text->len > 0 ? "," : "");
                schema_append_quoted(text, names->pdata[i]);
        }
        *ret_n = names->len + (rowid->len > 0);
        return 0;
}

static char *insert_sql(const char *table, const char *columns, guint n) {
        g_autoptr(GString) sql = g_string_new("INSERT INTO main.");

        schema_append_quoted(sql, table);
        g_string_append_printf(sql, "(%s)VALUES(?", columns);
        for (guint i = 1; i < n; i++)
                g_string_append(sql, ",?");
        g_string_append_c(sql, ')');
        return g_string_free(g_steal_pointer(&sql), FALSE);
}

/* Returns an error of the library; or of the file, and `*ret_of_file` is true. */
static int load_rows(Restore *restore, const char *table, const char *columns, guint n, bool *ret_of_file) {
        g_autofree char *insert = insert_sql(table, columns, n);
        g_autoptr(GString) select = g_string_new("SELECT ");
        BulkLoad *bulk = &restore->bulk;
        int64_t n_changes;
        int r;

        g_string_append_printf(select, "%s FROM ", columns);
        schema_append_quoted(select, table);
        r = restore_file_query(&restore->file, select->str, NULL);
        *ret_of_file = r < 0;
        if (r >= 0)
                r = bulk_load_open(bulk, insert, n);
        while (r >= 0 && (r = restore_file_next(&restore->file)) != 0) {
                *ret_of_file = r < 0;
                if (r > 0)
                        r = bulk_load_row(bulk, (const Value *) (const void *) restore->file.row->data);
                if (r >= 0 && ++bulk->n_rows % ROWS_UNWATCHED == 0) {
                        bulk->done = MIN((double) bulk->n_rows / (double) MAX(restore->n_total, 1), 1);
                        r = bulk_load_look_around(bulk);
                }
        }
        return r < 0 ? r : bulk_load_finish(bulk, &n_changes);
}

static int fail_loading(Restore *restore, const char *table, int r, bool of_file) {
        bulk_load_erase(&restore->bulk);
        if (r == -ECANCELED) {
                answer_cancelled(restore->shell);
                return r;
        }
        if (of_file)
                return fail_file(restore, r);
        shell_complain(restore->shell, "table %s cannot be restored, and nothing was changed:", table);
        shell_note_failure(restore->shell, query_exit_code(restore->shell, r));
        query_complain(restore->shell, r, NULL);
        return r;
}

static int load_table(Restore *restore, const char *table) {
        g_autoptr(GString) columns = g_string_new(NULL);
        uint64_t n_before = restore->bulk.n_rows;
        bool of_file;
        guint n = 0;
        int r = list_columns(restore, table, columns, &n);

        if (r < 0)
                return r;
        r = load_rows(restore, table, columns->str, n, &of_file);
        bulk_load_close(&restore->bulk);
        if (!of_file && can_defer(restore, r)) {
                restore->bulk.n_rows = n_before;
                r = defer(restore);
                if (r < 0)
                        return r;
                r = load_rows(restore, table, columns->str, n, &of_file);
                bulk_load_close(&restore->bulk);
        }
        return r < 0 ? fail_loading(restore, table, r, of_file) : 0;
}

/* Replaces the rows of a table of SQLite's own, if the file has such rows. `make`: SQL that makes sure that it exists. */
static int load_own(Restore *restore, const char *table, const char *make) {
        g_autoptr(GPtrArray) there = list(restore, "SELECT name FROM sqlite_schema WHERE name = ?1", table);
        g_autofree char *clear = g_strdup_printf("DELETE FROM main.%s", table);
        uint64_t n = 0;
        int r = there ? 0 : -EIO;

        if (r >= 0 && there->len > 0)
                r = count_rows(restore, table, &n);
        if (r < 0 || n == 0)
                return r;
        if (make)
                r = run(restore, make);
        if (r >= 0)
                r = run(restore, clear);
        return r < 0 ? r : load_table(restore, table);
}

/* ---- All ---------------------------------------------------------------------------------------------------------- */

static int for_each(Restore *restore, const GPtrArray *tables, int (*call)(Restore *restore, const char *table)) {
        int r = 0;

        for (guint i = 0; r >= 0 && i < tables->len; i++)
                r = call(restore, tables->pdata[i]);
        return r;
}

static int create_table(Restore *restore, const char *table) {
        return create(restore, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1", table);
}

static int add_rows(Restore *restore, const char *table) {
        uint64_t n = 0;
        int r = count_rows(restore, table, &n);

        restore->n_total += n;
        return r;
}

static int make_tables(Restore *restore, const GPtrArray *tables) {
        int r = for_each(restore, tables, create_table);

        if (r >= 0)
                r = create(restore, "SELECT sql FROM sqlite_schema WHERE sql LIKE 'CREATE UNIQUE INDEX%' ORDER BY rowid",
                           NULL);
        if (r >= 0)
                r = for_each(restore, tables, add_rows);
        if (r >= 0)
                r = for_each(restore, tables, load_table);
        return r < 0 ? r : load_own(restore, "sqlite_sequence", NULL);
}

static int set_number(Restore *restore, const char *pragma) {
        g_autofree char *read = g_strdup_printf("PRAGMA %s", pragma), *write = NULL;
        int64_t n = 0;
        int r = read_number(restore, read, &n);

        if (r < 0)
                return r;
        write = g_strdup_printf("PRAGMA %s = %" PRId64, pragma, n);
        return run(restore, write);
}

static int make_rest(Restore *restore) {
        int r = create(restore, "SELECT sql FROM sqlite_schema WHERE type <> 'table' AND sql IS NOT NULL "
                       "AND sql NOT LIKE 'CREATE UNIQUE INDEX%' ORDER BY rowid", NULL);

        if (r >= 0) /* of one table that has nothing to analyze, so that sqlite_stat1 exists */
                r = load_own(restore, "sqlite_stat1", "ANALYZE sqlite_schema");
        if (r >= 0)
                r = set_number(restore, "user_version");
        return r < 0 ? r : set_number(restore, "application_id");
}

static int read_tables(Restore *restore, TableOrder *order) {
        int r = restore_file_query(&restore->file, TABLES_SQL, NULL);

        while (r >= 0 && (r = restore_file_next(&restore->file)) > 0)
                table_order_add(order, text_at(restore, 0) ?: "", text_at(restore, 1));
        return r < 0 ? fail_file(restore, r) : 0;
}

static int replace(Restore *restore, bool force) {
        TableOrder *order = table_order_new();
        GPtrArray *tables = NULL;
        int r = force ? drop_all(restore) : check_empty(restore);

        if (r >= 0)
                r = read_tables(restore, order);
        if (r >= 0) {
                tables = table_order_sort(order);
                r = make_tables(restore, tables);
                g_ptr_array_unref(tables);
        }
        table_order_free(order);
        return r < 0 ? r : make_rest(restore);
}

static int replace_in_transaction(Restore *restore, bool force) {
        Shell *shell = restore->shell;
        g_autofree char *rows = NULL;
        int r = transaction_begin(shell, SQLIPC_TRANSACTION_WRITE);

        if (r < 0)
                return r;
        shell->session.transaction.of_script = true;
        r = replace(restore, force);
        if (r < 0) {
                session_forget_transaction(&shell->session);
                return r;
        }
        bulk_load_erase(&restore->bulk);
        r = transaction_commit(shell);
        rows = human_rows(restore->bulk.n_rows);
        if (r >= 0)
                shell_say(shell, "%s from %s", rows, restore->path);
        return r;
}

int restore_run(Shell *shell, const char *path, bool force) {
        Restore restore = { .shell = shell, .path = path };
        int r = transaction_check_none(shell);

        if (r < 0)
                return r;
        bulk_load_init(&restore.bulk, shell);
        restore.bulk.action = "restoring";
        r = restore_file_open(&restore.file, path);
        if (r < 0)
                r = fail_file(&restore, r);
        else
                r = check_file(&restore);
        if (r >= 0)
                r = replace_in_transaction(&restore, force);
        bulk_load_done(&restore.bulk);
        restore_file_close(&restore.file);
        return r;
}
