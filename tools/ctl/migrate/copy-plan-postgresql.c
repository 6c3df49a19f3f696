/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The statements of a migration in PostgreSQL's dialect. Pure. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/sql/sql-name.h"
#include "tools/cli/sql/sql-scan.h"
#include "tools/ctl/migrate/copy-plan.h"

/* The text that SQLite's CURRENT_TIMESTAMP and datetime('now') give. */
#define NOW_AS_TEXT(form) "to_char(now() AT TIME ZONE 'UTC', '" form "')"

/* ---- Names -------------------------------------------------------------------------------------------------------- */

/* Programs that write Track without quotes mean track in PostgreSQL, so that must be the name, unless programs quote it. */
static void append_name(GString *sql, const Plan *plan, const char *name) {
        g_autofree char *lower = plan->options->keep_case ? g_strdup(name) : g_ascii_strdown(name, -1);

        plan_append_name(sql, lower);
}

static char *column_list(const Plan *plan, const GPtrArray *names) {
        g_autoptr(GString) sql = g_string_new(NULL);

        for (guint i = 0; i < names->len; i++) {
                g_string_append(sql, i > 0 ? ", " : "");
                append_name(sql, plan, names->pdata[i]);
        }
        return g_string_free(g_steal_pointer(&sql), FALSE);
}

static char *quoted(const Plan *plan, const char *name) {
        g_autoptr(GString) sql = g_string_new(NULL);

        append_name(sql, plan, name);
        return g_string_free(g_steal_pointer(&sql), FALSE);
}

/* ---- Tables ------------------------------------------------------------------------------------------------------- */

/* True if the text is one token of SQLite, with nothing before or after it. Two literals with an operator between them begin
 * and end like one. */
static bool is_token(const char *sql, SqlTokenType type) {
        size_t position = 0, size = strlen(sql);
        SqlToken token;

        return sql_scan_next(SQL_DIALECT_SQLITE, sql, size, &position, &token) && token.type == type && !token.open &&
               position == size;
}

/* A number in decimal digits, maybe with a sign; SQLite has no literal for infinity. */
static bool is_number(const char *sql) {
        const char *digits = sql + (*sql == '-' || *sql == '+');

        return is_token(digits, SQL_NUMBER) && !strpbrk(digits, "xX_") && isfinite(g_ascii_strtod(sql, NULL));
}

/* An integer as SQLite writes it. */
static bool is_integer(const char *sql) {
        g_autofree char *written = NULL;
        gint64 n;

        if (!g_ascii_string_to_signed(sql, 10, INT64_MIN, INT64_MAX, &n, NULL))
                return false;
        written = g_strdup_printf("%" PRId64, n);
        return g_str_equal(written, sql);
}

/* True if a column of this declared type keeps texts that look like numbers; others would turn '1.50' into 1.5. */
static bool keeps_texts(const char *declared) {
        g_autofree char *upper = g_ascii_strup(declared, -1);

        if (strstr(upper, "INT"))
                return false;
        return !*upper || strstr(upper, "CHAR") || strstr(upper, "CLOB") || strstr(upper, "TEXT") || strstr(upper, "BLOB");
}

/* True if the text is a date, or a time, in the form of the values that are copied. The server has other words for times,
 * such as 'now', and would keep the moment of the migration. */
static bool is_time(const char *text, bool is_date) {
        unsigned year, month, day, hour = 0, minute = 0, second = 0;
        g_autofree char *written = NULL;
        bool has_time = sscanf(text, "%4u-%2u-%2u %2u:%2u:%2u", &year, &month, &day, &hour, &minute, &second) == 6;

        if (has_time == is_date || (is_date && sscanf(text, "%4u-%2u-%2u", &year, &month, &day) != 3))
                return false;
        written = is_date ? g_strdup_printf("%04u-%02u-%02u", year, month, day)
                          : g_strdup_printf("%04u-%02u-%02u %02u:%02u:%02u", year, month, day, hour, minute, second);
        return g_str_equal(written, text) && g_date_valid_dmy((GDateDay) day, (GDateMonth) month, (GDateYear) year) &&
               hour < 24 && minute < 60 && second < 60;
}

/* True if the text between the quotes is a value of the column's kind. */
static bool fits_kind(const PlanColumn *column, const char *literal) {
        g_autofree char *text = sql_name_unquote(literal + 1, strlen(literal) - 2, '\'');
        char *end;

        if (column->kind != KIND_TEXT)
                return is_time(text, column->kind == KIND_DATE);
        (void) g_ascii_strtod(text, &end);
        return *end || end == text || keeps_texts(column->source->type);
}

