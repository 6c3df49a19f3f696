/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random numbers that must never change, on any machine, because a dataset is identified by its seed. Pure.
 * The generator is xoshiro256** (Blackman, Vigna 2018). As its authors advise, splitmix64 fills its state from the seed.
 */
#ifndef SQLIPC_TOOLS_BENCH_CORE_RANDOM_H
#define SQLIPC_TOOLS_BENCH_CORE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct Random {
        uint64_t state[4];
} Random;

void random_init(Random *random, uint64_t seed);
uint64_t random_next(Random *random);
/** Fills `ret_letters` with `n` uniformly distributed letters a..z, without a NUL. */
void random_letters(Random *random, char *ret_letters, size_t n);

#endif
