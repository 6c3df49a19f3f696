/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs SQL and takes its rows (query.h). */
#include "query.h"

#include <errno.h>
#include <string.h>

#include "interrupt.h"
#include "options.h"

void query_complain(Shell *shell, int r, const char *sql) {
        const char *sentence = shell->session.connection ? sqlipc_error_message(shell->session.connection) : "";

        (void) sql;
        shell_complain(shell, "%s", *sentence ? sentence : g_strerror(-r));
}

int query_exit_code(Shell *shell, int r) {
        (void) shell;
        return r == -ECANCELED ? (int) EXIT_INTERRUPTED : (int) EXIT_QUERY;
}

int query_run(Shell *shell, const char *sql, const sqlipc_parameter *parameters, size_t n_parameters, QueryVisitor visit,
              void *userdata, QueryTotals *ret_totals) {
        sqlipc_connection *connection;
        sqlipc_cursor *cursor = NULL;
        bool first = true;
        int r;

        if (!shell->session.database)
                return -ENODATA;
        r = session_connect(&shell->session, &connection);
        if (r >= 0)
                r = sqlipc_query_with(connection, shell->session.database, sql, parameters, n_parameters, &cursor);
        while (r >= 0) {
                r = sqlipc_cursor_next(cursor);
                if (r >= 0 && first)
                        (void) visit(cursor, false, userdata);
                first = false;
                if (r <= 0)
                        break;
                r = visit(cursor, true, userdata);
        }
        sqlipc_cursor_close(cursor);
        if (r < 0)
                query_complain(shell, r, sql);
        if (ret_totals)
                *ret_totals = (QueryTotals) {};
        return r;
}

int query_print(Shell *shell, const char *sql) {
        (void) sql;
        shell_complain(shell, "Not yet.");
        return -EOPNOTSUPP;
}

int query_write(Shell *shell, const char *sql, RenderMode mode, const RenderOptions *options, QueryTotals *ret_totals) {
        (void) sql, (void) mode, (void) options, (void) ret_totals;
        return -EOPNOTSUPP;
}