/* The number as a DEFAULT of the kind; NULL: the server would store another value. The caller frees it. */
static char *translate_number(const PlanColumn *column, const char *sql) {
        switch (column->kind) {
        case KIND_DOUBLE:
        case KIND_NUMERIC:
                return g_strdup(sql);
        case KIND_BIGINT:
                return is_integer(sql) ? g_strdup(sql) : NULL;
        case KIND_TEXT:
                return is_integer(sql) ? g_strdup_printf("'%s'", sql) : NULL;
        default:
                return NULL;
        }
}

/* The DEFAULT in PostgreSQL; NULL: it cannot be translated. The caller frees it. */
static char *translate_default(const PlanColumn *column) {
        static const struct {
                const char *sqlite, *text;
        } times[] = {
                { "CURRENT_TIMESTAMP", NOW_AS_TEXT("YYYY-MM-DD HH24:MI:SS") },
                { "datetime('now')", NOW_AS_TEXT("YYYY-MM-DD HH24:MI:SS") },
                { "CURRENT_DATE", NOW_AS_TEXT("YYYY-MM-DD") },
                { "date('now')", NOW_AS_TEXT("YYYY-MM-DD") },
                { "CURRENT_TIME", NOW_AS_TEXT("HH24:MI:SS") },
        };
        const char *sql = column->source->default_sql;
        bool is_text = column->kind == KIND_TEXT || column->kind == KIND_DATE || column->kind == KIND_TIMESTAMP;

        if (g_ascii_strcasecmp(sql, "NULL") == 0)
                return g_strdup("NULL");
        for (size_t i = 0; i < G_N_ELEMENTS(times); i++)
                if (g_ascii_strcasecmp(sql, times[i].sqlite) == 0)
                        return is_text ? g_strconcat(times[i].text, "::", column_kind_to_string(column->kind), NULL) : NULL;
        if (is_number(sql))
                return translate_number(column, sql);
        if (column->kind == KIND_BIGINT && g_ascii_strcasecmp(sql, "TRUE") == 0)
                return g_strdup("1");
        if (column->kind == KIND_BIGINT && g_ascii_strcasecmp(sql, "FALSE") == 0)
                return g_strdup("0");
        return is_text && is_token(sql, SQL_STRING) && fits_kind(column, sql) ? g_strdup(sql) : NULL;
}

static void append_default(Plan *plan, GString *sql, const PlanTable *table, const PlanColumn *column) {
        g_autofree char *text = column->source->default_sql ? translate_default(column) : NULL;

        if (text)
                g_string_append_printf(sql, " DEFAULT %s", text);
        else if (column->source->default_sql)
                plan_omit(plan, "DEFAULT %s of %s.%s", column->source->default_sql, table->source->name,
                          column->source->name);
}

/* The columns of the PRIMARY KEY in its order; the caller frees the array. */
static GPtrArray *key_columns(const SourceTable *table) {
        GPtrArray *names = g_ptr_array_new();

        for (int position = 1; position <= (int) table->columns->len; position++)
                for (guint i = 0; i < table->columns->len; i++) {
                        const SourceColumn *column = &g_array_index(table->columns, SourceColumn, i);

                        if (column->key == position)
                                g_ptr_array_add(names, column->name);
                }
        return names;
}

/* SQLite allows NULL in a PRIMARY KEY, unless it is the rowid; PostgreSQL allows it only in UNIQUE. */
static bool has_null_in_key(const PlanTable *table) {
        for (guint i = 0; i < table->columns->len; i++) {
                const PlanColumn *column = &g_array_index(table->columns, PlanColumn, i);

                if (column->source->key > 0 && column->found.n[SQLIPC_NULL] > 0)
                        return true;
        }
        return false;
}

/* SQLite accepts NULL in the columns of a PRIMARY KEY that are not declared NOT NULL, except in the rowid. */
static bool may_have_null_in_key(const PlanTable *table) {
        for (guint i = 0; i < table->columns->len; i++) {
                const SourceColumn *column = g_array_index(table->columns, PlanColumn, i).source;

                if (column->key > 0 && !column->not_null && (int) i != table->key)
                        return true;
        }
        return false;
}

