/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Basics for every file of the library: visibility, cleanup attributes, the clock. Library.
 */
#ifndef SQLIPC_CLIENT_LIB_UTIL_H
#define SQLIPC_CLIENT_LIB_UTIL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

#define _public_ __attribute__((visibility("default")))
#define _cleanup_(x) __attribute__((cleanup(x)))
#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_message_ _cleanup_(sd_bus_message_unrefp)

#define USEC_PER_SEC ((uint64_t) 1000000)

static inline void freep(void *p) {
        free(*(void **) p);
}

/* Returns the pointer, and sets the variable, which no longer owns it, to NULL. */
#define steal(variable)                                                                                               \
        __extension__({                                                                                               \
                __typeof__(variable) stolen_ = (variable);                                                            \
                (variable) = NULL;                                                                                    \
                stolen_;                                                                                              \
        })

/* Closes `fd` unless it is -1, keeps errno. Returns -1. */
static inline int safe_close(int fd) {
        int saved = errno;

        if (fd >= 0)
                (void) close(fd);
        errno = saved;
        return -1;
}

static inline uint64_t now_usec(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * USEC_PER_SEC + (uint64_t) now.tv_nsec / 1000;
}

#endif
