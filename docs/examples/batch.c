/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A batch: runs a statement once for each line of standard input, with the line as its value. All lines are written by one
 * call and one commit, or none of them.
 *
 *      example-batch [--address=ADDRESS] DATABASE SQL
 */
#include "example.h"

static int add_lines(sqlipc_batch *batch, const char *sql) {
        char line[1000];
        int r = 0;

        while (r >= 0 && fgets(line, sizeof line, stdin)) {
                line[strcspn(line, "\n")] = '\0';
                r = sqlipc_batch_add(batch, sql, "s", line);
        }
        return r;
}

int main(int argc, char **argv) {
        Arguments arguments = parse_arguments(argc, argv);
        __attribute__((cleanup(sqlipc_closep))) sqlipc_connection *connection = NULL;
        __attribute__((cleanup(sqlipc_batch_closep))) sqlipc_batch *batch = NULL;
        int64_t n_changes;
        int r;

        if (open_connection(&arguments, &connection) < 0)
                return 1;

        r = sqlipc_batch_new(connection, arguments.database, &batch);
        if (r >= 0)
                r = add_lines(batch, arguments.sql);
        if (r >= 0)
                r = sqlipc_batch_run(batch, &n_changes);
        if (r >= 0)
                printf("%" PRId64 " changed\n", n_changes);
        else
                complain(connection, r);
        if (sqlipc_error_code(connection) == SQLIPC_ERROR_OUTCOME_UNKNOWN)
                fprintf(stderr, "Look at the database before you repeat the batch.\n");
        return r < 0;
}