static void write_create(Plan *plan, PlanTable *table) {
        g_autofree char *name = quoted(plan, table->source->name);
        g_autoptr(GPtrArray) key = key_columns(table->source);
        g_autoptr(GString) sql = g_string_new("CREATE TABLE ");

        g_string_append_printf(sql, "%s (", name);
        for (guint i = 0; i < table->columns->len; i++) {
                const PlanColumn *column = &g_array_index(table->columns, PlanColumn, i);

                g_string_append(sql, i > 0 ? ", " : "");
                append_name(sql, plan, column->source->name);
                g_string_append_printf(sql, " %s", column_kind_to_string(column->kind));
                if ((int) i == table->key)
                        g_string_append(sql, " GENERATED BY DEFAULT AS IDENTITY");
                else if (column->source->not_null)
                        g_string_append(sql, " NOT NULL");
                if ((int) i != table->key)
                        append_default(plan, sql, table, column);
        }
        if (key->len > 0) {
                g_autofree char *columns = column_list(plan, key);

                if (may_have_null_in_key(table) && !has_null_in_key(table))
                        plan_omit(plan, "NULL in the PRIMARY KEY of %s: it becomes an error", table->source->name);
                g_string_append_printf(sql, ", %s (%s)", has_null_in_key(table) ? "UNIQUE" : "PRIMARY KEY", columns);
        }
        g_string_append_c(sql, ')');
        table->create = g_string_free(g_steal_pointer(&sql), FALSE);
        table->drop = g_strdup_printf("DROP TABLE IF EXISTS %s CASCADE", name);
}

static void write_rows(Plan *plan, PlanTable *table) {
        g_autoptr(GPtrArray) names = g_ptr_array_new();
        g_autofree char *name = quoted(plan, table->source->name), *columns = NULL;
        g_autoptr(GString) insert = g_string_new("INSERT INTO ");

        for (guint i = 0; i < table->columns->len; i++)
                g_ptr_array_add(names, g_array_index(table->columns, PlanColumn, i).source->name);
        columns = column_list(plan, names);
        g_string_append_printf(insert, "%s (%s) VALUES (", name, columns);
        for (guint i = 1; i <= names->len; i++)
                g_string_append_printf(insert, "%s$%u", i > 1 ? ", " : "", i);
        g_string_append_c(insert, ')');
        table->insert = g_string_free(g_steal_pointer(&insert), FALSE);
        table->read_copy = g_strdup_printf("SELECT %s FROM %s", columns, name);
        if (table->key >= 0) {
                g_autofree char *key = quoted(plan, names->pdata[table->key]);

                table->last_key = g_strdup_printf("SELECT max(%s) FROM %s", key, name);
        }
}

/* ---- After the rows ----------------------------------------------------------------------------------------------- */

/* An identity column continues after the largest rowid, which AUTOINCREMENT remembers also if its row is gone. */
static void write_sequence(Plan *plan, const PlanTable *table) {
        const PlanColumn *key = table->key >= 0 ? &g_array_index(table->columns, PlanColumn, table->key) : NULL;
        int64_t largest = key ? MAX(table->source->sequence, key->found.largest) : 0;
        g_autofree char *name = quoted(plan, table->source->name), *column = key ? quoted(plan, key->source->name) : NULL;

        if (largest > 0 && largest < INT64_MAX)
                plan_add(plan, &(PlanObject) {
                        .kind = "sequence",
                        .name = g_strdup(table->source->name),
                        .sql = g_strdup_printf("ALTER TABLE %s ALTER COLUMN %s RESTART WITH %" PRId64, name, column,
                                               largest + 1),
                        .table = table->source->name,
                        .is_required = true,
                });
}

static const PlanColumn *find_column(const PlanTable *table, const char *name) {
        for (guint i = 0; i < table->columns->len; i++) {
                const PlanColumn *column = &g_array_index(table->columns, PlanColumn, i);

                if (g_ascii_strcasecmp(column->source->name, name) == 0)
                        return column;
        }
        return NULL;
}

static bool has_collation(const SourceIndex *index) {
        for (guint i = 0; i < index->columns->len; i++) {
                const char *collation = g_array_index(index->columns, SourceIndexColumn, i).collation;

                if (collation && g_ascii_strcasecmp(collation, "BINARY") != 0)
                        return true;
        }
        return false;
}

/* Appends an expression whose values are equal if and only if SQLite's collation takes those of the column for equal. False:
 * there is none. In the collation "C" lower() changes ASCII letters only, as NOCASE does. */
static bool append_collated(GString *sql, const Plan *plan, const PlanTable *table, const SourceIndexColumn *column) {
        const PlanColumn *planned = find_column(table, column->name);
        g_autofree char *name = quoted(plan, column->name);

        if (!planned || planned->kind == KIND_BYTEA)
                return false; /* texts among blobs */
        if (planned->kind != KIND_TEXT || g_ascii_strcasecmp(column->collation ?: "BINARY", "BINARY") == 0)
                g_string_append(sql, name);
        else if (planned->found.n[SQLIPC_INTEGER] + planned->found.n[SQLIPC_REAL] > 0)
                return false; /* SQLite compares numbers as numbers */
        else if (g_ascii_strcasecmp(column->collation, "NOCASE") == 0)
                g_string_append_printf(sql, "lower(%s COLLATE \"C\")", name);
        else if (g_ascii_strcasecmp(column->collation, "RTRIM") == 0)
                g_string_append_printf(sql, "rtrim(%s, ' ')", name);
        else
                return false;
        return true;
}

