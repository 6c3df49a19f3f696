/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl migrate: types of columns, the forms of values, checksums, and the statements for PostgreSQL. */
#include "tests/unit/test.h"
#include "tools/ctl/migrate/copy-plan.h"
#include "tools/ctl/migrate/row-sum.h"

/* ---- Values ------------------------------------------------------------------------------------------------------- */

static sqlipc_value integer(int64_t n) {
        return (sqlipc_value) { .type = SQLIPC_INTEGER, .as.integer = n };
}

static sqlipc_value real(double x) {
        return (sqlipc_value) { .type = SQLIPC_REAL, .as.real = x };
}

static sqlipc_value text(const char *bytes) {
        return (sqlipc_value) { .type = SQLIPC_TEXT, .size = (uint32_t) strlen(bytes), .as.text = bytes };
}

static sqlipc_value blob(const char *bytes, size_t size) {
        return (sqlipc_value) { .type = SQLIPC_BLOB, .size = (uint32_t) size, .as.blob = bytes };
}

static sqlipc_value null(void) {
        return (sqlipc_value) { .type = SQLIPC_NULL };
}

static void assert_value(const sqlipc_value *got, const sqlipc_value *wanted) {
        CHECK_INT(got->type, wanted->type);
        if (got->type == SQLIPC_TEXT || got->type == SQLIPC_BLOB)
                CHECK(got->size == wanted->size && memcmp(got->as.blob, wanted->as.blob, got->size) == 0);
        else
                CHECK(memcmp(&got->as, &wanted->as, sizeof got->as) == 0);
}

static void test_sent(void) {
        const struct {
                ColumnKind kind;
                sqlipc_value from, sent, compared;
        } cases[] = {
                { KIND_ANY, real(5), real(5), real(5) },
                { KIND_BIGINT, integer(INT64_MIN), integer(INT64_MIN), integer(INT64_MIN) },
                { KIND_DOUBLE, integer(5), real(5), real(5) },
                { KIND_DOUBLE, real(-0.0), real(-0.0), real(-0.0) },
                { KIND_NUMERIC, integer(5), text("5"), integer(5) },
                { KIND_NUMERIC, real(5), text("5"), integer(5) },
                { KIND_NUMERIC, text("5.00"), text("5.00"), integer(5) },
                { KIND_NUMERIC, real(0.1), text("0.1"), real(0.1) },
                { KIND_NUMERIC, real(0.1 + 0.2), text("0.30000000000000004"), real(0.1 + 0.2) },
                { KIND_NUMERIC, text("9223372036854775807"), text("9223372036854775807"), integer(INT64_MAX) },
                { KIND_NUMERIC, text("9223372036854775808"), text("9223372036854775808"), real(0x1p63) },
                { KIND_NUMERIC, null(), null(), null() },
                { KIND_TEXT, integer(-7), text("-7"), text("-7") },
                { KIND_TEXT, real(1.5), text("1.5"), text("1.5") },
                { KIND_TEXT, text(""), text(""), text("") },
                { KIND_DATE, text("2024-02-29"), text("2024-02-29"), text("2024-02-29") },
                { KIND_BYTEA, text("a"), blob("a", 1), blob("a", 1) },
                { KIND_BYTEA, integer(12), blob("12", 2), blob("12", 2) },
                { KIND_BYTEA, blob("\0\1", 2), blob("\0\1", 2), blob("\0\1", 2) },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                Converted sent, compared, again;

                value_sent(cases[i].kind, &cases[i].from, &sent);
                assert_value(&sent.value, &cases[i].sent);
                value_compared(cases[i].kind, &cases[i].from, &compared);
                assert_value(&compared.value, &cases[i].compared);
                value_compared(cases[i].kind, &sent.value, &again);
                assert_value(&again.value, &compared.value);
        }
}

static void test_kinds(void) {
        for (int kind = KIND_BIGINT; kind < _KIND_MAX; kind++)
                CHECK_INT(column_kind_from_string(column_kind_to_string((ColumnKind) kind)), kind);
        CHECK_INT(column_kind_from_string("Double Precision"), KIND_DOUBLE);
        CHECK_INT(column_kind_from_string("money"), _KIND_INVALID);
        CHECK(!column_kind_to_string(KIND_ANY));
}

/* ---- Types -------------------------------------------------------------------------------------------------------- */

