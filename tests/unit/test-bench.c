/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The basis of the benchmark's figures: equal random data everywhere, comparisons that see every difference, medians. */
#include <errno.h>
#include <glib.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/bench/core/baseline.h"
#include "tools/bench/core/child.h"
#include "tools/bench/core/copy.h"
#include "tools/bench/core/measure.h"
#include "tools/bench/core/random.h"
#include "tools/bench/report/report-data.h"
#include "tools/bench/report/report-forms.h"

/* Numbers from another implementation (in Python) of the published algorithms. */
static void test_random(void) {
        char letters[41] = "";
        Random random;

        random_init(&random, 1);
        g_assert_cmphex(random_next(&random), ==, UINT64_C(0xb3f2af6d0fc710c5));
        g_assert_cmphex(random_next(&random), ==, UINT64_C(0x853b559647364cea));
        g_assert_cmphex(random_next(&random), ==, UINT64_C(0x92f89756082a4514));
        random_init(&random, 1);
        random_letters(&random, letters, 40);
        g_assert_cmpstr(letters, ==, "jguwerkbqzuwfivaolzjcybrpwcpzlzswqrekzgh");
}

static void copy_some(Copy *copy, int64_t integer, double real, const char *text, sqlipc_type type) {
        copy_integer(copy, integer);
        copy_real(copy, real);
        copy_bytes(copy, type, text, strlen(text));
        copy_null(copy);
        copy->n_rows++;
}

static uint64_t hash_of(int64_t integer, double real, const char *text, sqlipc_type type) {
        Copy copy = {};
        uint64_t hash;

        copy_some(&copy, integer, real, text, type);
        g_assert_cmpuint(copy.n_bytes, ==, 16 + strlen(text));
        hash = copy_hash(&copy);
        copy_done(&copy);
        g_assert_null(copy.last);
        return hash;
}

static void test_hash(void) {
        uint64_t hash = hash_of(1, 1.0, "text", SQLIPC_TEXT);

        g_assert_cmpuint(hash_of(1, 1.0, "text", SQLIPC_TEXT), ==, hash);
        g_assert_cmpuint(hash_of(2, 1.0, "text", SQLIPC_TEXT), !=, hash);
        g_assert_cmpuint(hash_of(1, 1.5, "text", SQLIPC_TEXT), !=, hash);
        g_assert_cmpuint(hash_of(1, 1.0, "texu", SQLIPC_TEXT), !=, hash);
        g_assert_cmpuint(hash_of(1, 1.0, "text", SQLIPC_BLOB), !=, hash);
        g_assert_cmpuint(hash_of(1, 1.0, "", SQLIPC_TEXT), !=, hash);
}

/* A value larger than a chunk gets one of its own. */
static void test_large_copy(void) {
        g_autofree char *text = g_strnfill(40 * 1024 * 1024, 'x');
        Copy copy = {};

        copy_some(&copy, 1, 1.0, "small", SQLIPC_TEXT);
        copy_some(&copy, 1, 1.0, text, SQLIPC_TEXT);
        copy_some(&copy, 1, 1.0, "small", SQLIPC_TEXT);
        g_assert_cmpuint(copy_memory(&copy), >=, 40 * 1024 * 1024);
        g_assert_cmpuint(copy.n_rows, ==, 3);
        copy_done(&copy);
}

/* Both loops take the same values out of every type. */
static void test_baseline(void) {
        static const char sql[] = "VALUES (1, 2.5, 'text', x'00ff', NULL),"
                                  " (-9223372036854775807 - 1, -0.0, '', x'', 'a' || char(0) || 'b')";
        __attribute__((cleanup(baseline_closep))) Baseline *baseline = NULL;
        Copy usual = {}, fastest = {};

        g_assert_cmpint(baseline_open(":memory:", &baseline), ==, 0);
        g_assert_cmpint(baseline_copy(baseline, sql, BASELINE_USUAL, &usual), ==, 0);
        g_assert_cmpint(baseline_copy(baseline, sql, BASELINE_FASTEST, &fastest), ==, 0);
        g_assert_cmpint(baseline_first_row(baseline, sql), ==, 0);
        g_assert_cmpuint(usual.n_rows, ==, 2);
        g_assert_cmpuint(usual.n_bytes, ==, 8 + 8 + 4 + 2 + 8 + 8 + 3);
        g_assert_cmpuint(fastest.n_rows, ==, 2);
        g_assert_cmpuint(copy_hash(&usual), ==, copy_hash(&fastest));
        copy_done(&usual);
        copy_done(&fastest);
}

