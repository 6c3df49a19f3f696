/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ADBC driver: types by declaration and by values, UTF-8, and the arrays of columns from blocks of rows: NULL, extreme
 * numbers, any bytes, values that do not fit. ADBC driver.
 */
#include <errno.h>
#include <glib.h>
#include <math.h>
#include <string.h>

#include "client-lib/adbc/column-builder.h"
#include "client-lib/adbc/first-rows.h"
#include "client-lib/adbc/utf8-check.h"

#define INTEGER(x) ((sqlipc_value) { .type = SQLIPC_INTEGER, .as.integer = (x) })
#define REAL(x) ((sqlipc_value) { .type = SQLIPC_REAL, .as.real = (x) })
#define TEXT(x) ((sqlipc_value) { .type = SQLIPC_TEXT, .size = sizeof(x) - 1, .as.text = (x) })
#define BLOB(x) ((sqlipc_value) { .type = SQLIPC_BLOB, .size = sizeof(x) - 1, .as.blob = (x) })
#define NONE ((sqlipc_value) { .type = SQLIPC_NULL })
#define N(array) G_N_ELEMENTS(array)

static void test_declarations(void) {
        static const struct {
                const char *declared;
                ColumnType type;
        } cases[] = {
                { NULL, COLUMN_TYPE_UNKNOWN },           { "", COLUMN_TYPE_UNKNOWN },
                { "INTEGER", COLUMN_TYPE_INT64 },        { "int", COLUMN_TYPE_INT64 },
                { "BIGINT", COLUMN_TYPE_INT64 },         { "VARCHAR(10)", COLUMN_TYPE_UTF8 },
                { "nvarchar", COLUMN_TYPE_UTF8 },        { "CLOB", COLUMN_TYPE_UTF8 },
                { "BLOB", COLUMN_TYPE_BINARY },          { "double precision", COLUMN_TYPE_DOUBLE },
                { "FLOAT", COLUMN_TYPE_DOUBLE },         { "REAL", COLUMN_TYPE_DOUBLE },
                { "DECIMAL(10,2)", COLUMN_TYPE_DOUBLE }, { "NUMERIC", COLUMN_TYPE_DOUBLE },
                { "DATE", COLUMN_TYPE_UNKNOWN },         { "BOOLEAN", COLUMN_TYPE_UNKNOWN },
                { "FLOATING POINT", COLUMN_TYPE_INT64 }, /* as SQLite has it */
                { "IN\xd4", COLUMN_TYPE_UNKNOWN },
        };

        for (size_t i = 0; i < N(cases); i++)
                g_assert_cmpint(column_type_of_declaration(cases[i].declared), ==, cases[i].type);
}

static ColumnType choose(TypeSource source, ColumnType declared, const sqlipc_value *values, size_t n) {
        SeenValues seen = { .first = 0 };

        for (size_t i = 0; i < n; i++)
                column_type_see(&seen, &values[i]);
        return column_type_choose(source, declared, &seen);
}

