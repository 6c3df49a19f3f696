/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/shell/script: splits lines into units, from texts, files and a prompt at which the test types. */
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/shell/script.h"

/* ---- Somebody who types ------------------------------------------------------------------------------------------- */

typedef struct Editor {
        const char *const *lines; /* "^C", "x^C": Ctrl-C; NULL: Ctrl-D */
        GString *prompts, *history, *before;
} Editor;

static char *prompt_text(void *userdata) {
        (void) userdata;
        return g_strdup("chinook> ");
}

static int read_line(void *userdata, const char *prompt, const TypedLines *before, char **ret, bool *ret_typed) {
        Editor *editor = userdata;
        const char *line = *editor->lines;

        g_string_append_printf(editor->prompts, "%s|", prompt);
        g_string_append_printf(editor->before, "%s%c|", before->text, before->open ? *before->open : ' ');
        if (!line)
                return 0;
        editor->lines++;
        if (g_str_has_suffix(line, "^C")) {
                *ret_typed = *line != '^';
                return -EINTR;
        }
        *ret = g_strdup(line);
        return 1;
}

static void add_history(void *userdata, const char *text) {
        Editor *editor = userdata;

        g_string_append_printf(editor->history, "%s|", text);
}

static Script *script_of(Editor *editor) {
        const Prompt prompt = { editor, prompt_text, read_line, add_history };

        return script_new_prompt(&prompt);
}

/* ---- Units -------------------------------------------------------------------------------------------------------- */

/* "line:text|" for each; a command's has its pending SQL in front: "SELECT 1 => \g". Behind \d that goes on. */
static char *units_of(Script *script) {
        GString *found = g_string_new(NULL);
        Unit unit;
        int r;

        while ((r = script_next(script, &unit)) != 0) {
                if (r == -EINTR) {
                        g_string_append_printf(found, "^C%d|", script_was_typing(script));
                        continue;
                }
                g_string_append_printf(found, "%u:", unit.line);
                if (r < 0) {
                        g_string_append_printf(found, "%s|", r == -EILSEQ ? "EILSEQ" : g_strerror(-r));
                        continue;
                }
                if (*unit.pending)
                        g_string_append_printf(found, "%s => ", unit.pending);
                g_string_append_printf(found, "%s|", unit.text);
                if (*unit.pending && g_str_has_prefix(unit.text, "\\d"))
                        script_put_back(script);
                g_assert_true(unit.type == (*unit.text == '.' || *unit.text == '\\' ? UNIT_COMMAND : UNIT_SQL));
        }
        script_free(script);
        return g_string_free(found, false);
}

static void check_text(const char *text, const char *expected) {
        g_autofree char *found = units_of(script_new_text(text, NULL));

        g_assert_cmpstr(found, ==, expected);
}

static void check_file(const char *text, size_t size, const char *expected) {
        FILE *file = tmpfile();

        g_assert_nonnull(file);
        g_assert_cmpuint(fwrite(text, 1, size, file), ==, size);
        rewind(file);
        g_autofree char *found = units_of(script_new_file(file, true, "name"));
        g_assert_cmpstr(found, ==, expected);
}

static void test_text(void) {
        check_text("", "");
        check_text(" ;; -- nothing;\n ; /* nothing */", "");
        check_text("SELECT 1", "1:SELECT 1|");
        check_text("SELECT 1; SELECT\n2 ;\n\nSELECT ';' -- ;\n", "1:SELECT 1|1:SELECT\n2|4:SELECT ';' -- ;|");
        check_text(".tables\n.mode csv  \nSELECT 1;", "1:.tables|2:.mode csv|3:SELECT 1|");
        check_text("-- x\n.tables\n", "2:.tables|");
        check_text("/* x\n*/ .tables ; not SQL\nSELECT 1;", "2:.tables ; not SQL|3:SELECT 1|");
        check_text("SELECT 1; .tables\nSELECT 2;", "1:SELECT 1|1:.tables|2:SELECT 2|");
        check_text("SELECT 1\n.tables", "1:SELECT 1\n.tables|");
        check_text("SELECT 1 \\g out\n\\dt\nSELECT 2;\\x\n", "1:SELECT 1 => \\g out|2:\\dt|3:SELECT 2|3:\\x|");
        check_text("\n/* a */ SELECT 1\n \\d x\n\\d\n+ 2; SELECT 3 \\d",
                   "3:SELECT 1 => \\d x|4:SELECT 1 => \\d|2:SELECT 1\n \n\n+ 2|5:SELECT 3 => \\d|5:SELECT 3|");
        check_text("SELECT '\\g'; SELECT \"a\n\\g\n\";", "1:SELECT '\\g'|1:SELECT \"a\n\\g\n\"|");
        check_text("-- before\n\n SELECT 1 -- within\n;", "3:SELECT 1 -- within|");
        check_text("CREATE TRIGGER t BEGIN SELECT 1; END; SELECT 2", "1:CREATE TRIGGER t BEGIN SELECT 1; END|1:SELECT 2|");
        check_text("SELECT 'open;\n", "1:SELECT 'open;|");
        check_text("/* open;\nSELECT 1;", "");
}