/* A unique index that takes more values for equal than "=" does. False: there can be none, which was listed. */
static bool write_collated(Plan *plan, const PlanTable *table, const SourceIndex *index) {
        g_autofree char *name = quoted(plan, table->source->name), *index_name = quoted(plan, index->name);
        g_autoptr(GString) columns = g_string_new(NULL);

        for (guint i = 0; i < index->columns->len; i++) {
                const SourceIndexColumn *column = &g_array_index(index->columns, SourceIndexColumn, i);

                g_string_append(columns, i > 0 ? ", " : "");
                if (!append_collated(columns, plan, table, column)) {
                        plan_omit(plan, "%s COLLATE %s of %s.%s", index->is_key ? "PRIMARY KEY" : "UNIQUE",
                                  column->collation, table->source->name, column->name);
                        return false;
                }
        }
        plan_add(plan, &(PlanObject) {
                .kind = "unique",
                .name = g_strconcat(index->name, " COLLATE", NULL),
                .sql = index->sql ? g_strdup_printf("CREATE UNIQUE INDEX %s ON %s (%s)", index_name, name, columns->str)
                                  : g_strdup_printf("CREATE UNIQUE INDEX ON %s (%s)", name, columns->str),
                .table = table->source->name,
                .is_required = true,
        });
        return true;
}

static void write_index(Plan *plan, const PlanTable *planned, const SourceIndex *index) {
        const SourceTable *table = planned->source;
        g_autofree char *name = quoted(plan, table->name), *index_name = quoted(plan, index->name);
        g_autoptr(GString) columns = g_string_new(NULL);

        for (guint i = 0; i < index->columns->len; i++) {
                const SourceIndexColumn *column = &g_array_index(index->columns, SourceIndexColumn, i);

                if (!column->name || index->is_partial) {
                        plan_omit(plan, "index %s: %s", index->name,
                                  column->name ? "it has a condition" : "it is of an expression");
                        return;
                }
                g_string_append(columns, i > 0 ? ", " : "");
                append_name(columns, plan, column->name);
                g_string_append(columns, column->descending && index->sql ? " DESC" : "");
        }
        /* foreign keys need the constraint itself, too */
        if (index->is_unique && has_collation(index) && write_collated(plan, planned, index) && index->sql)
                return;
        if (index->is_key) /* it is made with the table */
                return;
        plan_add(plan, &(PlanObject) {
                .kind = index->is_unique ? "unique" : "index",
                .name = g_strdup(index->name),
                .sql = index->sql ? g_strdup_printf("CREATE %sINDEX %s ON %s (%s)", index->is_unique ? "UNIQUE " : "",
                                                    index_name, name, columns->str)
                                  : g_strdup_printf("ALTER TABLE %s ADD UNIQUE (%s)", name, columns->str),
                .table = table->name,
                .is_required = index->is_unique,
        });
}

static void write_reference(Plan *plan, const SourceTable *table, const SourceReference *reference, guint n) {
        const SourceTable *parent = plan_find_source(plan, reference->parent);
        g_autofree char *name = quoted(plan, table->name), *from = column_list(plan, reference->from), *to = NULL;
        g_autofree char *parent_name = quoted(plan, reference->parent);
        g_autoptr(GPtrArray) key = NULL;

        if (!parent) {
                plan_omit(plan, "foreign key of %s: there is no table %s", table->name, reference->parent);
                return;
        }
        key = key_columns(parent);
        to = column_list(plan, reference->to->len > 0 ? reference->to : key); /* the key may have become UNIQUE */
        plan_add(plan, &(PlanObject) {
                .kind = "foreign-key",
                .name = g_strdup_printf("%s %u", table->name, n),
                .sql = g_strdup_printf("ALTER TABLE %s ADD FOREIGN KEY (%s) REFERENCES %s (%s) ON UPDATE %s ON DELETE %s%s",
                                       name, from, parent_name, to, reference->on_update, reference->on_delete,
                                       reference->is_deferred ? " DEFERRABLE INITIALLY DEFERRED" : ""),
                .table = table->name,
                .parent = parent->name,
                .is_required = true,
        });
}

