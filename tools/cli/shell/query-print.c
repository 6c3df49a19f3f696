/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes results through a renderer: for a typed statement, or to a stream of the caller's (query-print.h). */
#include "tools/cli/shell/query-print.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>

#include "tools/cli/render/human.h"
#include "tools/cli/render/plan.h"
#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/cursor-values.h"
#include "tools/cli/shell/footer.h"
#include "tools/cli/shell/query-failure.h"
#include "tools/cli/shell/transaction.h"

/* Rows that a grid holds back are written after a pause, or when the first of them has waited long enough. Rows of other
 * modes are only buffered, and are written soon. On a terminal the waits are short, because the user wants to see rows. For
 * a file or a program they are long, so that the bytes are the same each time: the widths of a grid depend on the rows that
 * are held together. */
enum { PAUSE_MSEC = 20, PAUSE_GRID_MSEC = 200, PAUSE_UNSEEN_GRID_MSEC = 2000, HOLD_GRID_MSEC = 1000,
       HOLD_UNSEEN_GRID_MSEC = 10000 };

typedef struct Print {
        Query *query;
        RenderMode mode;
        RenderOptions options;
        uint64_t rows_max;  /* 0: all */
        bool limited;       /* there are more rows than rows_max */
        Renderer *renderer; /* NULL: columns are not known yet, or there are none */
        Value *values;
        size_t n_columns;
} Print;

