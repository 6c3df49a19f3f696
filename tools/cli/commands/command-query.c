/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands that run statements: again, repeatedly, from a file, from an editor, as a chart. */
#include <errno.h>
#include <string.h>

#include "tools/cli/commands/chart.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/commands/watch.h"
#include "tools/cli/prompt/edit.h"
#include "tools/cli/prompt/editor.h"
#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/dialect.h"
#include "tools/cli/shell/loop.h"
#include "tools/cli/shell/saved.h"
#include "tools/cli/sql/sql-scan.h"
#include "tools/terminal/format.h"

/* The bytes of a saved query that a list on a terminal shows. */
enum { QUERY_SHOWN_MAX = 200 };

/* ---- \g, \gx, \r -------------------------------------------------------------------------------------------------- */

/* Returns the unfinished statement, else the last one that ran. The caller frees it; NULL: none, which has been reported. */
static char *current_statement(Shell *shell) {
        const char *pending = shell->unit.pending;

        if (pending && *pending)
                return g_strdup(pending);
        if (!shell->statement)
                (void) command_fail(shell, -EINVAL, "there is no statement yet");
        return g_strdup(shell->statement);
}

/* Makes `sql` the last statement, for the commands that use it. */
static void remember(Shell *shell, const char *sql) {
        char *copy = g_strdup(sql);

        g_free(shell->statement);
        shell->statement = copy;
}

static int run_statement(Shell *shell, const char *sql) {
        Unit unit = shell->unit;

        unit.type = UNIT_SQL;
        unit.text = sql;
        unit.pending = "";
        dialect_look_up(shell);
        unit.dialect = session_dialect(&shell->session); /* it is one statement, by any rules */
        return loop_run_unit(shell, &unit);
}

static int run_go(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *sql = current_statement(shell), *target = NULL, *message = NULL;
        int r;

        if (!sql)
                return -EINVAL;
        if (command_target(arguments[1], &target) < 0)
                return command_misuse(shell, command);
        if (target) {
                r = output_redirect(shell->output, target, true, &message);
                if (r < 0)
                        return command_fail(shell, r, "%s", message);
        }
        return run_statement(shell, sql);
}

static int run_go_vertical(Shell *shell, const Command *command, char **arguments) {
        const Toggle before = shell->settings.vertical;
        int r;

        shell->settings.vertical = TOGGLE_ON;
        r = run_go(shell, command, arguments);
        shell->settings.vertical = before;
        return r;
}

static int run_reset(Shell *shell, const Command *command, char **arguments) {
        (void) command, (void) arguments;
        shell_say(shell, "The typed text is dropped.");
        return 0;
}

/* ---- .watch ------------------------------------------------------------------------------------------------------- */

static bool starts_with_word(const char *rest, const char *word) {
        size_t size = strlen(word);

        return strncmp(rest, word, size) == 0 && (rest[size] == '\0' || strchr(" \t", rest[size]));
}

static const char *skip_blanks(const char *text) {
        return text + strspn(text, " \t");
}

/* Reads seconds, between 0.1 and a day, for .watch 5 as well as for .watch --interval 5. */
static int take_seconds(const char **rest, uint64_t *ret_usec) {
        double seconds;
        char *end;

        if (!g_ascii_isdigit(**rest) && **rest != '.')
                return 0;
        seconds = g_ascii_strtod(*rest, &end);
        if ((*end && !strchr(" \t", *end)) || !(seconds >= 0.1 && seconds <= 86400))
                return -EINVAL;
        *ret_usec = (uint64_t) (seconds * 1e6);
        *rest = skip_blanks(end);
        return 0;
}

/* Reads the argument of an option. Returns 1; 0: the option is not there; -EINVAL: it has no argument. */
static int take_option(const char **rest, const char *option, char **ret) {
        if (!starts_with_word(*rest, option))
                return 0;
        *rest += strlen(option);
        if (command_take_word(rest, ret) <= 0)
                return -EINVAL;
        *rest = skip_blanks(*rest);
        return 1;
}

static int take_count(const char **rest, uint64_t *ret_n) {
        g_autofree char *word = NULL;
        guint64 n;
        int r;

        r = take_option(rest, "--count", &word);
        if (r <= 0)
                return r;
        if (!g_ascii_string_to_unsigned(word, 10, 1, G_MAXUINT32, &n, NULL))
                return -EINVAL;
        *ret_n = n;
        return 0;
}