static void write_view(Plan *plan, const SourceObject *object) {
        g_autofree char *name = quoted(plan, object->name);

        plan_add(plan, &(PlanObject) {
                .kind = "view",
                .name = g_strdup(object->name),
                .before = g_strdup_printf("DROP VIEW IF EXISTS %s CASCADE", name),
                .sql = g_strdup(object->sql),
        });
}

/* ---- Names that the server changes or refuses --------------------------------------------------------------------- */

enum { NAME_SIZE_MAX = 63 }; /* NAMEDATALEN - 1: the server cuts off the rest */

/* Lists a name that must be another one. `table`: of a column; NULL. */
static void refuse_name(Plan *plan, const char *what, const char *table, const char *name, const char *why) {
        g_ptr_array_add(plan->obstacles, g_strdup_printf("the %s %s%s%s: %s: rename it in the source", what, table ?: "",
                                                         table ? "." : "", name, why));
}

static void check_name(Plan *plan, const char *what, const char *table, const char *name) {
        if (strlen(name) > NAME_SIZE_MAX)
                refuse_name(plan, what, table, name, "PostgreSQL cuts off names after 63 bytes");
}

static void check_column(Plan *plan, const char *table, const char *name) {
        static const char *const system_columns[] = { "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid" };
        g_autofree char *made = plan->options->keep_case ? g_strdup(name) : g_ascii_strdown(name, -1);

        check_name(plan, "column", table, name);
        for (size_t i = 0; i < G_N_ELEMENTS(system_columns); i++)
                if (g_str_equal(made, system_columns[i]))
                        refuse_name(plan, "column", table, name, "every table of PostgreSQL has such a column already");
}

static void check_names(Plan *plan) {
        for (guint i = 0; i < plan->tables->len; i++) {
                const PlanTable *table = plan->tables->pdata[i];

                check_name(plan, "table", NULL, table->source->name);
                for (guint n = 0; n < table->columns->len; n++)
                        check_column(plan, table->source->name,
                                     g_array_index(table->columns, PlanColumn, n).source->name);
                for (guint n = 0; n < table->source->indexes->len; n++) {
                        const SourceIndex *index = table->source->indexes->pdata[n];

                        if (index->sql)
                                check_name(plan, "index", NULL, index->name);
                }
        }
        for (guint i = 0; i < plan->schema->objects->len; i++) {
                const SourceObject *object = plan->schema->objects->pdata[i];

                if (g_str_equal(object->type, "view"))
                        check_name(plan, "view", NULL, object->name);
        }
}

static void write_header(Plan *plan, const char *pragma, int64_t value) {
        if (value != 0)
                plan_omit(plan, "PRAGMA %s = %" PRId64, pragma, value);
}

static void write_all(Plan *plan) {
        check_names(plan);
        write_header(plan, "user_version", plan->schema->user_version);
        write_header(plan, "application_id", plan->schema->application_id);
        for (guint i = 0; i < plan->tables->len; i++) {
                PlanTable *table = plan->tables->pdata[i];

                write_create(plan, table);
                write_rows(plan, table);
                write_sequence(plan, table);
                if (table->source->has_checks)
                        plan_omit(plan, "CHECK constraints of %s", table->source->name);
                if (table->source->conflict)
                        plan_omit(plan, "ON CONFLICT %s of %s: rows that break a constraint become errors",
                                  table->source->conflict, table->source->name);
        }
        for (guint i = 0; i < plan->tables->len; i++) {
                const PlanTable *table = plan->tables->pdata[i];

                for (guint n = 0; n < table->source->indexes->len; n++)
                        write_index(plan, table, table->source->indexes->pdata[n]);
        }
        for (guint i = 0; i < plan->tables->len; i++) { /* they need the unique indexes of all tables */
                const SourceTable *table = ((const PlanTable *) plan->tables->pdata[i])->source;

                for (guint n = 0; n < table->references->len; n++)
                        write_reference(plan, table, table->references->pdata[n], n);
        }
        for (guint i = 0; i < plan->schema->objects->len; i++) {
                const SourceObject *object = plan->schema->objects->pdata[i];

                if (g_str_equal(object->type, "view"))
                        write_view(plan, object);
                else
                        plan_omit(plan, "trigger %s", object->name);
        }
}

const Dialect dialect_postgresql = {
        .product = "PostgreSQL",
        /* information_schema hides tables of other roles */
        .names_sql = "SELECT relname FROM pg_catalog.pg_class WHERE relnamespace = current_schema()::regnamespace "
                     "AND relkind IN ('r', 'p', 'v', 'm', 'f')",
        .has_types = true,
        .write = write_all,
};
