/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Watches tables (table-watch.h). The library does not block, so that one poll() waits for it and for Ctrl-C. */
#include "tools/cli/shell/table-watch.h"

#include <errno.h>
#include <glib.h>

#include "tools/cli/shell/wait.h"

static int wait_for_news(sqlipc_connection *connection, sqlipc_watch *watch, uint64_t until) {
        int r;

        while ((r = sqlipc_watch_next(watch, 0)) == -EAGAIN) {
                if ((uint64_t) g_get_monotonic_time() >= until)
                        return 0;
                r = wait_for_library(connection, true, until);
                if (r < 0)
                        return r;
        }
        return r;
}

typedef struct Subject {
        const char *sql; /* NULL: `tables` */
        const char *const *tables;
        uint64_t since;
} Subject;

static int begin(Shell *shell, sqlipc_connection *connection, const Subject *subject, uint64_t until, sqlipc_watch **ret) {
        const char *database = shell->session.database;
        sqlipc_watch *watch;
        int r;

        if (subject->sql)
                r = sqlipc_watch_open_sql(connection, database, subject->sql, &watch);
        else
                r = sqlipc_watch_open_since(connection, database, subject->tables, subject->since, &watch);
        if (r < 0)
                return r;
        r = wait_for_news(connection, watch, until); /* the first news is that it has begun */
        if (r > 0)
                *ret = watch;
        else
                (void) sqlipc_watch_close(watch);
        return r == 0 ? -ETIMEDOUT : MIN(r, 0);
}

static int open_watch(Shell *shell, const Subject *subject, uint64_t until, sqlipc_watch **ret) {
        sqlipc_connection *connection;
        int r;

        if (!shell->session.database)
                return -ENODATA;
        r = session_connect(&shell->session, &connection);
        if (r >= 0)
                r = sqlipc_set_blocking(connection, 0);
        if (r < 0)
                return r;
        r = begin(shell, connection, subject, until, ret);
        (void) sqlipc_set_blocking(connection, 1);
        return r;
}

int table_watch_open_sql(Shell *shell, const char *sql, sqlipc_watch **ret) {
        return open_watch(shell, &(Subject) { .sql = sql }, UINT64_MAX, ret);
}

int table_watch_open(Shell *shell, const char *const *tables, uint64_t since, uint64_t until, sqlipc_watch **ret) {
        return open_watch(shell, &(Subject) { .tables = tables, .since = since }, until, ret);
}

int table_watch_wait(Shell *shell, sqlipc_watch *watch, uint64_t until) {
        sqlipc_connection *connection = shell->session.connection;
        int r = sqlipc_set_blocking(connection, 0);

        if (r < 0)
                return r;
        r = wait_for_news(connection, watch, until);
        (void) sqlipc_set_blocking(connection, 1);
        return r;
}
