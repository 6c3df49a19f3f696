/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ten largest packages of a database that another program shares on the user's bus. */
#include <inttypes.h>
#include <sqlipc.h>
#include <stdio.h>

int main(void) {
        __attribute__((cleanup(sqlipc_closep))) sqlipc_connection *connection = NULL;
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        int r;

        r = sqlipc_open_user(&connection);
        if (r >= 0)
                r = sqlipc_query(connection, "packages", "SELECT name, installed_size FROM package ORDER BY 2 DESC LIMIT ?",
                                 &cursor, "i", (int64_t) 10);
        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0)
                printf("%s %" PRId64 "\n", sqlipc_column_text(cursor, 0, NULL), sqlipc_column_int64(cursor, 1));
        if (r < 0)
                fprintf(stderr, "Failed: %s\n", connection ? sqlipc_error_message(connection) : "no bus");
        return r < 0;
}
