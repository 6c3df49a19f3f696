/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as the input of ipcq-cli: typed, in a file, as its arguments. A text and a file give the same units, and
 * statements end at the places at which they end for SQLite; commands are found and get their split arguments; painted and
 * completed lines are text. Commands here only set settings and parameters: no service is asked, and no program started.
 *
 * An input is the place of the cursor, a byte, and text.
 *
 * About: tools/cli/sql/sql-scan.c tools/cli/sql/sql-caret.c tools/cli/sql/complete-sql.c tools/cli/sql/parameter.c
 * About: tools/cli/shell/script.c tools/cli/shell/command.c tools/cli/shell/settings.c tools/cli/shell/options.c
 * About: tools/cli/prompt/complete.c tools/cli/prompt/highlight.c
 */
#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/replay.h"
#include "tools/cli/prompt/complete.h"
#include "tools/cli/prompt/highlight.h"
#include "tools/cli/render/plan.h"
#include "tools/cli/shell/catalog.h"
#include "tools/cli/shell/command.h"
#include "tools/cli/shell/options.h"
#include "tools/cli/shell/saved.h"
#include "tools/cli/sql/complete-sql.h"
#include "tools/cli/sql/sql-caret.h"
#include "tools/cli/sql/sql-scan.h"

/* ---- stubs of other modules ---- */

static const char *const names[] = { "album", "Table With Blanks", "a\"b", "\xff", "select", NULL };
static const char *const no_names[] = { NULL };
static unsigned n_complaints;

const char *const *catalog_databases(Catalog *catalog) { (void) catalog; return names; }
const char *const *catalog_tables(Catalog *catalog) { (void) catalog; return names; }
const char *const *catalog_functions(Catalog *catalog) { (void) catalog; return names; }
const char *const *catalog_all_columns(Catalog *catalog) { (void) catalog; return names; }
const char *const *catalog_columns(Catalog *catalog, const char *table) {
        (void) catalog;
        return *table == 'a' ? names : no_names;
}
char **saved_list(void) { return g_strdupv((char **) names); }
void shell_note_failure(Shell *shell, int code) { shell->exit_code = shell->exit_code ?: code; }
void shell_complain(const Shell *shell, const char *format, ...) {
        va_list arguments;

        (void) shell;
        va_start(arguments, format);
        g_free(g_strdup_vprintf(format, arguments));
        va_end(arguments);
        n_complaints++;
}

static void check_arguments(const Command *command, char **arguments) {
        int n = (int) g_strv_length(arguments);

        demand(n > 0 && (arguments[0][0] == '.' || arguments[0][0] == '\\'));
        demand(command->takes_rest ? n == 2 : n > command->n_min && (command->n_max < 0 || n <= command->n_max + 1));
}

static int run_any(Shell *shell, const Command *command, char **arguments) {
        (void) shell;
        check_arguments(command, arguments);
        return 0;
}

/* settings_set() takes each result of settings_get(), which then returns the same. */
static int run_set(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *message = NULL, *value = NULL, *again = NULL, *none = NULL;
        int r;

        check_arguments(command, arguments);
        r = settings_set(&shell->settings, arguments[1], arguments[2], &message);
        demand((r == 0) == !message && (r == 0 || r == -ENOENT || r == -EINVAL));
        if (r < 0)
                return r;
        value = settings_get(&shell->settings, arguments[1]);
        demand(value && settings_set(&shell->settings, arguments[1], value, &none) == 0);
        again = settings_get(&shell->settings, arguments[1]);
        demand(strcmp(value, again) == 0);
        return 0;
}

static int run_parameter(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *message = NULL, *other = NULL;
        int r;

        check_arguments(command, arguments);
        r = parameter_list_set(shell->parameters, arguments[1], arguments[2], &message);
        demand((r == 0) == !message);
        (void) parameter_list_add(shell->parameters, arguments[2], &other);
        if (r == 0 && arguments[2][0] == 'u')
                demand(parameter_list_unset(shell->parameters, arguments[1]));
        return r;
}

static int run_target(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *target = NULL;

        (void) shell;
        check_arguments(command, arguments);
        demand(command_target(arguments[1], &target) == 0 || !target);
        return 0;
}

