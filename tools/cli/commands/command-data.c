/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands about data: list tables and other objects, and describe them. */
#include <errno.h>
#include <string.h>

#include "tools/cli/commands/commands.h"
#include "tools/cli/commands/describe.h"
#include "tools/cli/dump/schema-text.h"
#include "tools/cli/dump/schema.h"
#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/catalog.h"
#include "tools/cli/shell/dialect.h"
#include "tools/cli/shell/query-failure.h"
#include "tools/cli/shell/query-print.h"
#include "tools/cli/shell/query-run.h"
#include "tools/terminal/format.h"

/* ---- Lists of names ----------------------------------------------------------------------------------------------- */

/* The width of the screen if it is not known. */
enum { SCREEN_WIDTH = 80, GAP = 2 };

static int take_name(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        g_autoptr(GString) shown = g_string_new(NULL);
        const char *name;
        size_t size;

        if (!is_row)
                return 0;
        name = sqlipc_column_text(cursor, 0, &size);
        format_shown_text(shown, name ?: "", size, SIZE_MAX);
        g_ptr_array_add(userdata, g_string_free(g_steal_pointer(&shown), FALSE));
        return 0;
}

static size_t name_width(const char *name) {
        return format_shown_width(name, strlen(name));
}

/* Appends names in columns from top to bottom, each as wide as the longest name, as sqlite3's .tables does. */
static void append_columns(GString *text, const GPtrArray *names, size_t screen) {
        size_t widest = 0, n_columns, n_lines;

        for (guint i = 0; i < names->len; i++)
                widest = MAX(widest, name_width(g_ptr_array_index(names, i)));
        n_columns = MAX(screen / (widest + GAP), 1);
        n_lines = (names->len + n_columns - 1) / n_columns;
        for (size_t line = 0; line < n_lines; line++) {
                for (size_t i = line; i < names->len; i += n_lines) {
                        const char *name = g_ptr_array_index(names, i);
                        int pad = (int) (widest - name_width(name));

                        g_string_append_printf(text, "%s%s%*s", i == line ? "" : "  ", name, pad, "");
                }
                g_string_append_c(text, '\n');
        }
}

/* Makes a condition for a pattern of LIKE, or of GLOB, which psql's users write; GLOB also ignores the case of letters here.
 * `operand`: the pattern as it is written in the SQL. */
static char *fits(const char *column, const char *pattern, const char *operand) {
        if (strpbrk(pattern, "*?["))
                return g_strdup_printf("lower(%s) GLOB lower(%s)", column, operand);
        return g_strdup_printf("%s LIKE %s ESCAPE '\\'", column, operand);
}

/* The same for PostgreSQL, which has no GLOB. SIMILAR TO has its sets, and other characters with a meaning. */
static char *fits_similar(const char *column, const char *pattern) {
        g_autoptr(GString) similar = g_string_new(NULL), literal = g_string_new(NULL);
        bool is_glob = strpbrk(pattern, "*?[") != NULL;

        for (const char *p = pattern; *p; p++)
                if (is_glob && (*p == '*' || *p == '?'))
                        g_string_append_c(similar, *p == '*' ? '%' : '_');
                else {
                        if (strchr(is_glob ? "%_\\|+(){}" : "*?[]|+(){}^", *p))
                                g_string_append_c(similar, '\\');
                        g_string_append_c(similar, *p);
                }
        schema_append_literal(literal, similar->str);
        return g_strdup_printf("lower(%s) SIMILAR TO lower(%s)", column, literal->str);
}

/* PostgreSQL's tables, views and indexes that a statement finds without the name of a schema, as sqlite_schema has them. */
#define SCHEMA_OF_POSTGRESQL                                                                                            \
        "(SELECT CASE table_type WHEN 'VIEW' THEN 'view' ELSE 'table' END AS type, table_name AS name,"                 \
        "  table_name AS tbl_name FROM information_schema.tables WHERE table_schema = ANY (current_schemas(false)) "    \
        "UNION ALL SELECT 'index', indexname, tablename FROM pg_indexes WHERE schemaname = ANY (current_schemas(false)))" \
        " AS s"

#define NAMES_SQL "SELECT %s AS name FROM %s WHERE %s AND %s ORDER BY 1"

/* Prints names as a result, in the mode that the user chose; otherwise in columns. */
static int print_names(Shell *shell, const char *sql) {
        g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GString) text = g_string_new(NULL);
        int r;

        if (shell->settings.mode_chosen)
                return query_print(shell, sql);
        r = query_run(shell, sql, NULL, 0, take_name, names, NULL);
        if (r < 0)
                return r;
        append_columns(text, names, output_width(shell->output) ?: SCREEN_WIDTH);
        return answer_text(shell, text->str);
}

