/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of a unit test: functions in a table, checks that also work with NDEBUG, TAP on standard output. Tests only.
 *
 *      static void test_something(void) { CHECK(1 + 1 == 2); CHECK_INT(f(), -EINVAL); }
 *      int main(void) { static const Test tests[] = { TEST(test_something) }; return test_main(tests, N_ELEMENTS(tests)); }
 *
 * The first check that fails ends the program, because later checks would only fail for the same reason.
 */
#ifndef SQLIPC_TESTS_UNIT_TEST_H
#define SQLIPC_TESTS_UNIT_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Test {
        const char *name;
        void (*run)(void);
} Test;

#define TEST(function) { #function, function }
#define N_ELEMENTS(array) (sizeof(array) / sizeof *(array))

/* Fails unless `condition` holds. */
#define CHECK(condition)                                                                                              \
        do {                                                                                                          \
                if (!(condition))                                                                                     \
                        test_fail(__FILE__, __LINE__, #condition, NULL, NULL);                                        \
        } while (0)

/* Fails unless two integers are equal, and says which they are. */
#define CHECK_INT(got, expected) test_check_int(__FILE__, __LINE__, #got, (intmax_t) (got), (intmax_t) (expected))

/* Fails unless two strings are equal, and says which they are. */
#define CHECK_STRING(got, expected) test_check_string(__FILE__, __LINE__, #got, got, expected)

/* The running test, for the messages of failures; "" in a program with another runner that only includes a rig of ours. */
static const char *test_name = "";
static unsigned test_number;

static inline _Noreturn void test_fail(const char *file, int line, const char *what, const char *got, const char *expected) {
        printf("not ok %u - %s\n# %s:%d: %s", test_number, test_name, file, line, what);
        if (got)
                printf(" is %s, expected %s", got, expected);
        putchar('\n');
        exit(EXIT_FAILURE);
}

static inline void test_check_int(const char *file, int line, const char *what, intmax_t got, intmax_t expected) {
        char a[32], b[32];

        if (got == expected)
                return;
        snprintf(a, sizeof a, "%jd", got);
        snprintf(b, sizeof b, "%jd", expected);
        test_fail(file, line, what, a, b);
}

static inline void test_check_string(const char *file, int line, const char *what, const char *got, const char *expected) {
        if (!got || strcmp(got, expected) != 0)
                test_fail(file, line, what, got ? got : "NULL", expected);
}

static inline int test_main(const Test *tests, size_t n_tests) {
        setvbuf(stdout, NULL, _IOLBF, 0);
        printf("1..%zu\n", n_tests);
        for (size_t i = 0; i < n_tests; i++) {
                test_name = tests[i].name;
                test_number = (unsigned) i + 1;
                tests[i].run();
                printf("ok %u - %s\n", test_number, test_name);
        }
        return EXIT_SUCCESS;
}

#endif