static const char *const words[] = { "on", "off", "a word", NULL };
static const Command commands[] = {
        { .name = "tables", .aliases = "dt d", .n_max = 1, .kinds = { ARGUMENT_TABLE }, .run = run_any },
        { .name = "schema", .n_max = 2, .kinds = { ARGUMENT_TABLE, ARGUMENT_DATABASE }, .run = run_any },
        { .name = "output", .aliases = "o", .n_max = -1, .takes_rest = true, .kinds = { ARGUMENT_FILE }, .run = run_target },
        { .name = "open", .aliases = "c", .n_min = 1, .n_max = 1, .kinds = { ARGUMENT_DATABASE }, .run = run_any },
        { .name = "set", .n_min = 2, .n_max = 2, .kinds = { ARGUMENT_WORDS }, .words = words, .run = run_set },
        { .name = "help", .aliases = "?", .n_max = 1, .kinds = { ARGUMENT_COMMAND }, .run = run_any },
        { .name = "quit", .aliases = "q", .n_max = 1, .run = run_any },
        { .name = "read", .aliases = "i", .n_min = 1, .n_max = -1, .takes_rest = true, .kinds = { ARGUMENT_FILE },
          .run = run_target },
        { .name = "mode", .n_max = -1, .kinds = { ARGUMENT_SETTING }, .run = run_any },
        { .name = "parameter", .n_min = 2, .n_max = 2, .run = run_parameter },
        { .name = "run", .n_min = 1, .n_max = -1, .kinds = { ARGUMENT_QUERY }, .run = run_any },
        { .name = "watch", .n_min = 1, .n_max = -1, .takes_rest = true, .kinds = { ARGUMENT_SQL }, .run = run_any },
        {},
};
static const CommandGroup groups[] = { { "Commands", commands }, {} };

/* ---- tokens and statements ---- */

static void check_tokens(SqlDialect dialect, const char *text, size_t size) {
        size_t position = 0, end = 0;
        SqlToken token;

        while (sql_scan_next(dialect, text, size, &position, &token)) {
                demand(token.start == end && token.size > 0 && token.size <= size - token.start);
                end = token.start + token.size;
                demand(position == end && (!token.open || end == size));
                (void) sql_token_is(text, &token, "SELECT");
        }
        demand(end == size);
}

/* By lines as they are typed, and at once. */
static void check_extent(SqlDialect dialect, const char *text, size_t size) {
        size_t whole_size, size_now = 0, found = 0;
        SqlExtent whole = sql_scan_statement(dialect, text, size, &whole_size), extent = SQL_EXTENT_EMPTY;
        SqlSplit split = { .dialect = dialect };

        demand(whole_size <= size);
        while (size_now < size) {
                const char *newline = memchr(text + size_now, '\n', size - size_now);

                size_now = newline ? (size_t) (newline + 1 - text) : size;
                extent = sql_split(&split, text, size_now, &found);
                if (extent == SQL_EXTENT_COMPLETE || extent == SQL_EXTENT_COMMAND)
                        break;
        }
        demand(extent == whole);
        demand(size == 0 || extent == SQL_EXTENT_EMPTY || extent == SQL_EXTENT_INCOMPLETE || found == whole_size);
        /* $a(b) as Tcl has it is one token to the tokenizer, and to us; sqlite3_complete() looks into it */
        if (dialect == SQL_DIALECT_SQLITE && whole == SQL_EXTENT_COMPLETE && !memchr(text, 0, whole_size)) {
                g_autofree char *statement = g_strndup(text, whole_size);

                demand(strpbrk(statement, "$#@:") || sqlite3_complete(statement));
        }
}

/* ---- units ---- */

typedef struct Reading {
        GString *said; /* what the units were */
        Shell shell;
} Reading;

static void check_sql(Shell *shell, const char *sql) {
        size_t n, size = strlen(sql);
        g_autofree char *caret = sql_caret(sql, size / 2, size % 100);

        (void) explain_of(SQL_DIALECT_SQLITE, sql);
        (void) parameter_list_for(shell->parameters, SQL_DIALECT_SQLITE, sql, &n);
        (void) parameter_list_unused(shell->parameters);
        demand((caret != NULL) == (size / 2 < size));
        demand(!caret || g_utf8_validate(caret, -1, NULL));
}

static void run_units(Script *script, Reading *reading) {
        unsigned line = 0;
        Unit unit;
        int r;

        while ((r = script_next(script, &unit)) != 0) {
                demand(r == 1 || r == -EILSEQ);
                demand(unit.line >= line);
                line = unit.line;
                g_string_append_printf(reading->said, "%u %d ", line, r);
                if (r < 0)
                        continue;
                demand(g_utf8_validate(unit.text, -1, NULL) && *unit.text);
                g_string_append_printf(reading->said, "%d %s\n", unit.type, unit.text);
                if (unit.type == UNIT_SQL) {
                        check_sql(&reading->shell, unit.text);
                        continue;
                }
                demand(*unit.text == '.' || *unit.text == '\\');
                demand(unit.pending && g_utf8_validate(unit.pending, -1, NULL));
                n_complaints = 0;
                (void) command_run(&reading->shell, &unit);
                demand(n_complaints <= 1 && (n_complaints == 0 || reading->shell.exit_code != 0));
        }
        script_free(script);
}