/* Lists the names of objects that meet `condition`, if the pattern matches `column`. */
static int list_names(Shell *shell, const char *condition, const char *column, const char *pattern) {
        g_autoptr(GString) literal = g_string_new(NULL);
        g_autofree char *fit = NULL, *sql = NULL;
        int is_sqlite = dialect_is_sqlite(shell);

        if (is_sqlite < 0)
                return is_sqlite;
        schema_append_literal(literal, pattern ?: "%");
        fit = is_sqlite ? fits(column, pattern ?: "%", literal->str) : fits_similar(column, pattern ?: "%");
        sql = is_sqlite ? g_strdup_printf(NAMES_SQL, "prefix || name", CATALOG_OBJECTS, condition, fit)
                        : g_strdup_printf(NAMES_SQL, "name", SCHEMA_OF_POSTGRESQL, condition, fit);
        return print_names(shell, sql);
}

static int run_tables(Shell *shell, const Command *command, char **arguments) {
        (void) command;
        return list_names(shell, "type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'", "name", arguments[1]);
}

static int run_views(Shell *shell, const Command *command, char **arguments) {
        (void) command;
        return list_names(shell, "type = 'view'", "name", arguments[1]);
}

static int run_indexes(Shell *shell, const Command *command, char **arguments) {
        (void) command;
        return list_names(shell, "type = 'index'", "tbl_name", arguments[1]);
}

/* ---- .schema ------------------------------------------------------------------------------------------------------ */

typedef struct SchemaItem {
        char *sql, *name, *prefix; /* owned */
} SchemaItem;

static void clear_item(gpointer data) {
        SchemaItem *item = data;

        g_free(item->sql);
        g_free(item->name);
        g_free(item->prefix);
}

static int take_item(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        if (is_row) {
                const SchemaItem item = {
                        .sql = g_strdup(sqlipc_column_text(cursor, 0, NULL)),
                        .name = g_strdup(sqlipc_column_text(cursor, 1, NULL)),
                        .prefix = g_strdup(sqlipc_column_text(cursor, 2, NULL) ?: ""),
                };

                g_array_append_val(userdata, item);
        }
        return 0;
}

static int take_column(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        GString *columns = userdata;

        if (is_row) {
                g_string_append_c(columns, columns->len > 0 ? ',' : '(');
                schema_append_name(columns, sqlipc_column_text(cursor, 0, NULL) ?: "");
        }
        return 0;
}

/* Appends the columns of a view or a virtual table as a comment, because its SQL does not list them. A broken one has none,
 * which is not an error. */
static int append_fake_columns(Shell *shell, GString *sql, const SchemaItem *item) {
        const char *schema = *item->prefix ? "temp" : "main";
        const sqlipc_parameter parameters[] = {
                { .struct_size = sizeof *parameters, .type = SQLIPC_TEXT, .bytes = item->name, .size = strlen(item->name) },
                { .struct_size = sizeof *parameters, .type = SQLIPC_TEXT, .bytes = schema, .size = strlen(schema) },
        };
        g_autoptr(GString) columns = g_string_new(NULL);
        Query query = query_init(shell, "SELECT name FROM pragma_table_info(?1, ?2)", take_column, columns);
        int r;

        query.parameters = parameters;
        query.n_parameters = G_N_ELEMENTS(parameters);
        r = query_execute(&query);
        if (r < 0 && r != -EINVAL && r != -EPERM) /* a view may refer to missing or forbidden objects */
                return query_settle(&query, r);
        if (r < 0 || columns->len == 0)
                return 0;
        g_string_append_printf(sql, "\n/* %s", item->prefix);
        schema_append_name(sql, item->name);
        g_string_append_printf(sql, "%s) */", columns->str);
        return 0;
}

/* Names the schema of a TEMP object, as sqlite3 does: its statement is kept without that. */
static GString *item_sql(const SchemaItem *item) {
        static const char *const kinds[] = { "TABLE ", "INDEX ", "UNIQUE INDEX ", "VIEW ", "TRIGGER ", "VIRTUAL TABLE " };
        GString *sql = g_string_new(item->sql);
        size_t create = strlen("CREATE ");

        for (size_t i = 0; i < G_N_ELEMENTS(kinds) && *item->prefix && g_str_has_prefix(item->sql, "CREATE "); i++)
                if (g_str_has_prefix(item->sql + create, kinds[i]))
                        return g_string_insert(sql, (gssize) (create + strlen(kinds[i])), item->prefix);
        return sql;
}

static int append_item(Shell *shell, GString *text, const SchemaItem *item, bool indent) {
        g_autoptr(GString) sql = item_sql(item);
        int r = 0;

        if (g_str_has_prefix(item->sql, "CREATE VIEW ") || g_str_has_prefix(item->sql, "CREATE VIRTUAL TABLE "))
                r = append_fake_columns(shell, sql, item);
        if (r >= 0)
                schema_text_append(text, sql->str, indent);
        return r;
}

