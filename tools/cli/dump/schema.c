/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the schema of a database, see schema.h. */
#include "tools/cli/dump/schema.h"

#include <errno.h>
#include <string.h>

#include "tools/cli/shell/query-run.h"
#include "tools/cli/sql/sql-name.h"
#include "tools/terminal/format.h"
#include "tools/terminal/sql-literal.h"

/* ---- Names -------------------------------------------------------------------------------------------------------- */

void schema_append_quoted(GString *sql, const char *name) {
        sql_name_append_quoted(sql, name, '"');
}

void schema_append_name(GString *sql, const char *name) {
        char buffer[SINK_SIZE_MIN];
        Sink sink = { .string = sql, .buffer = buffer, .size = sizeof buffer };

        sql_name_write(&sink, name);
        sink_finish(&sink);
}

void schema_append_literal(GString *sql, const char *text) {
        const Value value = { .type = SQLIPC_TEXT, .bytes = text, .size = strlen(text) };
        char buffer[SINK_SIZE_MIN];
        Sink sink = { .string = sql, .buffer = buffer, .size = sizeof buffer };

        sql_literal_write(&sink, &value, 0);
        sink_finish(&sink);
}

bool schema_name_is_sendable(const char *name) {
        if (!g_utf8_validate(name, -1, NULL))
                return false;
        for (; *name; name = g_utf8_next_char(name)) {
                gunichar c = g_utf8_get_char(name);

                if ((c >= 0xfdd0 && c <= 0xfdef) || (c & 0xfffe) == 0xfffe)
                        return false;
        }
        return true;
}

void schema_append_value(GString *sql, const char *name) {
        if (schema_name_is_sendable(name)) {
                schema_append_literal(sql, name);
                return;
        }
        g_string_append(sql, "CAST(x'");
        for (; *name; name++)
                g_string_append_printf(sql, "%02x", (unsigned char) *name);
        g_string_append(sql, "' AS TEXT)");
}

int schema_complain_of_name(Shell *shell, const char *table) {
        g_autoptr(GString) shown = g_string_new(NULL);

        format_shown_text(shown, table, strlen(table), SIZE_MAX);
        shell_complain(shell, "the table %s cannot be read: its name, or a column's, has bytes that are not UTF-8, or a "
                       "noncharacter, which D-Bus does not let pass in SQL; give a pattern that leaves it out, rename it, "
                       "or have 'sqlipcctl backup' copy the file", shown->str);
        return -EILSEQ;
}

/* ---- Memory ------------------------------------------------------------------------------------------------------- */

static void clear_column(gpointer data) {
        SchemaColumn *column = data;

        g_free(column->name);
        g_free(column->type);
}

static void free_object(gpointer data) {
        SchemaObject *object = data;

        g_free(object->type);
        g_free(object->name);
        g_free(object->table);
        g_free(object->sql);
        g_array_unref(object->columns);
        g_free(object);
}

Schema *schema_free(Schema *schema) {
        if (schema)
                g_ptr_array_unref(schema->objects);
        g_free(schema);
        return NULL;
}

void schema_freep(Schema **schema) {
        schema_free(*schema);
}

/* ---- Reading ------------------------------------------------------------------------------------------------------ */

/* A row for each object without columns, and for each column of a table. Virtual tables are not asked for their columns: one
 * whose module is missing would fail all. A table WITHOUT ROWID is an index by its own name. Only the first row of an object
 * has its SQL: 2,000 columns with long definitions would otherwise be gigabytes to sort. */
