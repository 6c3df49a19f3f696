/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The statements of a migration, see copy-plan.h. Pure. */
#include "tools/ctl/migrate/copy-plan.h"

#include <inttypes.h>
#include <string.h>

#include "tools/cli/dump/table-order.h"
#include "tools/cli/sql/sql-name.h"

void plan_append_name(GString *sql, const char *name) {
        sql_name_append_quoted(sql, name, '"');
}

void plan_append_literal(GString *sql, const char *text) {
        sql_name_append_quoted(sql, text, '\'');
}

/* ---- Memory ------------------------------------------------------------------------------------------------------- */

static void free_table(gpointer data) {
        PlanTable *table = data;

        g_array_unref(table->columns);
        g_free(table->create);
        g_free(table->drop);
        g_free(table->read);
        g_free(table->read_after);
        g_free(table->read_copy);
        g_free(table->last_key);
        g_free(table->insert);
        g_free(table);
}

static void free_object(gpointer data) {
        PlanObject *object = data;

        g_free(object->name);
        g_free(object->before);
        g_free(object->sql);
        g_free(object);
}

void plan_free(Plan *plan) {
        if (!plan)
                return;
        g_ptr_array_unref(plan->tables);
        g_ptr_array_unref(plan->objects);
        g_ptr_array_unref(plan->omitted);
        g_ptr_array_unref(plan->obstacles);
        g_free(plan);
}

void plan_omit(Plan *plan, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        g_ptr_array_add(plan->omitted, g_strdup_vprintf(format, arguments));
        va_end(arguments);
}

void plan_add(Plan *plan, const PlanObject *object) {
        g_ptr_array_add(plan->objects, g_memdup2(object, sizeof *object));
}

/* ---- Tables ------------------------------------------------------------------------------------------------------- */

static PlanTable *new_table(const SourceTable *source, const Dialect *dialect) {
        PlanTable *table = g_new0(PlanTable, 1);

        table->source = source;
        table->columns = g_array_new(FALSE, TRUE, sizeof(PlanColumn));
        table->key = -1;
        if (source->rowid && dialect->has_rowids) {
                const PlanColumn rowid = {};

                table->key = 0;
                g_array_append_val(table->columns, rowid);
        }
        for (guint i = 0; i < source->columns->len; i++) {
                const PlanColumn column = { .source = &g_array_index(source->columns, SourceColumn, i) };

                if (column.source->is_computed && !dialect->has_types) /* the target computes it */
                        continue;
                if ((int) i == source->rowid_column)
                        table->key = (int) table->columns->len;
                g_array_append_val(table->columns, column);
        }
        return table;
}

static void append_column(GString *sql, const PlanTable *table, guint n) {
        const PlanColumn *column = &g_array_index(table->columns, PlanColumn, n);

        if (column->source)
                plan_append_name(sql, column->source->name);
        else
                g_string_append(sql, table->source->rowid);
}

/* These are needed before the types are chosen, to find what is in the columns. */
static void write_reads(PlanTable *table) {
        g_autoptr(GString) sql = g_string_new("SELECT "), key = g_string_new(NULL);

        for (guint i = 0; i < table->columns->len; i++) {
                g_string_append(sql, i > 0 ? ", " : "");
                append_column(sql, table, i);
        }
        g_string_append(sql, " FROM ");
        plan_append_name(sql, table->source->name);
        if (table->key < 0) {
                table->read = g_strdup(sql->str);
                return;
        }
        append_column(key, table, (guint) table->key);
        table->read = g_strdup_printf("%s ORDER BY %s", sql->str, key->str);
        table->read_after = g_strdup_printf("%s WHERE %s > CAST(?1 AS INTEGER) ORDER BY %s", sql->str, key->str, key->str);
}

const SourceTable *plan_find_source(const Plan *plan, const char *name) {
        for (guint i = 0; i < plan->schema->tables->len; i++) {
                const SourceTable *table = plan->schema->tables->pdata[i];

                if (!table->is_virtual && g_ascii_strcasecmp(table->name, name) == 0)
                        return table;
        }
        return NULL;
}

/* Parents first: a server that enforces foreign keys then accepts the rows of each table. */
static TableOrder *order_tables(Plan *plan) {
        TableOrder *order = table_order_new();

        for (guint i = 0; i < plan->schema->tables->len; i++) {
                const SourceTable *table = plan->schema->tables->pdata[i];

                if (table->is_virtual) {
                        plan_omit(plan, "table %s: it is virtual, or belongs to a virtual table", table->name);
                        continue;
                }
                table_order_add(order, table->name, NULL);
                for (guint n = 0; n < table->references->len; n++) {
                        const SourceReference *reference = table->references->pdata[n];
                        const SourceTable *parent = plan_find_source(plan, reference->parent);

                        table_order_add(order, table->name, parent ? parent->name : NULL);
                }
        }
        return order;
}

