/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which SQL the open database speaks, see dialect.h. */
#include "tools/cli/shell/dialect.h"

#include "tools/cli/shell/query-run.h"

static int take_answer(sqlipc_cursor *cursor, bool is_row, void *userdata) {
        if (is_row)
                *(bool *) userdata = sqlipc_column_int64(cursor, 0) == 0;
        return 0;
}

/* SQLite never has a number equal to a text, while PostgreSQL gives a literal the type that it is compared with. Neither of
 * them fails, so the user's transaction goes on. */
int dialect_is_sqlite(Shell *shell) {
        bool is_sqlite = false;
        int r = query_run(shell, "SELECT 1 = '1'", NULL, 0, take_answer, &is_sqlite, NULL);

        return r < 0 ? r : is_sqlite;
}