#define SCHEMA_SQL                                                                                                      \
        "WITH o AS MATERIALIZED ("                                                                                      \
        " SELECT s.rowid AS id, type, name, tbl_name, sql, exposed,"                                                    \
        "  CASE WHEN type = 'table' AND (rootpage > 0 OR exposed) THEN name END AS stored,"                             \
        "  ?1 IS NULL OR name LIKE ?1 ESCAPE '\\' OR tbl_name LIKE ?1 ESCAPE '\\' OR EXISTS ("                          \
        "   SELECT 1 FROM sqlite_schema AS v WHERE v.name LIKE ?1 ESCAPE '\\' AND v.sql LIKE 'CREATE VIRTUAL TABLE%'"   \
        "   AND substr(s.name, 1, length(v.name) + 1) = v.name || '_') AS wanted"                                       \
        " FROM sqlite_schema AS s, (SELECT EXISTS ("                                                                    \
        "  SELECT 1 FROM pragma_module_list WHERE name = '" SCHEMA_EXPOSED_MODULE "') AS exposed))"                     \
        "SELECT o.id, o.type, o.name, o.tbl_name, CASE WHEN c.cid > 0 THEN NULL ELSE o.sql END,"                   \
        " o.wanted, o.stored IS NOT NULL, o.exposed,"                                                                   \
        " EXISTS (SELECT 1 FROM pragma_index_list(o.stored, 'main') WHERE origin = 'pk'),"                              \
        " EXISTS (SELECT 1 FROM pragma_index_info(o.stored, 'main')),"                                                  \
        " c.name, c.type, c.hidden, c.pk "                                                                              \
        "FROM o LEFT JOIN pragma_table_xinfo(o.stored, 'main') AS c ORDER BY o.id, c.cid"

enum {
        COLUMN_ID,
        COLUMN_TYPE,
        COLUMN_NAME,
        COLUMN_TABLE,
        COLUMN_SQL,
        COLUMN_WANTED,
        COLUMN_STORED,
        COLUMN_EXPOSED,
        COLUMN_KEY_INDEX,
        COLUMN_CLUSTERED,
        COLUMN_COLUMN_NAME,
        COLUMN_COLUMN_TYPE,
        COLUMN_COLUMN_HIDDEN,
        COLUMN_COLUMN_KEY,
};

typedef struct Reader {
        Schema *schema;
        SchemaObject *object; /* borrowed; the last one */
        int64_t id;           /* its rowid in sqlite_schema */
        bool key_is_index, clustered;
} Reader;

static char *copy_text(sqlipc_cursor *cursor, unsigned column) {
        return g_strdup(sqlipc_column_text(cursor, column, NULL));
}

/* Returns a name by which the rowid can be read and written; NULL if the rowid is a column anyway. */
static const char *find_rowid(const Reader *reader) {
        static const char *const names[] = { "rowid", "_rowid_", "oid" };
        const GArray *columns = reader->object->columns;
        const SchemaColumn *key = NULL;
        unsigned n_keys = 0;

        if (reader->clustered || columns->len == 0 || reader->schema->is_exposed)
                return NULL;
        for (guint i = 0; i < columns->len; i++)
                if (g_array_index(columns, SchemaColumn, i).key > 0) {
                        key = &g_array_index(columns, SchemaColumn, i);
                        n_keys++;
                }
        if (n_keys == 1 && !reader->key_is_index && g_ascii_strcasecmp(key->type, "INTEGER") == 0)
                return NULL;
        for (size_t n = 0; n < G_N_ELEMENTS(names); n++) {
                bool taken = false;

                for (guint i = 0; i < columns->len; i++)
                        taken |= g_ascii_strcasecmp(g_array_index(columns, SchemaColumn, i).name, names[n]) == 0;
                if (!taken)
                        return names[n];
        }
        return NULL;
}

/* Makes the CREATE statement of an exposed table: a copy has it as a plain table. */
static char *exposed_sql(const SchemaObject *object) {
        g_autoptr(GString) sql = g_string_new("CREATE TABLE ");
        const char *separator = "(";

        schema_append_quoted(sql, object->name);
        for (guint i = 0; i < object->columns->len; i++) {
                const SchemaColumn *column = &g_array_index(object->columns, SchemaColumn, i);

                if (column->hidden != SCHEMA_COLUMN_PLAIN)
                        continue;
                g_string_append(sql, separator);
                schema_append_quoted(sql, column->name);
                g_string_append(sql, *column->type ? " " : "");
                if (*column->type) /* SQLite reports a type without its quotes, so it may contain anything */
                        schema_append_name(sql, column->type);
                separator = ", ";
        }
        g_string_append_c(sql, ')');
        return g_string_free(g_steal_pointer(&sql), FALSE);
}