static ColumnKind choose(const char *declared, bool with_dates, const char **ret_note, const sqlipc_value *values,
                         size_t n) {
        ColumnFound found = {};

        for (size_t i = 0; i < n; i++)
                column_found_add(&found, &values[i]);
        return column_choose(declared, &found, with_dates, ret_note);
}

static void test_choice(void) {
        const struct {
                const char *declared;
                sqlipc_value values[3];
                size_t n;
                ColumnKind kind;
                bool has_note, with_dates;
        } cases[] = {
                { "INTEGER", { integer(1), null() }, 2, KIND_BIGINT },
                { "INTEGER", { integer(1), text("one") }, 2, KIND_TEXT, true },
                { "INTEGER", { text("one") }, 1, KIND_TEXT, true },
                { "INTEGER", { real(0.5), integer(1) }, 2, KIND_DOUBLE, true },
                { "INTEGER", { real(0.5), integer((1LL << 53) + 1) }, 2, KIND_NUMERIC, true },
                { "INTEGER", {}, 0, KIND_BIGINT },
                { "VARCHAR(20)", { text("a") }, 1, KIND_TEXT },
                { "VARCHAR(20)", { text("a"), blob("a", 1) }, 2, KIND_BYTEA, true },
                { "TEXT", { blob("a", 1) }, 1, KIND_BYTEA, true },
                { "BLOB", { blob("a", 1), null() }, 2, KIND_BYTEA },
                { "BLOB", {}, 0, KIND_BYTEA },
                { "", { integer(1) }, 1, KIND_BIGINT },
                { "", {}, 0, KIND_TEXT },
                { "REAL", { real(1) }, 1, KIND_DOUBLE },
                { "NUMERIC(10,2)", { real(0.99), integer(1) }, 2, KIND_NUMERIC },
                { "DECIMAL", { integer(1) }, 1, KIND_NUMERIC },
                { "BOOLEAN", { integer(1) }, 1, KIND_BIGINT },
                { "DATETIME", { text("2009-01-01 00:00:00") }, 1, KIND_TEXT },
                { "DATETIME", { text("2009-01-01 00:00:00") }, 1, KIND_TIMESTAMP, .with_dates = true },
                { "DATETIME", { text("2009-01-01T00:00:00") }, 1, KIND_TEXT, true, .with_dates = true },
                { "DATE", { text("2009-01-01"), null() }, 2, KIND_DATE, .with_dates = true },
                { "DATE", { integer(14245) }, 1, KIND_BIGINT, true, .with_dates = true },
                { "DATE", {}, 0, KIND_TEXT },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                const char *note;

                CHECK_INT(choose(cases[i].declared, cases[i].with_dates, &note, cases[i].values, cases[i].n), cases[i].kind);
                CHECK_INT(note != NULL, cases[i].has_note);
        }
}

static void test_found(void) {
        const sqlipc_value with_nul = { .type = SQLIPC_TEXT, .size = 3, .as.text = "a\0b" };
        const sqlipc_value not_utf8 = text("\xff");
        const sqlipc_value one = integer(9);
        ColumnFound found = {};
        g_autofree char *empty = column_found_describe(&found), *described = NULL;

        CHECK_STRING(empty, "");
        column_found_add(&found, &with_nul);
        column_found_add(&found, &not_utf8);
        column_found_add(&found, &one);
        described = column_found_describe(&found);
        CHECK_STRING(described, "1 integer, 2 text");
        CHECK_INT(found.n_with_nul, 1);
        CHECK_INT(found.n_not_utf8, 1);
        CHECK_INT(found.largest, 9);
}

/* ---- Checksums ---------------------------------------------------------------------------------------------------- */

static void add_rows(RowSum *sum, const sqlipc_value (*rows)[2], const size_t *order, size_t n) {
        row_sum_init(sum);
        for (size_t i = 0; i < n; i++) {
                row_sum_add_value(sum, &rows[order[i]][0]);
                row_sum_add_value(sum, &rows[order[i]][1]);
                row_sum_end_row(sum);
        }
}

