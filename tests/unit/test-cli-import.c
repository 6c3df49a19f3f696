/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The import of files: the rows of csv, tsv and jsonl, their faults, and the types of their columns. */
#include <errno.h>
#include <glib.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/cli/import/import-file.h"
#include "tools/terminal/format.h"

/* ---- Types -------------------------------------------------------------------------------------------------------- */

static void check_number(const char *text, ColumnKeeps keeps, sqlipc_type type) {
        Value value;

        g_assert_cmpint(column_read_number(text, strlen(text), keeps, &value) ? value.type : SQLIPC_TEXT, ==, type);
        if (type == SQLIPC_INTEGER)
                g_assert_cmpint(value.integer, ==, g_ascii_strtoll(text, NULL, 10));
        if (type == SQLIPC_REAL)
                g_assert_true(value.real == g_ascii_strtod(text, NULL));
}

static void check_type(const char *text, sqlipc_type type) {
        check_number(text, COLUMN_KEEPS_TEXT, type);
}

static void check_json(const char *text, sqlipc_type type) {
        check_number(text, COLUMN_KEEPS_NUMBER, type);
}

static void test_types(void) {
        check_type("0", SQLIPC_INTEGER);
        check_type("-9223372036854775808", SQLIPC_INTEGER);
        check_type("9223372036854775808", SQLIPC_TEXT);
        check_type("007", SQLIPC_TEXT);
        check_type("+1", SQLIPC_TEXT);
        check_type("-0", SQLIPC_TEXT);
        check_type("123456789012345678", SQLIPC_INTEGER);
        check_type("-999999999999999999", SQLIPC_INTEGER);
        check_type("1.5", SQLIPC_REAL);
        check_type("1.50", SQLIPC_TEXT);
        check_type("1.10", SQLIPC_TEXT);
        check_type("0.0", SQLIPC_REAL);
        check_type("-0.0", SQLIPC_TEXT);
        check_type("0.00", SQLIPC_TEXT);
        check_type("100.0", SQLIPC_REAL);
        check_type("-0.1", SQLIPC_REAL);
        check_type("0.0001", SQLIPC_REAL);
        check_type("0.00001", SQLIPC_TEXT);
        check_type("123456789.012345", SQLIPC_REAL);
        check_type("0.12345678901234568", SQLIPC_REAL);
        check_type("0.12345678901234567", SQLIPC_TEXT);
        check_type("0.1234567890123456789", SQLIPC_TEXT);
        check_type("-", SQLIPC_TEXT);
        check_type("-.5", SQLIPC_TEXT);
        check_type("1.0e+20", SQLIPC_REAL);
        check_type("1e3", SQLIPC_TEXT);
        check_type("557e90", SQLIPC_TEXT);
        check_type("1e-400", SQLIPC_TEXT);
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

/* In JSON the number counts, not how it is written: 0.1 with any number of its digits is the same double. */
static void test_json_numbers(void) {
        check_json("-0", SQLIPC_INTEGER);
        check_json("1.10", SQLIPC_REAL);
        check_json("1E3", SQLIPC_REAL);
        check_json("557e90", SQLIPC_REAL);
        check_json("0.00001", SQLIPC_REAL);
        check_json("0e999999999999", SQLIPC_REAL);
        check_json("9223372036854775807", SQLIPC_INTEGER);
        check_json("18446744073709551616", SQLIPC_REAL);
        check_json("18446744073709551617", SQLIPC_TEXT);
        check_json("0.1000000000000000055511151231257827021181583404541015625", SQLIPC_REAL);
        check_json("0.10000000000000000555", SQLIPC_REAL);
        check_json("0.10000000000000001", SQLIPC_REAL);
        check_json("0.1000000000000000000001", SQLIPC_TEXT);
        check_json("5e-324", SQLIPC_REAL);
        check_json("1e-400", SQLIPC_TEXT);
        check_json("1e400", SQLIPC_TEXT);
        check_json("-1e999", SQLIPC_REAL);
}

/* ---- Generated numbers -------------------------------------------------------------------------------------------- */

static void append_digits(GString *text, GRand *rand, int most) {
        for (int n = g_rand_int_range(rand, 1, most + 1); n > 0; n--)
                g_string_append_c(text, (char) ('0' + (g_rand_int_range(rand, 0, 3) ? g_rand_int_range(rand, 0, 10) : 0)));
}

static double random_double(GRand *rand) {
        double real = g_rand_int_range(rand, -2000000, 2000000) / 1000.0;

        if (g_rand_boolean(rand)) {
                const uint64_t bits = (uint64_t) g_rand_int(rand) << 32 | g_rand_int(rand);

                memcpy(&real, &bits, sizeof real);
        }
        return isfinite(real) ? real : 1e300;
}

/* Texts that are numbers, or nearly so, without commas and quotes. */
static void make_text(GString *text, GRand *rand) {
        static const char alphabet[] = "00123459..eE+- ", *const formats[] = { "%.15g", "%.17g", "%g", "%.3f" };
        char number[400];

        g_string_truncate(text, 0);
        switch (g_rand_int_range(rand, 0, 5)) {
        case 0:
                for (int n = g_rand_int_range(rand, 1, 9); n > 0; n--)
                        g_string_append_c(text, alphabet[g_rand_int_range(rand, 0, sizeof alphabet - 1)]);
                return;
        case 1:
                (void) format_double_exact(number, random_double(rand));
                g_string_append(text, number);
                return;
        case 2:
                (void) g_ascii_formatd(number, sizeof number, formats[g_rand_int_range(rand, 0, 4)], random_double(rand));
                g_string_append(text, number);
                return;
        default:
                g_string_append(text, g_rand_int_range(rand, 0, 4) ? "" : "-");
                append_digits(text, rand, g_rand_boolean(rand) ? 3 : 21);
                if (g_rand_boolean(rand)) {
                        g_string_append_c(text, '.');
                        append_digits(text, rand, g_rand_boolean(rand) ? 3 : 21);
                }
                if (g_rand_int_range(rand, 0, 4) == 0) {
                        g_string_append(text, g_rand_boolean(rand) ? "e" : "E-");
                        append_digits(text, rand, 3);
                }
        }
}

static sqlite3 *open_memory(const char *sql) {
        sqlite3 *db;

        g_assert_cmpint(sqlite3_open(":memory:", &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(db, sql, NULL, NULL, NULL), ==, SQLITE_OK);
        return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql) {
        sqlite3_stmt *stmt;

        g_assert_cmpint(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), ==, SQLITE_OK);
        return stmt;
}

/* A value as the shell writes it in csv. */
static char *write_back(sqlite3_stmt *stmt, int column) {
        char number[FORMAT_NUMBER_SIZE];

        if (sqlite3_column_type(stmt, column) == SQLITE_INTEGER)
                (void) format_integer(number, sqlite3_column_int64(stmt, column));
        else if (sqlite3_column_type(stmt, column) == SQLITE_FLOAT)
                (void) format_double_exact(number, sqlite3_column_double(stmt, column));
        else
                return g_strdup((const char *) sqlite3_column_text(stmt, column));
        return g_strdup(number);
}

static void bind_value(sqlite3_stmt *stmt, const Value *value) {
        if (value->type == SQLIPC_INTEGER)
                (void) sqlite3_bind_int64(stmt, 1, value->integer);
        else if (value->type == SQLIPC_REAL)
                (void) sqlite3_bind_double(stmt, 1, value->real);
        else
                (void) sqlite3_bind_text(stmt, 1, value->bytes, (int) value->size, SQLITE_TRANSIENT);
}

/* A number that is read before SQLite sees the text is stored as SQLite stores the text. */
static void check_stored(sqlite3_stmt *store, sqlite3_stmt *stored, const Value *value, const char *integer,
                         const char *real) {
        g_autofree char *stored_integer = NULL, *stored_real = NULL;

        bind_value(store, value);
        g_assert_cmpint(sqlite3_step(store), ==, SQLITE_DONE);
        (void) sqlite3_reset(store);
        (void) sqlite3_reset(stored);
        g_assert_cmpint(sqlite3_step(stored), ==, SQLITE_ROW);
        stored_integer = write_back(stored, 0);
        stored_real = write_back(stored, 1);
        g_assert_cmpstr(stored_integer, ==, integer);
        g_assert_cmpstr(stored_real, ==, real);
}

/* A text is a number exactly if SQLite's own conversion of it is written back like the text. Columns for numbers take the
 * texts that SQLite converts. */
static void test_generated(void) {
        g_autoptr(GRand) rand = g_rand_new_with_seed(32);
        g_autoptr(GString) text = g_string_new(NULL);
        sqlite3 *db = open_memory("CREATE TABLE t(i INTEGER, r REAL); INSERT INTO t VALUES(0, 0)");
        sqlite3_stmt *store = prepare(db, "UPDATE t SET i = ?1, r = ?1"), *stored = prepare(db, "SELECT i, r FROM t");
        unsigned n[SQLIPC_NULL + 1] = {};

        for (int i = 0; i < 100000; i++) {
                g_autofree char *integer = NULL, *real = NULL;
                sqlipc_type expected = SQLIPC_TEXT, got;
                double converted;
                Value value;
                bool exact;

                make_text(text, rand);
                (void) sqlite3_bind_text(store, 1, text->str, -1, SQLITE_STATIC);
                g_assert_cmpint(sqlite3_step(store), ==, SQLITE_DONE);
                (void) sqlite3_reset(store);
                g_assert_cmpint(sqlite3_step(stored), ==, SQLITE_ROW);
                converted = sqlite3_column_double(stored, 1);
                integer = write_back(stored, 0);
                real = write_back(stored, 1);
                if (sqlite3_column_type(stored, 0) == SQLITE_INTEGER && g_str_equal(integer, text->str))
                        expected = SQLIPC_INTEGER;
                else if (sqlite3_column_type(stored, 1) == SQLITE_FLOAT && g_str_equal(real, text->str))
                        expected = SQLIPC_REAL;
                got = column_read_number(text->str, text->len, COLUMN_KEEPS_TEXT, &value) ? value.type : SQLIPC_TEXT;
                /* SQLite 3.40 reads small numbers inexactly. */
                exact = converted == g_ascii_strtod(text->str, NULL);
                if (!exact && expected != SQLIPC_INTEGER)
                        expected = got;
                if (got != expected)
                        g_error("%s: type %d instead of %d", text->str, got, expected);
                if (got == SQLIPC_INTEGER)
                        g_assert_cmpint(value.integer, ==, sqlite3_column_int64(stored, 0));
                if (got == SQLIPC_REAL && exact)
                        g_assert_true(value.real == converted);

                value = (Value) { .type = SQLIPC_TEXT, .bytes = text->str, .size = text->len };
                g_assert_true(column_takes('I', &value) == (sqlite3_column_type(stored, 0) != SQLITE_TEXT));
                g_assert_true(column_takes('R', &value) == (sqlite3_column_type(stored, 1) != SQLITE_TEXT));
                if (exact && column_read_number(text->str, text->len, COLUMN_KEEPS_NUMBER, &value))
                        check_stored(store, stored, &value, integer, real);
                n[got]++;
                (void) sqlite3_reset(stored);
        }
        g_assert_cmpuint(MIN(n[SQLIPC_INTEGER], MIN(n[SQLIPC_REAL], n[SQLIPC_TEXT])), >, 1000);
        (void) sqlite3_finalize(store);
        (void) sqlite3_finalize(stored);
        (void) sqlite3_close(db);
}

/* ---- Files -------------------------------------------------------------------------------------------------------- */

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
        g_assert_cmpint(import_file_rewind(file), ==, 0);
        while (import_file_next(file) > 0) {
                g_string_append_printf(out, "%" G_GUINT64_FORMAT ":", file->line);
                for (guint i = 0; i < file->columns->len; i++) {
                        g_string_append_c(out, ' ');
                        append_value(out, &file->values[i]);
                }
                g_string_append_c(out, '\n');
        }
}

