/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes one SELECT of many tables, see snapshot.h. */
#include "tools/cli/dump/snapshot.h"

#include <string.h>

enum {
        WIDTH_MIN = 5,    /* columns of the header */
        WIDTH_MAX = 1999, /* SQLite's 2,000 columns, minus the one for the origin */
        /* Opcodes of SQLite's program: of a term, besides those for its values; for a column of the result; for a value of a
         * row in pieces; and for a piece. Taken from EXPLAIN, and rounded up. */
        OPS_OF_TERM = 32,
        OPS_OF_PLACE = 2,
        OPS_OF_PIECED_VALUE = 4,
        OPS_OF_PIECE = 4,
};

/* ---- Tables ------------------------------------------------------------------------------------------------------- */

static void free_table(gpointer data) {
        SnapshotTable *table = data;

        g_ptr_array_unref(table->columns);
        g_free(table);
}

static SnapshotTable *make_table(const SchemaObject *object, bool with_rowids) {
        SnapshotTable *table = g_new0(SnapshotTable, 1);

        table->object = object;
        table->with_rowid = with_rowids && object->rowid;
        table->columns = g_ptr_array_new();
        for (guint i = 0; i < object->columns->len; i++) {
                const SchemaColumn *column = &g_array_index(object->columns, SchemaColumn, i);

                if (column->hidden == SCHEMA_COLUMN_PLAIN)
                        g_ptr_array_add(table->columns, column->name);
        }
        table->n_values = table->columns->len + table->with_rowid;
        return table;
}

/* Returns true for the tables to dump: of SQLite's internal ones, only those that cannot be derived from the others. */
static bool is_ours(const char *name) {
        return !g_str_has_prefix(name, "sqlite_") || g_str_equal(name, "sqlite_sequence") ||
               (g_str_has_prefix(name, "sqlite_stat") && strlen(name) == strlen("sqlite_stat1"));
}

GPtrArray *snapshot_tables(const Schema *schema, bool with_rowids) {
        GPtrArray *tables = g_ptr_array_new_with_free_func(free_table);

        for (int pass = 0; pass < 2; pass++) /* sqlite_sequence comes last, because filling other tables changes it */
                for (guint i = 0; i < schema->objects->len; i++) {
                        const SchemaObject *object = g_ptr_array_index(schema->objects, i);

                        if (object->wanted && object->sql && g_str_equal(object->type, "table") && is_ours(object->name) &&
                            g_str_equal(object->name, "sqlite_sequence") == (pass == 1))
                                g_ptr_array_add(tables, make_table(object, with_rowids));
                }
        return tables;
}

/* ---- Terms -------------------------------------------------------------------------------------------------------- */

static void append_value(GString *sql, const SnapshotTable *table, size_t i) {
        if (i >= table->n_values)
                g_string_append(sql, "NULL");
        else if (table->with_rowid && i == 0)
                g_string_append_printf(sql, "t.%s", table->object->rowid);
        else {
                g_string_append(sql, "t.");
                schema_append_name(sql, g_ptr_array_index(table->columns, i - table->with_rowid));
        }
}

static size_t count_pieces(const SnapshotTable *table, size_t width) {
        return (table->n_values + width - 1) / width;
}

/* Appends the value at `place` of each piece. */
static void append_pieces(GString *sql, const SnapshotTable *table, size_t place, size_t width, size_t n_pieces) {
        g_string_append(sql, "CASE p.column1");
        for (size_t piece = 0; piece < n_pieces && piece * width + place < table->n_values; piece++) {
                g_string_append_printf(sql, " WHEN %zu THEN ", piece);
                append_value(sql, table, piece * width + place);
        }
        g_string_append(sql, " END");
}

static char *table_term(const SnapshotTable *table, guint number, size_t width) {
        g_autoptr(GString) sql = g_string_new(NULL);
        size_t n_pieces = count_pieces(table, width);

        g_string_append_printf(sql, "SELECT %u", number);
        for (size_t place = 0; place < width; place++) {
                g_string_append_c(sql, ',');
                if (n_pieces > 1)
                        append_pieces(sql, table, place, width, n_pieces);
                else
                        append_value(sql, table, place);
        }
        g_string_append(sql, " FROM main.");
        schema_append_quoted(sql, table->object->name);
        g_string_append(sql, " AS t");
        for (size_t piece = 0; n_pieces > 1 && piece < n_pieces; piece++)
                g_string_append_printf(sql, "%s(%zu)", piece == 0 ? " CROSS JOIN (VALUES" : ",", piece);
        if (n_pieces > 1)
                g_string_append(sql, ") AS p");
        return g_string_free(g_steal_pointer(&sql), FALSE);
}

/* Makes a term that reads no table of the dump, with WIDTH_MIN values. */
static char *other_term(const char *values, size_t width, const char *from) {
        g_autoptr(GString) sql = g_string_new("SELECT ");

        g_string_append(sql, values);
        for (size_t place = WIDTH_MIN; place < width; place++)
                g_string_append(sql, ",NULL");
        g_string_append_printf(sql, " FROM %s", from);
        return g_string_free(g_steal_pointer(&sql), FALSE);
}

static char *schema_term(size_t width) {
        return other_term("0,type,name,tbl_name,sql,NULL", width, "sqlite_schema");
}