static void test_file(void) {
#define CHECK(text, expected) check_file(text, sizeof text - 1, expected)
        CHECK("SELECT 1;\r\nSELECT 'a\r\nb';\r\n.mode csv\r\n", "1:SELECT 1|2:SELECT 'a\nb'|4:.mode csv|");
        CHECK("\357\273\277SELECT 1;", "1:SELECT 1|");
        CHECK("\357\273\277.tables", "1:.tables|");
        CHECK("#!/usr/bin/ipcq-cli -f\nSELECT 1;\n", "2:SELECT 1|");
        CHECK("SELECT 1;\n#!x\n", "1:SELECT 1|2:#!x|");
        CHECK("SELECT '\377';\nSELECT 2;\n", "1:EILSEQ|2:SELECT 2|");
        CHECK("SELECT\n'a\0b';\n.x \377\nSELECT 2;\n", "1:EILSEQ|3:EILSEQ|4:SELECT 2|");
        CHECK("SELECT 1", "1:SELECT 1|");
        CHECK("\n\n\n", "");
}

/* ---- The prompt --------------------------------------------------------------------------------------------------- */

static void check_prompt(const char *const *lines, const char *units, const char *prompts, const char *history) {
        Editor editor = { lines, g_string_new(NULL), g_string_new(NULL), g_string_new(NULL) };
        g_autofree char *found = units_of(script_of(&editor));

        g_assert_cmpstr(found, ==, units);
        g_assert_cmpstr(editor.prompts->str, ==, prompts);
        g_assert_cmpstr(editor.history->str, ==, history);
        g_string_free(editor.prompts, true);
        g_string_free(editor.history, true);
        g_string_free(editor.before, true);
}

#define LINES(...) ((const char *const[]) { __VA_ARGS__, NULL })

static void test_prompt(void) {
        check_prompt(LINES("SELECT 1;", ".tables"), "1:SELECT 1|2:.tables|", "chinook> |chinook> |chinook> |",
                     "SELECT 1;|.tables|");
        check_prompt(LINES("SELECT", "1", ";"), "1:SELECT\n1|", "chinook> |    ...> |    ...> |chinook> |", "SELECT\n1\n;|");
        check_prompt(LINES("SELECT 1; SELECT", "2;"), "1:SELECT 1|1:SELECT\n2|", "chinook> |    ...> |chinook> |",
                     "SELECT 1; SELECT\n2;|");
        check_prompt(LINES("SELECT 1;\nSELECT\n2;\n.x"), "1:SELECT 1|2:SELECT\n2|4:.x|", "chinook> |chinook> |",
                     "SELECT 1;\nSELECT\n2;\n.x|");
        check_prompt(LINES("SELECT 1", "\\g"), "2:SELECT 1 => \\g|", "chinook> |    ...> |chinook> |", "SELECT 1\n\\g|");
        check_prompt(LINES(" help", "Quit ;", "exit x;"), "1:.help|2:.quit|3:exit x|",
                     "chinook> |chinook> |chinook> |chinook> |", " help|Quit ;|exit x;|");
        check_prompt(LINES("SELECT", "exit", ";"), "1:SELECT\nexit|", "chinook> |    ...> |    ...> |chinook> |",
                     "SELECT\nexit\n;|");
        check_prompt(LINES("/* x", "*/ .tables"), "2:.tables|", "chinook> |    ...> |chinook> |", "/* x\n*/ .tables|");
}

static void test_interrupts(void) {
        check_prompt(LINES("^C", "x^C", "SELECT", "^C", "SELECT 2;", "^C"), "^C0|^C1|^C1|2:SELECT 2|^C0|",
                     "chinook> |chinook> |chinook> |    ...> |chinook> |chinook> |chinook> |", "SELECT 2;|");
        /* Ctrl-D within a statement does not run it. */
        check_prompt(LINES("SELECT 1", "FROM x"), "", "chinook> |    ...> |    ...> |", "");
}

static void test_before(void) {
        Editor editor = { LINES("SELECT 'a", "b'"), g_string_new(NULL), g_string_new(NULL), g_string_new(NULL) };
        g_autofree char *found = units_of(script_of(&editor));

        g_assert_cmpstr(found, ==, "");
        g_assert_cmpstr(editor.before->str, ==, " |SELECT 'a\n'|SELECT 'a\nb'\n |");
        g_string_free(editor.prompts, true);
        g_string_free(editor.history, true);
        g_string_free(editor.before, true);
}

/* ---- Size --------------------------------------------------------------------------------------------------------- */

/* A string of so many lines. Twice the lines must not take four times as long: a bound far above twice, far below what
 * looking through all of it for each line takes (minutes). */
static void test_huge(void) {
        g_autoptr(GString) text = g_string_new("SELECT '");
        FILE *file = tmpfile();
        Script *script;
        Unit unit;

        for (int i = 0; i < 2000000; i++)
                g_string_append(text, "aaaaaaa\n");
        g_string_append(text, "';\n.tables\n");
        g_assert_cmpuint(fwrite(text->str, 1, text->len, file), ==, text->len);
        rewind(file);
        script = script_new_file(file, true, NULL);
        g_assert_cmpint(script_next(script, &unit), ==, 1);
        g_assert_cmpuint(strlen(unit.text), ==, text->len - strlen(";\n.tables\n"));
        g_assert_cmpint(script_next(script, &unit), ==, 1);
        g_assert_cmpstr(unit.text, ==, ".tables");
        g_assert_cmpuint(unit.line, ==, 2000002);
        script_free(script);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/script/text", test_text);
        g_test_add_func("/script/file", test_file);
        g_test_add_func("/script/prompt", test_prompt);
        g_test_add_func("/script/interrupts", test_interrupts);
        g_test_add_func("/script/before", test_before);
        g_test_add_func("/script/huge", test_huge);
        return g_test_run();
}
