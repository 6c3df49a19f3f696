/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/terminal/format: numbers as SQLite prints them, and text without characters that control a terminal. */
#include <glib.h>
#include <locale.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "tools/terminal/format.h"

static void check_double(double value) {
        static const int digits[] = { FORMAT_DIGITS_SHORT, FORMAT_DIGITS_EXACT };
        static const char *const formats[] = { "%!.15g", "%!.20g" };

        for (int i = 0; i < 2; i++) {
                char ours[FORMAT_NUMBER_SIZE], theirs[FORMAT_NUMBER_SIZE];

                sqlite3_snprintf(sizeof theirs, theirs, formats[i], value);
                g_assert_cmpuint(format_double(ours, value, digits[i]), ==, strlen(theirs));
                g_assert_cmpstr(ours, ==, theirs);
                if (digits[i] == FORMAT_DIGITS_EXACT && isfinite(value))
                        g_assert_true(g_ascii_strtod(ours, NULL) == value);
        }
}

static void test_doubles(void) {
        static const double values[] = {
                0.0, -0.0, 1.0, -1.0, 0.1, 0.1 + 0.2, 1.5, 1e15, 1e14, 999999999999999.9, 123456789012345678.0, 1e21, 1e300,
                1e-4, 1e-5, 1e-300,
                1.7976931348623157e308, 2.2250738585072014e-308, 4.9406564584124654e-324, 2.5e-320,
                9.999999999999999e22, INFINITY, -INFINITY,
        };

        for (size_t i = 0; i < G_N_ELEMENTS(values); i++)
                check_double(values[i]);
}

/* Every bit pattern is as likely as any other; and decimals, which are what people store. */
static void test_random_doubles(void) {
        g_autoptr(GRand) random = g_rand_new_with_seed(1);

        for (int i = 0; i < 100000; i++) {
                uint64_t bits = (uint64_t) g_rand_int(random) << 32 | g_rand_int(random);
                double value;

                memcpy(&value, &bits, sizeof value);
                if (!isnan(value))
                        check_double(value);
                check_double((double) (int64_t) bits / pow(10, bits % 20));
        }
}

/* SQLite's value of a number in SQL. */
static double read_by_sqlite(sqlite3 *db, const char *number) {
        g_autofree char *sql = g_strdup_printf("SELECT %s", number);
        sqlite3_stmt *statement;
        double value;

        g_assert_cmpint(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_step(statement), ==, SQLITE_ROW);
        value = sqlite3_column_double(statement, 0);
        sqlite3_finalize(statement);
        return value;
}

/* Significant digits from the first that is no zero to the last. */
static size_t digits_of(const char *number) {
        size_t n = 0, zeros = 0;

        for (const char *p = number; *p && *p != 'e'; p++)
                if (g_ascii_isdigit(*p) && (n > 0 || *p != '0')) {
                        n++;
                        zeros = *p == '0' ? zeros + 1 : 0;
                }
        return n - zeros;
}

static void check_exact(sqlite3 *db, double value) {
        char ours[FORMAT_NUMBER_SIZE], fewest[FORMAT_NUMBER_SIZE];

        g_assert_cmpuint(format_double_exact(ours, value), ==, strlen(ours));
        g_assert_true(g_ascii_strtod(ours, NULL) == value);
        if (fabs(value) < 1e-280) /* there it misreads some decimals */
                return;
        g_assert_true(read_by_sqlite(db, ours) == value);
        for (int digits = 15; digits <= 17; digits++) {
                g_snprintf(fewest, sizeof fewest, "%.*e", digits - 1, value);
                if (g_ascii_strtod(fewest, NULL) == value && read_by_sqlite(db, fewest) == value)
                        break;
        }
        g_assert_cmpuint(digits_of(ours), ==, digits_of(fewest));
        if (digits_of(ours) <= 15) { /* SQLite's own, then */
                sqlite3_snprintf(sizeof fewest, fewest, "%!.15g", value);
                g_assert_cmpstr(ours, ==, fewest);
        }
}