static void reading_init(Reading *reading) {
        *reading = (Reading) { .said = g_string_new(NULL), .shell.parameters = parameter_list_new() };
        settings_init(&reading->shell.settings);
}

static void reading_done(Reading *reading) {
        settings_done(&reading->shell.settings);
        parameter_list_free(reading->shell.parameters);
        g_string_free(reading->said, TRUE);
}

static FILE *file_of(const char *text, size_t size) {
        int fd = memfd_create("shell", MFD_CLOEXEC);

        demand(fd >= 0 && write(fd, text, size) == (ssize_t) size && lseek(fd, 0, SEEK_SET) == 0);
        return fdopen(fd, "r");
}

/* `text` has no NUL: else only a file can hold it. */
static void check_units(const char *text, size_t size) {
        bool whole = strlen(text) == size;
        bool skips = g_str_has_prefix(text, "#!") || g_str_has_prefix(text, "\xef\xbb\xbf") || strchr(text, '\r');
        Reading a, b;

        reading_init(&a);
        reading_init(&b);
        run_units(script_new_text(text, "text"), &a);
        run_units(script_new_file(file_of(text, size), 1, "file"), &b);
        demand(!whole || skips || strcmp(a.said->str, b.said->str) == 0);
        reading_done(&a);
        reading_done(&b);
}

/* ---- a user who types ---- */

static void check_completion(const char *text, size_t cursor) {
        Shell shell = {};
        size_t start = 0;
        g_auto(GStrv) found = complete(&shell, text, cursor, &start);
        SqlPlace place;

        for (char **candidate = found; candidate && *candidate; candidate++)
                demand(start <= cursor && g_utf8_validate(*candidate, -1, NULL));
        sql_place_find(cursor % 2 ? SQL_DIALECT_POSTGRESQL : SQL_DIALECT_SQLITE, text, cursor, &place);
        demand(place.start <= cursor && place.word);
        g_free(sql_place_quote(&place, "a name"));
        sql_place_done(&place);
}

static void check_colours(const char *text, size_t size, size_t cursor) {
        static const char *const opens[] = { NULL, "'", "\"", "/*" };
        HighlightText wanted = { .text = text, .size = size, .cursor = cursor, .open = opens[size % 4], .started = size & 8,
                                 .prompt_width = 9, .columns = 1 + cursor % 80, .rows = 24 };
        g_autoptr(GString) output = g_string_new("before");
        bool painted = highlight_paint(&wanted, output);

        demand(g_str_has_prefix(output->str, "before"));
        demand(painted ? g_utf8_validate(output->str, (gssize) output->len, NULL) : output->len == strlen("before"));
}

/* Words of the text as arguments of the program; its complaints are not ours. Help ends the program (GOption). */
static void check_options(const char *text) {
        static FILE *nowhere;
        g_auto(GStrv) arguments = g_strsplit_set(text, " \n", 64);
        g_autoptr(GPtrArray) argv = g_ptr_array_new();
        FILE *kept = stderr;
        Options options;

        if (!nowhere)
                nowhere = fopen("/dev/null", "we");
        g_ptr_array_add(argv, (gpointer) "ipcq-cli");
        for (char **a = arguments; *a; a++)
                if (!(**a == '-' && strpbrk(*a, "h?")))
                        g_ptr_array_add(argv, *a);
        g_ptr_array_add(argv, NULL);
        stderr = nowhere;
        if (options_parse((int) argv->len - 1, (char **) argv->pdata, &options) == 0) {
                Settings settings;

                settings_init(&settings);
                options_apply(&options, &settings);
                settings_done(&settings);
                options_done(&options);
        }
        stderr = kept;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        g_autofree char *text = NULL;
        size_t cursor, text_size;

        if (size < 1)
                return 0;
        setlocale(LC_CTYPE, "C.UTF-8");
        command_set_groups(groups);
        /* of exactly its size, so that AddressSanitizer sees a look behind the NUL */
        text = g_malloc(size);
        memcpy(text, bytes + 1, size - 1);
        text[size - 1] = 0;
        text_size = strlen(text);
        cursor = text_size > 0 ? bytes[0] * text_size / 255 : 0;
        for (SqlDialect dialect = SQL_DIALECT_SQLITE; dialect <= SQL_DIALECT_POSTGRESQL; dialect++) {
                check_tokens(dialect, text, size - 1);
                check_extent(dialect, text, size - 1);
        }
        check_units(text, size - 1);
        check_completion(text, cursor);
        check_colours(text, text_size, cursor);
        check_options(text);
        return 0;
}
