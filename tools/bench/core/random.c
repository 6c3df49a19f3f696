/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Random numbers that are the same on every machine, see random.h. Pure. */
#include "tools/bench/core/random.h"

enum {
        LETTERS = 26,
        LETTERS_PER_NUMBER = 13, /* 26^13 < 2^64 */
};

static uint64_t splitmix64(uint64_t *state) {
        uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int n) {
        return (x << n) | (x >> (64 - n));
}

void random_init(Random *random, uint64_t seed) {
        for (int i = 0; i < 4; i++)
                random->state[i] = splitmix64(&seed);
}

uint64_t random_next(Random *random) {
        uint64_t *s = random->state, result = rotate_left(s[1] * 5, 7) * 9, t = s[1] << 17;

        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = rotate_left(s[3], 45);
        return result;
}

void random_letters(Random *random, char *ret_letters, size_t n) {
        const uint64_t range = UINT64_C(2481152873203736576); /* 26^13 */
        const uint64_t limit = UINT64_MAX / range * range;    /* from here on, some letters would be more likely */

        for (size_t i = 0; i < n;) {
                uint64_t number = random_next(random);

                if (number >= limit)
                        continue;
                for (int k = 0; k < LETTERS_PER_NUMBER && i < n; k++, number /= LETTERS)
                        ret_letters[i++] = (char) ('a' + number % LETTERS);
        }
}
