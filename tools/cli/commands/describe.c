/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Describes a table or view, see describe.h. */
#include "tools/cli/commands/describe.h"

#include <errno.h>
#include <string.h>

#include "tools/cli/dump/schema.h"
#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/catalog.h"
#include "tools/cli/shell/dialect.h"
#include "tools/cli/shell/query-print.h"
#include "tools/cli/shell/query-run.h"
#include "tools/terminal/format.h"

/* ---- The table or view -------------------------------------------------------------------------------------------- */

#define RELATION_SQL                                                                                                    \
        "SELECT name, schema, CASE WHEN type = 'view' THEN 'View'"                                                      \
        " WHEN sql LIKE 'CREATE VIRTUAL TABLE%' THEN 'Virtual table' ELSE 'Table' END"                                  \
        " FROM " CATALOG_OBJECTS " WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE "                       \
        "ORDER BY schema DESC LIMIT 1" /* a TEMP table hides one of the database, as in statements */

/* The same of PostgreSQL, among those that a statement finds without the name of a schema. */
#define VISIBLE "table_schema = ANY (current_schemas(false))"
#define RELATION_SQL_POSTGRESQL                                                                                         \
        "SELECT table_name, NULL, CASE table_type WHEN 'VIEW' THEN 'View' ELSE 'Table' END"                             \
        " FROM information_schema.tables WHERE " VISIBLE " AND lower(table_name) = lower(?1)"

typedef struct Relation {
        char *name, *kind; /* owned */
        char *schema;      /* owned; "main" or "temp"; NULL: of PostgreSQL */
        bool is_sqlite;    /* its database has SQLite's dialect */
} Relation;

static void relation_done(Relation *relation) {
        g_free(relation->name);
        g_free(relation->kind);
        g_free(relation->schema);
}

static int take_relation(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        Relation *relation = userdata;

        if (is_row) {
                relation_done(relation);
                relation->name = g_strdup(sqlipc_column_text(cursor, 0, NULL));
                relation->schema = g_strdup(sqlipc_column_text(cursor, 1, NULL));
                relation->kind = g_strdup(sqlipc_column_text(cursor, 2, NULL));
        }
        return 0;
}

static int find_relation(Shell *shell, const char *name, Relation *ret) {
        const sqlipc_parameter parameter = { .struct_size = sizeof parameter, .type = SQLIPC_TEXT,
                                             .bytes = name, .size = strlen(name) };
        int r = dialect_is_sqlite(shell);

        ret->is_sqlite = r > 0;
        if (r >= 0)
                r = query_run(shell, ret->is_sqlite ? RELATION_SQL : RELATION_SQL_POSTGRESQL, &parameter, 1, take_relation,
                              ret, NULL);
        if (r < 0 || ret->name)
                return r;
        shell_complain(shell, "there is no table or view %s; .tables lists them", name);
        return -ENOENT;
}

/* ---- Its columns -------------------------------------------------------------------------------------------------- */

/* The attributes that columns may have, and how they are shown. */
static const struct {
        const char *has; /* aggregate over all columns: > 0 if one has the attribute */
        const char *shown;
} attributes[] = {
        { "max(\"notnull\")", "iif(\"notnull\", 'not null', '') AS \"null\"" },
        { "max(dflt_value IS NOT NULL)", "dflt_value AS \"default\"" },
        { "max(pk)", "iif(pk, 'primary key' || iif(max(pk) OVER () > 1, ' ' || pk, ''), '') AS \"key\"" },
        { "max(hidden)", "CASE hidden WHEN 1 THEN 'hidden' WHEN 2 THEN 'computed' WHEN 3 THEN 'stored' ELSE '' END"
                         " AS \"generated\"" },
};

enum { ALL_ATTRIBUTES = (1 << G_N_ELEMENTS(attributes)) - 1 };

/* Makes the SELECT of the columns. `wanted`: a bit for each of the attributes. */
static char *columns_sql(const Relation *relation, unsigned wanted) {
        g_autoptr(GString) sql = g_string_new("SELECT name AS \"column\", type");

        for (size_t i = 0; i < G_N_ELEMENTS(attributes); i++)
                if (wanted & (1u << i))
                        g_string_append_printf(sql, ", %s", attributes[i].shown);
        g_string_append(sql, " FROM pragma_table_xinfo(");
        schema_append_value(sql, relation->name);
        g_string_append_printf(sql, ", '%s') ORDER BY cid", relation->schema);
        return g_string_free(g_steal_pointer(&sql), FALSE);
}