static int take_interval(const char **rest, uint64_t *ret_usec) {
        g_autofree char *word = NULL;
        const char *seconds;
        int r = take_option(rest, "--interval", &word);

        if (r <= 0)
                return r < 0 ? r : take_seconds(rest, ret_usec);
        seconds = word;
        r = take_seconds(&seconds, ret_usec);
        return r < 0 || seconds == word || *seconds ? -EINVAL : 0;
}

static int run_watch(Shell *shell, const Command *command, char **arguments) {
        WatchOptions options = { .sql = NULL };
        g_autofree char *sql = NULL;
        const char *rest = arguments[1];

        if (take_count(&rest, &options.n_rounds) < 0 || take_interval(&rest, &options.interval_usec) < 0 ||
            take_count(&rest, &options.n_rounds) < 0)
                return command_misuse(shell, command);
        sql = *rest ? g_strdup(rest) : current_statement(shell);
        if (!sql)
                return -EINVAL;
        remember(shell, sql);
        options.sql = sql;
        return watch_run(shell, &options);
}

/* ---- .save, .run, .queries, .forget ------------------------------------------------------------------------------- */

static int complain_of(Shell *shell, int r, const char *name, const char *message) {
        return r < 0 ? command_fail(shell, r, "%s: %s", name, message) : 0;
}

static int run_save(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *name = NULL, *sql = NULL, *message = NULL;
        const char *rest = arguments[1];
        int r;

        if (command_take_word(&rest, &name) <= 0)
                return command_misuse(shell, command);
        rest = skip_blanks(rest);
        sql = *rest ? g_strdup(rest) : current_statement(shell);
        if (!sql)
                return -EINVAL;
        r = saved_write(name, sql, &message);
        return complain_of(shell, r, name, message);
}

/* Reads one NAME=VALUE; a value in quotes may contain blanks. '...' keeps its quotes, for parameter.h; "..." loses them. The
 * caller frees it; NULL: a quote is open. */
static char *take_assignment(const char **rest) {
        g_autoptr(GString) word = g_string_new(NULL);
        const char *p = *rest;
        char quote = '\0';

        for (; *p && (quote || !strchr(" \t", *p)); p++) {
                if (quote ? *p == quote : *p == '\'' || *p == '"')
                        quote = quote ? '\0' : *p;
                if (*p != '"' || quote == '\'')
                        g_string_append_c(word, *p);
        }
        *rest = skip_blanks(p);
        return quote ? NULL : g_string_free(g_steal_pointer(&word), FALSE);
}

/* Reads the parameters into `given`, and into `parameters`, in which they replace earlier values. */
static int take_parameters(Shell *shell, const Command *command, const char *rest, ParameterList *given,
                           ParameterList *parameters) {
        while (*rest) {
                g_autofree char *word = take_assignment(&rest), *name = NULL, *message = NULL;

                if (!word || !strchr(word, '='))
                        return command_misuse(shell, command);
                name = g_strndup(word, strcspn(word, "="));
                if (parameter_list_add(given, word, &message) < 0)
                        return complain_of(shell, -EINVAL, name, message);
                parameter_list_unset(parameters, name);
                (void) parameter_list_add(parameters, word, &message); /* the call above has checked it */
        }
        return 0;
}

/* Runs the text with parameters that hold for this run only. */
static int run_text(Shell *shell, const char *sql, const char *path, ParameterList *parameters) {
        ParameterList *before = shell->parameters;
        int r;

        shell->parameters = parameters;
        shell->depth++;
        r = loop_run_script(shell, script_new_text(sql, path));
        shell->depth--;
        shell->parameters = before;
        parameter_list_note_use(before, parameters);
        return r;
}

/* Reports a parameter that no statement uses: a misspelled name would otherwise silently leave NULL in its place. */
static int tell_unused(Shell *shell, const char *name, ParameterList *given, const ParameterList *parameters) {
        const char *unused;

        parameter_list_note_use(given, parameters);
        unused = parameter_list_unused(given);
        return unused ? command_fail(shell, -EINVAL, "%s: no statement of %s has this parameter", unused, name) : 0;
}

