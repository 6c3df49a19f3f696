/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conditions of a fuzz target. If one is false the program ends, also without assert(). Tests only.
 */
#ifndef SQLIPC_TESTS_FUZZ_DEMAND_H
#define SQLIPC_TESTS_FUZZ_DEMAND_H

#include <stdio.h>
#include <stdlib.h>

/* A condition that must hold for every input. */
#define demand(condition) ((condition) ? (void) 0 : broken(#condition, __FILE__, __LINE__))

static inline void broken(const char *condition, const char *file, int line) {
        fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
        abort();
}

#endif