static ImportFile *open_text(ImportFormat format, const char *text, size_t chunk, size_t max) {
        int fd = memfd_create("text", MFD_CLOEXEC);
        ImportInput input;

        g_assert_cmpint(write(fd, text, strlen(text)), ==, strlen(text));
        g_assert_cmpint(import_input_init(&input, fd, chunk, max), ==, 0);
        return import_file_new(format, &input);
}

static void append_fault(const ImportFile *file, GString *out) {
        g_string_append_printf(out, "%" G_GUINT64_FORMAT ": %s\n", file->line, file->fault->str);
}

/* Appends the faults of a file; or, if it has none, the statement that makes its table, and
 * its rows. */
static void describe(ImportFile *file, GString *out) {
        int r = import_file_begin(file);

        if (r < 0)
                append_fault(file, out);
        while (r >= 0 && (r = import_file_check(file)) != 0)
                if (r < 0) {
                        append_fault(file, out);
                        r = 0;
                }
        if (out->len > 0)
                return;
        if (!file->table) {
                g_autofree char *create = import_file_create_sql(file, "t");

                g_string_append_printf(out, "%s\n", create);
        }
        append_rows(file, out);
}

/* The description does not depend on the window. */
static void check_from(uint64_t n_skipped, ImportFormat format, const char *text, bool has_header, const GArray *table,
                       const char *expected) {
        static const size_t chunks[] = { 1, 7, 65536 };

        for (size_t i = 0; i < G_N_ELEMENTS(chunks); i++) {
                ImportFile *file = open_text(format, text, chunks[i], 65536);
                g_autoptr(GString) out = g_string_new(NULL);

                file->has_header = has_header;
                file->table = table;
                file->n_skipped = n_skipped;
                describe(file, out);
                g_assert_cmpstr(out->str, ==, expected);
                (void) import_file_free(file);
        }
}

