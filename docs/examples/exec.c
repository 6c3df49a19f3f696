/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A statement that writes: it is committed when the call returns. If the service is lost meanwhile, the library does not
 * repeat the statement, because it may have taken effect.
 */
#include "example.h"

int main(int argc, char **argv) {
        Arguments arguments = parse_arguments(argc, argv);
        __attribute__((cleanup(sqlipc_closep))) sqlipc_connection *connection = NULL;
        int64_t n_changes;
        int r;

        if (open_connection(&arguments, &connection) < 0)
                return 1;

        r = sqlipc_exec(connection, arguments.database, arguments.sql, &n_changes);
        if (r >= 0)
                printf("%" PRId64 " changed\n", n_changes);
        else
                complain(connection, r);
        if (sqlipc_error_code(connection) == SQLIPC_ERROR_OUTCOME_UNKNOWN)
                fprintf(stderr, "Look at the database before you repeat the statement.\n");
        return r < 0;
}
