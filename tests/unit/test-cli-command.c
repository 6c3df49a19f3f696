/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/cli/shell/command: the command that a line means, the nearest one, and how a line is split. Has its own tables. */
#include <errno.h>
#include <glib.h>
#include <stdarg.h>
#include <string.h>

#include "tests/unit/test.h"
#include "tools/cli/shell/command.h"
#include "tools/cli/shell/options.h"

/* The arguments of the last command, and the last complaint. */
static char **got;
static char *complaint;
static int exit_code;

static int run_any(Shell *shell, const Command *command, char **arguments) {
        (void) shell, (void) command;
        g_strfreev(got);
        got = g_strdupv(arguments);
        return 0;
}

static const Command relations[] = {
        { .name = "tables", .aliases = "dt", .arguments = "[LIKE]", .n_max = 1, .run = run_any },
        { .name = "timer", .aliases = "timing", .n_min = 1, .n_max = 1, .run = run_any },
        {},
};
static const Command others[] = {
        { .name = "mode", .n_max = -1, .run = run_any },
        { .name = "quit", .aliases = "q", .run = run_any },
        { .name = "modes", .run = run_any },
        { .name = "watch", .aliases = "watch", .n_min = 1, .n_max = 1, .takes_rest = true, .run = run_any },
        {},
};
static const CommandGroup groups[] = { { "Relations", relations }, { "Others", others }, {} };

void shell_complain(const Shell *shell, const char *format, ...) {
        va_list arguments;

        (void) shell;
        g_free(complaint);
        va_start(arguments, format);
        complaint = g_strdup_vprintf(format, arguments);
        va_end(arguments);
}

void shell_note_failure(Shell *shell, int code) {
        (void) shell;
        exit_code = code;
}

static void check_found(const char *name, const char *expected) {
        g_autofree char *message = NULL;
        const Command *command = command_find(name, &message);

        CHECK(command && !message);
        CHECK_STRING(command->name, expected);
}

static void check_not_found(const char *name, const char *expected) {
        g_autofree char *message = NULL;

        CHECK(!command_find(name, &message));
        CHECK_STRING(message, expected);
}

static void test_find(void) {
        check_found(".tables", "tables");
        check_found(".ta", "tables");
        check_found(".mode", "mode"); /* although there is .modes */
        check_found("\\dt", "tables");
        check_found("\\timing", "timer");
        check_not_found(".t", ".t could be any of .tables, .timer");
        check_not_found(".mod", ".mod could be any of .mode, .modes");
        check_not_found("\\d", "there is no command \\d; .help lists them all"); /* no beginnings of aliases */
        check_not_found(".", "there is no command .; .help lists them all");
}

static void test_nearest(void) {
        check_not_found(".tabels", "there is no command .tabels; did you mean .tables?");
        check_not_found(".wacth", "there is no command .wacth; did you mean .watch?");
        check_not_found(".dt", "there is no command .dt; did you mean \\dt?");
        check_not_found("\\tables", "there is no command \\tables; did you mean .tables?");
        check_not_found(".frobnicate", "there is no command .frobnicate; .help lists them all");
}

static void test_list(void) {
        size_t n;
        const Command *const *commands = command_list(&n);

        CHECK_INT(n, 6);
        for (size_t i = 1; i < n; i++)
                CHECK(strcmp(commands[i - 1]->name, commands[i]->name) < 0);
}

static void check_split(const char *line, const char *expected) {
        g_auto(GStrv) words = NULL;
        g_autofree char *joined = NULL;

        CHECK_INT(command_split(line, &words), 0);
        joined = g_strjoinv("|", words);
        CHECK_STRING(joined, expected);
}

static void test_split(void) {
        g_auto(GStrv) words = NULL;

        check_split("", "");
        check_split("  .mode\tcsv  ", ".mode|csv");
        check_split(".x 'a b' \"c d\"", ".x|a b|c d");
        check_split(".x 'it''s' \"say \"\"so\"\"\"", ".x|it's|say \"so\"");
        check_split(".x '' \"\"", ".x||");
        check_split(".x \"a\\tb\\n\\\"\\101\\\\\"", ".x|a\tb\n\"A\\");
        check_split(".x 'a\\tb' a\\tb", ".x|a\\tb|a\\tb"); /* elsewhere a backslash is one */
        check_split(".x \"a\\000b\"", ".x|ab");
        check_split(".x a'b", ".x|a'b");
        CHECK_INT(command_split(".x 'a", &words), -EINVAL);
        CHECK_INT(command_split(".x \"a\\\"", &words), -EINVAL);
        CHECK(!words);
}

static void check_run(const char *line, const char *expected) {
        const Unit unit = { .type = UNIT_COMMAND, .text = line, .pending = "" };
        g_autofree char *joined = NULL;
        Shell shell = {};

        CHECK_INT(command_run(&shell, &unit), 0);
        joined = g_strjoinv("|", got);
        CHECK_STRING(joined, expected);
}

static void check_refused(const char *line, const char *expected) {
        const Unit unit = { .type = UNIT_COMMAND, .text = line, .pending = "" };
        Shell shell = {};

        exit_code = EXIT_OK;
        CHECK_INT(command_run(&shell, &unit), -EINVAL);
        CHECK_STRING(complaint, expected);
        CHECK_INT(exit_code, EXIT_USAGE);
}

static void test_run(void) {
        check_run(".tables", ".tables");
        check_run("\\dt a%", "\\dt|a%");
        check_run(".mode csv 1 2 3", ".mode|csv|1|2|3");
        check_run(".watch  SELECT  'a b', \"c ", ".watch|SELECT  'a b', \"c");
        check_refused(".tables a b", "usage: .tables [LIKE]");
        check_refused(".timer", "usage: .timer");
        check_refused(".watch  ", "usage: .watch");
        check_refused(".quit now", "usage: .quit");
        check_refused(".mode 'csv", "a quote is open in .mode 'csv");
        check_refused(".qiut", "there is no command .qiut; did you mean .quit?");
}

int main(void) {
        static const Test tests[] = {
                TEST(test_find), TEST(test_nearest), TEST(test_list), TEST(test_split), TEST(test_run),
        };

        command_set_groups(groups);
        return test_main(tests, N_ELEMENTS(tests));
}