static void check_median(double expected, const double *values, guint n) {
        g_autoptr(GArray) array = g_array_new(FALSE, FALSE, sizeof(double));

        g_array_append_vals(array, values, n);
        g_assert_cmpfloat(report_median(array), ==, expected);
}

static void test_median(void) {
        check_median(3, (double[]) { 3 }, 1);
        check_median(2.5, (double[]) { 3, 2 }, 2);
        check_median(2, (double[]) { 100, 1, 2 }, 3);
        check_median(3, (double[]) { 4, 100, 2, 1 }, 4);
}

static void test_quantiles(void) {
        g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));

        for (double value = 1000; value >= 1; value--)
                g_array_append_val(values, value);
        g_assert_cmpfloat(report_quantile(values, 0), ==, 1);
        g_assert_cmpfloat(report_quantile(values, 0.5), ==, 500);
        g_assert_cmpfloat(report_quantile(values, 0.99), ==, 990);
        g_assert_cmpfloat(report_quantile(values, 1), ==, 1000);
}

/* A report with text in it that each form has to escape. */
static Report *nasty_report(void) {
        static const char nasty[] = "<b> & \"quotes\" 'and'\nlines, \\ \x01 \xff";
        static const double measured[] = { 3, 1, 2 };
        Report *report = report_new("nasty", nasty);
        ReportTable *table = report_table(report, "table", nasty, nasty);
        g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));

        g_array_append_vals(values, measured, G_N_ELEMENTS(measured));
        report_fact(report, nasty, "%s", nasty);
        report_figure(report, nasty, nasty, values);
        report_single(report, "unknown", "", NAN);
        report_verdict(report, nasty, nasty, values);
        report_note(report, "%s", nasty);
        report_failed(report, nasty);
        report_table_column(table, nasty, nasty);
        report_table_column(table, "text", "");
        report_table_column(table, "nothing", "");
        report_table_row(table, nasty, true);
        report_table_values(table, 0, values);
        report_table_text(table, 1, "%s", nasty);
        report_table_value(table, 2, NAN);
        return report;
}

static void test_text(void) {
        __attribute__((cleanup(report_freep))) Report *report = nasty_report();
        g_autoptr(GString) text = g_string_new(NULL);

        report_to_text(report, text);
        g_assert_nonnull(strstr(text->str, "[published]"));
        g_assert_nonnull(strstr(text->str, "2.00 (1.00 ... 3.00)"));
        g_assert_null(strstr(text->str, "nan"));
}

static void test_json(void) {
        __attribute__((cleanup(report_freep))) Report *report = nasty_report();
        g_autoptr(GString) json = g_string_new(NULL);

        report_to_json(report, json);
        g_assert_true(g_utf8_validate(json->str, -1, NULL));
        g_assert_nonnull(strstr(json->str, "\"<b> & \\\"quotes\\\" 'and'\\u000alines, \\\\ \\u0001 \xef\xbf\xbd\""));
        g_assert_nonnull(strstr(json->str, "{\"median\": 2, \"values\": [3, 1, 2]}"));
        g_assert_nonnull(strstr(json->str, "\"published\": true"));
        g_assert_nonnull(strstr(json->str, ", null]}")); /* the cell that holds nothing */
        g_assert_null(strchr(json->str, '\n'));
}

