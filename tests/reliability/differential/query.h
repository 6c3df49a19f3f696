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
        bool exposed;                /* exposed tables bring the same rows, in whatever order */
        char *sql;
        sqlipc_parameter *parameters;
        size_t n_parameters;
} Query;

void query_done(Query *q);

/* Opens `path` as a worker does: read-only, with its settings, and its module that tells on others removed. NULL and a
 * message on standard error where that fails. The caller closes it. */
sqlite3 *reference_open(const char *path);

/* Runs it to its end. False where that would take too long or too much: then there is nothing to compare. A shrinker takes
 * away what ends a query, too. */
bool reference_run(sqlite3 *db, const Query *q, Result *result);

#endif