static void check(ImportFormat format, const char *text, bool has_header, const GArray *table, const char *expected) {
        check_from(0, format, text, has_header, table, expected);
}

static void test_csv(void) {
        check(IMPORT_CSV, "a,b\r\n1,\"x, \"\"y\"\"\nz\"\r\n2,\n\n3,\"\"", true, NULL,
              "CREATE TABLE \"t\"(\"a\" INTEGER, \"b\" TEXT)\n2: 1 'x, \"y\"\nz'\n4: 2 NULL\n6: 3 ''\n");
        check(IMPORT_CSV, "\357\273\277a\n1.5\n\n2\n", true, NULL,
              "CREATE TABLE \"t\"(\"a\" NUMERIC)\n2: 1.5\n3: NULL\n4: 2\n");
        check(IMPORT_CSV, "a,b\n9007199254740993,1\n1.5,2\n,2.0\n", true, NULL,
              "CREATE TABLE \"t\"(\"a\" NUMERIC, \"b\")\n2: 9007199254740993 1\n3: 1.5 2\n4: NULL 2\n");
        check(IMPORT_CSV, "a\n7\" wide\n", true, NULL, "CREATE TABLE \"t\"(\"a\" TEXT)\n2: '7\" wide'\n");
        check(IMPORT_TSV, "a\tb\n1,5\t\"x\ty\"\n", true, NULL,
              "CREATE TABLE \"t\"(\"a\" TEXT, \"b\" TEXT)\n2: '1,5' 'x\ty'\n");
}