static void test_choice(void) {
        const sqlipc_value wide = INTEGER(INT64_MAX), numbers[] = { NONE, INTEGER(1), REAL(0.5) },
                           wide_numbers[] = { wide, REAL(0.5) }, bytes[] = { TEXT("a"), BLOB("b") },
                           mixed[] = { NONE, TEXT("a"), INTEGER(1) }, text[] = { TEXT("a"), NONE }, none[] = { NONE };

        g_assert_cmpint(choose(TYPE_SOURCE_AUTO, COLUMN_TYPE_INT64, none, 1), ==, COLUMN_TYPE_INT64);
        g_assert_cmpint(choose(TYPE_SOURCE_AUTO, COLUMN_TYPE_BINARY, none, 1), ==, COLUMN_TYPE_BINARY);
        g_assert_cmpint(choose(TYPE_SOURCE_AUTO, COLUMN_TYPE_UNKNOWN, none, 1), ==, COLUMN_TYPE_INT64);
        g_assert_cmpint(choose(TYPE_SOURCE_VALUES, COLUMN_TYPE_UTF8, none, 1), ==, COLUMN_TYPE_UTF8);
        g_assert_cmpint(choose(TYPE_SOURCE_AUTO, COLUMN_TYPE_UNKNOWN, numbers, N(numbers)), ==, COLUMN_TYPE_DOUBLE);
        g_assert_cmpint(choose(TYPE_SOURCE_AUTO, COLUMN_TYPE_INT64, numbers, N(numbers)), ==, COLUMN_TYPE_DOUBLE);
        g_assert_cmpint(choose(TYPE_SOURCE_DECLARED, COLUMN_TYPE_INT64, numbers, N(numbers)), ==, COLUMN_TYPE_INT64);
        g_assert_cmpint(choose(TYPE_SOURCE_AUTO, COLUMN_TYPE_DOUBLE, &wide, 1), ==, COLUMN_TYPE_INT64);
        g_assert_cmpint(choose(TYPE_SOURCE_AUTO, COLUMN_TYPE_UNKNOWN, wide_numbers, 2), ==, COLUMN_TYPE_INT64);
        g_assert_cmpint(choose(TYPE_SOURCE_AUTO, COLUMN_TYPE_UNKNOWN, bytes, N(bytes)), ==, COLUMN_TYPE_BINARY);
        g_assert_cmpint(choose(TYPE_SOURCE_AUTO, COLUMN_TYPE_BINARY, text, N(text)), ==, COLUMN_TYPE_UTF8);
        g_assert_cmpint(choose(TYPE_SOURCE_DECLARED, COLUMN_TYPE_BINARY, text, N(text)), ==, COLUMN_TYPE_BINARY);
        g_assert_cmpint(choose(TYPE_SOURCE_AUTO, COLUMN_TYPE_INT64, mixed, N(mixed)), ==, COLUMN_TYPE_UTF8);
        g_assert_cmpint(choose(TYPE_SOURCE_VALUES, COLUMN_TYPE_INT64, text, N(text)), ==, COLUMN_TYPE_UTF8);
        g_assert_cmpstr(column_type_format(COLUMN_TYPE_UTF8, false), ==, "u");
        g_assert_cmpstr(column_type_format(COLUMN_TYPE_UTF8, true), ==, "z");
        g_assert_cmpstr(column_type_format(COLUMN_TYPE_UNKNOWN, false), ==, "n");
        g_assert_true(column_type_is_exact((int64_t) 1 << 53));
        g_assert_false(column_type_is_exact(((int64_t) 1 << 53) + 1));
        g_assert_true(column_type_is_exact(INT64_MIN));
        g_assert_false(column_type_is_exact(INT64_MAX));
}

/* Compares with GLib's check, at each place of a text that is checked in blocks. GLib refuses NUL. */
static void check_utf8_at_each_place(const char *bytes, size_t size, bool valid) {
        for (size_t at = 0; at < 140; at++) {
                g_autoptr(GByteArray) text = g_byte_array_new();

                for (size_t i = 0; i < at; i++)
                        g_byte_array_append(text, (const uint8_t *) "x", 1);
                g_byte_array_append(text, (const uint8_t *) bytes, (guint) size);
                g_assert_cmpint(utf8_check(text->data, text->len), ==, valid);
                g_assert_cmpint(g_utf8_validate((char *) text->data, text->len, NULL), ==, valid);
                for (size_t i = 0; i < 70; i++)
                        g_byte_array_append(text, (const uint8_t *) "y", 1);
                g_assert_cmpint(utf8_check(text->data, text->len), ==, valid);
        }
}

