/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ipcq-cli: one query on a shared database, its rows to stdout. A client like any other: of ours it knows sqlipc.h only.
 *
 *      options ──> connection ──> sqlipc_query_with ──> cursor ──> renderer ──> stdout
 *                                                         ^ interrupt.c cancels
 *
 * stdout is data, stderr is talk. Whatever happens, rows that came are written before the program says why no more follow.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "config.h"
#include "format.h"
#include "interrupt.h"
#include "options.h"
#include "render.h"
#include "sql-caret.h"

#define _cleanup_(function) __attribute__((cleanup(function)))

/* Columns of the terminal at `fd`; 0: it is none, or does not say. */
static size_t terminal_width(int fd) {
        struct winsize size;

        return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static bool wants_colors(void) {
        const char *term = g_getenv("TERM"), *no_color = g_getenv("NO_COLOR");

        return isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && !g_str_equal(term, "dumb");
}

static RenderOptions render_options(const Options *options) {
        return (RenderOptions) {
                .output = stdout,
                .null = options->null,
                .terminal_width = terminal_width(STDOUT_FILENO),
                .colors = wants_colors(),
        };
}

/* ---- Failures ----------------------------------------------------------------------------------------------------- */

static void complain(const char *message) {
        g_autoptr(GString) shown = g_string_new(NULL);

        format_shown_text(shown, message, strlen(message), SIZE_MAX);
        fprintf(stderr, "ipcq-cli: %s\n", shown->str);
}

static int output_failed(int r) {
        if (r != -EPIPE) /* a reader that had enough, `| head`, is nothing to tell */
                fprintf(stderr, "ipcq-cli: cannot write: %s\n", g_strerror(-r));
        return EXIT_OUTPUT;
}

static bool uses_system_bus(const Options *options) {
        return options->system || (!options->user && geteuid() == 0);
}

/* Who did not say which service is meant may mean the other one. */
static void suggest_other_bus(const Options *options) {
        bool system = uses_system_bus(options);

        if (!options->address && !options->system && !options->user)
                fprintf(stderr, "ipcq-cli: this was about %s; %s is for %s.\n",
                        system ? "the system's service" : "your own service", system ? "--user" : "--system",
                        system ? "your own" : "the system's");
}

static int exit_code_of(int r, sqlipc_error code) {
        switch (r) {
        case -EHOSTDOWN: /* nobody owns the name, and nobody can be started */
                return EXIT_UNREACHABLE;
        case -ECONNRESET:
        case -ENOTCONN:
        case -EPIPE:
        case -EBADMSG:
                return EXIT_LOST;
        }
        if (code == SQLIPC_ERROR_NONE && (r == -ETIMEDOUT || r == -EACCES)) /* the bus, or nobody, answered */
                return EXIT_UNREACHABLE;
        return EXIT_QUERY;
}

/* Tells what the library knows about `r`, and where in the SQL it is. */
static int query_failed(sqlipc_connection *connection, int r, const Options *options) {
        const char *sql = options->sql;
        const char *name = sqlipc_error_name(connection), *sentence = sqlipc_error_message(connection);
        int offset = sqlipc_error_sql_offset(connection);
        g_autofree char *message = NULL, *caret = NULL;

        message = name ? g_strdup_printf("%s (%s)", sentence, name) : g_strdup(sentence);
        complain(*message ? message : g_strerror(-r));
        if (sql && offset >= 0)
                caret = sql_caret(sql, (size_t) offset, terminal_width(STDERR_FILENO));
        if (caret)
                fputs(caret, stderr);
        if (r == -EHOSTDOWN || sqlipc_error_code(connection) == SQLIPC_ERROR_UNKNOWN_DATABASE)
                suggest_other_bus(options);
        return exit_code_of(r, sqlipc_error_code(connection));
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static int make_renderer(const Options *options, sqlipc_cursor *cursor, Renderer **ret) {
        unsigned n_columns = sqlipc_column_count(cursor);
        g_autofree const char **names = g_new0(const char *, n_columns + 1);
        RenderOptions rendering = render_options(options);

        for (unsigned i = 0; i < n_columns; i++)
                names[i] = sqlipc_column_name(cursor, i);
        return renderer_new(options->mode, &rendering, names, n_columns, ret);
}

static void load_row(sqlipc_cursor *cursor, Value *values, unsigned n_columns) {
        for (unsigned i = 0; i < n_columns; i++) {
                values[i].type = sqlipc_column_type(cursor, i);
                if (values[i].type == SQLIPC_INTEGER)
                        values[i].integer = sqlipc_column_int64(cursor, i);
                else if (values[i].type == SQLIPC_REAL)
                        values[i].real = sqlipc_column_double(cursor, i);
                else if (values[i].type == SQLIPC_TEXT || values[i].type == SQLIPC_BLOB)
                        values[i].bytes = sqlipc_column_text(cursor, i, &values[i].size);
        }
}

/* A query may compute for longer than the library waits for an answer; Ctrl-C and the service's own limits end it. */
static int next_row(sqlipc_connection *connection, sqlipc_cursor *cursor) {
        int r;

        do
                r = sqlipc_cursor_next(cursor);
        while (r == -ETIMEDOUT && sqlipc_error_code(connection) == SQLIPC_ERROR_NONE);
        return r;
}

static int write_rows(sqlipc_connection *connection, const Options *options, sqlipc_cursor *cursor) {
        _cleanup_(renderer_freep) Renderer *renderer = NULL;
        g_autofree Value *values = NULL;
        unsigned n_columns = 0;
        int r, w = 0;

        while ((r = next_row(connection, cursor)) >= 0) {
                if (!renderer) {
                        n_columns = sqlipc_column_count(cursor);
                        values = g_new0(Value, n_columns + 1);
                        w = make_renderer(options, cursor, &renderer);
                }
                if (r == 0 || w < 0)
                        break;
                load_row(cursor, values, n_columns);
                w = renderer_row(renderer, values);
                if (w < 0)
                        break;
        }

        if (renderer && w >= 0)
                w = renderer_finish(renderer, r == 0);
        if (w < 0)
                return output_failed(w);
        if (r < 0 && !interrupt_happened())
                return query_failed(connection, r, options);
        return r < 0 ? EXIT_INTERRUPTED : EXIT_OK;
}

static int run_query(sqlipc_connection *connection, const Options *options) {
        _cleanup_(sqlipc_cursor_closep) sqlipc_cursor *cursor = NULL;
        const sqlipc_parameter *parameters;
        size_t n_parameters;
        int r;

        parameters = parameter_list_get(options->parameters, &n_parameters);
        r = sqlipc_query_with(connection, options->database, options->sql, parameters, n_parameters, &cursor);
        if (r < 0)
                return query_failed(connection, r, options);

        interrupt_set_cursor(cursor);
        r = write_rows(connection, options, cursor);
        interrupt_set_cursor(NULL);
        return r;
}

/* ---- --list ------------------------------------------------------------------------------------------------------- */

static Value text_value(const char *text) {
        return text ? (Value) { .type = SQLIPC_TEXT, .bytes = text, .size = strlen(text) } : (Value) { .type = SQLIPC_NULL };
}

static int on_database(const char *name, const char *description, void *userdata) {
        const Value values[] = { text_value(name), text_value(description) };
        int r = renderer_row(userdata, values);

        return r < 0 ? EXIT_OUTPUT : 0;
}

static int list_databases(sqlipc_connection *connection, const Options *options) {
        static const char *const names[] = { "database", "description" };
        _cleanup_(renderer_freep) Renderer *renderer = NULL;
        RenderOptions rendering = render_options(options);
        int r, w;

        r = renderer_new(options->mode, &rendering, names, G_N_ELEMENTS(names), &renderer);
        if (r < 0)
                return output_failed(r);
        r = sqlipc_list_databases(connection, on_database, renderer);
        if (r < 0)
                return query_failed(connection, r, options);
        w = renderer_finish(renderer, true); /* repeats the error that on_database() met */
        return w < 0 ? output_failed(w) : EXIT_OK;
}

/* ---- Start -------------------------------------------------------------------------------------------------------- */

static int open_connection(const Options *options, sqlipc_connection **ret) {
        bool system = uses_system_bus(options);
        int r;

        if (options->address)
                r = sqlipc_open_address(options->address, ret);
        else
                r = system ? sqlipc_open_system(ret) : sqlipc_open_user(ret);
        if (r < 0) {
                fprintf(stderr, "ipcq-cli: cannot reach the %s: %s\n",
                        options->address ? "bus at this address" : system ? "system bus" : "user's bus", g_strerror(-r));
                suggest_other_bus(options);
        }
        return r;
}

static int run(const Options *options) {
        _cleanup_(sqlipc_closep) sqlipc_connection *connection = NULL;
        int r;

        if (options->version) {
                puts("ipcq-cli " SQLIPC_VERSION);
                return fflush(stdout) == 0 ? EXIT_OK : output_failed(-errno);
        }
        r = interrupt_begin();
        if (r < 0) {
                fprintf(stderr, "ipcq-cli: cannot watch for Ctrl-C: %s\n", g_strerror(-r));
                return EXIT_QUERY;
        }
        if (open_connection(options, &connection) < 0)
                return EXIT_UNREACHABLE;
        /* Somebody is there to be asked. */
        if (!options->no_ask_password && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
                (void) sqlipc_set_allow_interactive_authorization(connection, 1);
        return options->list ? list_databases(connection, options) : run_query(connection, options);
}

/* Where a standard stream is closed, the next file that is opened would get its number, and rows would go down the bus's
 * socket. Read-only, so that writing there fails as it should. */
static void occupy_standard_streams(void) {
        for (int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0; fd = open("/dev/null", O_RDONLY | O_CLOEXEC))
                if (fd > STDERR_FILENO) {
                        close(fd);
                        return;
                }
}

int main(int argc, char **argv) {
        Options options;
        int r;

        occupy_standard_streams();

        /* Values are UTF-8 whatever the user's locale says, and so are their widths. */
        if (!setlocale(LC_CTYPE, "C.UTF-8"))
                (void) setlocale(LC_CTYPE, "");

        /* A reader that left is told by an exit code of ours. */
        (void) signal(SIGPIPE, SIG_IGN);

        if (options_parse(argc, argv, &options) < 0)
                return EXIT_USAGE;
        r = run(&options);
        options_done(&options);
        return r;
}
