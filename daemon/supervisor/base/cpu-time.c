/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CPU time of another process. Supervisor. */
#include <time.h>

#include "daemon/supervisor/base/cpu-time.h"

uint64_t cpu_time_usec(pid_t pid) {
        struct timespec ts;
        clockid_t clock;

        if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) < 0)
                return 0;
        return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}
