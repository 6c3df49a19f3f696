/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the schema of the source, see source-schema.h. */
#include "tools/ctl/migrate/source-schema.h"

#include <errno.h>
#include <string.h>

#include "tools/cli/sql/sql-name.h"
#include "tools/cli/sql/sql-scan.h"

#define TABLES_SQL                                                                                     \
        "SELECT l.name, s.sql, l.type <> 'table', l.wr FROM pragma_table_list AS l "                   \
        "JOIN sqlite_schema AS s ON s.type = 'table' AND s.name = l.name "                             \
        "WHERE l.schema = 'main' AND l.name NOT LIKE 'sqlite^_%' ESCAPE '^' ORDER BY s.rowid"
#define COLUMNS_SQL "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?1) ORDER BY cid"
#define INDEXES_SQL                                                                                    \
        "SELECT l.name, s.sql, l.\"unique\", l.partial, l.origin = 'pk', x.name, x.\"desc\", x.coll "  \
        "FROM pragma_index_list(?1) AS l JOIN pragma_index_xinfo(l.name) AS x ON x.key "               \
        "LEFT JOIN sqlite_schema AS s ON s.type = 'index' AND s.name = l.name ORDER BY l.seq DESC, x.seqno"
#define REFERENCES_SQL                                                                                 \
        "SELECT id, \"table\", \"from\", \"to\", on_update, on_delete "                                \
        "FROM pragma_foreign_key_list(?1) ORDER BY id, seq"
#define OBJECTS_SQL "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('view', 'trigger') ORDER BY rowid"
#define SEQUENCES_SQL "SELECT name, seq FROM sqlite_sequence"
#define ALL_SQL "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid"

/* ---- Memory ------------------------------------------------------------------------------------------------------- */

static void clear_column(gpointer data) {
        SourceColumn *column = data;

        g_free(column->name);
        g_free(column->type);
        g_free(column->default_sql);
}

static void clear_index_column(gpointer data) {
        SourceIndexColumn *column = data;

        g_free(column->name);
        g_free(column->collation);
}

static void free_index(gpointer data) {
        SourceIndex *index = data;

        g_free(index->name);
        g_free(index->sql);
        g_array_unref(index->columns);
        g_free(index);
}

static void free_reference(gpointer data) {
        SourceReference *reference = data;

        g_free(reference->parent);
        g_free(reference->on_update);
        g_free(reference->on_delete);
        g_ptr_array_unref(reference->from);
        g_ptr_array_unref(reference->to);
        g_free(reference);
}

static void free_table(gpointer data) {
        SourceTable *table = data;

        g_free(table->name);
        g_free(table->sql);
        g_free(table->conflict);
        g_array_unref(table->columns);
        g_ptr_array_unref(table->indexes);
        g_ptr_array_unref(table->references);
        g_free(table);
}

static void free_object(gpointer data) {
        SourceObject *object = data;

        g_free(object->type);
        g_free(object->name);
        g_free(object->sql);
        g_free(object);
}

void source_schema_free(SourceSchema *schema) {
        if (!schema)
                return;
        g_ptr_array_unref(schema->tables);
        g_ptr_array_unref(schema->objects);
        g_free(schema->fingerprint);
        g_free(schema);
}

/* ---- Rows of the catalog ------------------------------------------------------------------------------------------ */

static char *copy_text(sqlipc_cursor *cursor, unsigned column) {
        return g_strdup(sqlipc_column_text(cursor, column, NULL));
}

static bool is_true(sqlipc_cursor *cursor, unsigned column) {
        return sqlipc_column_int64(cursor, column) != 0;
}

static int take_table(sqlipc_cursor *cursor, void *userdata) {
        SourceTable *table = g_new0(SourceTable, 1);

        *table = (SourceTable) {
                .name = copy_text(cursor, 0),
                .sql = copy_text(cursor, 1),
                .is_virtual = is_true(cursor, 2),
                .is_clustered = is_true(cursor, 3),
                .columns = g_array_new(FALSE, TRUE, sizeof(SourceColumn)),
                .indexes = g_ptr_array_new_with_free_func(free_index),
                .references = g_ptr_array_new_with_free_func(free_reference),
                .rowid_column = -1,
        };
        g_array_set_clear_func(table->columns, clear_column);
        g_ptr_array_add(userdata, table);
        return 0;
}