static void test_exact_doubles(void) {
        static const double values[] = {
                0.1, 0.1 + 0.2, 218.11, 1.0 / 3, 1e15, 123456789012345678.0, 9007199254740993.0, 1e22, 1e23,
                9.999999999999999e22, 1e-5, 0.0001, 0x1p-1022, 0x1p52, 0x1p1000, 0x1p-900, 1.7976931348623157e308,
                4.9406564584124654e-324, 2.5e-310,
        };
        g_autoptr(GRand) random = g_rand_new_with_seed(2);
        char number[FORMAT_NUMBER_SIZE];
        sqlite3 *db;

        g_assert_cmpint(sqlite3_open(":memory:", &db), ==, SQLITE_OK);
        for (size_t i = 0; i < G_N_ELEMENTS(values); i++) {
                check_exact(db, values[i]);
                check_exact(db, -values[i]);
        }
        for (int i = 0; i < 20000; i++) {
                uint64_t bits = (uint64_t) g_rand_int(random) << 32 | g_rand_int(random);
                double value;

                memcpy(&value, &bits, sizeof value);
                if (isfinite(value))
                        check_exact(db, value);
                check_exact(db, (double) (int32_t) bits / pow(10, bits >> 32 & 7)); /* what people store */
        }
        sqlite3_close(db);

        g_assert_cmpuint(format_double_exact(number, INFINITY), ==, 5);
        g_assert_cmpstr(number, ==, "1e999");
        format_double_exact(number, -0.0);
        g_assert_cmpstr(number, ==, "-0.0");
        g_assert_cmpuint(format_double_exact(number, NAN), ==, 0);
}

static void test_integers(void) {
        int64_t values[] = { 0, 9, 10, 99, 100, 12345, INT64_MAX, INT64_MIN, -1, -10, 1000000007 };

        for (size_t i = 0; i < G_N_ELEMENTS(values); i++) {
                g_autofree char *expected = g_strdup_printf("%" G_GINT64_FORMAT, values[i]);
                char number[FORMAT_NUMBER_SIZE];

                g_assert_cmpuint(format_integer(number, values[i]), ==, strlen(expected));
                g_assert_cmpstr(number, ==, expected);
        }
}

static void assert_shown(const char *text, size_t size, const char *expected, size_t width) {
        g_autoptr(GString) output = g_string_new(NULL);

        g_assert_cmpuint(format_shown_text(output, text, size, SIZE_MAX), ==, size);
        g_assert_cmpstr(output->str, ==, expected);
        g_assert_cmpuint(format_shown_width(output->str, output->len), ==, width);
}

#define ASSERT_SHOWN(text, expected, width) assert_shown(text, sizeof(text) - 1, expected, width)

static void test_shown(void) {
        ASSERT_SHOWN("", "", 0);
        ASSERT_SHOWN("plain 'text' \\ \"quoted\"", "plain 'text' \\ \"quoted\"", 23);
        ASSERT_SHOWN("a\tb\nc\rd\ae\033[31m\177", "a\\tb\\nc\\rd\\ae\\x1b[31m\\x7f", 25);
        ASSERT_SHOWN("a\0b", "a\\x00b", 6);
        ASSERT_SHOWN("\302\233" "31m", "\\u009b31m", 9);                      /* C1: a CSI of one character */
        ASSERT_SHOWN("\342\200\256abc", "\\u202eabc", 9);                     /* right-to-left override */
        ASSERT_SHOWN("\342\200\250", "\\u2028", 6);                           /* line separator */
        ASSERT_SHOWN("\363\240\200\201", "\\U000e0001", 10);
        ASSERT_SHOWN("\377x\303", "\\xffx\\xc3", 9);                          /* no UTF-8, and cut short */
        ASSERT_SHOWN("\355\240\200", "\\xed\\xa0\\x80", 12);                  /* a surrogate */
        ASSERT_SHOWN("\346\227\245\346\234\254", "\346\227\245\346\234\254", 4); /* two characters, two columns each */
        ASSERT_SHOWN("e\314\201", "e\314\201", 1);                            /* e and a combining accent */
}

/* A cluster is never cut, and has the columns that a terminal gives it. */
static void test_clusters(void) {
        static const struct {
                const char *text;
                size_t width;
        } clusters[] = {
                { "a", 1 }, { "日", 2 }, { "e\u0301\u0323", 1 }, { "\u0301", 0 },
                { "👨\u200d👩\u200d👧", 2 },           /* a family */
                { "👩🏽\u200d🚀", 2 },                   /* an astronaut with a skin tone */
                { "❤\ufe0f\u200d🔥", 2 }, { "🏳\ufe0f\u200d🌈", 2 },
                { "👍🏽", 2 }, { "☝🏽", 2 }, { "🏽", 2 },
                { "❤", 1 }, { "❤\ufe0f", 2 }, { "1\ufe0f\u20e3", 2 },
                { "🇩🇪", 2 }, { "🇩", 1 },
                { "क\u094d\u200d", 1 }, { "का", 2 }, /* a joiner between letters; a spacing mark */
                { "한", 2 }, { "\u1112\u1161\u11ab", 2 },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(clusters); i++)
                for (size_t j = 0; j < G_N_ELEMENTS(clusters); j++) {
                        g_autofree char *text = g_strconcat(clusters[i].text, "x", clusters[j].text, NULL);
                        size_t width;

                        g_assert_cmpuint(format_next_cluster(text, strlen(text), &width), ==, strlen(clusters[i].text));
                        g_assert_cmpuint(width, ==, clusters[i].width);
                        g_assert_cmpuint(format_shown_width(text, strlen(text)), ==,
                                         clusters[i].width + 1 + clusters[j].width);
                }
        g_assert_cmpuint(format_shown_width("🇩🇪🇫🇷🇮", 20), ==, 5);       /* two flags, and half of one */
        g_assert_cmpuint(format_shown_width("👍👍🏽日🏽", 19), ==, 8);    /* a skin tone for no picture is one itself */
        g_assert_cmpuint(format_shown_width("a\u200db日\u200d", 11), ==, 4);
        g_assert_cmpuint(format_shown_width("\xff\xc3", 2), ==, 0);
}

