/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The statements of a migration in SQLite's dialect: those of the source, unchanged. Pure. */
#include <inttypes.h>

#include "tools/ctl/migrate/copy-plan.h"

static void write_table(PlanTable *table) {
        g_autoptr(GString) drop = g_string_new("DROP TABLE IF EXISTS "), insert = g_string_new("INSERT INTO ");
        g_autoptr(GString) last = g_string_new("SELECT max(");

        plan_append_name(drop, table->source->name);
        plan_append_name(insert, table->source->name);
        for (guint i = 0; i < table->columns->len; i++) {
                const PlanColumn *column = &g_array_index(table->columns, PlanColumn, i);
                g_autoptr(GString) name = g_string_new(NULL);

                if (column->source)
                        plan_append_name(name, column->source->name);
                else
                        g_string_append(name, table->source->rowid);
                g_string_append_printf(insert, "%s%s", i > 0 ? ", " : " (", name->str);
                if ((int) i == table->key)
                        g_string_append_printf(last, "%s) FROM ", name->str);
        }
        g_string_append(insert, ") VALUES (?");
        for (guint i = 1; i < table->columns->len; i++)
                g_string_append(insert, ", ?");
        g_string_append_c(insert, ')');
        plan_append_name(last, table->source->name);
        table->create = g_strdup(table->source->sql);
        table->drop = g_strdup(drop->str);
        table->insert = g_strdup(insert->str);
        table->read_copy = g_strdup(table->read);
        table->last_key = table->key >= 0 ? g_strdup(last->str) : NULL;
}

static void write_indexes(Plan *plan, const SourceTable *table) {
        for (guint i = 0; i < table->indexes->len; i++) {
                const SourceIndex *index = table->indexes->pdata[i];

                if (index->sql) /* those of constraints are made with the table */
                        plan_add(plan, &(PlanObject) {
                                .kind = index->is_unique ? "unique" : "index",
                                .name = g_strdup(index->name),
                                .sql = g_strdup(index->sql),
                                .table = table->name,
                                .is_required = index->is_unique,
                        });
        }
}

/* SQLite keeps the largest rowid of AUTOINCREMENT in a table, in a row that the first row of the table makes. */
static void write_sequence(Plan *plan, const SourceTable *table) {
        g_autoptr(GString) name = g_string_new(NULL);

        if (table->sequence == 0)
                return;
        plan_append_literal(name, table->name);
        plan_add(plan, &(PlanObject) {
                .kind = "sequence",
                .name = g_strdup(table->name),
                .before = g_strdup_printf("DELETE FROM sqlite_sequence WHERE name = %s", name->str),
                .sql = g_strdup_printf("INSERT INTO sqlite_sequence(name, seq) VALUES (%s, %" PRId64 ")", name->str,
                                       table->sequence),
                .table = table->name,
                .is_required = true,
        });
}

static void write_object(Plan *plan, const SourceObject *object) {
        g_autoptr(GString) before = g_string_new(NULL);
        bool is_view = g_str_equal(object->type, "view");

        g_string_append_printf(before, "DROP %s IF EXISTS ", is_view ? "VIEW" : "TRIGGER");
        plan_append_name(before, object->name);
        plan_add(plan, &(PlanObject) {
                .kind = is_view ? "view" : "trigger",
                .name = g_strdup(object->name),
                .before = g_string_free(g_steal_pointer(&before), FALSE),
                .sql = g_strdup(object->sql),
                .is_required = !is_view,
        });
}

static void write_header(Plan *plan, const char *pragma, int64_t value) {
        if (value != 0)
                plan_add(plan, &(PlanObject) {
                        .kind = "header",
                        .name = g_strdup(pragma),
                        .sql = g_strdup_printf("PRAGMA %s = %" PRId64, pragma, value),
                });
}

static void write_all(Plan *plan) {
        for (guint i = 0; i < plan->tables->len; i++) {
                PlanTable *table = plan->tables->pdata[i];

                write_table(table);
                write_indexes(plan, table->source);
                write_sequence(plan, table->source);
        }
        for (guint i = 0; i < plan->schema->objects->len; i++)
                write_object(plan, plan->schema->objects->pdata[i]);
        write_header(plan, "user_version", plan->schema->user_version);
        write_header(plan, "application_id", plan->schema->application_id);
}

#define NAMES_SQL "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite^_%' ESCAPE '^'"

const Dialect dialect_sqlite = {
        .product = "SQLite",
        .names_sql = NAMES_SQL,
        .has_rowids = true,
        .keeps_nul = true,
        .keeps_any_bytes = true,
        .write = write_all,
};

/* Its results are JSON, which has only UTF-8. */
const Dialect dialect_rqlite = {
        .product = "rqlite",
        .names_sql = NAMES_SQL,
        .has_rowids = true,
        .keeps_nul = true,
        .write = write_all,
};