static int take_column(sqlipc_cursor *cursor, void *userdata) {
        const SourceColumn column = {
                .name = copy_text(cursor, 0),
                .type = copy_text(cursor, 1) ?: g_strdup(""),
                .not_null = is_true(cursor, 2),
                .default_sql = copy_text(cursor, 3),
                .key = (int) sqlipc_column_int64(cursor, 4),
                .is_computed = is_true(cursor, 5),
        };

        g_array_append_val(userdata, column);
        return 0;
}

static int take_index(sqlipc_cursor *cursor, void *userdata) {
        const SourceIndexColumn column = {
                .name = copy_text(cursor, 5),
                .descending = is_true(cursor, 6),
                .collation = copy_text(cursor, 7),
        };
        GPtrArray *indexes = userdata;
        SourceIndex *index = indexes->len > 0 ? indexes->pdata[indexes->len - 1] : NULL;
        const char *name = sqlipc_column_text(cursor, 0, NULL);

        if (!index || !g_str_equal(index->name, name)) {
                index = g_new(SourceIndex, 1);
                *index = (SourceIndex) {
                        .name = g_strdup(name),
                        .sql = copy_text(cursor, 1),
                        .is_unique = is_true(cursor, 2),
                        .is_partial = is_true(cursor, 3),
                        .is_key = is_true(cursor, 4),
                        .columns = g_array_new(FALSE, FALSE, sizeof(SourceIndexColumn)),
                };
                g_array_set_clear_func(index->columns, clear_index_column);
                g_ptr_array_add(indexes, index);
        }
        g_array_append_val(index->columns, column);
        return 0;
}

typedef struct References {
        GPtrArray *references;
        int64_t id; /* of the last one */
} References;

static int take_reference(sqlipc_cursor *cursor, void *userdata) {
        References *references = userdata;
        int64_t id = sqlipc_column_int64(cursor, 0);
        SourceReference *reference;

        if (references->references->len == 0 || references->id != id) {
                reference = g_new(SourceReference, 1);
                *reference = (SourceReference) {
                        .parent = copy_text(cursor, 1),
                        .on_update = copy_text(cursor, 4),
                        .on_delete = copy_text(cursor, 5),
                        .from = g_ptr_array_new_with_free_func(g_free),
                        .to = g_ptr_array_new_with_free_func(g_free),
                };
                g_ptr_array_add(references->references, reference);
                references->id = id;
        }
        reference = references->references->pdata[references->references->len - 1];
        g_ptr_array_add(reference->from, copy_text(cursor, 2));
        if (!sqlipc_column_is_null(cursor, 3))
                g_ptr_array_add(reference->to, copy_text(cursor, 3));
        return 0;
}

static int take_object(sqlipc_cursor *cursor, void *userdata) {
        SourceObject *object = g_new(SourceObject, 1);

        *object = (SourceObject) { copy_text(cursor, 0), copy_text(cursor, 1), copy_text(cursor, 2) };
        g_ptr_array_add(userdata, object);
        return 0;
}

static int take_sequence(sqlipc_cursor *cursor, void *userdata) {
        const GPtrArray *tables = userdata;
        const char *name = sqlipc_column_text(cursor, 0, NULL);

        for (guint i = 0; name && i < tables->len; i++) {
                SourceTable *table = tables->pdata[i];

                if (g_str_equal(table->name, name))
                        table->sequence = sqlipc_column_int64(cursor, 1);
        }
        return 0;
}

/* ---- What only the SQL tells -------------------------------------------------------------------------------------- */

