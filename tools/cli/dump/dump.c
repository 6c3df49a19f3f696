/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies a database into a sink, see dump.h. */
#include "tools/cli/dump/dump.h"

#include <errno.h>
#include <string.h>

#include "tools/cli/dump/schema-text.h"
#include "tools/cli/shell/cursor-values.h"
#include "tools/cli/shell/query-run.h"
#include "tools/cli/shell/service.h"

/* The number of times that the schema may change after it was read and before the rows are, until the dump gives up. */
enum { ATTEMPTS_MAX = 5 };

typedef struct Dump {
        Shell *shell;
        const DumpSink *sink;
        void *userdata;
        Schema *schema;
        GPtrArray *tables;    /* of SnapshotTable */
        guint n_created;      /* tables created so far */
        guint n_seen;         /* objects of the schema that the running statement has confirmed */
        bool begun;           /* the sink was called */
        bool writable_schema; /* the sink was told to make the schema writable */
        const SnapshotStatement *statement; /* the running statement */
        Value *values;        /* the row's columns: the table's number, and `width` values */
        size_t n_values;      /* values that were read of a row of several pieces */
} Dump;

/* ---- Objects ------------------------------------------------------------------------------------------------------ */

/* Returns the text before the ";". Like sqlite3's shell, it adds a newline to views and triggers that have a comment. */
static const char *before_semicolon(const SchemaObject *object) {
        if (!g_str_equal(object->type, "table") && strstr(object->sql, "--"))
                return "\n";
        return schema_text_comment_end(object->sql);
}

static int give_statement(Dump *dump, const char *sql) {
        return dump->sink->statement(dump->userdata, sql);
}

/* Creates a virtual table by an INSERT: CREATE would also create its shadow tables, which the dump creates itself. */
static int create_virtual_table(Dump *dump, const SchemaObject *object) {
        g_autoptr(GString) sql = g_string_new("INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table',");
        int r = 0;

        if (!dump->writable_schema)
                r = give_statement(dump, "PRAGMA writable_schema=ON");
        if (r < 0)
                return r;
        dump->writable_schema = true;
        schema_append_literal(sql, object->name);
        g_string_append_c(sql, ',');
        schema_append_literal(sql, object->name);
        g_string_append(sql, ",0,");
        schema_append_literal(sql, object->sql);
        g_string_append_c(sql, ')');
        return give_statement(dump, sql->str);
}

/* Creates an object. A quoted name is typical of the shadow tables of a virtual table, which may exist already in another
 * version of SQLite; hence IF NOT EXISTS. Text after the end of the statement is left out: it was put there by hand, SQLite
 * never ran it, but sqlite3 would when it reads the dump. */
static int create_object(Dump *dump, const SchemaObject *object) {
        static const char create_table[] = "CREATE TABLE ";
        bool quoted = g_str_has_prefix(object->sql, "CREATE TABLE '") || g_str_has_prefix(object->sql, "CREATE TABLE \"");
        size_t skipped = quoted ? strlen(create_table) : 0, size = schema_text_size(object->sql);
        g_autofree char *sql = NULL;

        if (g_ascii_strncasecmp(object->sql, "CREATE", strlen("CREATE")) != 0)
                return -EBADMSG;
        if (object->sql[size])
                shell_complain(dump->shell, "%s: the text after the end of its definition is left out", object->name);
        sql = g_strdup_printf("%s%.*s%s", quoted ? "CREATE TABLE IF NOT EXISTS " : "", (int) (size - skipped),
                              object->sql + skipped, object->sql[size] ? "" : before_semicolon(object));
        return give_statement(dump, sql);
}

static int create_table(Dump *dump, const SchemaObject *object) {
        if (g_str_equal(object->name, "sqlite_sequence"))
                return give_statement(dump, "DELETE FROM sqlite_sequence");
        if (g_str_has_prefix(object->name, "sqlite_stat"))
                return give_statement(dump, "ANALYZE sqlite_schema");
        if (g_ascii_strncasecmp(object->sql, "CREATE VIRTUAL TABLE", strlen("CREATE VIRTUAL TABLE")) == 0)
                return create_virtual_table(dump, object);
        return create_object(dump, object);
}