static char *header_term(size_t width) {
        return other_term("-1,application_id,user_version,encoding,page_size,auto_vacuum", width,
                          "pragma_application_id, pragma_user_version, pragma_encoding, pragma_page_size, "
                          "pragma_auto_vacuum");
}

/* ---- Statements --------------------------------------------------------------------------------------------------- */

/* Appends a compound of at most `most` terms; more terms are nested, and SQLite flattens them. */
static void append_union(GString *sql, char **terms, size_t n, size_t most) {
        size_t step = 1;

        if (n == 1) {
                g_string_append(sql, terms[0]);
                return;
        }
        while (step < (n + most - 1) / most)
                step *= most;
        for (size_t i = 0; i < n; i += step) {
                size_t n_step = MIN(step, n - i);

                g_string_append(sql, i > 0 ? " UNION ALL " : "");
                g_string_append(sql, n_step > 1 ? "SELECT * FROM (" : "");
                append_union(sql, terms + i, n_step, most);
                g_string_append(sql, n_step > 1 ? ")" : "");
        }
}

/* The tables [from, to); a range that includes the first table also has the header. */
typedef struct Range {
        const GPtrArray *tables;
        const SnapshotLimits *limits;
        guint from, to;
} Range;

static char *range_sql(const Range *range, size_t width, bool with_schema) {
        g_autoptr(GPtrArray) terms = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GString) sql = g_string_new(NULL);

        if (with_schema)
                g_ptr_array_add(terms, schema_term(width));
        if (range->from == 0)
                g_ptr_array_add(terms, header_term(width));
        for (guint i = range->from; i < range->to; i++) {
                const SnapshotTable *table = g_ptr_array_index(range->tables, i);

                if (table->n_values > 0)
                        g_ptr_array_add(terms, table_term(table, i + 1, width));
        }
        append_union(sql, (char **) terms->pdata, terms->len, MAX(range->limits->compound_selects, 2));
        return g_string_free(g_steal_pointer(&sql), FALSE);
}

static uint64_t term_ops(const SnapshotTable *table, size_t width) {
        size_t n_pieces = count_pieces(table, width);
        uint64_t ops = OPS_OF_TERM + OPS_OF_PLACE * width;

        return n_pieces > 1 ? ops + OPS_OF_PIECED_VALUE * table->n_values + OPS_OF_PIECE * n_pieces : ops;
}

/* Returns true if SQLite surely accepts the statement. It doubles the array of its program when that is full, and refuses a
 * size above the limit, so only half of the limit is safe. */
static bool range_fits(const Range *range, size_t width, const char *sql) {
        uint64_t ops = 2 * (OPS_OF_TERM + OPS_OF_PLACE * width); /* schema and header */

        for (guint i = range->from; i < range->to; i++)
                ops += term_ops(g_ptr_array_index(range->tables, i), width);
        return ops <= range->limits->vdbe_ops / 2 && strlen(sql) <= range->limits->sql_size;
}

static size_t range_width(const Range *range) {
        size_t width = WIDTH_MIN;

        for (guint i = range->from; i < range->to; i++) {
                const SnapshotTable *table = g_ptr_array_index(range->tables, i);

                width = MAX(width, table->n_values);
        }
        return MIN(width, WIDTH_MAX);
}

static void add_statement(GPtrArray *statements, char *sql, size_t width, bool has_schema) {
        SnapshotStatement *statement = g_new0(SnapshotStatement, 1);

        *statement = (SnapshotStatement) { .sql = sql, .width = width, .has_schema = has_schema };
        g_ptr_array_add(statements, statement);
}

/* Plans one statement. If it would be too large, a smaller width can help, because fewer NULLs fill the rows. */
static bool plan_one(GPtrArray *statements, const Range *range) {
        if (range->limits->compound_selects < 2)
                return false;
        for (size_t width = range_width(range);; width = MAX(width / 2, WIDTH_MIN)) {
                g_autofree char *sql = range_sql(range, width, true);

                if (range_fits(range, width, sql)) {
                        add_statement(statements, g_steal_pointer(&sql), width, true);
                        return true;
                }
                if (width == WIDTH_MIN)
                        return false;
        }
}

/* Plans the header, or a single table: these cannot be split any further. */
static void plan_least(GPtrArray *statements, const Range *range) {
        const SnapshotTable *table = range->from < range->to ? g_ptr_array_index(range->tables, range->from) : NULL;
        size_t width = range_width(range);

        if (range->from == 0)
                add_statement(statements, header_term(WIDTH_MIN), WIDTH_MIN, false);
        if (table && table->n_values > 0)
                add_statement(statements, table_term(table, range->from + 1, width), width, false);
}

static void plan_range(GPtrArray *statements, const Range *range) {
        Range first = *range, second = *range;

        if (plan_one(statements, range))
                return;
        if (range->to - range->from < 2) {
                plan_least(statements, range);
                return;
        }
        first.to = second.from = range->from + (range->to - range->from) / 2;
        plan_range(statements, &first);
        plan_range(statements, &second);
}

static void free_statement(gpointer data) {
        SnapshotStatement *statement = data;

        g_free(statement->sql);
        g_free(statement);
}

GPtrArray *snapshot_plan(const GPtrArray *tables, const SnapshotLimits *limits) {
        const Range all = { .tables = tables, .limits = limits, .from = 0, .to = tables->len };
        GPtrArray *statements = g_ptr_array_new_with_free_func(free_statement);

        plan_range(statements, &all);
        return statements;
}
