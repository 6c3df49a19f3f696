/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/render/watch-table: the differences between two results, and how they are drawn. */
#include <glib.h>
#include <locale.h>
#include <malloc.h>
#include <string.h>

#include "daemon/worker/sandbox/sanitized.h"
#include "tools/cli/render/watch-table.h"
#include "tools/terminal/format.h"

#define _cleanup_table_ __attribute__((cleanup(watch_table_freep)))

static const char *const two_names[] = { "id", "n" };

static Value text(const char *bytes) {
        if (!bytes)
                return (Value) { .type = SQLIPC_NULL };
        return (Value) { .type = SQLIPC_TEXT, .bytes = bytes, .size = strlen(bytes) };
}

/* Rows of two columns: "a 1,b 2". */
static WatchTable *make(const char *rows) {
        WatchTable *table = watch_table_new(two_names, 2, "NULL");
        g_auto(GStrv) lines = g_strsplit(rows, ",", -1);

        for (char **line = lines; *line; line++) {
                g_auto(GStrv) words = g_strsplit(*line, " ", 2);

                watch_table_add(table, (const Value[]) { text(words[0]), text(words[1]) });
        }
        return table;
}

static void check(const char *before, const char *now, uint64_t n_new, uint64_t n_gone, uint64_t n_changed,
                  const char *drawn) {
        _cleanup_table_ WatchTable *old = make(before), *table = make(now);
        WatchChanges changes = watch_table_compare(table, old);
        g_autofree char *picture = watch_table_draw(table, 80, 24, false);

        g_assert_cmpuint(changes.n_new, ==, n_new);
        g_assert_cmpuint(changes.n_gone, ==, n_gone);
        g_assert_cmpuint(changes.n_changed, ==, n_changed);
        g_assert_cmpstr(picture, ==, drawn);
}

static void test_changes(void) {
        check("a 1,b 2", "a 1,b 2", 0, 0, 0, "id  n\na   1\nb   2\n");
        check("a 1,b 2", "a 1,b 3", 0, 0, 1, "id  n \na   1 \nb   3*\n");
        /* by the first column: a row in front of the others changes none of them */
        check("a 1,b 2", "c 3,a 1,b 2", 1, 0, 0, "id  n \nc*  3*\na   1 \nb   2 \n");
        check("a 1,b 2,c 3", "c 3,a 1", 0, 1, 0, "id  n\nc   3\na   1\n");
        /* by position: the first column is twice the same */
        check("a 1,a 2", "a 0,a 1,a 2", 1, 0, 2, "id  n \na   0*\na   1*\na*  2*\n");
        /* a row alone is the same row, whatever its first column says */
        check("a 1", "b 1", 0, 0, 1, "id  n\nb*  1\n");
}

static void test_other_columns(void) {
        static const char *const others[] = { "id", "m" };
        _cleanup_table_ WatchTable *old = watch_table_new(others, 2, "NULL"), *table = make("a 1");
        WatchChanges changes = watch_table_compare(table, old);

        g_assert_cmpuint(changes.n_new, ==, 0);
        changes = watch_table_compare(table, NULL);
        g_assert_cmpuint(changes.n_new, ==, 0);
}

/* Of more rows than are held their number is compared. */
static void test_many(void) {
        _cleanup_table_ WatchTable *old = watch_table_new(two_names, 2, "NULL");
        _cleanup_table_ WatchTable *table = watch_table_new(two_names, 2, "NULL");
        const Value row[] = { text("a"), text("b") };
        WatchChanges changes;

        for (size_t i = 0; i < 2 * WATCH_ROWS_MAX; i++)
                watch_table_add(old, row);
        for (size_t i = 0; i < 2 * WATCH_ROWS_MAX + 3; i++)
                watch_table_add(table, row);
        g_assert_cmpuint(watch_table_count(table), ==, 2 * WATCH_ROWS_MAX + 3);
        changes = watch_table_compare(table, old);
        g_assert_cmpuint(changes.n_new, ==, 3);
        g_assert_cmpuint(changes.n_changed, ==, 0);
        changes = watch_table_compare(old, table);
        g_assert_cmpuint(changes.n_gone, ==, 3);
}

/* No line is wider than the screen, none is more than it has, nothing of a value drives it. */
/* Small values cost what they are and a little more: both results that are held have to fit the shell's 16 MiB. */
static void test_memory(void) {
        static const char *names[2001];
        static Value values[2000];
        size_t before;
        _cleanup_table_ WatchTable *table = NULL;

        for (size_t i = 0; i < 2000; i++) {
                names[i] = "c";
                values[i] = text("1");
        }
        before = mallinfo2().uordblks;
        table = watch_table_new(names, 2000, "NULL");
        for (int i = 0; i < 10000; i++)
                watch_table_add(table, values);
        g_assert_cmpuint(watch_table_count(table), ==, 10000);
        g_assert_cmpuint(mallinfo2().uordblks - before, <, 4 * WATCH_BYTES_MAX);
}

static void test_screen(void) {
        static const char *const names[] = { "a", "\033[31mname\n", "c" };
        const char wide[] = "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac, and more of that \033]0;x\a";
        _cleanup_table_ WatchTable *table = watch_table_new(names, 3, "NULL");

        for (int i = 0; i < 10; i++)
                watch_table_add(table, (const Value[]) { { .type = SQLIPC_INTEGER, .integer = i }, text(wide), text(NULL) });
        for (size_t width = 1; width < 90; width++) {
                g_autofree char *picture = watch_table_draw(table, width, 5, false);
                g_auto(GStrv) lines = g_strsplit(picture, "\n", -1);

                g_assert_cmpuint(g_strv_length(lines), ==, 6); /* the last is empty */
                g_assert_null(strpbrk(picture, "\033\a\r"));
                for (char **line = lines; *line; line++)
                        g_assert_cmpuint(format_shown_width(*line, strlen(*line)), <=, width);
        }
}

static void test_colors(void) {
        _cleanup_table_ WatchTable *old = make("a 1,b 2"), *table = make("a 1,b 3");
        g_autofree char *picture = NULL;

        (void) watch_table_compare(table, old);
        picture = watch_table_draw(table, 80, 24, true);
        g_assert_cmpstr(picture, ==, "\033[1mid\033[0m  \033[1mn\033[0m\na   1\nb   \033[7m3\033[0m\n");
}

int main(int argc, char **argv) {
        g_assert_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/watch/changes", test_changes);
        g_test_add_func("/watch/other-columns", test_other_columns);
        g_test_add_func("/watch/many", test_many);
        if (!SANITIZED)
                g_test_add_func("/watch/memory", test_memory);
        g_test_add_func("/watch/screen", test_screen);
        g_test_add_func("/watch/colors", test_colors);
        return g_test_run();
}