/* Lines that end with CR alone, as those of old Macs. */
static void test_carriage_returns(void) {
        check(IMPORT_CSV, "a,b\r1,\"x\r\ny\"\r\r2\r\"3\"x,4", true, NULL,
              "5: it has 1 field, and there are 2 columns\n6: there is text after a closing quote\n");
        check(IMPORT_CSV, "a,b\r1,\"x\n\ry\"\r\r2,\r", true, NULL,
              "CREATE TABLE \"t\"(\"a\" INTEGER, \"b\" TEXT)\n2: 1 'x\n\ry'\n5: 2 NULL\n");
        check_from(1, IMPORT_TSV, "# one\ra\tb\r1\t2\r", true, NULL,
                   "CREATE TABLE \"t\"(\"a\" INTEGER, \"b\" INTEGER)\n3: 1 2\n");
        check(IMPORT_CSV, "a,b\r\nx\ry,\"z\r\"\r\n", true, NULL,
              "CREATE TABLE \"t\"(\"a\" TEXT, \"b\" TEXT)\n2: 'x\ry' 'z\r'\n");
        check(IMPORT_JSONL, "{\"a\":\"1\\\"\"}\r\r{\"a\":\"2\"}", true, NULL,
              "CREATE TABLE \"t\"(\"a\" TEXT)\n1: '1\"'\n3: '2'\n");
}

static void test_csv_faults(void) {
        check(IMPORT_CSV, "a,b\n1\n1,2\n1,2,3\n\"1\"x,2\n\377,1\n", true, NULL,
              "2: it has 1 field, and there are 2 columns\n4: it has 3 fields, and there are 2 columns\n"
              "5: there is text after a closing quote\n6: it is not UTF-8 text\n");
        check(IMPORT_CSV, "a\n\"1\n2\n", true, NULL, "2: a quote is opened and never closed\n");
        check(IMPORT_CSV, "", true, NULL, "1: the file is empty\n");
        check(IMPORT_CSV, "a,A\n1,2\n", true, NULL, "1: two columns have the name A\n");
        check(IMPORT_CSV, "a,\n1,2\n", true, NULL, "1: a column has no name\n");
        check(IMPORT_CSV, "\"a\nb\"x\n", true, NULL, "1: there is text after a closing quote\n");
}

