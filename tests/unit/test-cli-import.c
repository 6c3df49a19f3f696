/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/import: the rows of csv, tsv and jsonl, their faults, and the types of their columns. */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "tools/cli/import/import-file.h"

/* ---- Types -------------------------------------------------------------------------------------------------------- */

static void check_type(const char *text, sqlipc_type type) {
        g_assert_cmpint(column_type_of_text(text, strlen(text)), ==, type);
}

static void test_types(void) {
        check_type("0", SQLIPC_INTEGER);
        check_type("-9223372036854775808", SQLIPC_INTEGER);
        check_type("9223372036854775808", SQLIPC_TEXT);
        check_type("007", SQLIPC_TEXT);
        check_type("+1", SQLIPC_TEXT);
        check_type("1.50", SQLIPC_REAL);
        check_type("1e3", SQLIPC_REAL);
        check_type("1e999", SQLIPC_TEXT);
        check_type("1e", SQLIPC_TEXT);
        check_type("1.", SQLIPC_TEXT);
        check_type("0x10", SQLIPC_TEXT);
        check_type("nan", SQLIPC_TEXT);
        check_type("", SQLIPC_TEXT);
        g_assert_cmpint(column_affinity("VARCHAR(7)"), ==, 'T');
        g_assert_cmpint(column_affinity("bigint"), ==, 'I');
        g_assert_cmpint(column_affinity("double"), ==, 'R');
        g_assert_cmpint(column_affinity("DECIMAL(9,2)"), ==, 'N');
        g_assert_cmpint(column_affinity(NULL), ==, 'B');
}

/* ---- Files -------------------------------------------------------------------------------------------------------- */

static void on_fault(uint64_t line, const char *fault, void *userdata) {
        g_string_append_printf(userdata, "%" G_GUINT64_FORMAT ": %s\n", line, fault);
}

static void append_value(GString *out, const Value *value) {
        switch (value->type) {
        case SQLIPC_INTEGER:
                g_string_append_printf(out, "%" G_GINT64_FORMAT, value->integer);
                break;
        case SQLIPC_REAL:
                g_string_append_printf(out, "%g", value->real);
                break;
        case SQLIPC_TEXT:
                g_string_append_printf(out, "'%.*s'", (int) value->size, value->bytes);
                break;
        case SQLIPC_BLOB:
                g_string_append_printf(out, "x'%.*s'", (int) value->size, value->bytes);
                break;
        case SQLIPC_NULL:
                g_string_append(out, "NULL");
        }
}

static void append_rows(ImportFile *file, GString *out) {
        const Value *values;
        uint64_t line;

        import_file_rewind(file);
        while (import_file_next(file, &values, &line) > 0) {
                g_string_append_printf(out, "%" G_GUINT64_FORMAT ":", line);
                for (guint i = 0; i < file->columns->len; i++) {
                        g_string_append_c(out, ' ');
                        append_value(out, &values[i]);
                }
                g_string_append_c(out, '\n');
        }
}

/* Compares the faults of a file; or, if it has none, the statement that makes its table, and its rows. */
static void check(ImportFormat format, const char *text, bool has_header, const GArray *table, const char *expected) {
        ImportFile *file = import_file_new(format, text, strlen(text), has_header);
        g_autoptr(GString) out = g_string_new(NULL);

        if (import_file_check(file, table, on_fault, out) == 0) {
                if (!table) {
                        g_autofree char *create = import_file_create_sql(file, "t");

                        g_string_append_printf(out, "%s\n", create);
                }
                append_rows(file, out);
        }
        g_assert_cmpstr(out->str, ==, expected);
        (void) import_file_free(file);
}