static void test_utf8(void) {
        static const char *const good[] = { "",
                                            "a",
                                            "\xc2\x80",
                                            "\xdf\xbf",
                                            "\xe0\xa0\x80",
                                            "\xed\x9f\xbf",
                                            "\xee\x80\x80",
                                            "\xf0\x90\x80\x80",
                                            "\xf4\x8f\xbf\xbf" };
        static const char *const bad[] = { "\x80",
                                           "\xc1\xbf",
                                           "\xc2",
                                           "\xc2z",
                                           "\xe0\x9f\xbf",
                                           "\xed\xa0\x80",
                                           "\xe2\x82",
                                           "\xf0\x8f\xbf\xbf",
                                           "\xf4\x90\x80\x80",
                                           "\xf5\x80\x80\x80",
                                           "\xff",
                                           "\xf0\x90\x80" };

        for (size_t i = 0; i < N(good); i++)
                check_utf8_at_each_place(good[i], strlen(good[i]), true);
        for (size_t i = 0; i < N(bad); i++)
                check_utf8_at_each_place(bad[i], strlen(bad[i]), false);
        g_assert_true(utf8_check((const uint8_t *) "a\0b", 3));
}

/* Every text of one to three bytes, as GLib sees it. */
static void test_utf8_all(void) {
        uint8_t text[3];

        for (unsigned i = 1; i < 0x1000000; i += i < 0x10000 ? 1 : 7) {
                size_t n = i < 0x100 ? 1 : i < 0x10000 ? 2 : 3;

                for (size_t k = 0; k < n; k++)
                        text[k] = (uint8_t) (i >> 8 * k);
                if (memchr(text, 0, n))
                        continue;
                g_assert_cmpint(utf8_check(text, n), ==, g_utf8_validate((const char *) text, (gssize) n, NULL));
        }
}

static void test_utf8_made_valid(void) {
        static const char *const texts[] = { "",     "abc",  "größe", "\xff", "a\xff\xfez", "\xe2\x82", "\xed\xa0\x80x",
                                             "\xc3", "\xf4\x90\x80\x80", "\xef\xb7\x90", "\xf0\x9f\x98\x80\x80" };

        for (size_t i = 0; i < N(texts); i++) {
                g_autofree char *expected = g_utf8_make_valid(texts[i], -1);
                char *valid = utf8_make_valid(texts[i]);

                g_assert_cmpstr(valid, ==, expected);
                free(valid);
        }
}

static struct ArrowArray build(ColumnType type, const sqlipc_value *values, size_t n) {
        ColumnBuilder builder = { .type = type };
        struct ArrowArray array;
        size_t bad;

        g_assert_cmpint(column_builder_append(&builder, values, 1, n, &bad), ==, 0);
        g_assert_cmpint(column_builder_finish(&builder, &array), ==, 0);
        g_assert_cmpint(array.length, ==, n);
        column_builder_done(&builder);
        return array;
}

static int refuse(ColumnBuilder builder, const sqlipc_value *values, size_t n, size_t *ret_bad) {
        int r = column_builder_append(&builder, values, 1, n, ret_bad);

        column_builder_done(&builder);
        return r;
}

static void test_numbers(void) {
        const sqlipc_value integers[] = { INTEGER(INT64_MIN), INTEGER(0), INTEGER(INT64_MAX) },
                           reals[] = { REAL(-0.0), INTEGER(-7), REAL(INFINITY), NONE, REAL(5e-324) };
        struct ArrowArray array = build(COLUMN_TYPE_INT64, integers, N(integers));
        const double *doubles;

        g_assert_cmpint(array.n_buffers, ==, 2);
        g_assert_null(array.buffers[0]); /* no NULL, no bitmap */
        for (size_t i = 0; i < N(integers); i++)
                g_assert_cmpint(((const int64_t *) array.buffers[1])[i], ==, integers[i].as.integer);
        array.release(&array);
        g_assert_null(array.release);

        array = build(COLUMN_TYPE_DOUBLE, reals, N(reals));
        doubles = array.buffers[1];
        g_assert_true(signbit(doubles[0]));
        g_assert_cmpfloat(doubles[1], ==, -7);
        g_assert_cmpfloat(doubles[2], ==, INFINITY);
        g_assert_cmpfloat(doubles[4], ==, 5e-324);
        g_assert_cmpint(array.null_count, ==, 1);
        g_assert_cmpuint(((const uint8_t *) array.buffers[0])[0] & 0x1f, ==, 0x17);
        array.release(&array);
}

