/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds out which SQL the open database has, see dialect.h. */
#include "tools/cli/shell/dialect.h"

#include <errno.h>

#include "tools/cli/shell/query-run.h"
#include "tools/cli/shell/service.h"

#define _cleanup_(function) __attribute__((cleanup(function)))

static bool is_known(const Session *session) {
        return session->dialect_generation == session->generation;
}

static void take(Session *session, SqlDialect dialect) {
        session->dialect = dialect;
        session->dialect_generation = session->generation;
}

/* Returns the engine in `*ret`, which the caller frees, or an error. */
static int read_engine(Shell *shell, char **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *engine;
        int r = service_property(shell, true, "Engine", "s", &reply);

        if (r >= 0)
                r = sd_bus_message_read(reply, "s", &engine);
        if (r < 0)
                return r;
        *ret = g_strdup(engine);
        return 0;
}

/* Returns 0; -EPROTONOSUPPORT: the database has another engine, `*ret_engine`, which the caller frees; or an error of the
 * call. */
static int ask_service(Shell *shell, char **ret_engine) {
        static const struct {
                const char *engine;
                SqlDialect dialect;
        } engines[] = {
                { "sqlite", SQL_DIALECT_SQLITE },
                { "rqlite", SQL_DIALECT_SQLITE },
                { "postgresql", SQL_DIALECT_POSTGRESQL },
        };
        g_autofree char *engine = NULL;
        int r = read_engine(shell, &engine);

        if (r < 0)
                return r;
        for (size_t i = 0; i < G_N_ELEMENTS(engines); i++)
                if (g_str_equal(engine, engines[i].engine)) {
                        take(&shell->session, engines[i].dialect);
                        return 0;
                }
        *ret_engine = g_steal_pointer(&engine);
        return -EPROTONOSUPPORT;
}

static int take_answer(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        if (is_row)
                *(bool *) userdata = sqlipc_column_int64(cursor, 0) == 0;
        return 0;
}

/* SQLite never has a number equal to a text, while PostgreSQL gives a literal the type that it is compared with. Neither of
 * them fails, so the user's transaction goes on. The usual failure is that of the user's own query, with its message. */
static int ask_database(Shell *shell) {
        bool is_sqlite = false;
        int r = query_run(shell, "SELECT 1 = '1'", NULL, 0, take_answer, &is_sqlite, NULL);

        if (r >= 0)
                take(&shell->session, is_sqlite ? SQL_DIALECT_SQLITE : SQL_DIALECT_POSTGRESQL);
        return r < 0 ? r : 0;
}

void dialect_look_up(Shell *shell) {
        g_autofree char *engine = NULL;

        if (shell->session.database && !is_known(&shell->session))
                (void) ask_service(shell, &engine);
}

void dialect_forget(Shell *shell) {
        shell->session.dialect_generation = shell->session.generation - 1;
}

int dialect_require(Shell *shell) {
        g_autofree char *engine = NULL;
        int r;

        if (is_known(&shell->session))
                return 0;
        r = shell->session.database ? ask_service(shell, &engine) : -ENODATA;
        if (r == -EPROTONOSUPPORT)
                shell_complain(shell, "%s has the engine %s, whose SQL this ipcq-cli does not know: update ipcq-cli",
                               shell->session.database, engine);
        return r >= 0 || r == -EPROTONOSUPPORT ? r : ask_database(shell);
}

int dialect_is_sqlite(Shell *shell) {
        int r = dialect_require(shell);

        return r < 0 ? r : session_dialect(&shell->session) == SQL_DIALECT_SQLITE;
}