static int run_run(Shell *shell, const Command *command, char **arguments) {
        __attribute__((cleanup(parameter_list_freep))) ParameterList *parameters = parameter_list_copy(shell->parameters);
        __attribute__((cleanup(parameter_list_freep))) ParameterList *given = parameter_list_new();
        g_autofree char *name = NULL, *sql = NULL, *path = NULL, *message = NULL;
        const char *rest = arguments[1];
        int r;

        if (command_take_word(&rest, &name) <= 0)
                return command_misuse(shell, command);
        if (shell->depth >= SHELL_DEPTH_MAX)
                return command_fail(shell, -ELOOP, "%s: scripts run each other more than %d deep", name, SHELL_DEPTH_MAX);
        r = take_parameters(shell, command, skip_blanks(rest), given, parameters);
        if (r < 0)
                return r;
        r = saved_read(name, &sql, &path, &message);
        if (r < 0)
                return complain_of(shell, r, name, message);
        r = run_text(shell, sql, path, parameters);
        return r < 0 ? r : tell_unused(shell, name, given, parameters);
}

/* Appends a query: on a terminal only the beginning of its first line; elsewhere all of it, with newlines as \n. */
static void append_query(GString *text, const char *sql, bool on_terminal) {
        size_t size = strlen(sql), shown = on_terminal ? strcspn(sql, "\n") : size;

        if (format_shown_text(text, sql, shown, on_terminal ? QUERY_SHOWN_MAX : SIZE_MAX) < size)
                g_string_append(text, FORMAT_ELLIPSIS);
}

static int run_queries(Shell *shell, const Command *command, char **arguments) {
        bool on_terminal = output_is_terminal(shell->output);
        g_auto(GStrv) names = saved_list();
        g_autoptr(GString) text = g_string_new(NULL);

        (void) command, (void) arguments;
        if (!*names)
                shell_say(shell, "No query is saved.");
        for (char **name = names; *name; name++) {
                g_autofree char *sql = NULL, *path = NULL, *message = NULL;

                if (saved_read(*name, &sql, &path, &message) < 0)
                        sql = g_strdup(message);
                g_string_append_printf(text, "%-20s ", *name);
                append_query(text, g_strchomp(sql), on_terminal);
                g_string_append_c(text, '\n');
        }
        return *names ? answer_text(shell, text->str) : 0;
}

static int run_forget(Shell *shell, const Command *command, char **arguments) {
        g_autofree char *message = NULL;
        int r = saved_remove(arguments[1], &message);

        (void) command;
        return complain_of(shell, r, arguments[1], message);
}

/* ---- .chart ------------------------------------------------------------------------------------------------------- */

static const char *const chart_kinds[] = { "bar", "line", "hist", NULL }; /* by ChartKind */

typedef struct ChartArguments {
        int kind;   /* ChartKind; negative: none given */
        char *path; /* owned */
        char *sql;  /* owned; NULL: the last statement */
} ChartArguments;

static void chart_arguments_done(ChartArguments *arguments) {
        g_free(arguments->path);
        g_free(arguments->sql);
}

/* Returns 1: a kind was read; 0: there is none; -EINVAL: there were two. */
static int take_chart_kind(const char **rest, ChartArguments *ret) {
        for (int kind = 0; chart_kinds[kind]; kind++)
                if (starts_with_word(*rest, chart_kinds[kind])) {
                        if (ret->kind >= 0)
                                return -EINVAL;
                        ret->kind = kind;
                        *rest = skip_blanks(*rest + strlen(chart_kinds[kind]));
                        return 1;
                }
        return 0;
}

static int take_chart_output(const char **rest, ChartArguments *ret) {
        g_autofree char *path = NULL;
        int r = take_option(rest, "--output", &path);

        if (r <= 0)
                return r;
        if (ret->path)
                return -EINVAL;
        ret->path = g_steal_pointer(&path);
        return 1;
}

/* Reads the SQL, and an option after it: SQLite would take that for a comment, and no file would be made. */
static int take_chart_sql(SqlDialect dialect, const char *rest, ChartArguments *ret) {
        size_t size = strlen(rest), position = 0, end = size;
        SqlToken token, last = {};

        while (sql_scan_next(dialect, rest, size, &position, &token))
                if (token.type != SQL_SPACE)
                        last = token;
        if (last.type == SQL_COMMENT && starts_with_word(rest + last.start, "--output")) {
                const char *option = rest + last.start;

                end = last.start;
                if (take_chart_output(&option, ret) < 0 || *option)
                        return -EINVAL;
        }
        ret->sql = g_strstrip(g_strndup(rest, end));
        if (!*ret->sql)
                g_clear_pointer(&ret->sql, g_free);
        return 0;
}