/* Stores the rows of the file in its new table, and returns what is written back. */
static char *store_and_write_back(ImportFile *file) {
        g_autofree char *create = import_file_create_sql(file, "t"), *insert = import_file_insert_sql(file, "t");
        sqlite3 *db = open_memory(create);
        sqlite3_stmt *stmt = prepare(db, insert);
        GString *out = g_string_new("a\n");

        g_assert_cmpint(import_file_rewind(file), ==, 0);
        while (import_file_next(file) > 0) {
                bind_value(stmt, file->values);
                g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_DONE);
                (void) sqlite3_reset(stmt);
        }
        (void) sqlite3_finalize(stmt);
        stmt = prepare(db, "SELECT a FROM t ORDER BY rowid");
        while (sqlite3_step(stmt) == SQLITE_ROW) {
                g_autofree char *field = write_back(stmt, 0);

                g_string_append_printf(out, "%s\n", field);
        }
        (void) sqlite3_finalize(stmt);
        (void) sqlite3_close(db);
        return g_string_free(out, FALSE);
}

/* A new table keeps the texts of each column, in each mixture. */
static void test_generated_columns(void) {
        g_autoptr(GRand) rand = g_rand_new_with_seed(32);
        g_autoptr(GString) text = g_string_new(NULL);

        for (int i = 0; i < 3000; i++) {
                g_autoptr(GString) content = g_string_new("a\n");
                g_autofree char *back = NULL;
                ImportFile *file;

                for (int n = g_rand_int_range(rand, 1, 4); n > 0; n--) {
                        Value value;

                        do
                                make_text(text, rand);
                        while (i % 2 && !column_read_number(text->str, text->len, COLUMN_KEEPS_TEXT, &value));
                        g_string_append_printf(content, "%s\n", text->str);
                }
                file = open_text(IMPORT_CSV, content->str, 65536, 65536);
                g_assert_cmpint(import_file_begin(file), ==, 0);
                while (import_file_check(file) > 0)
                        continue;
                back = store_and_write_back(file);
                g_assert_cmpstr(back, ==, content->str);
                (void) import_file_free(file);
        }
}

/* ---- JSON --------------------------------------------------------------------------------------------------------- */

static void test_jsonl(void) {
        check(IMPORT_JSONL, "{\"a\":1,\"b\":\"x\"}\n\n{\"b\":null,\"c\":{\"d\":[1]}}\r\n"
              "{\"a\":true,\"c\":{\"base64\":\"aGk=\"}}", true, NULL,
              "CREATE TABLE \"t\"(\"a\" INTEGER, \"b\" TEXT, \"c\")\n1: 1 'x' NULL\n3: NULL NULL '{\"d\":[1]}'\n"
              "4: 1 NULL x'hi'\n");
        check(IMPORT_JSONL, "[1]\n{\"a\":\n{\"a\":1}\n{\"a\":1,\"a\":2}\n{\"a\":\"\377\"}\n", true, NULL,
              "1: it is not an object\n2: it is not JSON\n4: a member occurs twice\n5: it is not UTF-8 text\n");
        check(IMPORT_JSONL, "\n", true, NULL, "2: no line has a value, so there are no columns\n");
        check(IMPORT_JSONL, "\357\273\277{\"a\":{\"base64\":\"aGk=\",\"b\":1}}\n{\"A\":{\"base64\":\"aGk\"}}",
              true, NULL,
              "CREATE TABLE \"t\"(\"a\" TEXT)\n1: '{\"base64\":\"aGk=\",\"b\":1}'\n2: '{\"base64\":\"aGk\"}'\n");
        check(IMPORT_JSONL, "{\"a\":\"\\\\u0000\"}\n", true, NULL,
              "CREATE TABLE \"t\"(\"a\" TEXT)\n1: '\\u0000'\n");
        check(IMPORT_JSONL, " { \"a\" : [ \"x\\\" y\", {} ,[] ] ,\"b\":{ \"base64\" : \"aGk=\" } ,"
              "\"c\":-1.50 , \"d\" : null} \n"
              "{\"\\u0061\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\",\"b\":{},"
              "\"c\":18446744073709551617}\n{}", true, NULL,
              "CREATE TABLE \"t\"(\"a\" TEXT, \"b\", \"c\", \"d\" TEXT)\n1: '[\"x\\\" y\",{},[]]' x'hi' -1.5 NULL\n"
              "2: '\"\\/\b\f\n\r\t\303\251\360\237\230\200' '{}' '18446744073709551617' NULL\n"
              "3: NULL NULL NULL NULL\n");
        check(IMPORT_JSONL, "{\"a\":[\"\\ud800\",\"\\u0000\"]}\n", true, NULL,
              "CREATE TABLE \"t\"(\"a\" TEXT)\n1: '[\"\\ud800\",\"\\u0000\"]'\n");
        check(IMPORT_JSONL, "{\"a\":\"\\ud800\"}\n{\"a\":\"\\ude00\\ud83d\"}\n{\"a\":\"\\ud83dx\"}\n"
              "{\"\\u0000\":1}\n", true, NULL,
              "1: it has one of two surrogates (\\ud800 to \\udfff) without the other, which is no character\n"
              "2: it has one of two surrogates (\\ud800 to \\udfff) without the other, which is no character\n"
              "3: it has one of two surrogates (\\ud800 to \\udfff) without the other, which is no character\n"
              "4: the name of a member has a NUL, or one of two surrogates without the other\n");
}