static char *columns_sql_postgresql(const char *name) {
        g_autoptr(GString) sql = g_string_new("SELECT column_name AS \"column\", data_type AS type,"
                                              " CASE is_nullable WHEN 'NO' THEN 'not null' ELSE '' END AS \"null\","
                                              " column_default AS \"default\" FROM information_schema.columns"
                                              " WHERE " VISIBLE " AND table_name = ");

        schema_append_literal(sql, name);
        g_string_append(sql, " ORDER BY ordinal_position");
        return g_string_free(g_steal_pointer(&sql), FALSE);
}

static int take_attributes(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        unsigned *found = userdata;

        for (unsigned i = 0; is_row && i < G_N_ELEMENTS(attributes); i++)
                if (sqlipc_column_int64(cursor, i) > 0)
                        *found |= 1u << i;
        return 0;
}

/* Runs a query whose parameters are the name and the schema. */
static int ask_of(Shell *shell, const Relation *relation, const char *sql, QueryVisitor visit, void *userdata) {
        const char *name = relation->name, *schema = relation->schema;
        const sqlipc_parameter parameters[] = {
                { .struct_size = sizeof *parameters, .type = SQLIPC_TEXT, .bytes = name, .size = strlen(name) },
                { .struct_size = sizeof *parameters, .type = SQLIPC_TEXT, .bytes = schema, .size = strlen(schema) },
        };

        return query_run(shell, sql, parameters, G_N_ELEMENTS(parameters), visit, userdata, NULL);
}

/* Finds the attributes that at least one column has. */
static int find_attributes(Shell *shell, const Relation *relation, unsigned *ret) {
        g_autoptr(GString) sql = g_string_new("SELECT ");

        *ret = 0;
        for (size_t i = 0; i < G_N_ELEMENTS(attributes); i++)
                g_string_append_printf(sql, "%s%s", i > 0 ? ", " : "", attributes[i].has);
        g_string_append(sql, " FROM pragma_table_xinfo(?1, ?2)");
        return ask_of(shell, relation, sql->str, take_attributes, ret);
}

/* ---- Indexes, keys, triggers -------------------------------------------------------------------------------------- */

/* Columns: heading, line, both text; rows are in the order in which they are shown. */
#define SECTIONS_SQL                                                                                                    \
        "SELECT 'Indexes', i.name || ' (' || (SELECT group_concat(coalesce(name, iif(cid = -1, 'rowid', 'an expression'))" \
        "  || iif(desc, ' DESC', '') || iif(coll <> 'BINARY', ' ' || coll, ''), ', ')"                                  \
        "  FROM (SELECT * FROM pragma_index_xinfo(i.name, ?2) WHERE key ORDER BY seqno)) || ')'"                        \
        " || CASE origin WHEN 'pk' THEN ', primary key' WHEN 'u' THEN ', UNIQUE'"                                       \
        "    ELSE iif(\"unique\", ', unique', '') END || iif(partial, ', partial', '')"                                 \
        " FROM pragma_index_list(?1, ?2) AS i "                                                                         \
        "UNION ALL SELECT 'Foreign keys', line FROM (SELECT '(' || group_concat(\"from\", ', ') || ') refers to '"      \
        "  || \"table\" || coalesce(' (' || group_concat(\"to\", ', ') || ')', '')"                                     \
        "  || iif(on_update <> 'NO ACTION', ', on update ' || lower(on_update), '')"                                    \
        "  || iif(on_delete <> 'NO ACTION', ', on delete ' || lower(on_delete), '') AS line"                            \
        "  FROM pragma_foreign_key_list(?1, ?2) GROUP BY id ORDER BY id) "                                              \
        "UNION ALL SELECT 'Referred to by', line FROM ("                                                                \
        "  SELECT s.name || ' (' || group_concat(k.\"from\", ', ') || ')' AS line"                                      \
        "  FROM " CATALOG_OBJECTS ", pragma_foreign_key_list(s.name, ?2) AS k"                                          \
        "  WHERE s.schema = ?2 AND s.type = 'table' AND s.rootpage > 0 AND k.\"table\" = ?1 COLLATE NOCASE"             \
        "  GROUP BY s.name, k.id ORDER BY 1) "                                                                          \
        "UNION ALL SELECT 'Triggers', name FROM " CATALOG_OBJECTS                                                       \
        " WHERE schema = ?2 AND type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE "                                     \
        "UNION ALL SELECT 'Definition', sql FROM " CATALOG_OBJECTS                                                      \
        " WHERE schema = ?2 AND type = 'view' AND name = ?1 COLLATE NOCASE"

