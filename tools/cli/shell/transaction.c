/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The transaction that the user has begun, see transaction.h. */
#include "tools/cli/shell/transaction.h"

#include <errno.h>
#include <string.h>

#include "tools/cli/shell/answer.h"
#include "tools/cli/shell/options.h"
#include "tools/cli/shell/query-failure.h"
#include "tools/cli/shell/query-run.h"
#include "tools/cli/shell/wait.h"

/* The shell waits at most this long for the service to give up a transaction that was cancelled. */
#define CANCEL_USEC ((uint64_t) 1000 * 1000)

static SessionTransaction *of(Shell *shell) {
        return &shell->session.transaction;
}

static int refuse(Shell *shell, int r, const char *message) {
        shell_complain(shell, "%s", message);
        shell_note_failure(shell, EXIT_QUERY);
        return r;
}

const char *transaction_mark(const Session *session) {
        sqlipc_transaction *transaction = session->transaction.object;

        if (transaction)
                (void) sqlipc_process(session->connection); /* the service may have ended it meanwhile */
        return !transaction ? "" : sqlipc_transaction_is_open(transaction) > 0 ? "*" : "!";
}

int transaction_check_none(Shell *shell) {
        if (!of(shell)->object)
                return 0;
        return refuse(shell, -EBUSY, of(shell)->of_script
                                             ? "the whole script is one transaction (--single-transaction)"
                                             : "a transaction is open; COMMIT or ROLLBACK ends it");
}

/* ---- Waiting ------------------------------------------------------------------------------------------------------ */

static int has_begun(sqlipc_transaction *transaction) {
        int r = sqlipc_transaction_is_open(transaction);

        return r == 0 ? -EAGAIN : r;
}

/* Calls `ask` until it does not return -EAGAIN. */
static int wait_for(Shell *shell, int (*ask)(sqlipc_transaction *), bool cancels) {
        int r;

        while ((r = ask(of(shell)->object)) == -EAGAIN) {
                r = wait_for_library(shell->session.connection, cancels, UINT64_MAX);
                if (r < 0)
                        return r;
        }
        return r;
}

/* ---- Beginning and ending ----------------------------------------------------------------------------------------- */

static int open_transaction(Shell *shell, sqlipc_transaction_mode mode) {
        sqlipc_connection *connection;
        int r = session_connect(&shell->session, &connection);

        if (r >= 0)
                r = sqlipc_set_blocking(connection, 0);
        if (r < 0)
                return r;
        r = sqlipc_begin(connection, shell->session.database, mode, &of(shell)->object);
        if (r >= 0)
                r = wait_for(shell, has_begun, true);
        (void) sqlipc_set_blocking(connection, 1);
        return r < 0 ? r : 0;
}

static int stop_at_first(const sqlipc_database *database, void *userdata) {
        (void) database, (void) userdata;
        return 1;
}

/* Gives up a transaction that still waits. The end of the connection ends it for certain, and also a question of polkit, but
 * TEMP tables, too. With these the library cancels the Begin. If the service had answered that before, the library rolls
 * back when it reads the answer, which comes before that of any other call. */
static void give_up(Session *session) {
        if (!session->may_have_pin || !session->connection) {
                session_disconnect(session);
                return;
        }
        session_forget_transaction(session);
        (void) sqlipc_set_timeout(session->connection, CANCEL_USEC);
        (void) sqlipc_list_databases(session->connection, stop_at_first, NULL);
        (void) sqlipc_set_timeout(session->connection, SESSION_ANSWER_USEC);
}

/* With `quiet` -EROFS is not reported. */
static int begin_quietly(Shell *shell, sqlipc_transaction_mode mode, bool quiet) {
        int r = transaction_check_none(shell);

        if (r < 0)
                return r;
        if (!shell->session.database)
                return refuse(shell, -ENODATA, "no database is open; .open NAME opens one, .databases lists them");
        r = open_transaction(shell, mode);
        if (r >= 0) {
                of(shell)->writes = mode != SQLIPC_TRANSACTION_READ;
                return 0;
        }
        if (r == -ECANCELED)
                answer_cancelled(shell);
        else if (r != -EROFS || !quiet)
                query_complain(shell, r, NULL);
        if (r == -ECANCELED)
                give_up(&shell->session);
        else
                session_forget_transaction(&shell->session);
        return r;
}

int transaction_begin(Shell *shell, sqlipc_transaction_mode mode) {
        return begin_quietly(shell, mode, false);
}

int transaction_begin_script(Shell *shell) {
        int r = begin_quietly(shell, SQLIPC_TRANSACTION_WRITE, true);

        if (r == -EROFS)
                r = begin_quietly(shell, SQLIPC_TRANSACTION_READ, false);
        if (r >= 0)
                of(shell)->of_script = true;
        return r;
}

/* The end cannot be cancelled: the service carries it out in any case. `may_go_on`: the transaction stays if its commit is
 * refused, so that the user can repair it. */
static int end(Shell *shell, int (*how)(sqlipc_transaction *), bool may_go_on) {
        sqlipc_connection *connection = shell->session.connection;
        int r;

        if (!of(shell)->object)
                return refuse(shell, -ENODATA, "no transaction is open; BEGIN begins one");
        (void) sqlipc_set_blocking(connection, 0);
        r = wait_for(shell, how, false);
        (void) sqlipc_set_blocking(connection, 1);
        if (r < 0)
                query_complain(shell, r, NULL);
        if (r >= 0 || !may_go_on || sqlipc_transaction_is_open(of(shell)->object) <= 0)
                session_forget_transaction(&shell->session);
        return r;
}

