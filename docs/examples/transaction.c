/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A transaction: runs a statement as often as the count says, and commits all of it or nothing. If any statement fails, the
 * cleanup rolls back.
 *
 *      example-transaction [--address=ADDRESS] DATABASE SQL [COUNT]
 */
#include "example.h"

static int run_all(sqlipc_connection *connection, const Arguments *arguments, int count, int64_t *ret_changes) {
        __attribute__((cleanup(sqlipc_transaction_closep))) sqlipc_transaction *transaction = NULL;
        int64_t changes;
        int r;

        r = sqlipc_begin(connection, arguments->database, SQLIPC_TRANSACTION_WRITE, &transaction);
        if (r < 0)
                return r;
        *ret_changes = 0;
        for (int i = 0; i < count; i++) {
                r = sqlipc_exec(connection, arguments->database, arguments->sql, &changes);
                if (r < 0)
                        return r;
                *ret_changes += changes;
        }
        return sqlipc_commit(transaction);
}

int main(int argc, char **argv) {
        int count = argc > 3 && argv[argc - 1][0] >= '1' && argv[argc - 1][0] <= '9' ? atoi(argv[argc - 1]) : 0;
        Arguments arguments = parse_arguments(count > 0 ? argc - 1 : argc, argv);
        __attribute__((cleanup(sqlipc_closep))) sqlipc_connection *connection = NULL;
        int64_t n_changes;
        int r;

        if (open_connection(&arguments, &connection) < 0)
                return 1;

        r = run_all(connection, &arguments, count > 0 ? count : 1, &n_changes);
        if (r >= 0)
                printf("%" PRId64 " changed\n", n_changes);
        else
                complain(connection, r);
        if (sqlipc_error_code(connection) == SQLIPC_ERROR_OUTCOME_UNKNOWN)
                fprintf(stderr, "Look at the database: the transaction may have been committed.\n");
        return r < 0;
}
