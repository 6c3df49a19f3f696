/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cleanup attributes and the like, for every file of the driver. ADBC driver.
 */
#ifndef SQLIPC_CLIENT_LIB_ADBC_CLEANUP_H
#define SQLIPC_CLIENT_LIB_ADBC_CLEANUP_H

#include <stdlib.h>

#define _cleanup_(x) __attribute__((cleanup(x)))
#define _cleanup_free_ _cleanup_(cleanup_free)

static inline void cleanup_free(void *p) { free(*(void **) p); }

/* Returns the pointer, and sets the variable, which no longer owns it, to NULL. */
#define steal(variable)                                                                                                     \
        __extension__({                                                                                                     \
                __typeof__(variable) stolen_ = (variable);                                                                  \
                (variable) = NULL;                                                                                          \
                stolen_;                                                                                                    \
        })

#endif