/* Writes lines; escaped on a terminal, otherwise unchanged. */
static int write_lines(Shell *shell, const GString *text) {
        g_autoptr(GString) shown = g_string_new(NULL);

        if (!output_is_terminal(shell->output))
                return answer_text(shell, text->str);
        format_shown_lines(shown, text->str, text->len, SIZE_MAX);
        return answer_text(shell, shown->str);
}

static int write_schema(Shell *shell, const char *pattern, bool indent) {
        const sqlipc_parameter parameter = { .struct_size = sizeof parameter,
                                             .type = pattern ? SQLIPC_TEXT : SQLIPC_NULL,
                                             .bytes = pattern,
                                             .size = pattern ? strlen(pattern) : 0 };
        bool has_schema = pattern && strchr(pattern, '.');
        g_autofree char *fit = fits(has_schema ? "(schema || '.' || tbl_name)" : "tbl_name", pattern ?: "%", "?1");
        g_autofree char *sql = g_strdup_printf("SELECT sql, name, prefix FROM " CATALOG_OBJECTS
                                               " WHERE sql IS NOT NULL AND (?1 IS NULL OR %s) ORDER BY schema, number", fit);
        g_autoptr(GArray) items = g_array_new(FALSE, FALSE, sizeof(SchemaItem));
        g_autoptr(GString) text = g_string_new(NULL);
        int r;

        g_array_set_clear_func(items, clear_item);
        r = query_run(shell, sql, &parameter, 1, take_item, items, NULL);
        for (guint i = 0; i < items->len && r >= 0; i++)
                r = append_item(shell, text, &g_array_index(items, SchemaItem, i), indent);
        return r < 0 ? r : write_lines(shell, text);
}

static int run_schema(Shell *shell, const Command *command, char **arguments) {
        const char *pattern = NULL;
        bool indent = false;

        for (char **argument = arguments + 1; *argument; argument++)
                if (g_str_equal(*argument, "--indent"))
                        indent = true;
                else if (**argument == '-' || pattern)
                        return command_misuse(shell, command);
                else
                        pattern = *argument;
        return write_schema(shell, pattern, indent);
}

static int take_schema_line(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        if (is_row)
                schema_text_append(userdata, sqlipc_column_text(cursor, 0, NULL), false);
        return 0;
}

static int take_indented_line(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        if (is_row)
                schema_text_append(userdata, sqlipc_column_text(cursor, 0, NULL), true);
        return 0;
}

static int note_table(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        if (is_row)
                g_ptr_array_add(userdata, g_strdup(sqlipc_column_text(cursor, 0, NULL)));
        return 0;
}

/* Writes the tables of ANALYZE as sqlite3 does: a shell that reads the output back also loads the statistics. */
static int write_statistics(Shell *shell, const GPtrArray *tables, FILE *file) {
        RenderOptions options = query_render_options(shell, file);
        int r = 0;

        fputs(tables->len > 0 ? "ANALYZE sqlite_schema;\n" : "/* No STAT tables available */\n", file);
        for (guint i = 0; i < tables->len && r >= 0; i++) {
                g_autofree char *sql = g_strconcat("SELECT * FROM main.", tables->pdata[i], NULL);

                options.table_name = tables->pdata[i];
                r = query_write(shell, sql, RENDER_INSERT, &options, NULL);
        }
        if (tables->len > 0)
                fputs("ANALYZE sqlite_schema;\n", file);
        return r;
}

static int run_fullschema(Shell *shell, const Command *command, char **arguments) {
        g_autoptr(GPtrArray) tables = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GString) text = g_string_new(NULL);
        bool indent = arguments[1] != NULL;
        FILE *file;
        int r;

        if (indent && !g_str_equal(arguments[1], "--indent"))
                return command_misuse(shell, command);
        r = query_run(shell, "SELECT sql FROM " CATALOG_OBJECTS " WHERE sql IS NOT NULL "
                      "AND name NOT LIKE 'sqlite^_%' ESCAPE '^' ORDER BY number, schema",
                      NULL, 0, indent ? take_indented_line : take_schema_line, text, NULL);
        if (r >= 0)
                r = query_run(shell, "SELECT name FROM sqlite_schema WHERE name GLOB 'sqlite_stat[14]' ORDER BY name", NULL,
                              0, note_table, tables, NULL);
        if (r >= 0)
                r = write_lines(shell, text);
        if (r >= 0)
                r = answer_begin(shell, &file);
        return r < 0 ? r : answer_end(shell, write_statistics(shell, tables, file));
}

/* ---- Other commands ----------------------------------------------------------------------------------------------- */

