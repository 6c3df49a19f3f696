/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A set of ways to get a result. All are open, run in turn and must produce the same result. */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_TRANSPORT_FIELD_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_TRANSPORT_FIELD_H

#include "tools/bench/core/measure.h"
#include "tools/bench/workloads/transport.h"

enum { FIELD_MAX = 16 };

/* One way, as a side of a comparison. */
typedef struct FieldRunner {
        Transport transport;
        const char *sql;
        Copy copy;                /* of the current run */
        uint64_t n_rows, n_bytes; /* of the last run */
} FieldRunner;

/* Zero it first. Do not move it while it is open, because servers and sides point into it. */
typedef struct Field {
        FieldRunner runners[FIELD_MAX];
        Side sides[FIELD_MAX];
        Findings findings[FIELD_MAX]; /* of the last field_measure() */
        size_t n;
        char *sql;
        bool has_findings;
} Field;

/** Opens and adds a way. `buffer_size` is as for transport_open(). */
int field_add(Field *field, const TransportSetup *setup, const TransportKind *kind, size_t buffer_size);
/** Closes all ways. The field is empty afterwards. */
void field_close(Field *field);

/** Fetches the first `n_rows` rows in all ways with measure_sides(), and keeps the findings. */
int field_measure(Field *field, int64_t n_rows, int n_rounds, const char *what);
/** Repeats the last fetch once in one of the ways, without measuring it. */
int field_run_once(Field *field, size_t which);

#endif