static void test_sum(void) {
        const sqlipc_value rows[][2] = {
                { integer(1), text("a") }, { null(), real(1) }, { text("ab"), text("c") }, { text("a"), text("bc") },
        };
        const struct {
                size_t order[4], n;
                bool equal;
        } cases[] = {
                { { 0, 1, 2 }, 3, true },   { { 2, 0, 1 }, 3, true },  { { 0, 1 }, 2, false },
                { { 0, 1, 3 }, 3, false },  { { 0, 0, 2 }, 3, false }, { { 0, 1, 2, 2 }, 4, false },
        };
        g_auto(RowSum) wanted = {};
        g_autofree char *shown = NULL;

        add_rows(&wanted, rows, cases[0].order, cases[0].n);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                g_auto(RowSum) sum = {};

                add_rows(&sum, rows, cases[i].order, cases[i].n);
                CHECK_INT(row_sum_equal(&sum, &wanted), cases[i].equal);
        }
        shown = row_sum_to_string(&wanted);
        CHECK_INT(strlen(shown), 64);
}

/* ---- Statements --------------------------------------------------------------------------------------------------- */

/* A table Track(TrackId INTEGER PRIMARY KEY, Name TEXT COLLATE NOCASE NOT NULL DEFAULT 'x', Album INTEGER UNIQUE). */
static SourceTable *make_table(void) {
        static SourceColumn columns[] = {
                { .name = (char *) "TrackId", .type = (char *) "INTEGER", .key = 1 },
                { .name = (char *) "Name", .type = (char *) "TEXT", .not_null = true, .default_sql = (char *) "'x'",
                  .ignores_case = true },
                { .name = (char *) "Album", .type = (char *) "INTEGER", .default_sql = (char *) "random()" },
        };
        static SourceIndexColumn index_columns[] = { { .name = (char *) "Album" } };
        static SourceIndex unique = { .name = (char *) "sqlite_autoindex_Track_1", .is_unique = true };
        static SourceReference reference = { .parent = (char *) "Track", .on_update = (char *) "NO ACTION",
                                             .on_delete = (char *) "CASCADE" };
        static SourceTable table;

        table = (SourceTable) {
                .name = (char *) "Track",
                .sql = (char *) "CREATE TABLE Track(...)",
                .sequence = 41,
        };
        unique.columns = g_array_append_vals(g_array_new(FALSE, FALSE, sizeof *index_columns), index_columns, 1);
        reference.from = g_ptr_array_new();
        reference.to = g_ptr_array_new();
        g_ptr_array_add(reference.from, (char *) "Album");
        table.columns = g_array_append_vals(g_array_new(FALSE, FALSE, sizeof *columns), columns, G_N_ELEMENTS(columns));
        table.indexes = g_ptr_array_new();
        g_ptr_array_add(table.indexes, &unique);
        table.references = g_ptr_array_new();
        g_ptr_array_add(table.references, &reference);
        return &table;
}

static void free_table(SourceTable *table) {
        SourceIndex *unique = table->indexes->pdata[0];
        SourceReference *reference = table->references->pdata[0];

        g_array_unref(unique->columns);
        g_ptr_array_unref(reference->from);
        g_ptr_array_unref(reference->to);
        g_array_unref(table->columns);
        g_ptr_array_unref(table->indexes);
        g_ptr_array_unref(table->references);
}

static void assert_objects(const Plan *plan, const char *const *wanted, size_t n) {
        CHECK_INT(plan->objects->len, n);
        for (guint i = 0; i < n; i++)
                CHECK_STRING(((const PlanObject *) plan->objects->pdata[i])->sql, wanted[i]);
}

