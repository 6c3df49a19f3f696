/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clock of timers and deadlines. Supervisor. */
#include "daemon/supervisor/base/clock.h"

#include <time.h>

#define LATE_USEC UINT64_C(200000) /* more than the accuracy of any timer */

uint64_t clock_usec(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

bool clock_timer_was_late(uint64_t due_usec, bool *spared) {
        *spared = !*spared && clock_usec() > due_usec + LATE_USEC;
        return *spared;
}