static void test_csv(void) {
        check(IMPORT_CSV, "a,b\r\n1,\"x, \"\"y\"\"\nz\"\r\n2,\n\n3,\"\"", true, NULL,
              "CREATE TABLE \"t\"(\"a\" INTEGER, \"b\" TEXT)\n2: '1' 'x, \"y\"\nz'\n4: '2' NULL\n6: '3' ''\n");
        check(IMPORT_CSV, "\357\273\277a\n1.5\n\n2\n", true, NULL,
              "CREATE TABLE \"t\"(\"a\" REAL)\n2: '1.5'\n3: NULL\n4: '2'\n");
        check(IMPORT_CSV, "a\n7\" wide\n", true, NULL, "CREATE TABLE \"t\"(\"a\" TEXT)\n2: '7\" wide'\n");
        check(IMPORT_TSV, "a\tb\n1,5\t\"x\ty\"\n", true, NULL,
              "CREATE TABLE \"t\"(\"a\" TEXT, \"b\" TEXT)\n2: '1,5' 'x\ty'\n");
}

static void test_csv_faults(void) {
        check(IMPORT_CSV, "a,b\n1\n1,2\n1,2,3\n\"1\"x,2\n\377,1\n", true, NULL,
              "2: it has fewer fields than there are columns\n4: it has more fields than there are columns\n"
              "5: there is text after a closing quote\n6: it is not UTF-8 text\n");
        check(IMPORT_CSV, "a\n\"1\n2\n", true, NULL, "2: a quote is opened and never closed\n");
        check(IMPORT_CSV, "", true, NULL, "1: the file is empty\n");
        check(IMPORT_CSV, "a,A\n1,2\n", true, NULL, "1: two columns have the same name\n");
        check(IMPORT_CSV, "a,\n1,2\n", true, NULL, "1: a column has no name\n");
        check(IMPORT_CSV, "\"a\nb\"x\n", true, NULL, "1: there is text after a closing quote\n");
}

/* ---- JSON --------------------------------------------------------------------------------------------------------- */

static void test_jsonl(void) {
        check(IMPORT_JSONL, "{\"a\":1,\"b\":\"x\"}\n\n{\"b\":null,\"c\":{\"d\":[1]}}\r\n"
              "{\"a\":true,\"c\":{\"base64\":\"aGk=\"}}", true, NULL,
              "CREATE TABLE \"t\"(\"a\" INTEGER, \"b\" TEXT, \"c\")\n1: 1 'x' NULL\n3: NULL NULL '{\"d\":[1]}'\n"
              "4: 1 NULL x'hi'\n");
        check(IMPORT_JSONL, "[1]\n{\"a\":\n{\"a\":1}\n{\"a\":1,\"a\":2}\n{\"a\":\"\377\"}\n", true, NULL,
              "1: it is not an object\n2: it is not JSON\n4: a member occurs twice\n5: it is not UTF-8 text\n");
        check(IMPORT_JSONL, "\n", true, NULL, "1: the file is empty\n");
}

/* ---- Tables that exist -------------------------------------------------------------------------------------------- */

static void test_table(void) {
        g_autoptr(GArray) table = import_columns_new();
        const ImportColumn n = { .name = g_strdup("n"), .affinity = 'I' },
                           name = { .name = g_strdup("name"), .affinity = 'T', .not_null = true };

        g_array_append_val(table, n);
        g_array_append_val(table, name);
        check(IMPORT_CSV, "007,\n,x\n", false, table, "1: '007' ''\n2: NULL 'x'\n");
        check(IMPORT_CSV, "Name\nx\n", true, table, "2: 'x'\n");
        check(IMPORT_CSV, "n,other\n1,2\n", true, table,
              "1: the table has no column of a name in this line (--no-header takes it as a row)\n");
        check(IMPORT_CSV, "many,x\n1,y\n0x1,z\n", false, table,
              "1: column n is for numbers, and this is a text: many\n3: column n is for numbers, and this is a text: 0x1\n");
        check(IMPORT_JSONL, "{\"n\":1}\n{\"m\":1}\n", true, table, "2: the table has no column for one of its members\n");
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/cli/import/types", test_types);
        g_test_add_func("/cli/import/csv", test_csv);
        g_test_add_func("/cli/import/csv-faults", test_csv_faults);
        g_test_add_func("/cli/import/jsonl", test_jsonl);
        g_test_add_func("/cli/import/table", test_table);
        return g_test_run();
}
