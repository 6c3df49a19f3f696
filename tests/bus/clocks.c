/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Clocks of one program that a test can move. The file is preloaded (LD_PRELOAD). It adds to the result of clock_gettime()
 * the nanoseconds in the mapped file $TEST_CLOCKS: the first number for CLOCK_REALTIME, the second one for CLOCK_MONOTONIC
 * and CLOCK_BOOTTIME. If the third number is not 0, these two stand still at it, and advance only with the second one. They
 * advance in a worker, which looks at its orders every few milliseconds by its clock.
 *
 * The kernel's timers are set by the program's clock (timerfd_settime(2) with TFD_TIMER_ABSTIME, all of CLOCK_MONOTONIC
 * here). A timer that was set before a jump still expires at its original time. A program that reads the clock earlier
 * finds that the time has passed. A wait for a limited time, too, ends by the machine's clock; a program whose clock stands
 * still then waits again.
 *
 * With $TEST_CLOCKS_OURS, only our libraries see these clocks, and sd-bus, by which they are called. The rest of the
 * program, which is a test that moves its own clocks, goes by those of the machine.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC INT64_C(1000000000)

enum { REALTIME, MONOTONIC, STOPPED_AT, N_NUMBERS };

static const volatile int64_t *numbers;
static bool only_ours, is_worker;

__attribute__((constructor)) static void map_numbers(void) {
        const char *file = getenv("TEST_CLOCKS");
        int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;

        if (fd < 0)
                abort(); /* a test of clocks that do not move would show nothing */
        const void *map = mmap(NULL, N_NUMBERS * sizeof *numbers, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
        if (map == MAP_FAILED)
                abort();
        only_ours = getenv("TEST_CLOCKS_OURS") != NULL;
        is_worker = strcmp(program_invocation_short_name, "sqlipc-worker") == 0 ||
                    strcmp(program_invocation_short_name, "sqlipc-engine") == 0;
        numbers = map;
}

static int64_t to_nsec(const struct timespec *ts) {
        return (int64_t) ts->tv_sec * NSEC_PER_SEC + ts->tv_nsec;
}

static struct timespec from_nsec(int64_t nsec) {
        return (struct timespec) { .tv_sec = (time_t) (nsec / NSEC_PER_SEC), .tv_nsec = (long) (nsec % NSEC_PER_SEC) };
}

/* The time by a clock when it is `nsec` by the machine's. */
static int64_t moved(clockid_t clock, int64_t nsec) {
        if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
                return nsec + numbers[REALTIME];
        if (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME) {
                int64_t stopped_at = is_worker ? 0 : numbers[STOPPED_AT];

                return (stopped_at != 0 ? stopped_at : nsec) + numbers[MONOTONIC];
        }
        return nsec;
}

static bool sees(const void *caller) {
        const char *name;
        Dl_info info;

        if (!numbers || !only_ours)
                return numbers != NULL;
        if (dladdr(caller, &info) == 0 || !info.dli_fname)
                return false;
        name = strrchr(info.dli_fname, '/') ?: info.dli_fname; /* folders may have any name */
        return strstr(name, "sqlipc") || strstr(name, "libsystemd");
}

int clock_gettime(clockid_t clock, struct timespec *ret) {
        if (syscall(SYS_clock_gettime, clock, ret) < 0)
                return -1;
        if (sees(__builtin_return_address(0)))
                *ret = from_nsec(moved(clock, to_nsec(ret)));
        return 0;
}

/* 0 would disarm it; what is past rings at once. */
int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *ret_old) {
        struct itimerspec mine = *value;
        struct timespec now;

        if ((flags & TFD_TIMER_ABSTIME) && to_nsec(&mine.it_value) > 0 && sees(__builtin_return_address(0))) {
                (void) syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
                int64_t machine = to_nsec(&now), nsec = to_nsec(&mine.it_value) - moved(CLOCK_MONOTONIC, machine) + machine;
                mine.it_value = from_nsec(nsec > 0 ? nsec : 1);
        }
        return (int) syscall(SYS_timerfd_settime, fd, flags, &mine, ret_old);
}