static bool is_query(SqlDialect dialect, const char *text) {
        static const char *const words[] = { "SELECT", "WITH", "VALUES", "EXPLAIN", "PRAGMA" };
        size_t position = 0, size = strlen(text);
        SqlToken token;

        do
                if (!sql_scan_next(dialect, text, size, &position, &token))
                        return true; /* there is no text, or only a comment */
        while (token.type == SQL_SPACE || token.type == SQL_COMMENT);
        for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
                if (sql_token_is(text, &token, words[i]))
                        return true;
        return false;
}

/* Reads the arguments: the kind and the option in any order, then SQL. */
static int take_chart_arguments(Shell *shell, const Command *command, const char *rest, ChartArguments *ret) {
        int r;

        do {
                r = take_chart_kind(&rest, ret);
                if (r == 0)
                        r = take_chart_output(&rest, ret);
        } while (r > 0);
        if (r < 0)
                return command_misuse(shell, command);
        if (g_str_has_prefix(rest, "--") && g_ascii_isalpha(rest[2]))
                return command_fail(shell, -EINVAL, ".chart has no option %.*s, only --output",
                                    (int) strcspn(rest, " \t"), rest);
        if (!is_query(session_dialect(&shell->session), rest))
                return command_fail(shell, -EINVAL, "there is no chart %.*s: a chart is bar, line or hist, and SQL follows",
                                    (int) strcspn(rest, " \t\n"), rest);
        return take_chart_sql(session_dialect(&shell->session), rest, ret) < 0 ? command_misuse(shell, command) : 0;
}

static int run_chart(Shell *shell, const Command *command, char **arguments) {
        __attribute__((cleanup(chart_arguments_done))) ChartArguments chart = { .kind = -1 };
        int r = take_chart_arguments(shell, command, arguments[1], &chart);

        if (r < 0)
                return r;
        if (!chart.sql)
                chart.sql = current_statement(shell);
        if (!chart.sql)
                return -EINVAL;
        remember(shell, chart.sql);
        return chart_run(shell, chart.kind < 0 ? CHART_BAR : (ChartKind) chart.kind, chart.sql, chart.path);
}

/* ---- .edit -------------------------------------------------------------------------------------------------------- */

static int run_edit(Shell *shell, const Command *command, char **arguments) {
        bool is_pending = shell->unit.pending && *shell->unit.pending;
        const char *before = is_pending ? shell->unit.pending : shell->statement ?: "";
        g_autofree char *text = g_strconcat(before, *before && !is_pending ? ";\n" : "\n", NULL);
        g_autofree char *after = NULL, *message = NULL;
        int r;

        (void) command, (void) arguments;
        r = edit_text(text, &after, &message);
        if (r < 0)
                return command_fail(shell, r, "%s", message);
        if (!is_pending && g_str_equal(text, after)) {
                shell_say(shell, "Nothing was changed, so nothing runs.");
                return 0;
        }
        g_strchomp(after);
        if (shell->editor && *after)
                editor_add_history(shell->editor, after);
        return loop_run_script(shell, script_new_text(after, NULL));
}

/* ---- .syntax ----------------------------------------------------------------------------------------------------- */

static const struct {
        const char *name, *form;
} statements[] = {
        { "SELECT", "SELECT [DISTINCT] COLUMN [AS NAME], ... [FROM TABLE [JOIN TABLE ON CONDITION]]\n"
                    "    [WHERE CONDITION] [GROUP BY COLUMN, ... [HAVING CONDITION]]\n"
                    "    [ORDER BY COLUMN [DESC], ...] [LIMIT N [OFFSET N]];" },
        { "VALUES", "VALUES (VALUE, ...), ...;" },
        { "WITH", "WITH [RECURSIVE] NAME [(COLUMN, ...)] AS (SELECT ...), ... SELECT ...;" },
        { "UNION", "SELECT ... UNION [ALL] | INTERSECT | EXCEPT SELECT ...;" },
        { "WINDOW", "SELECT FUNCTION(...) OVER ([PARTITION BY COLUMN, ...] [ORDER BY COLUMN, ...]) FROM TABLE;" },
        { "EXPLAIN", "EXPLAIN [QUERY PLAN] STATEMENT;" },
        { "PRAGMA", "PRAGMA NAME [(ARGUMENT)];    those that read, as PRAGMA table_info(TABLE)" },
};

