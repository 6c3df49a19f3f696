/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A field of ways to get a result, all open, which run in turn and have to bring the same. */
#ifndef BENCH_TRANSPORT_FIELD_H
#define BENCH_TRANSPORT_FIELD_H

#include "measure.h"
#include "transport.h"

enum { FIELD_MAX = 16 };

/* One of them, as a side of a comparison. */
typedef struct FieldRunner {
        Transport transport;
        const char *sql;
        Copy copy;                /* of the run under way */
        uint64_t n_rows, n_bytes; /* of the last run */
} FieldRunner;

/* All zeros at first. It stays where it is as long as it is open: servers and sides point into it. */
typedef struct Field {
        FieldRunner runners[FIELD_MAX];
        Side sides[FIELD_MAX];
        Findings findings[FIELD_MAX]; /* of the last field_measure() */
        size_t n;
        char *sql;
        bool has_findings;
} Field;

/** Opens one more; `buffer_size` as of transport_open(). */
int field_add(Field *field, const TransportSetup *setup, const TransportKind *kind, size_t buffer_size);
/** Closes all of them; the field is as new. */
void field_close(Field *field);

/** Has all of them fetch the first `n_rows` rows, as measure_sides() does it, and keeps what it found. */
int field_measure(Field *field, int64_t n_rows, int n_rounds, const char *what);
/** Has one of them do the same once more, without a clock. */
int field_run_once(Field *field, size_t which);

#endif