static void test_postgresql(void) {
        static const char *const objects[] = {
                "ALTER TABLE \"track\" ALTER COLUMN \"trackid\" RESTART WITH 42",
                "ALTER TABLE \"track\" ADD UNIQUE (\"album\")",
                ("ALTER TABLE \"track\" ADD FOREIGN KEY (\"album\") REFERENCES \"track\" (\"trackid\") "
                 "ON UPDATE NO ACTION ON DELETE CASCADE"),
                "CREATE VIEW Loud AS SELECT Name || '!' FROM Track",
        };
        SourceTable *source = make_table();
        SourceObject view = { (char *) "view", (char *) "Loud",
                              (char *) "CREATE VIEW Loud AS SELECT Name || '!' FROM Track" };
        SourceObject trigger = { (char *) "trigger", (char *) "t", (char *) "CREATE TRIGGER t ..." };
        SourceSchema schema = { .tables = g_ptr_array_new(), .objects = g_ptr_array_new() };
        char *types[] = { (char *) "track.album=numeric", NULL };
        PlanOptions options = { .dialect = &dialect_postgresql, .types = types };
        const sqlipc_value with_nul = { .type = SQLIPC_TEXT, .size = 3, .as.text = "a\0b" };
        g_autoptr(Plan) plan = NULL;
        const PlanTable *table;

        g_ptr_array_add(schema.tables, source);
        g_ptr_array_add(schema.objects, &view);
        g_ptr_array_add(schema.objects, &trigger);
        plan = plan_new(&schema, &options);
        table = plan->tables->pdata[0];
        column_found_add(&g_array_index(table->columns, PlanColumn, 1).found, &with_nul);
        plan_write(plan);
        CHECK_STRING(table->create, "CREATE TABLE \"track\" (\"trackid\" bigint GENERATED BY DEFAULT AS IDENTITY, "
                        "\"name\" text NOT NULL DEFAULT 'x', \"album\" numeric, PRIMARY KEY (\"trackid\"))");
        CHECK_STRING(table->read, "SELECT \"TrackId\", \"Name\", \"Album\" FROM \"Track\" ORDER BY \"TrackId\"");
        CHECK_STRING(table->insert, "INSERT INTO \"track\" (\"trackid\", \"name\", \"album\") VALUES ($1, $2, $3)");
        CHECK_STRING(table->last_key, "SELECT max(\"trackid\") FROM \"track\"");
        assert_objects(plan, objects, G_N_ELEMENTS(objects));
        CHECK_INT(plan->omitted->len, 2);   /* random(), the trigger */
        CHECK_INT(plan->obstacles->len, 1); /* the NUL */
        g_ptr_array_unref(schema.tables);
        g_ptr_array_unref(schema.objects);
        free_table(source);
}