static void append_blanks(GString *json, GRand *rand) {
        while (g_rand_int_range(rand, 0, 4) == 0)
                g_string_append_c(json, g_rand_boolean(rand) ? ' ' : '\t');
}

static void append_string(GString *json, GRand *rand) {
        static const char *const pieces[] = {
                "a", " ", "{", "]", ",", ":", "\\\"", "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t", "\\u0041", "\\u00e9",
                "\303\251", "\\uD83D\\uDE00", "\\u20ac", "\\uffff", "base64",
        };

        g_string_append_c(json, '"');
        for (int n = g_rand_int_range(rand, 0, 6); n > 0; n--)
                g_string_append(json, pieces[g_rand_int_range(rand, 0, G_N_ELEMENTS(pieces))]);
        g_string_append_c(json, '"');
}

static void append_json(GString *json, GRand *rand, int depth) {
        static const char *const words[] = { "true", "false", "null", "0", "-1", "1.5", "1e3", "-0", "12345678901", "5E-1" };
        int kind = g_rand_int_range(rand, 0, depth > 0 ? 4 : 2);

        append_blanks(json, rand);
        if (kind == 0)
                g_string_append(json, words[g_rand_int_range(rand, 0, G_N_ELEMENTS(words))]);
        else if (kind == 1)
                append_string(json, rand);
        else {
                g_string_append_c(json, kind == 2 ? '[' : '{');
                append_blanks(json, rand);
                for (int n = g_rand_int_range(rand, 0, 4); n > 0; n--) {
                        if (kind == 3) {
                                append_string(json, rand);
                                append_blanks(json, rand);
                                g_string_append_c(json, ':');
                        }
                        append_json(json, rand, depth - 1);
                        g_string_append(json, n > 1 ? "," : "");
                }
                g_string_append_c(json, kind == 2 ? ']' : '}');
        }
        append_blanks(json, rand);
}

static void check_as_sqlite(const Value *value, sqlite3_stmt *stmt, const char *json) {
        if ((int) value->type != sqlite3_column_type(stmt, 0))
                g_error("%s: type %d instead of %d", json, (int) value->type, sqlite3_column_type(stmt, 0));
        if (value->type == SQLIPC_INTEGER)
                g_assert_cmpint(value->integer, ==, sqlite3_column_int64(stmt, 0));
        else if (value->type == SQLIPC_REAL)
                g_assert_true(value->real == sqlite3_column_double(stmt, 0));
        else if (value->type == SQLIPC_TEXT)
                g_assert_cmpmem(value->bytes, value->size, sqlite3_column_text(stmt, 0), sqlite3_column_bytes(stmt, 0));
}