/* The name that a token is, without quotes; the caller frees it. */
static char *name_of(const char *sql, const SqlToken *token) {
        const char *text = sql + token->start;

        if (token->type != SQL_QUOTED && token->type != SQL_STRING)
                return g_strndup(text, token->size);
        return sql_name_unquote(text + 1, token->size - 2, *text == '[' ? ']' : *text);
}

static SourceColumn *find_column(const SourceTable *table, const char *name) {
        for (guint i = 0; i < table->columns->len; i++) {
                SourceColumn *column = &g_array_index(table->columns, SourceColumn, i);

                if (g_ascii_strcasecmp(column->name, name) == 0)
                        return column;
        }
        return NULL;
}

/* The clauses of a table, as read_definitions() has come to them. */
typedef struct Clauses {
        SourceColumn *column;       /* NULL: of the table */
        const char *words[2];       /* static: the last words, the last one first, if take_word() knows them; else "" */
        guint n_references;         /* so many foreign keys have begun */
        bool not_deferrable;        /* the last clause about that is NOT DEFERRABLE */
} Clauses;

/* Takes a word outside of inner parentheses. */
static void take_word(SourceTable *table, Clauses *clauses, const char *sql, const SqlToken *token) {
        static const char *const known[] = {
                "COLLATE", "CHECK", "ON", "CONFLICT", "REPLACE", "IGNORE", "FAIL", "ROLLBACK", "REFERENCES",
                "NOT", "DEFERRABLE", "INITIALLY", "DEFERRED",
        };
        const char **words = clauses->words, *word = "";
        guint n = table->references->len, i_last = clauses->n_references;

        for (size_t i = 0; i < G_N_ELEMENTS(known); i++)
                if (token->type != SQL_STRING && sql_token_is(sql, token, known[i]))
                        word = known[i];
        if (clauses->column && g_strcmp0(words[0], "COLLATE") == 0) { /* the last one counts */
                g_autofree char *collation = name_of(sql, token);

                clauses->column->ignores_case = g_ascii_strcasecmp(collation, "NOCASE") == 0;
                clauses->column->ignores_blanks = g_ascii_strcasecmp(collation, "RTRIM") == 0;
        }
        if (g_strcmp0(words[0], "CONFLICT") == 0 && g_strcmp0(words[1], "ON") == 0 && *word && !table->conflict)
                table->conflict = g_strdup(word);
        table->has_checks = table->has_checks || g_str_equal(word, "CHECK");
        clauses->n_references += g_str_equal(word, "REFERENCES");
        if (g_str_equal(word, "DEFERRABLE"))
                clauses->not_deferrable = g_strcmp0(words[0], "NOT") == 0;
        if (g_str_equal(word, "DEFERRED") && g_strcmp0(words[0], "INITIALLY") == 0 && i_last > 0 && i_last <= n)
                /* the PRAGMA has the last foreign key first */
                ((SourceReference *) table->references->pdata[n - i_last])->is_deferred = !clauses->not_deferrable;
        words[1] = words[0];
        words[0] = word;
}

/* Reads the definitions between the outer parentheses: each begins with the name of a column, or with a word of a table's
 * constraint. No PRAGMA shows collations, checks, what a conflict does, and when a foreign key is checked. */
static void read_definitions(SourceTable *table) {
        const char *sql = table->sql ?: "";
        size_t position = 0, size = strlen(sql);
        Clauses clauses = {};
        bool begins = false;
        int depth = 0;
        SqlToken token;

        while (sql_scan_next(SQL_DIALECT_SQLITE, sql, size, &position, &token)) {
                char c = sql[token.start];

                if (token.type == SQL_SPACE || token.type == SQL_COMMENT)
                        continue;
                if (token.type == SQL_OPERATOR && (c == '(' || c == ')')) {
                        depth += c == '(' ? 1 : -1;
                        begins = depth == 1 && c == '(';
                        continue;
                }
                if (depth != 1)
                        continue;
                if (token.type == SQL_OPERATOR && c == ',') {
                        begins = true;
                        continue;
                }
                if (begins) {
                        g_autofree char *name = name_of(sql, &token);

                        clauses.column = find_column(table, name);
                        clauses.words[0] = NULL;
                }
                if (!begins || !clauses.column)
                        take_word(table, &clauses, sql, &token);
                begins = false;
        }
}

