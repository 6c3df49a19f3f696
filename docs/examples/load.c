/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A load: each line of the standard input, up to 64 KiB, is a row, with its values separated by tabs. SQL has a parameter
 * for each value. If a row fails, the cleanup closes the load, and nothing of it is written.
 *
 *      printf '%s\t%s\n' tea 2 milk 1 | example-load [--address=ADDRESS] notes 'INSERT INTO item VALUES (?, ?)'
 */
#include "example.h"

#define N_VALUES_MAX 100
#define LINE_SIZE_MAX 65536

/* Divides the line in place: the values stay in it. Returns their number. */
static size_t split(char *line, sqlipc_parameter *values) {
        size_t n = 0;
        char *end;

        line[strcspn(line, "\n")] = '\0';
        for (end = line; end && n < N_VALUES_MAX; n++) {
                end = strchr(line, '\t');
                values[n].struct_size = sizeof values[n];
                values[n].type = SQLIPC_TEXT;
                values[n].bytes = line;
                values[n].size = end ? (size_t) (end - line) : strlen(line);
                line = end ? end + 1 : line;
        }
        return n;
}

static int load_lines(sqlipc_connection *connection, const Arguments *arguments, int64_t *ret_changes) {
        __attribute__((cleanup(sqlipc_load_closep))) sqlipc_load *load = NULL;
        static sqlipc_parameter values[N_VALUES_MAX];
        static char line[LINE_SIZE_MAX];
        int r;

        r = sqlipc_load_open(connection, arguments->database, arguments->sql, &load);
        while (r >= 0 && fgets(line, sizeof line, stdin))
                r = sqlipc_load_row(load, values, split(line, values));
        return r < 0 ? r : sqlipc_load_finish(load, ret_changes);
}

int main(int argc, char **argv) {
        Arguments arguments = parse_arguments(argc, argv);
        __attribute__((cleanup(sqlipc_closep))) sqlipc_connection *connection = NULL;
        int64_t n_changes;
        int r;

        if (open_connection(&arguments, &connection) < 0)
                return 1;

        r = load_lines(connection, &arguments, &n_changes);
        if (r >= 0)
                printf("%" PRId64 " changed\n", n_changes);
        else
                complain(connection, r);
        if (sqlipc_error_code(connection) == SQLIPC_ERROR_OUTCOME_UNKNOWN)
                fprintf(stderr, "Look at the database: the rows may have been written.\n");
        return r < 0;
}