/* Writes the CREATE statements of a table or view, and of everything that belongs to it. */
static int write_definitions(Shell *shell, const char *name) {
        const sqlipc_parameter parameter = { .struct_size = sizeof parameter, .type = SQLIPC_TEXT,
                                             .bytes = name, .size = strlen(name) };
        g_autoptr(GString) text = g_string_new(NULL);
        int r = query_run(shell, "SELECT sql FROM " CATALOG_OBJECTS
                          " WHERE sql IS NOT NULL AND tbl_name = ?1 COLLATE NOCASE"
                          " AND schema = (SELECT max(schema) FROM " CATALOG_OBJECTS " WHERE type IN ('table', 'view')"
                          " AND name = ?1 COLLATE NOCASE) ORDER BY number", &parameter, 1, take_schema_line, text, NULL);

        return r < 0 ? r : write_lines(shell, text);
}

static int run_describe(Shell *shell, const Command *command, char **arguments) {
        bool with_definition = g_str_has_suffix(arguments[0], "+");
        int r;

        (void) command;
        if (!arguments[1])
                return describe_all(shell);
        r = describe_relation(shell, arguments[1]);
        return r < 0 || !with_definition ? r : write_definitions(shell, arguments[1]);
}

static int run_functions(Shell *shell, const Command *command, char **arguments) {
        const char *pattern = arguments[1] ?: "%";
        g_autoptr(GString) literal = g_string_new(NULL);
        g_autofree char *fit = NULL, *sql = NULL;

        (void) command;
        schema_append_literal(literal, pattern);
        fit = fits("name", pattern, literal->str);
        sql = g_strdup_printf("SELECT DISTINCT name, CASE type WHEN 's' THEN 'scalar' WHEN 'a' THEN 'aggregate' "
                              "ELSE 'window' END AS type, iif(narg < 0, 'any', narg) AS arguments "
                              "FROM pragma_function_list WHERE %s ORDER BY 1, 3", fit);
        return query_print(shell, sql);
}

static int run_explain(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *sql = g_strconcat("EXPLAIN QUERY PLAN ", arguments[1], NULL);

        (void) command;
        return query_print(shell, sql);
}

#define PATTERN "a pattern of LIKE, or of GLOB where it has *, ? or [."
#define MODE " In columns, or in the mode that was chosen."

static const char *const fullschema_words[] = { "--indent", NULL };

const Command commands_data[] = {
        { .name = "describe", .aliases = "d d+", .arguments = "[NAME]",
          .summary = "Show columns, indexes and keys of a table or view; without NAME, what there is",
          .details = "Grids omit attributes that no column has. \\d+ adds the CREATE statements.",
          .n_max = 1, .kinds = { ARGUMENT_TABLE }, .run = run_describe },
        { .name = "explain", .arguments = "SQL",
          .summary = "Show how SQLite would run a statement, as a tree",
          .details = "The statement is not run. .eqp on shows the plan before each result.",
          .n_min = 1, .n_max = 1, .takes_rest = true, .kinds = { ARGUMENT_SQL }, .run = run_explain },
        { .name = "fullschema", .arguments = "[--indent]",
          .summary = "Show the CREATE statements and the tables of ANALYZE",
          .details = "As sqlite3 does: what is read back has the same query plans. --indent gives the columns of long "
                     "tables a line each.",
          .n_max = 1, .kinds = { ARGUMENT_WORDS }, .words = fullschema_words, .run = run_fullschema },
        { .name = "functions", .aliases = "df", .arguments = "[LIKE]",
          .summary = "List the functions that statements may call",
          .details = "All, or those that LIKE fits: " PATTERN, .n_max = 1, .run = run_functions },
        { .name = "indexes", .aliases = "di", .arguments = "[TABLE]",
          .summary = "List indexes, of all tables or of those like TABLE",
          .details = "TABLE may be " PATTERN MODE,
          .n_max = 1, .kinds = { ARGUMENT_TABLE }, .run = run_indexes },
        { .name = "schema", .arguments = "[NAME] [--indent]",
          .summary = "Show the CREATE statements, of all objects or of those like NAME",
          .details = "NAME may be " PATTERN " --indent gives the columns of long tables a line each.",
          .n_max = 2, .kinds = { ARGUMENT_TABLE, ARGUMENT_TABLE }, .run = run_schema },
        { .name = "tables", .aliases = "dt", .arguments = "[LIKE]",
          .summary = "List tables and views, all or those like LIKE",
          .details = "LIKE is " PATTERN MODE,
          .n_max = 1, .kinds = { ARGUMENT_TABLE }, .run = run_tables },
        { .name = "views", .aliases = "dv", .arguments = "[LIKE]",
          .summary = "List views, all or those like LIKE",
          .details = "LIKE is " PATTERN MODE,
          .n_max = 1, .kinds = { ARGUMENT_TABLE }, .run = run_views },
        {},
};