int transaction_commit(Shell *shell) {
        return end(shell, sqlipc_commit, false);
}

int transaction_rollback(Shell *shell) {
        return end(shell, sqlipc_rollback, false);
}

/* ---- Savepoints --------------------------------------------------------------------------------------------------- */

/* SQLite compares names without their quotes, in any case of letters. */
static char *plain_name(const char *name) {
        static const char quotes[] = "\"'`[";
        char end = *name == '[' ? ']' : *name;
        GString *plain = g_string_new(NULL);

        if (!strchr(quotes, *name))
                return g_string_free(g_string_ascii_down(g_string_append(plain, name)), FALSE);
        for (const char *p = name + 1; *p && (*p != end || p[1] == end); p++) {
                g_string_append_c(plain, *p);
                p += *p == end;
        }
        return g_string_free(g_string_ascii_down(plain), FALSE);
}

/* Returns the number of savepoints up to the last one of the name; 0: there is none. */
static guint find_savepoint(const GPtrArray *savepoints, const char *name) {
        guint n = savepoints->len;

        while (n > 0 && !g_str_equal(g_ptr_array_index(savepoints, n - 1), name))
                n--;
        return n;
}

static int ignore_row(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        (void) cursor, (void) is_row, (void) userdata;
        return 0;
}

static int run_savepoint(Shell *shell, const char *sql) {
        return query_run(shell, sql, NULL, 0, ignore_row, NULL, NULL);
}

static int make_savepoint(Shell *shell, const char *name, const char *sql) {
        bool begins = !of(shell)->object;
        int r = begins ? transaction_begin(shell, SQLIPC_TRANSACTION_DEFERRED) : 0;

        if (r < 0)
                return r;
        r = run_savepoint(shell, sql);
        if (r >= 0) {
                of(shell)->of_savepoint |= begins;
                g_ptr_array_add(of(shell)->savepoints, plain_name(name));
        } else if (begins)
                (void) transaction_rollback(shell);
        return r;
}

/* RELEASE, or ROLLBACK TO. */
static int go_back(Shell *shell, bool release, const char *name, const char *sql) {
        GPtrArray *savepoints = of(shell)->savepoints;
        g_autofree char *plain = plain_name(name);
        guint n;
        int r;

        if (!of(shell)->object)
                return refuse(shell, -ENODATA, "no transaction is open, so there are no savepoints");
        n = find_savepoint(savepoints, plain);
        if (release && n == 1 && of(shell)->of_savepoint)
                return end(shell, sqlipc_commit, true);
        r = run_savepoint(shell, sql);
        if (r >= 0 && n > 0)
                g_ptr_array_set_size(savepoints, (gint) (release ? n - 1 : n));
        return r;
}

/* ---- Transactions within that of the script ------------------------------------------------------------------------ */

/* A dump is a transaction of its own. A savepoint has this name in its place. */
#define WITHIN "\"--single-transaction\""

static int begin(Shell *shell, sqlipc_transaction_mode mode) {
        if (!of(shell)->of_script)
                return transaction_begin(shell, mode);
        if (of(shell)->savepoints->len > 0)
                return refuse(shell, -EBUSY, "a transaction is open; COMMIT or ROLLBACK ends it");
        return make_savepoint(shell, WITHIN, "SAVEPOINT " WITHIN);
}

bool transaction_is_within_script(const Shell *shell) {
        const GPtrArray *savepoints = shell->session.transaction.savepoints;

        return savepoints->len > 0 && g_str_equal(g_ptr_array_index(savepoints, 0), "--single-transaction");
}

static int commit(Shell *shell) {
        if (!of(shell)->of_script)
                return end(shell, sqlipc_commit, true);
        return transaction_is_within_script(shell) ? go_back(shell, true, WITHIN, "RELEASE " WITHIN)
                                                   : transaction_check_none(shell);
}

static int rollback(Shell *shell) {
        int r;

        if (!of(shell)->of_script)
                return transaction_rollback(shell);
        if (!transaction_is_within_script(shell))
                return transaction_check_none(shell);
        r = go_back(shell, false, WITHIN, "ROLLBACK TO " WITHIN);
        return r < 0 ? r : go_back(shell, true, WITHIN, "RELEASE " WITHIN);
}

/* ---- Statements --------------------------------------------------------------------------------------------------- */

int transaction_run(Shell *shell, SqlControl control, const char *name, const char *sql) {
        switch (control) {
        case SQL_CONTROL_BEGIN:
                return begin(shell, SQLIPC_TRANSACTION_DEFERRED);
        case SQL_CONTROL_BEGIN_WRITE:
                return begin(shell, SQLIPC_TRANSACTION_WRITE);
        case SQL_CONTROL_BEGIN_READ:
                return begin(shell, SQLIPC_TRANSACTION_READ);
        case SQL_CONTROL_COMMIT:
                return commit(shell);
        case SQL_CONTROL_ROLLBACK:
                return rollback(shell);
        case SQL_CONTROL_SAVEPOINT:
                return make_savepoint(shell, name, sql);
        case SQL_CONTROL_RELEASE:
        case SQL_CONTROL_ROLLBACK_TO:
                return go_back(shell, control == SQL_CONTROL_RELEASE, name, sql);
        case SQL_CONTROL_NONE:
                break;
        }
        return 0;
}