typedef struct Sections {
        GString *text;
        char *heading; /* owned; the last heading */
} Sections;

static int take_line(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        Sections *sections = userdata;
        const char *heading, *line;
        size_t size;

        if (!is_row)
                return 0;
        heading = sqlipc_column_text(cursor, 0, NULL);
        line = sqlipc_column_text(cursor, 1, &size);
        if (g_strcmp0(heading, sections->heading) != 0) {
                g_free(sections->heading);
                sections->heading = g_strdup(heading);
                format_shown_text(sections->text, heading ?: "", heading ? strlen(heading) : 0, SIZE_MAX);
                g_string_append(sections->text, ":\n");
        }
        g_string_append(sections->text, "  ");
        format_shown_lines(sections->text, line ?: "", size, SIZE_MAX);
        g_string_append_c(sections->text, '\n');
        return 0;
}

static int append_sections(Shell *shell, const Relation *relation, GString *text) {
        Sections sections = { .text = text };
        int r = ask_of(shell, relation, SECTIONS_SQL, take_line, &sections);

        g_free(sections.heading);
        return r;
}

/* ---- The description ---------------------------------------------------------------------------------------------- */

/* Writes a description; the grid omits attributes that no column has. */
static int write_relation(Shell *shell, const Relation *relation, FILE *file) {
        RenderOptions options = query_render_options(shell, file);
        g_autofree char *sql = NULL;
        g_autoptr(GString) text = g_string_new(NULL);
        unsigned attributes_there;
        int r = find_attributes(shell, relation, &attributes_there);

        if (r < 0)
                return r;
        sql = columns_sql(relation, attributes_there);
        options.null = "";
        options.widths = NULL;
        options.n_widths = 0;
        format_shown_text(text, relation->kind, strlen(relation->kind), SIZE_MAX);
        g_string_append(text, g_str_equal(relation->schema, "temp") ? " temp." : " ");
        format_shown_text(text, relation->name, strlen(relation->name), SIZE_MAX);
        fprintf(file, "%s\n", text->str);
        g_string_truncate(text, 0);
        r = query_write(shell, sql, shell->settings.mode, &options, NULL);
        if (r >= 0)
                r = append_sections(shell, relation, text);
        (void) fputs(text->str, file); /* answer_end() reports errors */
        return r;
}

int describe_relation(Shell *shell, const char *name) {
        __attribute__((cleanup(relation_done))) Relation relation = {};
        FILE *file;
        int r = find_relation(shell, name, &relation);

        if (r < 0)
                return r;
        if (!relation.is_sqlite || !render_mode_is_grid(shell->settings.mode)) {
                g_autofree char *sql = relation.is_sqlite ? columns_sql(&relation, ALL_ATTRIBUTES)
                                                          : columns_sql_postgresql(relation.name);

                return query_print(shell, sql);
        }
        r = answer_begin(shell, &file);
        return r < 0 ? r : answer_end(shell, write_relation(shell, &relation, file));
}

int describe_all(Shell *shell) {
        int is_sqlite = dialect_is_sqlite(shell);

        if (is_sqlite < 0)
                return is_sqlite;
        if (!is_sqlite)
                return query_print(shell, "SELECT table_name AS name, lower(table_type) AS type"
                                   " FROM information_schema.tables WHERE " VISIBLE " ORDER BY 1");
        return query_print(shell, "SELECT iif(schema = 'temp', 'temp.', '') || name AS name, type, ncol AS columns,"
                           " trim(iif(wr, 'without rowid ', '') || iif(strict, 'strict', '')) AS \"kind\""
                           " FROM pragma_table_list WHERE schema IN ('main', 'temp')"
                           " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1");
}
