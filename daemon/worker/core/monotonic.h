/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The one clock: CLOCK_MONOTONIC in microseconds, which the supervisor's deadlines use, too; and sums with its
 * times.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_MONOTONIC_H
#define SQLIPC_DAEMON_WORKER_CORE_MONOTONIC_H

#include <stdint.h>
#include <time.h>

#define USEC_PER_SEC UINT64_C(1000000)
#define USEC_PER_MSEC UINT64_C(1000)

static inline uint64_t clock_usec(clockid_t clock) {
        struct timespec ts;

        (void) clock_gettime(clock, &ts);
        return (uint64_t) ts.tv_sec * USEC_PER_SEC + (uint64_t) ts.tv_nsec / 1000;
}

static inline uint64_t now_usec(void) {
        return clock_usec(CLOCK_MONOTONIC);
}

/* Up to one tick (some ms) late, at a fifth of the cost of now_usec(): cheap enough to be read for each row. */
static inline uint64_t now_coarse_usec(void) {
        return clock_usec(CLOCK_MONOTONIC_COARSE);
}

static inline uint64_t earlier(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

/* The pause before another attempt after a lock was met: 2 ms at first (`last` is 0), then twice the last one, up to
 * 50 ms. */
static inline uint64_t retry_pause(uint64_t last) {
        return last == 0 ? 2 * USEC_PER_MSEC : earlier(2 * last, 50 * USEC_PER_MSEC);
}

#endif