static int run_syntax(Shell *shell, const Command *command, char **arguments) {
        g_autoptr(GString) text = g_string_new(NULL);

        (void) command;
        for (size_t i = 0; i < G_N_ELEMENTS(statements); i++)
                if (!arguments[1] || g_ascii_strcasecmp(arguments[1], statements[i].name) == 0)
                        g_string_append_printf(text, "%s\n", statements[i].form);
        if (text->len == 0)
                return command_fail(shell, -EINVAL, "no statement that reads begins with %s; .syntax lists them all",
                                    arguments[1]);
        return answer_text(shell, text->str);
}

static const char *const statement_names[] = { "EXPLAIN", "PRAGMA", "SELECT", "UNION", "VALUES", "WINDOW", "WITH", NULL };

/* ---- The table ---------------------------------------------------------------------------------------------------- */

const Command commands_query[] = {
        { .name = "go", .aliases = "g", .arguments = "[FILE | \"|COMMAND\"]",
          .summary = "Run what was typed, or the last statement again",
          .details = "With FILE or COMMAND the result goes there.",
          .takes_rest = true, .kinds = { ARGUMENT_FILE }, .takes_pending = true, .run = run_go },
        { .name = "gox", .aliases = "gx", .arguments = "[FILE | \"|COMMAND\"]", .summary = "As .go, a line for each value",
          .takes_rest = true, .kinds = { ARGUMENT_FILE }, .takes_pending = true, .run = run_go_vertical },
        { .name = "reset", .aliases = "r", .summary = "Drop what was typed of a statement",
          .takes_pending = true, .run = run_reset },
        { .name = "watch", .aliases = "watch", .arguments = "[--interval SECONDS] [--count N] [SQL]",
          .summary = "Run a statement whenever its tables change, and show what changes",
          .details = "Without SQL: the last statement. --interval, or the number alone: by the clock instead. Ctrl-C or q\n"
                     "ends it. Changed values are highlighted. Rows are identified by their first column, or else by\n"
                     "their position.",
          .takes_rest = true, .kinds = { ARGUMENT_SQL }, .takes_pending = true, .run = run_watch },
        { .name = "chart", .arguments = "[bar|line|hist] [--output FILE] [SQL]",
          .summary = "Draw a result as a picture",
          .details = "bar, the default: a label and numbers, a bar for each number. line: x, and a line for\n"
                     "each column of y; times, as 2024-05-31 12:30, are placed as such. hist: how often the numbers of\n"
                     "one column fall into which class. In the terminal, or into FILE, a .png or .svg, which needs\n"
                     "gnuplot. --output may also come first, or after the SQL. Without SQL, the last statement is drawn.\n"
                     "NULL is left out.",
          .takes_rest = true, .kinds = { ARGUMENT_WORDS, ARGUMENT_SQL }, .words = chart_kinds, .run = run_chart },
        { .name = "syntax", .aliases = "h", .arguments = "[WORD]", .summary = "Show the forms of statements",
          .details = "Of all that read, or of the one that WORD names.",
          .n_max = 1, .kinds = { ARGUMENT_WORDS }, .words = statement_names, .run = run_syntax },
        { .name = "save", .arguments = "NAME [SQL]", .summary = "Keep the last statement, or SQL, under a name",
          .details = "In ~/.config/ipcq/queries/NAME.sql; .run runs it, .queries lists all, .forget removes it.",
          .n_min = 1, .takes_rest = true, .kinds = { ARGUMENT_QUERY, ARGUMENT_SQL }, .run = run_save },
        { .name = "run", .arguments = "NAME [PARAMETER=VALUE...]", .summary = "Run what was saved under a name",
          .details = "Parameters are as .parameter has them, and hold for this run. One that no statement of it has is an\n"
                     "error.",
          .n_min = 1, .takes_rest = true, .kinds = { ARGUMENT_QUERY, ARGUMENT_NONE }, .run = run_run },
        { .name = "queries", .summary = "List the statements that .save has kept",
          .details = "A terminal shows only the beginning of a long query; a file or a pipe has all of it.",
          .run = run_queries },
        { .name = "forget", .arguments = "NAME", .summary = "Remove what was saved under a name",
          .n_min = 1, .n_max = 1, .kinds = { ARGUMENT_QUERY }, .run = run_forget },
        { .name = "edit", .aliases = "e", .summary = "Edit what was typed, or the last statement, and run it",
          .details = "With $VISUAL, $EDITOR, or the system's editor. An old statement that comes back unchanged is not run.",
          .takes_pending = true, .run = run_edit },
        {},
};
