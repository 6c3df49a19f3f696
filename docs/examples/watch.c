/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Watches the tables that a statement reads, and prints its result at first and after each change, with a line "--" before
 * it. Ends when the result has no rows. The watch comes before the first query, so no change is missed in between.
 */
#include <errno.h>

#include "example.h"

/* Returns the number of rows. */
static int print_result(sqlipc_connection *connection, const Arguments *arguments) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        int n = 0, r;

        puts("--");
        r = sqlipc_query(connection, arguments->database, arguments->sql, &cursor, NULL);
        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0) {
                print_row(cursor);
                n++;
        }
        fflush(stdout);
        return r < 0 ? r : n;
}

int main(int argc, char **argv) {
        Arguments arguments = parse_arguments(argc, argv);
        __attribute__((cleanup(sqlipc_closep))) sqlipc_connection *connection = NULL;
        __attribute__((cleanup(sqlipc_watch_closep))) sqlipc_watch *watch = NULL;
        int r;

        if (open_connection(&arguments, &connection) < 0)
                return 1;

        r = sqlipc_watch_open_sql(connection, arguments.database, arguments.sql, &watch);
        while (r >= 0 && (r = print_result(connection, &arguments)) > 0)
                r = sqlipc_watch_next(watch, UINT64_MAX);
        if (r < 0)
                complain(connection, r);
        return r < 0;
}