/* A DEFAULT is copied if it is one literal, and the server gives new rows the value that SQLite would; else it is named. */
static void test_defaults(void) {
        static const struct {
                const char *type, *sql;
                sqlipc_value found;
                const char *wanted; /* NULL: not copied */
        } cases[] = {
                { "TEXT", "'x'", { .type = SQLIPC_NULL }, "'x'" },
                { "TEXT", "'it''s \\'", { .type = SQLIPC_NULL }, "'it''s \\'" },
                { "TEXT", "'a' || wipe() || 'b'", { .type = SQLIPC_NULL }, NULL },
                { "TEXT", "'a'||'b'", { .type = SQLIPC_NULL }, NULL },
                { "TEXT", "'a' /* b */", { .type = SQLIPC_NULL }, NULL },
                { "TEXT", "'a') , (wipe()::text || '", { .type = SQLIPC_NULL }, NULL },
                { "TEXT", "\"x\"", { .type = SQLIPC_NULL }, NULL },
                { "TEXT", "5", { .type = SQLIPC_NULL }, "'5'" },
                { "TEXT", "-5", { .type = SQLIPC_NULL }, "'-5'" },
                { "TEXT", "+5", { .type = SQLIPC_NULL }, NULL },
                { "TEXT", "1.50", { .type = SQLIPC_NULL }, NULL },
                { "TEXT", "nan", { .type = SQLIPC_NULL }, NULL },
                { "TEXT", "inf", { .type = SQLIPC_NULL }, NULL },
                { "TEXT", "'1.50'", { .type = SQLIPC_NULL }, "'1.50'" },
                { "DECIMAL", "'1.50'", { .type = SQLIPC_TEXT, .as.text = "" }, NULL },
                { "REAL", "1.5", { .type = SQLIPC_NULL }, "1.5" },
                { "REAL", "-1e3", { .type = SQLIPC_NULL }, "-1e3" },
                { "REAL", "1 - 1", { .type = SQLIPC_NULL }, NULL },
                { "REAL", "nan", { .type = SQLIPC_NULL }, NULL },
                { "REAL", "-inf", { .type = SQLIPC_NULL }, NULL },
                { "REAL", "infinity", { .type = SQLIPC_NULL }, NULL },
                { "REAL", "1e999", { .type = SQLIPC_NULL }, NULL },
                { "REAL", "0x10", { .type = SQLIPC_NULL }, NULL },
                { "INTEGER", "7", { .type = SQLIPC_NULL }, "7" },
                { "INTEGER", "1.5", { .type = SQLIPC_NULL }, NULL },
                { "INTEGER", "9223372036854775808", { .type = SQLIPC_NULL }, NULL },
                { "INTEGER", "TRUE", { .type = SQLIPC_NULL }, "1" },
                { "INTEGER", "NULL", { .type = SQLIPC_NULL }, "NULL" },
                { "BLOB", "5", { .type = SQLIPC_NULL }, NULL },
                { "DATE", "'2024-02-29'", { .type = SQLIPC_NULL }, "'2024-02-29'" },
                { "DATE", "'2023-02-29'", { .type = SQLIPC_NULL }, NULL },
                { "DATE", "'now'", { .type = SQLIPC_NULL }, NULL },
                { "DATE", "5", { .type = SQLIPC_NULL }, NULL },
                { "DATETIME", "'2024-02-29 23:59:59'", { .type = SQLIPC_NULL }, "'2024-02-29 23:59:59'" },
                { "DATETIME", "'2024-02-29'", { .type = SQLIPC_NULL }, NULL },
        };
        const PlanOptions options = { .dialect = &dialect_postgresql, .with_dates = true };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                const SourceColumn column = { .name = (char *) "a", .type = (char *) cases[i].type,
                                              .default_sql = (char *) cases[i].sql };
                SourceTable source = { .name = (char *) "t", .rowid_column = -1, .indexes = g_ptr_array_new(),
                                       .references = g_ptr_array_new() };
                SourceSchema schema = { .tables = g_ptr_array_new(), .objects = g_ptr_array_new() };
                g_autofree char *wanted = cases[i].wanted ? g_strconcat(" DEFAULT ", cases[i].wanted, ")", NULL) : NULL;
                g_autoptr(Plan) plan = NULL;
                const PlanTable *table;

                source.columns = g_array_append_vals(g_array_new(FALSE, FALSE, sizeof column), &column, 1);
                g_ptr_array_add(schema.tables, &source);
                plan = plan_new(&schema, &options);
                table = plan->tables->pdata[0];
                if (cases[i].found.type != SQLIPC_NULL)
                        column_found_add(&g_array_index(table->columns, PlanColumn, 0).found, &cases[i].found);
                plan_write(plan);
                if (wanted ? !g_str_has_suffix(table->create, wanted) : strstr(table->create, "DEFAULT") != NULL)
                        test_fail(__FILE__, __LINE__, cases[i].sql, table->create, wanted ?: "none");
                CHECK_INT(plan->omitted->len, !wanted);
                g_ptr_array_unref(schema.tables);
                g_ptr_array_unref(schema.objects);
                g_ptr_array_unref(source.indexes);
                g_ptr_array_unref(source.references);
                g_array_unref(source.columns);
        }
}

static void test_sqlite(void) {
        SourceTable *source = make_table();
        SourceSchema schema = { .tables = g_ptr_array_new(), .objects = g_ptr_array_new(), .user_version = 3 };
        const PlanOptions options = { .dialect = &dialect_sqlite };
        g_autoptr(Plan) plan = NULL;
        const PlanTable *table;

        source->rowid = "oid"; /* as if no column were the rowid */
        source->rowid_column = -1;
        g_ptr_array_add(schema.tables, source);
        plan = plan_new(&schema, &options);
        plan_write(plan);
        table = plan->tables->pdata[0];
        CHECK_STRING(table->create, source->sql);
        CHECK_STRING(table->insert, "INSERT INTO \"Track\" (oid, \"TrackId\", \"Name\", \"Album\") VALUES (?, ?, ?, ?)");
        CHECK_STRING(table->read_after, "SELECT oid, \"TrackId\", \"Name\", \"Album\" FROM \"Track\" "
                     "WHERE oid > CAST(?1 AS INTEGER) ORDER BY oid");
        CHECK_INT(plan->objects->len, 2); /* sqlite_sequence, user_version */
        CHECK_INT(plan->obstacles->len, 0);
        g_ptr_array_unref(schema.tables);
        g_ptr_array_unref(schema.objects);
        free_table(source);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_sent), TEST(test_kinds), TEST(test_choice), TEST(test_found), TEST(test_sum),
                TEST(test_postgresql), TEST(test_defaults), TEST(test_sqlite),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
