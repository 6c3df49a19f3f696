/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports failed queries, and maps them to exit codes (query-failure.h). */
#include "tools/cli/shell/query-failure.h"

#include <errno.h>
#include <glib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/cli/output/interrupt.h"
#include "tools/cli/render/human.h"
#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/options.h"
#include "tools/cli/shell/suggest.h"
#include "tools/cli/shell/unreachable.h"
#include "tools/cli/sql/sql-caret.h"

static size_t stderr_width(void) {
        struct winsize size;

        return isatty(STDERR_FILENO) && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) >= 0 ? size.ws_col : 0;
}

void query_suggest_other_bus(const Shell *shell, const char *database) {
        const BusChoice *bus = &shell->session.bus;
        bool system = bus->kind == BUS_SYSTEM;
        sqlipc_connection *other = NULL;

        if (bus->kind == BUS_FOUND || bus->kind == BUS_ADDRESS || bus->host || !database)
                return;
        if (sqlipc_open(database, system ? "user" : "system", &other) >= 0)
                shell_complain(shell, "the service on the %s bus has a database %s: %s%s asks there",
                               system ? "user's" : "system", database, shell->interactive ? ".connect " : "",
                               system ? "--user" : "--system");
        sqlipc_close(other);
}

static int stop_at_first(const sqlipc_database *database, void *userdata) {
        (void) database, (void) userdata;
        return 1;
}

void query_suggest_database(Shell *shell) {
        g_autofree char *bus = session_describe_bus(&shell->session);
        int r = sqlipc_list_databases(shell->session.connection, stop_at_first, NULL);

        if (r == 0)
                shell_complain(shell, "nothing is published for you on %s: \"sqlipcctl add NAME PATH\" publishes a "
                               "database, and its AllowUsers= names its users", bus);
        else if (r > 0)
                shell_complain(shell, "%s lists the databases that you may use",
                               shell->interactive ? ".databases" : "ipcq-cli --list");
}

/* A statement has met the end of the user's transaction, which stays until the user leaves it (transaction.h). */
static void tell_end_of_transaction(const Shell *shell) {
        if (shell->session.transaction.object && !shell->session.transaction.of_script)
                shell_complain(shell, "the transaction has ended, and nothing of it was written; ROLLBACK leaves it");
}

/* Returns a copy of the shell whose line number is the error's, if the statement has several lines. */
static Shell at_line_of(const Shell *shell, const char *sql, int offset) {
        Shell at = *shell;

        if (!sql || offset < 0 || shell->unit.type != UNIT_SQL || !shell->unit.text || strcmp(sql, shell->unit.text) != 0)
                return at;
        for (const char *p = sql; *p && p < sql + offset; p++)
                at.unit.line += *p == '\n';
        return at;
}

/* Returns the library's message, or our own if that names the bus. */
static char *sentence_of(Shell *shell, int r) {
        sqlipc_connection *connection = shell->session.connection;
        const char *message = sqlipc_error_message(connection);
        g_autofree char *bus = session_describe_bus(&shell->session);
        char *sentence = unreachable_service(bus, sqlipc_error_name(connection));

        return sentence ?: g_strdup(*message ? message : g_strerror(-r));
}

static void complain_of_service(Shell *shell, int r, const char *sql) {
        sqlipc_connection *connection = shell->session.connection;
        int offset = sqlipc_error_sql_offset(connection), code = sqlipc_error_code(connection);
        g_autofree char *sentence = sentence_of(shell, r), *name = g_strdup(sqlipc_error_name(connection));
        g_autofree char *caret = NULL, *advice = sql ? suggest(shell, sentence, sql, &offset) : NULL;
        g_autofree char *whole = advice ? g_strdup_printf("%s; %s", sentence, advice) : g_strdup(sentence);
        Shell at = at_line_of(shell, sql, offset);

        shell_complain(&at, name && shell_is_verbose(shell) ? "%s (%s)" : "%s", whole, name);
        if (sql && offset >= 0)
                caret = sql_caret(sql, (size_t) offset, stderr_width());
        if (caret)
                fputs(caret, stderr);
        if (code == SQLIPC_ERROR_TRANSACTION_ENDED && sql)
                tell_end_of_transaction(shell);
        if (code == SQLIPC_ERROR_UNKNOWN_DATABASE)
                query_suggest_database(shell);
        if (code == SQLIPC_ERROR_UNKNOWN_DATABASE || r == -EHOSTDOWN)
                query_suggest_other_bus(shell, shell->session.database);
}

