/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How many descriptors the program has, to see that an input leaves none. Tests only. */
#ifndef SQLIPC_TESTS_FUZZ_DESCRIPTORS_H
#define SQLIPC_TESTS_FUZZ_DESCRIPTORS_H

#include <dirent.h>

#include "tests/fuzz/demand.h"

/* With the one that it takes to look, each time. */
static inline unsigned count_descriptors(void) {
        unsigned n = 0;
        DIR *d = opendir("/proc/self/fd");

        demand(d != NULL);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

#endif
