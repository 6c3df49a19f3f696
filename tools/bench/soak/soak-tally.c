/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts and times of operations, see soak-tally.h. Pure. */
#include "tools/bench/soak/soak-tally.h"

#include <math.h>

/* Returns the longest time in class i. */
static double class_end(unsigned i) {
        return exp2((double) (i + 1) / TALLY_PER_OCTAVE);
}

static unsigned class_of(double usec) {
        double number = usec > 1 ? ceil(log2(usec) * TALLY_PER_OCTAVE) - 1 : 0;

        return number <= 0 ? 0 : number >= TALLY_CLASSES ? TALLY_CLASSES - 1 : (unsigned) number;
}

void soak_tally_answer(SoakTally *tally, double usec, Spent spent) {
        tally->spent.rows += spent.rows;
        tally->spent.bytes += spent.bytes;
        tally->classes[class_of(usec)]++;
        if (usec > tally->max_usec)
                tally->max_usec = usec;
        tally->answered++;
}

void soak_tally_add(SoakTally *tally, const SoakTally *other) {
        tally->begun += other->begun;
        tally->answered += other->answered;
        tally->failed += other->failed;
        tally->given_up += other->given_up;
        tally->spent.rows += other->spent.rows;
        tally->spent.bytes += other->spent.bytes;
        for (unsigned i = 0; i < TALLY_CLASSES; i++)
                tally->classes[i] += other->classes[i];
        if (other->max_usec > tally->max_usec)
                tally->max_usec = other->max_usec;
}

uint64_t soak_tally_open(const SoakTally *tally) {
        return tally->begun - tally->answered - tally->failed - tally->given_up;
}

double soak_tally_quantile(const SoakTally *tally, double fraction) {
        uint64_t all = 0, below = 0;
        double wanted;

        for (unsigned i = 0; i < TALLY_CLASSES; i++)
                all += tally->classes[i];
        wanted = fraction * (double) all * (1 - 1e-12); /* 0.07 * 100 is more than 7 */
        for (unsigned i = 0; all > 0 && i < TALLY_CLASSES; i++) {
                below += tally->classes[i];
                if ((double) below >= wanted)
                        return fmin(class_end(i), tally->max_usec);
        }
        return NAN;
}