static void end_object(Reader *reader) {
        SchemaObject *object = reader->object;

        if (!object || !object->is_stored)
                return;
        object->rowid = find_rowid(reader);
        if (reader->schema->is_exposed) {
                g_free(object->sql);
                object->sql = exposed_sql(object);
        }
}

static void begin_object(Reader *reader, sqlipc_cursor *cursor) {
        SchemaObject *object = g_new0(SchemaObject, 1);

        object->type = copy_text(cursor, COLUMN_TYPE);
        object->name = copy_text(cursor, COLUMN_NAME);
        object->table = copy_text(cursor, COLUMN_TABLE);
        object->sql = copy_text(cursor, COLUMN_SQL);
        object->wanted = sqlipc_column_int64(cursor, COLUMN_WANTED) != 0;
        object->is_stored = sqlipc_column_int64(cursor, COLUMN_STORED) != 0;
        object->columns = g_array_new(FALSE, FALSE, sizeof(SchemaColumn));
        g_array_set_clear_func(object->columns, clear_column);
        g_ptr_array_add(reader->schema->objects, object);

        reader->object = object;
        reader->id = sqlipc_column_int64(cursor, COLUMN_ID);
        reader->key_is_index = sqlipc_column_int64(cursor, COLUMN_KEY_INDEX) != 0;
        reader->clustered = sqlipc_column_int64(cursor, COLUMN_CLUSTERED) != 0;
        reader->schema->is_exposed = sqlipc_column_int64(cursor, COLUMN_EXPOSED) != 0;
}

static int read_row(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        Reader *reader = userdata;

        if (!is_row)
                return 0;
        if (!reader->object || reader->id != sqlipc_column_int64(cursor, COLUMN_ID)) {
                end_object(reader);
                begin_object(reader, cursor);
        }
        if (!sqlipc_column_is_null(cursor, COLUMN_COLUMN_NAME)) {
                const SchemaColumn column = {
                        .name = copy_text(cursor, COLUMN_COLUMN_NAME),
                        .type = copy_text(cursor, COLUMN_COLUMN_TYPE) ?: g_strdup(""),
                        .hidden = (int) sqlipc_column_int64(cursor, COLUMN_COLUMN_HIDDEN),
                        .key = (int) sqlipc_column_int64(cursor, COLUMN_COLUMN_KEY),
                };

                g_array_append_val(reader->object->columns, column);
        }
        return 0;
}

int schema_read(Shell *shell, const char *pattern, Schema **ret) {
        const sqlipc_parameter parameter = {
                .struct_size = sizeof parameter,
                .type = pattern ? SQLIPC_TEXT : SQLIPC_NULL,
                .bytes = pattern,
                .size = pattern ? strlen(pattern) : 0,
        };
        Reader reader = { .schema = g_new0(Schema, 1) };
        int r;

        reader.schema->objects = g_ptr_array_new_with_free_func(free_object);
        r = query_run(shell, SCHEMA_SQL, &parameter, 1, read_row, &reader, NULL);
        if (r < 0) {
                schema_free(reader.schema);
                return r;
        }
        end_object(&reader);
        *ret = reader.schema;
        return 0;
}

static int see_module(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        if (is_row)
                *(bool *) userdata = sqlipc_column_int64(cursor, 0) != 0;
        return 0;
}

int schema_is_exposed(Shell *shell) {
        bool exposed = false;
        int r = query_run(shell, "SELECT EXISTS (SELECT 1 FROM pragma_module_list WHERE name = '" SCHEMA_EXPOSED_MODULE "')",
                          NULL, 0, see_module, &exposed, NULL);

        return r < 0 ? r : exposed;
}