static void test_bytes(void) {
        const sqlipc_value text[] = { TEXT(""), TEXT("a\0b"), NONE, TEXT("\xc3\xbc") },
                           blobs[] = { BLOB("\xff\0"), TEXT("t") };
        struct ArrowArray array = build(COLUMN_TYPE_UTF8, text, N(text));
        const int32_t *offsets = array.buffers[1];

        g_assert_cmpint(array.n_buffers, ==, 3);
        g_assert_cmpint(offsets[0], ==, 0);
        g_assert_cmpint(offsets[1], ==, 0);
        g_assert_cmpint(offsets[2], ==, 3);
        g_assert_cmpint(offsets[3], ==, 3);
        g_assert_cmpint(offsets[4], ==, 5);
        g_assert_cmpmem(array.buffers[2], 5, "a\0b\xc3\xbc", 5);
        array.release(&array);
        array = build(COLUMN_TYPE_BINARY, blobs, N(blobs));
        g_assert_cmpmem(array.buffers[2], 3, "\xff\0t", 3);
        array.release(&array);
}

static void test_misfits(void) {
        const sqlipc_value real[] = { INTEGER(1), REAL(5) }, wide[] = { REAL(1), INTEGER(((int64_t) 1 << 53) + 1) },
                           blob[] = { TEXT("a"), TEXT("b"), BLOB("c") }, number[] = { BLOB("a"), INTEGER(1) },
                           broken[] = { TEXT("a"), TEXT("\xc3"), TEXT("\xbc") }; /* valid only if joined */
        size_t bad = 9;

        g_assert_cmpint(refuse((ColumnBuilder) { .type = COLUMN_TYPE_INT64 }, real, 2, &bad), ==, -EDOM);
        g_assert_cmpuint(bad, ==, 1);
        g_assert_cmpint(refuse((ColumnBuilder) { .type = COLUMN_TYPE_DOUBLE }, wide, 2, &bad), ==, -EDOM);
        g_assert_cmpuint(bad, ==, 1);
        g_assert_cmpint(refuse((ColumnBuilder) { .type = COLUMN_TYPE_UTF8 }, blob, 3, &bad), ==, -EDOM);
        g_assert_cmpuint(bad, ==, 2);
        g_assert_cmpint(refuse((ColumnBuilder) { .type = COLUMN_TYPE_BINARY }, number, 2, &bad), ==, -EDOM);
        g_assert_cmpuint(bad, ==, 1);
        g_assert_cmpint(refuse((ColumnBuilder) { .type = COLUMN_TYPE_UTF8 }, broken, 3, &bad), ==, -EILSEQ);
        g_assert_cmpuint(bad, ==, 1);
        g_assert_cmpint(refuse((ColumnBuilder) { .type = COLUMN_TYPE_UTF8, .text_as_binary = true }, broken, 3, &bad), ==,
                        0);
}

