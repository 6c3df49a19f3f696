/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/terminal/sink and its writers: the bytes do not depend on the size of the buffer or of the pieces. */
#include <glib.h>
#include <string.h>

#include "tools/cli/sql/sql-name.h"
#include "tools/terminal/format.h"
#include "tools/terminal/json.h"
#include "tools/terminal/sink.h"
#include "tools/terminal/sql-literal.h"

/* Characters of one to four bytes, controls, and bytes that are none. */
static GString *mixture(size_t size) {
        static const char *const pieces[] = {
                "a", "\n", "\033", "\t", "é", "日", "\360\237\221\250", "\377", "\346\227", "\"", "'",
        };
        g_autoptr(GRand) random = g_rand_new_with_seed(3);
        GString *text = g_string_new(NULL);

        while (text->len < size)
                g_string_append(text, pieces[g_rand_int_range(random, 0, G_N_ELEMENTS(pieces))]);
        return text;
}

static void check_pieces(bool harmless, size_t buffer_size, size_t piece) {
        g_autoptr(GString) text = mixture(5000), output = g_string_new(NULL), expected = g_string_new(NULL);
        g_autofree char *buffer = g_malloc(buffer_size);
        Sink sink = { .string = output, .buffer = buffer, .size = buffer_size, .harmless = harmless };

        for (size_t done = 0; done < text->len; done += piece)
                sink_write(&sink, text->str + done, MIN(piece, text->len - done));
        sink_finish(&sink);
        if (harmless)
                format_shown_lines(expected, text->str, text->len, SIZE_MAX);
        else
                g_string_append_len(expected, text->str, (gssize) text->len);
        g_assert_cmpmem(output->str, output->len, expected->str, expected->len);
}

static void test_pieces(void) {
        static const size_t sizes[] = { SINK_SIZE_MIN, SINK_SIZE_MIN + 1, 1000, 100000 };
        static const size_t pieces[] = { 1, 3, SINK_SIZE_MIN - 1, SINK_SIZE_MIN, SINK_SIZE_MIN + 1, 2000, 100000 };

        for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++)
                for (size_t j = 0; j < G_N_ELEMENTS(pieces); j++) {
                        check_pieces(false, sizes[i], pieces[j]);
                        check_pieces(true, sizes[i], pieces[j]);
                }
}

/* Small pieces at every position of the buffer. */
static void test_reserve(void) {
        for (size_t before = 0; before < SINK_SIZE_MIN; before++) {
                g_autoptr(GString) output = g_string_new(NULL), expected = g_string_new(NULL);
                char buffer[SINK_SIZE_MIN];
                Sink sink = { .string = output, .buffer = buffer, .size = sizeof buffer, .harmless = before % 2 };

                sink_fill(&sink, 'x', before);
                sink_hex(&sink, "\001\377", 2);
                sink_fill(&sink, '-', 300);
                memset(sink_reserve(&sink, SINK_RESERVE_MAX), '+', SINK_RESERVE_MAX);
                sink_advance(&sink, SINK_RESERVE_MAX);
                sink_finish(&sink);
                for (size_t i = 0; i < before; i++)
                        g_string_append_c(expected, 'x');
                g_string_append_printf(expected, "01ff%0300d%0128d", 0, 0);
                for (char *p = expected->str + before + 4; *p; p++)
                        *p = p < expected->str + before + 304 ? '-' : '+';
                g_assert_cmpstr(output->str, ==, expected->str);
        }
}

/* A text that has every mark that could stand for its newlines is a literal all the same, and soon. */
static void test_marks(void) {
        g_autoptr(GString) text = g_string_new("\n\\n\\012"), output = g_string_new(NULL);
        char buffer[SINK_SIZE_MIN];
        Sink sink = { .string = output, .buffer = buffer, .size = sizeof buffer };
        Value value = { .type = SQLIPC_TEXT };

        for (int i = 0; i < 50; i++)
                g_string_append_printf(text, "(\\n%d)", i);
        value.bytes = text->str;
        value.size = text->len;
        sql_literal_write(&sink, &value, SQL_LITERAL_ONE_LINE);
        sink_flush(&sink);
        g_assert_true(g_str_has_suffix(output->str, "(\\n49)','(\\n50)',char(10))"));

        for (int i = 50; i < 2000000; i++)
                g_string_append_printf(text, "(\\n%d)", i);
        value.bytes = text->str;
        value.size = text->len;
        g_string_truncate(output, 0);
        sql_literal_write(&sink, &value, SQL_LITERAL_ONE_LINE);
        sink_flush(&sink);
        g_assert_true(g_str_has_prefix(output->str, "CAST(x'0a5c6e"));
}

static void test_json(void) {
        g_autoptr(GString) output = g_string_new(NULL), text = mixture(5000);

        json_append_string(output, text->str, text->len);
        g_assert_true(g_utf8_validate(output->str, (gssize) output->len, NULL));
        for (const char *p = output->str; *p; p++)
                g_assert_true((unsigned char) *p >= ' ');
        g_string_truncate(output, 0);
        json_append_string(output, "\b\f\n\r\t\"\\\001/\0", 10);
        g_assert_cmpstr(output->str, ==, "\"\\b\\f\\n\\r\\t\\\"\\\\\\u0001/\\u0000\"");
}

static char *name_of(const char *name) {
        char buffer[SINK_SIZE_MIN];
        GString *output = g_string_new(NULL);
        Sink sink = { .string = output, .buffer = buffer, .size = sizeof buffer };

        sql_name_write(&sink, name);
        sink_flush(&sink);
        return g_string_free(output, FALSE);
}

static void test_names(void) {
        static const char *const names[][2] = {
                { "plain_1", "plain_1" }, { "_", "_" }, { "1st", "\"1st\"" }, { "two words", "\"two words\"" },
                { "", "\"\"" }, { "a\"b", "\"a\"\"b\"" }, { "Select", "\"Select\"" },
                { "naïve", "\"naïve\"" }, { "a;b", "\"a;b\"" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
                g_autofree char *name = name_of(names[i][0]);

                g_assert_cmpstr(name, ==, names[i][1]);
        }
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/sink/pieces", test_pieces);
        g_test_add_func("/sink/reserve", test_reserve);
        g_test_add_func("/sink/marks", test_marks);
        g_test_add_func("/sink/json", test_json);
        g_test_add_func("/sink/names", test_names);
        return g_test_run();
}