static void test_shown_lines(void) {
        g_autoptr(GString) output = g_string_new(NULL);

        g_assert_cmpuint(format_shown_lines(output, "a\tb\r\nc\rd\n\0", 10, SIZE_MAX), ==, 10);
        g_assert_cmpstr(output->str, ==, "a\tb\nc\\rd\n\\x00");
}

/* No byte sequence of up to three bytes leaves anything that acts on a terminal. */
static void test_shown_is_harmless(void) {
        for (unsigned n = 0; n < 1u << 24; n += 251) { /* coprime to 256, so every byte comes in every place */
                const char bytes[] = { (char) (n >> 16), (char) (n >> 8), (char) n };
                g_autoptr(GString) output = g_string_new(NULL);

                g_assert_cmpuint(format_shown_text(output, bytes, sizeof bytes, SIZE_MAX), ==, sizeof bytes);
                g_assert_true(g_utf8_validate(output->str, (gssize) output->len, NULL));
                for (const char *p = output->str; *p; p = g_utf8_next_char(p))
                        g_assert_cmpint(g_unichar_type(g_utf8_get_char(p)), !=, G_UNICODE_CONTROL);
        }
}

static void test_cut(void) {
        g_autoptr(GString) output = g_string_new(NULL);
        Value value = { .type = SQLIPC_TEXT, .bytes = "ab\ncd", .size = 5 };

        format_shown_value(output, &value, "NULL", 6);
        g_assert_cmpstr(output->str, ==, "ab\\ncd");
        g_string_truncate(output, 0);
        format_shown_value(output, &value, "NULL", 5);
        g_assert_cmpstr(output->str, ==, "ab\\nc" FORMAT_ELLIPSIS " (5 bytes)");
        g_string_truncate(output, 0);
        format_shown_value(output, &value, "NULL", 3);
        g_assert_cmpstr(output->str, ==, "ab" FORMAT_ELLIPSIS " (5 bytes)"); /* an escape is shown whole or not at all */
}

static void test_blob(void) {
        g_autoptr(GString) output = g_string_new(NULL);
        const uint8_t bytes[FORMAT_BLOB_SHOWN_MAX + 1] = { 0x00, 0xff, 0x27 };
        g_autofree char *zeros = g_strnfill(2 * (FORMAT_BLOB_SHOWN_MAX - 3), '0');
        g_autofree char *longest = g_strdup_printf("x'00ff27%s'", zeros);
        g_autofree char *cut = g_strdup_printf("x'00ff27%s" FORMAT_ELLIPSIS "' (33 bytes)", zeros);

        format_shown_blob(output, bytes, 0);
        g_assert_cmpstr(output->str, ==, "x''");
        g_string_truncate(output, 0);
        format_shown_blob(output, bytes, 3);
        g_assert_cmpstr(output->str, ==, "x'00ff27'");
        g_string_truncate(output, 0);
        format_shown_blob(output, bytes, FORMAT_BLOB_SHOWN_MAX);
        g_assert_cmpstr(output->str, ==, longest);
        g_string_truncate(output, 0);
        format_shown_blob(output, bytes, FORMAT_BLOB_SHOWN_MAX + 1);
        g_assert_cmpstr(output->str, ==, cut);
}

int main(int argc, char **argv) {
        g_assert_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/format/doubles", test_doubles);
        g_test_add_func("/format/random-doubles", test_random_doubles);
        g_test_add_func("/format/exact-doubles", test_exact_doubles);
        g_test_add_func("/format/integers", test_integers);
        g_test_add_func("/format/shown", test_shown);
        g_test_add_func("/format/clusters", test_clusters);
        g_test_add_func("/format/shown-lines", test_shown_lines);
        g_test_add_func("/format/shown-is-harmless", test_shown_is_harmless);
        g_test_add_func("/format/cut", test_cut);
        g_test_add_func("/format/blob", test_blob);
        return g_test_run();
}
