/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts how often an operation was done and how long it took, in memory whose size is fixed even if the run lasts hours.
 * Times are counted in classes that are an eighth of an octave wide, so that a quantile is accurate to 10 %. Pure.
 */
#ifndef SQLIPC_TOOLS_BENCH_SOAK_SOAK_TALLY_H
#define SQLIPC_TOOLS_BENCH_SOAK_SOAK_TALLY_H

#include <stdint.h>

enum {
        TALLY_PER_OCTAVE = 8,
        TALLY_CLASSES = 40 * TALLY_PER_OCTAVE, /* from 1 us to 12 days */
};

typedef struct Spent {
        uint64_t rows, bytes;
} Spent;

typedef struct SoakTally {
        uint64_t begun;
        uint64_t answered; /* with the right answer */
        uint64_t failed;   /* wrong answer, or none */
        uint64_t given_up; /* abandoned by the client */
        Spent spent;
        double max_usec;
        uint64_t classes[TALLY_CLASSES];
} SoakTally;

/** Counts a right answer. */
void soak_tally_answer(SoakTally *tally, double usec, Spent spent);
/** Adds the counts of `other`. */
void soak_tally_add(SoakTally *tally, const SoakTally *other);
/** Returns how many operations have begun and not ended yet. */
uint64_t soak_tally_open(const SoakTally *tally);
/** Returns the time in microseconds that `fraction` of the answers took at most; NAN if there is no answer. */
double soak_tally_quantile(const SoakTally *tally, double fraction);

#endif