/* Values are those of SQLite's own functions. */
static void test_generated_json(void) {
        g_autoptr(GRand) rand = g_rand_new_with_seed(32);
        sqlite3 *db = open_memory("");
        sqlite3_stmt *stmt = prepare(db, "SELECT value FROM json_each(?)");

        for (int i = 0; i < 3000; i++) {
                g_autoptr(GString) json = g_string_new("{\"a\":");
                ImportFile *file;

                append_json(json, rand, 3);
                g_string_append(json, ",\"b\":");
                append_json(json, rand, 1);
                g_string_append_c(json, '}');
                file = open_text(IMPORT_JSONL, json->str, 65536, 65536);
                g_assert_cmpint(import_file_begin(file), ==, 0);
                g_assert_cmpint(import_file_check(file), ==, 1);
                g_assert_cmpuint(file->columns->len, ==, 2);
                (void) sqlite3_bind_text(stmt, 1, json->str, -1, SQLITE_STATIC);
                for (guint place = 0; place < 2; place++) {
                        g_assert_cmpint(sqlite3_step(stmt), ==, SQLITE_ROW);
                        check_as_sqlite(&file->values[place], stmt, json->str);
                }
                (void) sqlite3_reset(stmt);
                (void) import_file_free(file);
        }
        (void) sqlite3_finalize(stmt);
        (void) sqlite3_close(db);
}

/* ---- Tables that exist -------------------------------------------------------------------------------------------- */

static void test_table(void) {
        g_autoptr(GArray) table = import_columns_new();
        const ImportColumn n = { .name = g_strdup("n"), .affinity = 'I' },
                           name = { .name = g_strdup("name"), .affinity = 'T', .not_null = true };

        g_array_append_val(table, n);
        g_array_append_val(table, name);
        check(IMPORT_CSV, "007,\n,x\n", false, table, "1: 7 ''\n2: NULL 'x'\n");
        check(IMPORT_CSV, "Name\nx\n", true, table, "2: 'x'\n");
        check(IMPORT_CSV, "n,other\n1,2\n", true, table,
              "1: the table has no column other; --no-header takes the line as a row\n");
        check(IMPORT_CSV, "1,x\n", true, table, "1: 1 'x'\n");
        check(IMPORT_CSV, "\"1\"x\n1,x\n", true, table, "1: there is text after a closing quote\n");
        check(IMPORT_CSV, "many,x\n1,y\n0x1,z\n", false, table,
              "1: column n is for numbers, and this is a text: many\n3: column n is for numbers, and this is a text: 0x1\n");
        check(IMPORT_JSONL, "{\"n\":1}\n{\"m\":1}\n", true, table, "2: the table has no column m\n");
}

/* ---- The window --------------------------------------------------------------------------------------------------- */

static void test_skip(void) {
        check_from(2, IMPORT_CSV, "\357\273\277# \"one\n# two\na\nx\n", true, NULL,
                   "CREATE TABLE \"t\"(\"a\" TEXT)\n4: 'x'\n");
        check_from(9, IMPORT_CSV, "a\nx\n", true, NULL, "10: the file is empty\n");
}

/* A row that is larger than the window may be is a fault, and ends the file. */
static void test_long_row(void) {
        static const char text[] = "a\n1\n\"23456789012345678901234567890\n2\n3\n";
        ImportFile *file = open_text(IMPORT_CSV, text, 1, 16);
        g_autoptr(GString) out = g_string_new(NULL);

        describe(file, out);
        g_assert_cmpstr(out->str, ==, "3: it is longer than 16 bytes, so the rest of the file was not read; is a quote "
                                      "never closed?\n");
        (void) import_file_free(file);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/cli/import/types", test_types);
        g_test_add_func("/cli/import/json-numbers", test_json_numbers);
        g_test_add_func("/cli/import/generated", test_generated);
        g_test_add_func("/cli/import/generated-columns", test_generated_columns);
        g_test_add_func("/cli/import/csv", test_csv);
        g_test_add_func("/cli/import/carriage-returns", test_carriage_returns);
        g_test_add_func("/cli/import/csv-faults", test_csv_faults);
        g_test_add_func("/cli/import/jsonl", test_jsonl);
        g_test_add_func("/cli/import/generated-json", test_generated_json);
        g_test_add_func("/cli/import/table", test_table);
        g_test_add_func("/cli/import/skip", test_skip);
        g_test_add_func("/cli/import/long-row", test_long_row);
        return g_test_run();
}