static void test_csv(void) {
        __attribute__((cleanup(report_freep))) Report *report = report_new("verb", "title");
        ReportTable *table = report_table(report, "table", "title", "row");
        g_autoptr(GString) csv = g_string_new(NULL);

        report_table_column(table, "column", "ms");
        report_table_row(table, "a \"row\",\nnamed", true);
        report_table_text(table, 0, "text");
        report_to_csv(report, csv);
        g_assert_true(g_str_has_prefix(csv->str, "workload,table,row,published,column,unit,median,least,most,n,text\r\n"));
        g_assert_true(g_str_has_suffix(
                csv->str, "\r\n\"verb\",\"table\",\"a \"\"row\"\",\nnamed\",1,\"column\",\"ms\",,,,,\"text\"\r\n"));
}

/* Figures that no round has are left out. */
static void test_verdicts(void) {
        static const struct {
                double ratios[2];
                guint n;
                const char *text;
        } cases[] = {
                { { 0.5, 0.25 }, 2, "2.7 times as fast" },
                { { 3, 1.5 }, 2, "takes 2.2 times as long" },
                { { 0.5, 1.5 }, 2, "no clear difference" },
                { { 1, 1 }, 2, "no clear difference" },
                { { 0.5 }, 1, "one round does not tell" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                __attribute__((cleanup(report_freep))) Report *report = report_new("verb", "title");
                g_autoptr(GArray) ratios = g_array_new(FALSE, FALSE, sizeof(double));
                g_autoptr(GString) text = g_string_new(NULL), json = g_string_new(NULL), csv = g_string_new(NULL);

                g_array_append_vals(ratios, cases[i].ratios, cases[i].n);
                report_verdict(report, "task", "rival", ratios);
                report_to_text(report, text);
                report_to_json(report, json);
                report_to_csv(report, csv);
                g_assert_nonnull(strstr(text->str, cases[i].text));
                g_assert_nonnull(strstr(json->str, cases[i].text));
                g_assert_nonnull(strstr(csv->str, "\"verdicts\",\"task\",0,\"rival\""));
        }
}

static void test_unknown_verdict(void) {
        __attribute__((cleanup(report_freep))) Report *report = report_new("verb", "title");
        g_autoptr(GArray) ratios = g_array_new(FALSE, FALSE, sizeof(double));
        g_autoptr(GString) text = g_string_new(NULL);

        report_verdict(report, "task", "rival", ratios);
        report_to_text(report, text);
        g_assert_null(strstr(text->str, "rival"));
}

/* GLib's parser wants every element closed and every character escaped. */
static void test_html(void) {
        g_autoptr(GPtrArray) reports = g_ptr_array_new();
        __attribute__((cleanup(report_freep))) Report *report = nasty_report();
        const GMarkupParser parser = {};
        g_autoptr(GMarkupParseContext) context = g_markup_parse_context_new(&parser, 0, NULL, NULL);
        g_autoptr(GString) html = g_string_new(NULL);
        g_autoptr(GError) error = NULL;

        g_ptr_array_add(reports, report);
        g_assert_cmpint(report_to_html(reports, "/missing", html), ==, 0);
        g_assert_true(g_markup_parse_context_parse(context, html->str, (gssize) html->len, &error));
        g_assert_no_error(error);
        g_assert_true(g_markup_parse_context_end_parse(context, &error));
        g_assert_nonnull(strstr(html->str, "&lt;b&gt; &amp; &quot;quotes&quot;"));
        g_assert_null(strstr(html->str, "<b>"));
        g_assert_nonnull(strstr(html->str, "class=\"published\""));
        g_assert_nonnull(strstr(html->str, "class=\"failed\""));
        g_assert_nonnull(strstr(html->str, "<dt>memory</dt>"));
        g_assert_cmpuint(strstr(html->str, "id=\"summary\"") - html->str, <, strstr(html->str, "id=\"nasty\"") - html->str);
}

/* ---- Measuring ---------------------------------------------------------------------------------------------------- */

/* Sides that write down their turns. */
typedef struct Turn {
        GString *turns;
        char letter;
        uint64_t check;
        int r;
} Turn;

static int take_turn(void *userdata) {
        Turn *turn = userdata;

        g_string_append_c(turn->turns, turn->letter);
        return turn->r;
}

static uint64_t check_turn(void *userdata) {
        return ((Turn *) userdata)->check;
}

static int measure_turns(Turn *a, Turn *b, int n_rounds, Findings findings[static 2]) {
        const Side sides[] = {
                { "a", take_turn, check_turn, a, 0 },
                { "b", take_turn, check_turn, b, getpid() },
        };

        return measure_sides(sides, 2, n_rounds, "turns", findings);
}

static void test_rounds(void) {
        g_autoptr(GString) turns = g_string_new(NULL);
        Turn a = { turns, 'a', 1, 0 }, b = { turns, 'b', 1, 0 };
        Findings findings[2];

        g_assert_cmpint(measure_turns(&a, &b, 3, findings), ==, 0);
        g_assert_cmpstr(turns->str, ==, "abbaabba"); /* the first two warm up */
        for (int i = 0; i < 2; i++) {
                g_assert_cmpuint(findings[i].usec->len, ==, 3);
                g_assert_cmpuint(findings[i].server_switches->len, ==, 3);
                findings_done(&findings[i]);
        }
}

static void test_rounds_that_disagree(void) {
        g_autoptr(GString) turns = g_string_new(NULL);
        Turn a = { turns, 'a', 1, 0 }, b = { turns, 'b', 2, 0 };
        Findings findings[2];

        g_assert_cmpint(measure_turns(&a, &b, 3, findings), ==, -EBADMSG);
        b = (Turn) { turns, 'b', 1, -ENOENT };
        g_assert_cmpint(measure_turns(&a, &b, 3, findings), ==, -ENOENT);
        g_assert_cmpstr(turns->str, ==, "abab");
}

/* Bytes that come back each one higher. */
static int serve_bytes(int fd, void *userdata) {
        uint8_t byte;
        ssize_t n;

        while ((n = read(fd, &byte, 1)) == 1) {
                byte++;
                if (write(fd, &byte, 1) != 1)
                        return -EIO;
        }
        return n == 0 ? *(int *) userdata : -EIO;
}

static void test_child(void) {
        int ends_with = 0;
        uint8_t byte = 41;
        Child child;

        g_assert_cmpint(child_start(SOCK_STREAM, serve_bytes, &ends_with, &child), ==, 0);
        g_assert_cmpint(write(child.fd, &byte, 1), ==, 1);
        g_assert_cmpint(read(child.fd, &byte, 1), ==, 1);
        g_assert_cmpint(byte, ==, 42);
        g_assert_cmpint(child_stop(&child), ==, 0);
        g_assert_cmpint(child_stop(&child), ==, 0);
        ends_with = -EINVAL;
        g_assert_cmpint(child_start(SOCK_SEQPACKET, serve_bytes, &ends_with, &child), ==, 0);
        g_assert_cmpint(child_stop(&child), ==, -EIO);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/bench/random", test_random);
        g_test_add_func("/bench/hash", test_hash);
        g_test_add_func("/bench/large-copy", test_large_copy);
        g_test_add_func("/bench/baseline", test_baseline);
        g_test_add_func("/bench/median", test_median);
        g_test_add_func("/bench/quantiles", test_quantiles);
        g_test_add_func("/bench/text", test_text);
        g_test_add_func("/bench/json", test_json);
        g_test_add_func("/bench/csv", test_csv);
        g_test_add_func("/bench/verdicts", test_verdicts);
        g_test_add_func("/bench/unknown-verdict", test_unknown_verdict);
        g_test_add_func("/bench/html", test_html);
        g_test_add_func("/bench/rounds", test_rounds);
        g_test_add_func("/bench/rounds-that-disagree", test_rounds_that_disagree);
        g_test_add_func("/bench/child", test_child);
        return g_test_run();
}