void query_complain(Shell *shell, int r, const char *sql) {
        g_autofree char *bus = session_describe_bus(&shell->session), *sentence = NULL;

        if (shell->session.untold_loss) {
                shell_complain(shell, "%s", shell->session.untold_loss);
                g_clear_pointer(&shell->session.untold_loss, g_free);
                return;
        }
        if (shell->session.connection) {
                complain_of_service(shell, r, sql);
                return;
        }
        sentence = unreachable_bus(&shell->session.bus, bus, r);
        shell_complain(shell, "%s", sentence);
        if (r != -EOPNOTSUPP)
                query_suggest_other_bus(shell, shell->session.database);
}

int query_open_database(Shell *shell, const char *name) {
        int r = session_open(&shell->session, name);

        if (r == -ENOENT && !shell->session.not_found) {
                g_autofree char *bus = session_describe_bus(&shell->session);

                shell_complain(shell, "there is no database %s on %s, or it is not for you", name, bus);
                query_suggest_database(shell);
                query_suggest_other_bus(shell, name);
        } else if (r < 0)
                query_complain(shell, r, NULL);
        return r;
}

/* ---- Queries that ended early ------------------------------------------------------------------------------------- */

static int settle_output(Query *query, int r) {
        Shell *shell = query->shell;

        if (r == -EPIPE && !query->last_reader) /* the user quit a pager, or a command has closed its input */
                return 0;
        if (r == -EPIPE)
                shell->quit = true; /* the reader has closed the pipe, which is no error to report */
        else if (r != -ECHILD) /* which has been reported */
                shell_complain(shell, "cannot write: %s", g_strerror(-r));
        shell_note_failure(shell, EXIT_OUTPUT);
        return r;
}

static void tell_cancelled(Query *query, int r) {
        Shell *shell = query->shell;

        if (!interrupt_leave() && query->is_over && !query->from_output)
                query_complain(shell, r, query->sql); /* the service cancelled it, not the user */
        else
                answer_cancelled(shell);
}

static void tell_timeout(Query *query) {
        g_autofree char *time = human_time(query->shell->settings.timeout_usec);

        shell_complain(query->shell, "the query was ended after %s (.timeout)", time);
        shell_note_failure(query->shell, EXIT_QUERY);
}

int query_settle(Query *query, int r) {
        Shell *shell = query->shell;

        if (r >= 0)
                return r;
        if (r == -ECANCELED)
                tell_cancelled(query, r);
        else if (query->from_output)
                return settle_output(query, r);
        else if (query->timed_out)
                tell_timeout(query);
        else if (!shell->session.database)
                shell_complain(shell, "no database is open; .open NAME opens one, .databases lists them");
        else if (query->is_over || !query->has_columns) /* otherwise the error is the visitor's */
                query_complain(shell, r, query->sql);
        return r;
}

int query_exit_code(Shell *shell, int r) {
        sqlipc_connection *connection = shell->session.connection;

        if (connection && sqlipc_error_code(connection) == SQLIPC_ERROR_TRANSACTION_ENDED)
                return EXIT_QUERY;
        switch (r) {
        case -ECANCELED:
                return EXIT_INTERRUPTED;
        case -EHOSTDOWN: /* the name has no owner, and the service cannot be started */
                return EXIT_UNREACHABLE;
        case -ECONNRESET:
        case -ENOTCONN:
        case -EPIPE:
        case -EBADMSG:
                return EXIT_LOST;
        }
        if (shell->session.unreachable)
                return EXIT_UNREACHABLE;
        if (!connection)
                return EXIT_QUERY;
        if (sqlipc_error_code(connection) == SQLIPC_ERROR_NONE && (r == -ETIMEDOUT || r == -EACCES))
                return EXIT_UNREACHABLE; /* the error is the bus's, or there was no answer */
        return query_is_lost(connection) ? EXIT_LOST : EXIT_QUERY;
}