static int create_tables(Dump *dump, guint until) {
        while (dump->n_created < until) {
                const SnapshotTable *table = g_ptr_array_index(dump->tables, dump->n_created++);
                int r = create_table(dump, table->object);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Creates indexes, views and triggers. They come after the rows, because triggers would fire, and an index is built faster
 * in one go. */
static int create_others(Dump *dump) {
        for (guint i = 0; i < dump->schema->objects->len; i++) {
                const SchemaObject *object = g_ptr_array_index(dump->schema->objects, i);
                int r;

                if (!object->wanted || !object->sql || g_str_equal(object->type, "table"))
                        continue;
                r = create_object(dump, object);
                if (r < 0)
                        return r;
        }
        return dump->writable_schema ? give_statement(dump, "PRAGMA writable_schema=OFF") : 0;
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static bool is_text(sqlipc_cursor *cursor, unsigned column, const char *text) {
        return g_strcmp0(sqlipc_column_text(cursor, column, NULL), text) == 0;
}

static int check_object(Dump *dump, sqlipc_cursor *cursor) {
        const SchemaObject *object;

        if (dump->n_seen >= dump->schema->objects->len)
                return -ESTALE;
        object = g_ptr_array_index(dump->schema->objects, dump->n_seen++);
        if (!is_text(cursor, 1, object->type) || !is_text(cursor, 2, object->name) || !is_text(cursor, 3, object->table))
                return -ESTALE;
        /* schema.c makes the SQL of exposed tables, so it cannot be compared */
        return dump->schema->is_exposed || is_text(cursor, 4, object->sql) ? 0 : -ESTALE;
}

static int take_header(Dump *dump, sqlipc_cursor *cursor) {
        static const char *const encodings[] = { "UTF-8", "UTF-16le", "UTF-16be", NULL };
        const DumpHeader header = {
                .application_id = sqlipc_column_int64(cursor, 1),
                .user_version = sqlipc_column_int64(cursor, 2),
                .encoding = sqlipc_column_text(cursor, 3, NULL) ?: "UTF-8",
                .page_size = sqlipc_column_int64(cursor, 4),
                .auto_vacuum = sqlipc_column_int64(cursor, 5),
        };

        if (!g_strv_contains(encodings, header.encoding))
                return -EBADMSG;
        dump->begun = true;
        return dump->sink->begin(dump->userdata, &header);
}

static int take_values(Dump *dump, sqlipc_cursor *cursor, guint number) {
        const SnapshotTable *table = g_ptr_array_index(dump->tables, number - 1);
        size_t first = dump->n_values, n = MIN(dump->statement->width, table->n_values - first);
        int r = 0;

        if (dump->n_created < number)
                r = create_tables(dump, number);
        if (r < 0)
                return r;
        cursor_values(cursor, dump->values, n + 1);
        dump->n_values = first + n < table->n_values ? first + n : 0;
        return dump->sink->values(dump->userdata, table, dump->values + 1, first, n);
}

static bool schema_is_complete(const Dump *dump) {
        return !dump->statement->has_schema || dump->n_seen == dump->schema->objects->len;
}

static int take_row(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        Dump *dump = userdata;
        int64_t number;

        if (!is_row)
                return 0;
        number = sqlipc_column_int64(cursor, 0);
        if (number == SNAPSHOT_SCHEMA)
                return check_object(dump, cursor);
        if (!schema_is_complete(dump))
                return -ESTALE;
        if (number == SNAPSHOT_HEADER)
                return take_header(dump, cursor);
        if (number < (int64_t) dump->n_created || number > (int64_t) dump->tables->len)
                return -EBADMSG; /* not the requested order */
        return take_values(dump, cursor, (guint) number);
}

/* ---- Statements --------------------------------------------------------------------------------------------------- */

static int run_statement(Dump *dump, const SnapshotStatement *statement) {
        g_autofree Value *values = g_new0(Value, statement->width + 1);
        int r;

        dump->statement = statement;
        dump->values = values;
        dump->n_seen = 0;
        r = query_run(dump->shell, statement->sql, NULL, 0, take_row, dump, NULL);
        dump->values = NULL;
        if (r >= 0 && !schema_is_complete(dump))
                r = -ESTALE;
        return r;
}

static int run_statements(Dump *dump, const GPtrArray *statements) {
        int r = 0;

        if (statements->len > 1)
                shell_complain(dump->shell, "not one snapshot: the service's limits make it %u queries; what is written "
                               "meanwhile may be in one and not in another", statements->len);
        for (guint i = 0; i < statements->len && r >= 0; i++)
                r = run_statement(dump, g_ptr_array_index(statements, i));
        if (r >= 0)
                r = create_tables(dump, dump->tables->len);
        return r < 0 ? r : create_others(dump);
}

SnapshotLimits dump_limits(Shell *shell) {
        return (SnapshotLimits) {
                .sql_size = service_limit(shell, "sql-size-max", 1000000),
                .compound_selects = service_limit(shell, "compound-selects-max", 500),
                .vdbe_ops = service_limit(shell, "vdbe-ops-max", 1000000),
        };
}

/* Of the whole database or not at all: a copy without a table would look complete. */
static int check_names(const Dump *dump) {
        for (guint i = 0; i < dump->tables->len; i++) {
                const SnapshotTable *table = g_ptr_array_index(dump->tables, i);
                bool sendable = schema_name_is_sendable(table->object->name);

                for (guint j = 0; sendable && j < table->columns->len; j++)
                        sendable = schema_name_is_sendable(g_ptr_array_index(table->columns, j));
                if (!sendable)
                        return schema_complain_of_name(dump->shell, table->object->name);
        }
        return 0;
}

static int attempt(Dump *dump, const DumpOptions *options, const SnapshotLimits *limits) {
        g_autoptr(GPtrArray) statements = NULL;
        int r;

        r = schema_read(dump->shell, options->pattern, &dump->schema);
        if (r < 0)
                return r;
        dump->tables = snapshot_tables(dump->schema, options->with_rowids);
        dump->n_created = 0;
        r = check_names(dump);
        if (r >= 0) {
                statements = snapshot_plan(dump->tables, limits);
                r = run_statements(dump, statements);
        }
        g_clear_pointer(&dump->tables, g_ptr_array_unref);
        dump->schema = schema_free(dump->schema);
        return r;
}

int dump_run(Shell *shell, const DumpOptions *options, const DumpSink *sink, void *userdata) {
        Dump dump = { .shell = shell, .sink = sink, .userdata = userdata };
        const SnapshotLimits limits = dump_limits(shell);
        int r, n = 0;

        do
                r = attempt(&dump, options, &limits);
        while (r == -ESTALE && !dump.begun && ++n < ATTEMPTS_MAX);
        if (r == -ESTALE)
                shell_complain(shell, "the schema changes while the database is read; try again");
        if (r == -EBADMSG)
                shell_complain(shell, "the service's rows are not what was asked for");
        return r;
}
