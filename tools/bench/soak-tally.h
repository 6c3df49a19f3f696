/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How often something was done, and how long it took, in a size that does not grow with hours: times are counted in classes
 * an eighth of an octave wide, so that a quantile is right to 10 %. Pure.
 */
#ifndef BENCH_SOAK_TALLY_H
#define BENCH_SOAK_TALLY_H

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
        uint64_t answered; /* as it should be */
        uint64_t failed;   /* wrong, or not answered */
        uint64_t given_up; /* by who asked */
        Spent spent;
        double max_usec;
        uint64_t classes[TALLY_CLASSES];
} SoakTally;

/** Counts an answer. */
void soak_tally_answer(SoakTally *tally, double usec, Spent spent);
/** Adds what another one counted. */
void soak_tally_add(SoakTally *tally, const SoakTally *other);
/** Begun, and nothing became of it yet. */
uint64_t soak_tally_open(const SoakTally *tally);
/** The time in microseconds that `fraction` of the answers took at most; NAN where there is none. */
double soak_tally_quantile(const SoakTally *tally, double fraction);

#endif