Plan *plan_new(const SourceSchema *schema, const PlanOptions *options) {
        g_autoptr(GPtrArray) names = NULL;
        TableOrder *order;
        Plan *plan = g_new(Plan, 1);

        *plan = (Plan) {
                .options = options,
                .schema = schema,
                .tables = g_ptr_array_new_with_free_func(free_table),
                .objects = g_ptr_array_new_with_free_func(free_object),
                .omitted = g_ptr_array_new_with_free_func(g_free),
                .obstacles = g_ptr_array_new_with_free_func(g_free),
        };
        order = order_tables(plan);
        names = table_order_sort(order);
        for (guint i = 0; i < names->len; i++) {
                PlanTable *table = new_table(plan_find_source(plan, names->pdata[i]), options->dialect);

                write_reads(table);
                g_ptr_array_add(plan->tables, table);
        }
        table_order_free(order);
        return plan;
}

/* ---- Types -------------------------------------------------------------------------------------------------------- */

/* True if "TABLE.COLUMN=TYPE" is about this column. */
static bool type_is_of(const char *type, const char *table, const char *column) {
        g_autofree char *prefix = g_strdup_printf("%s.%s=", table, column);

        return g_ascii_strncasecmp(type, prefix, strlen(prefix)) == 0;
}

/* The type that an option gives to a column; NULL: none does. */
static const char *type_of_options(const PlanOptions *options, const char *table, const char *column) {
        for (char **type = options->types; type && *type; type++)
                if (type_is_of(*type, table, column))
                        return strrchr(*type, '=') + 1;
        return NULL;
}

/* A column has one note in the table of columns; another one is listed after it. */
static void add_note(Plan *plan, const PlanTable *table, PlanColumn *column, bool applies, const char *note) {
        if (!applies)
                return;
        if (column->note)
                plan_omit(plan, "%s.%s, %s", table->source->name, column->source->name, note);
        else
                column->note = note;
}

static void choose(Plan *plan, const PlanTable *table, PlanColumn *column) {
        const char *type = type_of_options(plan->options, table->source->name, column->source->name);
        const ColumnFound *found = &column->found;

        if (type) {
                column->kind = column_kind_from_string(type);
                column->note = "by --type=";
        } else if (table->key >= 0 && column == &g_array_index(table->columns, PlanColumn, table->key))
                column->kind = KIND_BIGINT;
        else
                column->kind = column_choose(column->source->type, found, plan->options->with_dates, &column->note);
        add_note(plan, table, column, column->source->ignores_case, "NOCASE: comparisons will heed capitals");
        add_note(plan, table, column, column->source->ignores_blanks, "RTRIM: comparisons will heed blanks at the end");
        add_note(plan, table, column, column->source->is_computed, "computed: becomes a plain column");
}

static void add_bad_texts(Plan *plan, const PlanTable *table, const PlanColumn *column, uint64_t n, const char *what) {
        const Dialect *dialect = plan->options->dialect;
        const char *table_name = table->source->name, *name = column->source->name;
        g_autofree char *advice = dialect->has_types
                                          ? g_strdup_printf("--type=%s.%s=bytea copies them as bytes", table_name, name)
                                          : g_strdup("make them blobs in the source");

        g_ptr_array_add(plan->obstacles,
                        g_strdup_printf("%s.%s: %s cannot keep texts %s (%" PRIu64 " of them): %s", table_name, name,
                                        dialect->product, what, n, advice));
}

/* Texts that the target would change or refuse. */
static void check_texts(Plan *plan, const PlanTable *table, const PlanColumn *column) {
        const Dialect *dialect = plan->options->dialect;

        if (!column->source || column->kind == KIND_BYTEA)
                return;
        if (column->found.n_with_nul > 0 && !dialect->keeps_nul)
                add_bad_texts(plan, table, column, column->found.n_with_nul, "with NUL characters");
        if (column->found.n_not_utf8 > 0 && !dialect->keeps_any_bytes)
                add_bad_texts(plan, table, column, column->found.n_not_utf8, "that are not UTF-8");
}

static bool type_has_column(const char *type, const PlanTable *table) {
        for (guint n = 0; n < table->columns->len; n++) {
                const PlanColumn *column = &g_array_index(table->columns, PlanColumn, n);

                if (column->source && type_is_of(type, table->source->name, column->source->name))
                        return true;
        }
        return false;
}

/* An option about a column that does not exist is a mistake. */
static void check_types(Plan *plan) {
        for (char **type = plan->options->types; type && *type; type++) {
                bool found = false;

                for (guint i = 0; i < plan->tables->len; i++)
                        found = found || type_has_column(*type, plan->tables->pdata[i]);
                if (!found)
                        g_ptr_array_add(plan->obstacles, g_strdup_printf("--type=%s: there is no such column", *type));
        }
}

void plan_write(Plan *plan) {
        check_types(plan);
        for (guint i = 0; i < plan->tables->len; i++) {
                PlanTable *table = plan->tables->pdata[i];

                for (guint n = 0; n < table->columns->len; n++) {
                        PlanColumn *column = &g_array_index(table->columns, PlanColumn, n);

                        if (plan->options->dialect->has_types)
                                choose(plan, table, column);
                        check_texts(plan, table, column);
                }
        }
        plan->options->dialect->write(plan);
}
