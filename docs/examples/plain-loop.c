/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows in a plain loop: each call waits for its result. The statement is compiled once and could be executed again with
 * other values; if the daemon is restarted in between, the library compiles it again.
 */
#include "example.h"

int main(int argc, char **argv) {
        Arguments arguments = parse_arguments(argc, argv);
        __attribute__((cleanup(sqlipc_closep))) sqlipc_connection *connection = NULL;
        __attribute__((cleanup(sqlipc_finalizep))) sqlipc_statement *statement = NULL;
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        int r;

        if (open_connection(&arguments, &connection) < 0)
                return 1;

        r = sqlipc_prepare(connection, arguments.database, arguments.sql, &statement);
        if (r >= 0)
                r = sqlipc_execute(statement, &cursor);
        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0)
                print_row(cursor);
        if (r < 0)
                complain(connection, r);
        return r < 0;
}