static void find_rowid(SourceTable *table) {
        static const char *const names[] = { "rowid", "_rowid_", "oid" };
        int n_keys = 0, key = -1;
        bool has_index = false;

        if (table->is_clustered)
                return;
        for (guint i = 0; i < table->columns->len; i++)
                if (g_array_index(table->columns, SourceColumn, i).key > 0) {
                        n_keys++;
                        key = (int) i;
                }
        for (guint i = 0; i < table->indexes->len; i++)
                has_index = has_index || ((const SourceIndex *) table->indexes->pdata[i])->is_key;
        if (n_keys == 1 && !has_index) { /* any other PRIMARY KEY has an index of its own */
                table->rowid_column = key;
                return;
        }
        for (size_t i = 0; i < G_N_ELEMENTS(names) && !table->rowid; i++)
                table->rowid = find_column(table, names[i]) ? NULL : names[i];
}

/* ---- All ---------------------------------------------------------------------------------------------------------- */

static int read_table(const Side *side, SourceTable *table) {
        References references = { .references = table->references };
        int r = side_query(side, COLUMNS_SQL, table->name, take_column, table->columns, NULL);

        if (r >= 0)
                r = side_query(side, INDEXES_SQL, table->name, take_index, table->indexes, NULL);
        if (r >= 0)
                r = side_query(side, REFERENCES_SQL, table->name, take_reference, &references, NULL);
        if (r < 0)
                return r;
        read_definitions(table);
        find_rowid(table);
        return 0;
}

static int digest_row(sqlipc_cursor *cursor, void *userdata) {
        for (unsigned i = 0; i < sqlipc_column_count(cursor); i++) {
                size_t size;
                const char *text = sqlipc_column_text(cursor, i, &size);

                if (text)
                        g_checksum_update(userdata, (const guchar *) text, (gssize) size);
                g_checksum_update(userdata, (const guchar *) "", 1);
        }
        return 0;
}

int source_schema_fingerprint(const Side *side, char **ret) {
        g_autoptr(GChecksum) digest = g_checksum_new(G_CHECKSUM_SHA256);
        int r = side_query(side, ALL_SQL, NULL, digest_row, digest, NULL);

        if (r >= 0)
                *ret = g_strdup(g_checksum_get_string(digest));
        return r;
}

int source_schema_read(const Side *side, SourceSchema **ret) {
        g_autoptr(SourceSchema) schema = g_new0(SourceSchema, 1);
        int64_t has_sequences = 0;
        int r;

        schema->tables = g_ptr_array_new_with_free_func(free_table);
        schema->objects = g_ptr_array_new_with_free_func(free_object);
        r = source_schema_fingerprint(side, &schema->fingerprint);
        if (r >= 0)
                r = side_query(side, TABLES_SQL, NULL, take_table, schema->tables, NULL);
        for (guint i = 0; r >= 0 && i < schema->tables->len; i++) {
                SourceTable *table = schema->tables->pdata[i];

                if (!table->is_virtual)
                        r = read_table(side, table);
        }
        if (r >= 0)
                r = side_query(side, OBJECTS_SQL, NULL, take_object, schema->objects, NULL);
        if (r >= 0)
                r = side_number(side, "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence'", 0,
                                &has_sequences);
        if (r >= 0 && has_sequences > 0)
                r = side_query(side, SEQUENCES_SQL, NULL, take_sequence, schema->tables, NULL);
        if (r >= 0)
                r = side_number(side, "PRAGMA user_version", 0, &schema->user_version);
        if (r >= 0)
                r = side_number(side, "PRAGMA application_id", 0, &schema->application_id);
        if (r < 0)
                return r;
        *ret = g_steal_pointer(&schema);
        return 0;
}
