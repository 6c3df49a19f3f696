/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The result of a query in a form that does not depend on its source, so that two results can be compared byte by byte.
 * Tests only.
 *
 * A value is its type, its size and its bytes. Integers and reals are their 8 bytes: so -0.0 differs from 0.0, and 1 from
 * 1.0.
 */
#ifndef SQLIPC_TESTS_RELIABILITY_DIFFERENTIAL_RESULT_H
#define SQLIPC_TESTS_RELIABILITY_DIFFERENTIAL_RESULT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Result {
        bool has_columns;   /* it came so far that they are known */
        unsigned n_columns;
        GByteArray *names;  /* name and declared type in turn, each a value */
        GByteArray *values; /* row by row */
        GArray *rows;       /* size_t: where each begins in `values` */
        bool failed;
        int code;           /* SQLite's extended one; 0: SQLite did not fail */
        char *trouble;      /* what is no result at all: a broken stream, a lost service; NULL: nothing of the kind */
} Result;

/* Forgets what it holds and starts empty; one that is all zeros will do. */
void result_init(Result *r);
void result_done(Result *r);

/* `text` NULL: there is none, as of a declared type. */
void result_add_name(Result *r, const char *text);
void result_begin_row(Result *r);
void result_add_value(Result *r, int type, const void *bytes, size_t size);
void result_add_int64(Result *r, int64_t value);
void result_add_double(Result *r, double value);

/* It ended by an error of SQLite's code `code`. */
void result_fail(Result *r, int code);
/* The query failed for this reason; the first one counts. */
void result_trouble(Result *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* NULL where `got` is what was `expected`; else what differs first, which the caller frees. `as_set`: the order of rows does
 * not matter. */
char *result_difference(const Result *expected, const Result *got, bool as_set);

/* Falsifies it, for a test of the finder; `what` is one of result_spoils. Where there is nothing of the kind, nothing
 * happens. */
void result_spoil(Result *r, const char *what);
extern const char *const result_spoils[];

#endif
