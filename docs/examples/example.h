/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Code that all examples share: their arguments, and the printing of a row.
 *
 *      EXAMPLE [--address=ADDRESS] DATABASE SQL
 */
#ifndef SQLIPC_DOCS_EXAMPLES_EXAMPLE_H
#define SQLIPC_DOCS_EXAMPLES_EXAMPLE_H

#include <inttypes.h>
#include <sqlipc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Arguments {
        const char *address; /* NULL: the user's bus */
        const char *database, *sql;
} Arguments;

static inline Arguments parse_arguments(int argc, char **argv) {
        Arguments a = { NULL, NULL, NULL };

        if (argc > 1 && strncmp(argv[1], "--address=", 10) == 0) {
                a.address = argv[1] + 10;
                argv++;
                argc--;
        }
        if (argc != 3) {
                fprintf(stderr, "usage: EXAMPLE [--address=ADDRESS] DATABASE SQL\n");
                exit(2);
        }
        a.database = argv[1];
        a.sql = argv[2];
        return a;
}

static inline int open_connection(const Arguments *a, sqlipc_connection **ret) {
        int r = a->address ? sqlipc_open_address(a->address, ret) : sqlipc_open_user(ret);

        if (r < 0)
                fprintf(stderr, "Failed to connect: %s\n", strerror(-r));
        return r;
}

static inline void complain(sqlipc_connection *connection, int r) {
        const char *name = sqlipc_error_name(connection);

        fprintf(stderr, "%s: %s\n", name ? name : strerror(-r), sqlipc_error_message(connection));
}

static inline void print_value(sqlipc_cursor *cursor, unsigned column) {
        size_t size = 0;
        const void *bytes;

        switch (sqlipc_column_type(cursor, column)) {
        case SQLIPC_INTEGER:
                printf("%" PRId64, sqlipc_column_int64(cursor, column));
                break;
        case SQLIPC_REAL:
                printf("%.17g", sqlipc_column_double(cursor, column));
                break;
        case SQLIPC_TEXT: /* by its size, because it may contain NULs */
                bytes = sqlipc_column_text(cursor, column, &size);
                fwrite(bytes, 1, size, stdout);
                break;
        case SQLIPC_BLOB:
                (void) sqlipc_column_blob(cursor, column, &size);
                printf("(%zu bytes)", size);
                break;
        case SQLIPC_NULL:
                printf("NULL");
                break;
        default: /* a type of a later version of the library */
                printf("?");
                break;
        }
}

static inline void print_row(sqlipc_cursor *cursor) {
        for (unsigned i = 0; i < sqlipc_column_count(cursor); i++) {
                if (i > 0)
                        putchar('|');
                print_value(cursor, i);
        }
        putchar('\n');
}

#endif
