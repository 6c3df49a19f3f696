/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The error table: its promises to other programs (numbers, names, errnos), the same numbers in sqlipc.h, a row for each
 * result code of SQLite. Also, the numbers that the page format takes from SQLite are SQLite's.
 */
#include <ctype.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>

#include "client-lib/sqlipc.h"
#include "dbus-interfaces/sqlipc-errors.h"
#include "dbus-interfaces/sqlipc-names.h"
#include "dbus-interfaces/wire/sqlipc-page.h"
#include "tests/unit/test.h"

typedef struct Row {
        int number, public_number, error;
        const char *symbol, *name, *bus_name;
} Row;

static const Row rows[] = {
#define X(number_, symbol_, name_, error_)                                                                                  \
        { number_, SQLIPC_ERROR_##symbol_, error_, #symbol_, #name_, SQLIPC_ERROR_PREFIXED(name_) },
        SQLIPC_ERROR_TABLE(X)
#undef X
};

static const struct {
        int code;
        ErrorNumber number;
} sqlite_rows[] = {
#define X(code_, symbol_) { code_, ERROR_##symbol_ },
        SQLIPC_ERROR_SQLITE_TABLE(X)
#undef X
};

/* Numbers go 1, 2, 3...: none is skipped, so none was taken out, and a new one can only come last. */
static void test_numbers(void) {
        for (size_t i = 0; i < N_ELEMENTS(rows); i++)
                CHECK_INT(rows[i].number, i + 1);
        CHECK_INT(ERROR_NUMBER_MAX, N_ELEMENTS(rows) + 1);
        CHECK_INT(ERROR_NONE, 0);
}

static void test_public_numbers(void) {
        CHECK_INT(SQLIPC_ERROR_NONE, ERROR_NONE);
        for (size_t i = 0; i < N_ELEMENTS(rows); i++)
                CHECK_INT(rows[i].public_number, rows[i].number);
}

/* UNKNOWN_DATABASE is UnknownDatabase: one can be told from the other. */
static bool name_is_of_symbol(const char *name, const char *symbol) {
        bool start = true;

        for (; *symbol; symbol++) {
                if (*symbol == '_') {
                        start = true;
                        continue;
                }
                if (*name++ != (start ? *symbol : tolower((unsigned char) *symbol)))
                        return false;
                start = false;
        }
        return *name == 0;
}

static void test_names(void) {
        for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
                char expected[256];

                if (!name_is_of_symbol(rows[i].name, rows[i].symbol))
                        test_fail(__FILE__, __LINE__, "name", rows[i].name, rows[i].symbol);
                snprintf(expected, sizeof expected, "%s%s", SQLIPC_ERROR_PREFIX, rows[i].name);
                CHECK_STRING(rows[i].bus_name, expected);
                CHECK(strlen(rows[i].bus_name) <= 255); /* D-Bus has no longer names */
                for (size_t j = 0; j < i; j++)
                        CHECK(strcmp(rows[i].name, rows[j].name) != 0);
        }
}

/* A library call that fails with one of these has to be told from success and from the errnos that it gives a meaning. */
static void test_errnos(void) {
        for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
                CHECK(rows[i].error > 0 && rows[i].error < 4096);
                CHECK(rows[i].error != EAGAIN && rows[i].error != EINTR);
                CHECK(strncmp(strerror(rows[i].error), "Unknown error", 13) != 0);
        }
}

/* Every primary result code that can end a statement: SQLite's from 1 to 26, except those that no statement returns. */
static void test_sqlite_codes(void) {
        static const int never[] = { SQLITE_NOTFOUND, SQLITE_EMPTY, SQLITE_NOLFS, SQLITE_FORMAT };
        unsigned seen[SQLITE_NOTADB + 1] = { 0 };

        for (size_t i = 0; i < N_ELEMENTS(sqlite_rows); i++) {
                CHECK(sqlite_rows[i].code >= SQLITE_ERROR && sqlite_rows[i].code <= SQLITE_NOTADB);
                CHECK(sqlite_rows[i].number > ERROR_NONE && sqlite_rows[i].number < ERROR_NUMBER_MAX);
                CHECK_INT(seen[sqlite_rows[i].code]++, 0);
        }
        for (size_t i = 0; i < N_ELEMENTS(never); i++)
                CHECK_INT(seen[never[i]]++, 0);
        for (int code = SQLITE_ERROR; code <= SQLITE_NOTADB; code++)
                if (!seen[code])
                        test_fail(__FILE__, __LINE__, sqlite3_errstr(code), "in no row", "in one");
}

static void test_value_types(void) {
        CHECK_INT(VALUE_INTEGER, SQLITE_INTEGER);
        CHECK_INT(VALUE_REAL, SQLITE_FLOAT);
        CHECK_INT(VALUE_TEXT, SQLITE_TEXT);
        CHECK_INT(VALUE_BLOB, SQLITE_BLOB);
        CHECK_INT(VALUE_NULL, SQLITE_NULL);
        CHECK_INT(SQLIPC_INTEGER, VALUE_INTEGER);
        CHECK_INT(SQLIPC_REAL, VALUE_REAL);
        CHECK_INT(SQLIPC_TEXT, VALUE_TEXT);
        CHECK_INT(SQLIPC_BLOB, VALUE_BLOB);
        CHECK_INT(SQLIPC_NULL, VALUE_NULL);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_numbers),
                TEST(test_public_numbers),
                TEST(test_names),
                TEST(test_errnos),
                TEST(test_sqlite_codes),
                TEST(test_value_types),
        };
        return test_main(tests, N_ELEMENTS(tests));
}
