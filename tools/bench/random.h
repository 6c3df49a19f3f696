/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random numbers that are the same on every machine, for ever: the datasets are named by their seed. Pure.
 * The generator is xoshiro256** (Blackman, Vigna 2018), its state filled by splitmix64 from the seed, as its authors advise.
 */
#ifndef BENCH_RANDOM_H
#define BENCH_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct Random {
        uint64_t state[4];
} Random;

void random_init(Random *random, uint64_t seed);
uint64_t random_next(Random *random);
/** Fills `ret_letters` with `n` letters a..z, each as likely as any other; no NUL. */
void random_letters(Random *random, char *ret_letters, size_t n);

#endif
