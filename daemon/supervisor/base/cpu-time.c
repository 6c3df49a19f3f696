/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CPU time of another process. Supervisor. */
#include <stdbool.h>
#include <time.h>

#include "daemon/supervisor/base/cpu-time.h"

/* Most queries go to the worker of the last one, and clock_getcpuclockid() is a system call. A clock depends only on the
 * number of the process, and gives an error if that process is dead. */
static bool find_clock(pid_t pid, clockid_t *ret) {
        static pid_t last_pid;
        static clockid_t last;

        if (pid != last_pid && clock_getcpuclockid(pid, &last) != 0)
                return false;
        last_pid = pid;
        *ret = last;
        return true;
}

uint64_t cpu_time_usec(pid_t pid) {
        struct timespec ts;
        clockid_t clock;

        if (pid <= 0 || !find_clock(pid, &clock) || clock_gettime(clock, &ts) < 0)
                return 0;
        return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}
