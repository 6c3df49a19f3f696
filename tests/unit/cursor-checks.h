/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Start and checks that the tests of blocking statements and of blocking cursors share. Tests only. */
#ifndef SQLIPC_TESTS_UNIT_CURSOR_CHECKS_H
#define SQLIPC_TESTS_UNIT_CURSOR_CHECKS_H

#include "tests/rigs/fake-service.h"

static inline sqlipc_statement *prepare(FakeService *f) {
        sqlipc_statement *s;

        CHECK_INT(sqlipc_prepare(f->connection, "db", "SELECT c FROM t", &s), 0);
        return s;
}

static inline sqlipc_cursor *execute(sqlipc_statement *s) {
        sqlipc_cursor *c;

        CHECK_INT(sqlipc_execute(s, &c), 0);
        return c;
}

static inline sqlipc_cursor *query(FakeService *f) {
        sqlipc_cursor *c;

        CHECK_INT(sqlipc_query(f->connection, "db", "SELECT c FROM t", &c, NULL), 0);
        return c;
}

static inline void check_rows(sqlipc_cursor *c, int first, int last) {
        for (int i = first; i <= last; i++) {
                CHECK_INT(sqlipc_cursor_next(c), 1);
                CHECK_INT(sqlipc_column_int64(c, 0), i);
        }
}

static inline void check_end(sqlipc_cursor *c) {
        CHECK_INT(sqlipc_cursor_next(c), 0);
        CHECK_INT(sqlipc_cursor_next(c), 0);
        CHECK_INT(sqlipc_column_is_null(c, 0), 1);
}

/* The failure repeats itself, with its details, also when another one came between. */
static inline void check_failure(FakeService *f, sqlipc_cursor *c, int r, sqlipc_error code) {
        sqlipc_statement *s;

        CHECK_INT(sqlipc_cursor_next(c), r);
        CHECK_INT(sqlipc_error_code(f->connection), code);
        CHECK_INT(sqlipc_prepare(f->connection, NULL, NULL, &s), -EINVAL);
        CHECK_INT(sqlipc_error_code(f->connection), SQLIPC_ERROR_NONE);
        CHECK_INT(sqlipc_cursor_next(c), r);
        CHECK_INT(sqlipc_error_code(f->connection), code);
        CHECK(sqlipc_error_message(f->connection)[0]);
}

#endif