/* Values of random kinds in random pieces, of which each array must have what it was given. */
static void test_pieces(void) {
        for (unsigned seed = 0; seed < 200; seed++) {
                g_autoptr(GRand) random = g_rand_new_with_seed(seed);
                ColumnBuilder builder = { .type = COLUMN_TYPE_INT64 };
                sqlipc_value values[300];
                struct ArrowArray array;
                size_t n = (size_t) g_rand_int_range(random, 0, N(values) + 1), bad;

                for (size_t i = 0; i < n; i++)
                        values[i] = g_rand_int_range(random, 0, 1 + (gint32) seed % 4) ? NONE : INTEGER(g_rand_int(random));
                for (size_t at = 0, piece; at < n; at += piece) {
                        piece = (size_t) g_rand_int_range(random, 1, (gint32) (n - at) + 1);
                        g_assert_cmpint(column_builder_append(&builder, values + at, 1, piece, &bad), ==, 0);
                }
                g_assert_cmpint(column_builder_finish(&builder, &array), ==, 0);
                for (size_t i = 0; i < n; i++) {
                        const uint8_t *bits = array.buffers[0];

                        g_assert_cmpint(!bits || (bits[i / 8] >> i % 8 & 1), ==, values[i].type != SQLIPC_NULL);
                        g_assert_cmpint(((const int64_t *) array.buffers[1])[i], ==, values[i].as.integer);
                }
                array.release(&array);
        }
}

static void test_stride(void) {
        const sqlipc_value rows[] = { INTEGER(1), TEXT("a"), INTEGER(2), TEXT("b"), INTEGER(3), TEXT("c") };
        ColumnBuilder builder = { .type = COLUMN_TYPE_UTF8 };
        struct ArrowArray array;
        size_t bad;

        g_assert_cmpint(column_builder_append(&builder, rows + 1, 2, 3, &bad), ==, 0);
        g_assert_cmpuint(column_builder_size(&builder), ==, 3 * sizeof(int32_t) + 3);
        g_assert_cmpint(column_builder_finish(&builder, &array), ==, 0);
        g_assert_cmpmem(array.buffers[2], 3, "abc", 3);
        array.release(&array);
        g_assert_cmpint(column_builder_finish(&builder, &array), ==, 0); /* none: all buffers exist */
        g_assert_cmpint(array.length, ==, 0);
        g_assert_nonnull(array.buffers[1]);
        g_assert_nonnull(array.buffers[2]);
        g_assert_cmpint(((const int32_t *) array.buffers[1])[0], ==, 0);
        array.release(&array);
}

static void test_first_rows(void) {
        char text[] = "ab";
        const sqlipc_value rows[] = { INTEGER(1), { .type = SQLIPC_TEXT, .size = 2, .as.text = text }, NONE, BLOB("") };
        FirstRows first = { .n_rows = 0 };
        const sqlipc_value *values;

        g_assert_cmpint(first_rows_add(&first, rows, 1, 2), ==, 0);
        text[0] = 'x'; /* the page is gone */
        g_assert_cmpint(first_rows_add(&first, rows + 2, 1, 2), ==, 0);
        g_assert_true(first_rows_see(&first, 0).integer);
        g_assert_true(first_rows_see(&first, 1).text && first_rows_see(&first, 1).blob);
        g_assert_cmpuint(first_rows_take(&first, 1, &values), ==, 1);
        g_assert_cmpmem(values[1].as.text, values[1].size, "ab", 2);
        g_assert_cmpuint(first_rows_take(&first, 10, &values), ==, 1);
        g_assert_cmpint(values[0].type, ==, SQLIPC_NULL);
        g_assert_cmpuint(first_rows_take(&first, 10, &values), ==, 0);
        first_rows_done(&first);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/adbc/columns/declarations", test_declarations);
        g_test_add_func("/adbc/columns/choice", test_choice);
        g_test_add_func("/adbc/columns/utf8", test_utf8);
        g_test_add_func("/adbc/columns/utf8-all", test_utf8_all);
        g_test_add_func("/adbc/columns/utf8-made-valid", test_utf8_made_valid);
        g_test_add_func("/adbc/columns/numbers", test_numbers);
        g_test_add_func("/adbc/columns/bytes", test_bytes);
        g_test_add_func("/adbc/columns/misfits", test_misfits);
        g_test_add_func("/adbc/columns/pieces", test_pieces);
        g_test_add_func("/adbc/columns/stride", test_stride);
        g_test_add_func("/adbc/columns/first-rows", test_first_rows);
        return g_test_run();
}
