/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A query with its parameters, and its run in process. All other results are compared with the result of that run. Tests
 * only.
 */
#ifndef SQLIPC_TESTS_RELIABILITY_DIFFERENTIAL_QUERY_H
#define SQLIPC_TESTS_RELIABILITY_DIFFERENTIAL_QUERY_H

#include <sqlipc.h>
#include <sqlite3.h>

#include "tests/reliability/differential/result.h"

typedef struct Query {
        uint32_t number;
        uint32_t page_size;          /* for the side that asks for pages of one */
        bool on_channel;             /* that side asks on a channel */
        bool prepared;               /* the library prepares, binds and executes */
        bool exposed;                /* exposed tables return the same rows, in any order */
        char *sql;
        sqlipc_parameter *parameters;
        size_t n_parameters;
} Query;

void query_done(Query *q);

/* Opens `path` as a worker does: read-only, with its settings, and without the modules that reveal other files. NULL and a
 * message on standard error if that fails. The caller closes it. */
sqlite3 *reference_open(const char *path);

/* Runs it to its end. False if that takes too long or too much: then there is nothing to compare. A shrinker may remove
 * the very part that ends a query. */
bool reference_run(sqlite3 *db, const Query *q, Result *result);

#endif
