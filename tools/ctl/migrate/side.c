/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One of the two databases of a migration, see side.h. */
#include "tools/ctl/migrate/side.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "tools/ctl/complain.h"

const char *side_message(const Side *side, int r) {
        const char *message = sqlipc_error_message(side->connection);

        return r == -ECANCELED ? "interrupted" : message && *message ? message : g_strerror(-r);
}

int side_fail(const Side *side, const char *what, int r) {
        complain("%s: %s: %s", side->database, what, side_message(side, r));
        return r;
}

static int start(const Side *side, const char *sql, const char *argument, sqlipc_cursor **ret) {
        const sqlipc_parameter parameter = {
                .struct_size = sizeof parameter,
                .type = SQLIPC_TEXT,
                .bytes = argument,
                .size = argument ? strlen(argument) : 0,
        };

        return sqlipc_query_with(side->connection, side->database, sql, &parameter, argument ? 1 : 0, ret);
}

int side_query(const Side *side, const char *sql, const char *argument, SideVisitor visit, void *userdata,
               uint64_t *ret_sequence) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        int r = start(side, sql, argument, &cursor);

        while (r >= 0 && (r = sqlipc_cursor_next(cursor)) > 0) {
                int stop = visit ? visit(cursor, userdata) : 0;

                if (stop < 0)
                        return stop;
        }
        if (r < 0)
                return side_fail(side, sql, r);
        if (ret_sequence)
                *ret_sequence = sqlipc_cursor_sequence(cursor);
        return 0;
}

int side_read_rows(const Side *side, const char *sql, const char *argument, SideRowVisitor visit, void *userdata) {
        __attribute__((cleanup(sqlipc_cursor_closep))) sqlipc_cursor *cursor = NULL;
        const sqlipc_value *values;
        size_t n_rows;
        int r = start(side, sql, argument, &cursor);

        while (r >= 0 && (r = sqlipc_cursor_next_block(cursor, 0, &values, &n_rows)) > 0)
                for (size_t i = 0; r >= 0 && i < n_rows; i++)
                        r = visit(values + i * sqlipc_column_count(cursor), userdata);
        return r;
}

int side_try(const Side *side, const char *sql) {
        return sqlipc_exec(side->connection, side->database, sql, NULL);
}

static int ignore_row(const sqlipc_value *row, void *userdata) {
        (void) row, (void) userdata;
        return 0;
}

int side_check(const Side *side, const char *what) {
        int r = side_read_rows(side, "SELECT 1", NULL, ignore_row, NULL);

        if (r < 0)
                complain("%s cannot be used: %s", what, side_message(side, r));
        return r;
}

typedef struct Number {
        int64_t value;
        bool seen;
} Number;

static int take_number(sqlipc_cursor *cursor, void *userdata) {
        Number *number = userdata;

        if (!number->seen && !sqlipc_column_is_null(cursor, 0))
                number->value = sqlipc_column_int64(cursor, 0);
        number->seen = true;
        return 0;
}

int side_number(const Side *side, const char *sql, int64_t otherwise, int64_t *ret) {
        Number number = { .value = otherwise };
        int r = side_query(side, sql, NULL, take_number, &number, NULL);

        *ret = number.value;
        return r;
}

int side_try_together(const Side *side, const char *const *statements, size_t n) {
        __attribute__((cleanup(sqlipc_batch_closep))) sqlipc_batch *batch = NULL;
        int r = sqlipc_batch_new(side->connection, side->database, &batch);

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = sqlipc_batch_add(batch, statements[i], NULL);
        return r < 0 ? r : sqlipc_batch_run(batch, NULL);
}