static void print_done(Print *print) {
        print->renderer = renderer_free(print->renderer);
        g_clear_pointer(&print->values, g_free);
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static int writing(Print *print, int r) {
        print->query->from_output |= r < 0;
        return r;
}

static int on_columns(Print *print, sqlipc_cursor *cursor) {
        g_autofree const char **names = cursor_names(cursor, &print->n_columns);

        if (print->n_columns == 0)
                return 0;
        print->values = g_new0(Value, print->n_columns);
        return renderer_new(print->mode, &print->options, names, print->n_columns, &print->renderer);
}

static uint64_t bytes_of(const Value *values, size_t n) {
        uint64_t bytes = 0;

        for (size_t i = 0; i < n; i++)
                bytes += values[i].type == SQLIPC_TEXT || values[i].type == SQLIPC_BLOB ? values[i].size : 8;
        return bytes;
}

static int on_row(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        Print *print = userdata;

        if (!is_row)
                return on_columns(print, cursor);
        if (!print->renderer)
                return 0;
        if (print->rows_max > 0 && print->query->totals.n_rows >= print->rows_max) {
                print->limited = true;
                return -ENOBUFS;
        }
        cursor_values(cursor, print->values, print->n_columns);
        if (print->query->progress.wanted)
                print->query->n_bytes += bytes_of(print->values, print->n_columns);
        return writing(print, renderer_row(print->renderer, print->values));
}

static int on_pause(void *userdata) {
        Print *print = userdata;

        return print->renderer ? writing(print, renderer_flush(print->renderer)) : 0;
}

/* Runs the query, and writes all rows that arrived, even if it fails. */
static int print_rows(Print *print) {
        int r = query_execute(print->query), w;

        if (print->limited)
                r = 0;
        if (!print->renderer || print->query->from_output)
                return r;
        w = renderer_finish(print->renderer, r >= 0 && !print->limited);
        return w < 0 && r >= 0 ? writing(print, w) : r;
}

static bool is_for_people(RenderMode mode) {
        return render_mode_is_grid(mode) || mode == RENDER_LINE || mode == RENDER_VERTICAL || mode == RENDER_LIST;
}

static void set_pauses(Query *query, const Print *print) {
        bool grid = render_mode_is_grid(print->mode), terminal = print->options.terminal;

        query->pause_msec = !grid ? PAUSE_MSEC : terminal ? PAUSE_GRID_MSEC : PAUSE_UNSEEN_GRID_MSEC;
        query->hold_msec = !grid ? 0 : terminal ? HOLD_GRID_MSEC : HOLD_UNSEEN_GRID_MSEC;
}

static Query query_for(Shell *shell, const char *sql, Print *print) {
        Query query = query_init(shell, sql, on_row, print);

        query.pause = on_pause;
        set_pauses(&query, print);
        query.parameters = parameter_list_for(shell->parameters, session_dialect(&shell->session), sql, &query.n_parameters);
        return query;
}

int query_write(Shell *shell, const char *sql, RenderMode mode, const RenderOptions *options, QueryTotals *ret_totals) {
        Print print = { .mode = mode, .options = *options };
        Query query = query_for(shell, sql, &print);
        int r;

        print.query = &query;
        query.on_terminal = options->terminal;
        query.last_reader = false; /* the stream belongs to the caller */
        r = print_rows(&print);
        print_done(&print);
        if (ret_totals)
                *ret_totals = query.totals;
        return query_settle(&query, r);
}

/* ---- Plans -------------------------------------------------------------------------------------------------------- */

static int on_plan_row(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        const char *detail;
        size_t size;

        if (!is_row)
                return 0;
        detail = sqlipc_column_text(cursor, 3, &size);
        plan_add(userdata, sqlipc_column_int64(cursor, 0), sqlipc_column_int64(cursor, 1), detail ?: "", size);
        return 0;
}

/* Runs EXPLAIN QUERY PLAN, and writes its rows as a tree. */
static int print_plan(Query *query, FILE *file) {
        g_autoptr(GString) text = g_string_new(NULL);
        Plan *plan = plan_new();
        int r;

        query->visit = on_plan_row;
        query->userdata = plan;
        query->pause = NULL;
        r = query_execute(query);
        plan_append(plan, text);
        plan_free(plan);
        (void) fwrite(text->str, 1, text->len, file); /* output_end() reports errors */
        return r;
}

/* Writes the plan for .eqp. Errors are not reported, because the statement itself will report them. In a mode for programs
 * the tree goes to stderr. */
static int print_plan_before(const Print *print, FILE *file) {
        g_autofree char *sql = g_strconcat("EXPLAIN QUERY PLAN ", print->query->sql, NULL);
        Query plan = *print->query;
        int r;

        plan.sql = sql;
        r = print_plan(&plan, print->options.terminal || is_for_people(print->mode) ? file : stderr);
        return r == -ECANCELED ? r : 0;
}

/* ---- Statements --------------------------------------------------------------------------------------------------- */

/* The widths that sqlite3's shell uses. */
static const int explain_widths[] = { 4, 13, 4, 4, 4, 13, 2, 13 };

RenderOptions query_render_options(const Shell *shell, FILE *file) {
        static const RenderHeaders headers[] = {
                [TOGGLE_OFF] = RENDER_HEADERS_OFF,
                [TOGGLE_ON] = RENDER_HEADERS_ON,
                [TOGGLE_AUTO] = RENDER_HEADERS_BY_MODE,
        };
        const Settings *settings = &shell->settings;
        bool terminal = output_is_terminal(shell->output);

        return (RenderOptions) {
                .output = file,
                .null = settings->null,
                .headers = headers[settings->headers],
                .widths = settings->widths,
                .n_widths = settings->n_widths,
                .separator = settings->separator,
                .table_name = settings->insert_table,
                .terminal_width = output_width(shell->output),
                .vertical_when_wide = settings->vertical == TOGGLE_AUTO,
                .terminal = terminal,
                .colors = settings->colors && terminal,
        };
}

static void prepare(Print *print, Shell *shell, FILE *file, Explain explain) {
        print->mode = shell->settings.vertical == TOGGLE_ON ? RENDER_VERTICAL : shell->settings.mode;
        print->options = query_render_options(shell, file);
        print->rows_max = shell->settings.rows_max;
        if (explain == EXPLAIN_CODE && render_mode_is_grid(print->mode)) {
                print->mode = RENDER_COLUMN;
                print->options.widths = explain_widths;
                print->options.n_widths = G_N_ELEMENTS(explain_widths);
                print->options.null = "";
                print->options.vertical_when_wide = false;
        }
}

/* Does everything between answer_begin() and output_end(). */
static int print_answer(Print *print, FILE *file, Explain explain) {
        Query *query = print->query;
        int r = 0;

        if (explain == EXPLAIN_PLAN && is_for_people(print->mode))
                return print_plan(query, file);
        if (explain == EXPLAIN_NOT && query->shell->settings.explain)
                r = print_plan_before(print, file);
        if (r >= 0)
                r = print_rows(print);
        if (!query->from_output && (print->renderer || (r >= 0 && query->is_over)))
                footer_write(query, r >= 0 && !print->limited, file);
        if (!query->from_output && r >= 0 && query->shell->settings.changes)
                footer_write_changes(&query->shell->session, file);
        return r;
}

/* Says that there are more rows. At the prompt the user asked for the limit; in a script it is a warning, because its reader
 * may take the rows for all. */
static void tell_limit(const Shell *shell, uint64_t rows_max) {
        g_autofree char *rows = human_rows(rows_max);
        g_autofree char *first = rows_max == 1 ? g_strdup("this is the first row")
                                               : g_strdup_printf("these are the first %s", rows);
        g_autofree char *text = g_strdup_printf("%s; there are more (.limit rows)", first);

        if (shell->interactive)
                shell_say(shell, "%s", text);
        else
                shell_complain(shell, "%s", text);
}

int query_print(Shell *shell, const char *sql) {
        SqlDialect dialect = session_dialect(&shell->session);
        Explain explain = explain_of(dialect, sql);
        g_autofree char *savepoint = NULL;
        SqlControl control = sql_control_of(dialect, sql, &savepoint);
        Print print = {};
        Query query;
        FILE *file;
        int r, w;

        if (control != SQL_CONTROL_NONE)
                return transaction_run(shell, control, savepoint, sql);
        r = answer_begin(shell, &file);
        if (r < 0)
                return r;
        prepare(&print, shell, file, explain);
        query = query_for(shell, sql, &print);
        print.query = &query;
        r = print_answer(&print, file, explain);
        print_done(&print);
        w = output_end(shell->output);
        if (w < 0 && (r >= 0 || query.from_output)) { /* a failed command may have closed its input earlier */
                query.from_output = true;
                r = w;
        }
        if (print.limited && r >= 0)
                tell_limit(shell, print.rows_max);
        return query_settle(&query, r);
}
