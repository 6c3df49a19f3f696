/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Clocks of one program that a test can move. The file is preloaded (LD_PRELOAD). It adds to the result of clock_gettime()
 * the nanoseconds in the mapped file $TEST_CLOCKS: the first number for CLOCK_REALTIME, the second one for CLOCK_MONOTONIC
 * and CLOCK_BOOTTIME.
 *
 * The kernel's timers are set by the program's clock (timerfd_settime(2) with TFD_TIMER_ABSTIME, all of CLOCK_MONOTONIC
 * here). A timer that was set before a jump still expires at its original time. A program that reads the clock earlier
 * finds that the time has passed.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC INT64_C(1000000000)

enum { REALTIME, MONOTONIC, N_CLOCKS };

static const volatile int64_t *offsets;

__attribute__((constructor)) static void map_offsets(void) {
        const char *file = getenv("TEST_CLOCKS");
        int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;

        if (fd < 0)
                abort(); /* a test of clocks that do not move would show nothing */
        const void *map = mmap(NULL, N_CLOCKS * sizeof *offsets, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
        if (map == MAP_FAILED)
                abort();
        offsets = map;
}

static int64_t offset_of(clockid_t clock) {
        if (!offsets)
                return 0;
        if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
                return offsets[REALTIME];
        if (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME)
                return offsets[MONOTONIC];
        return 0;
}

static int64_t to_nsec(const struct timespec *ts) {
        return (int64_t) ts->tv_sec * NSEC_PER_SEC + ts->tv_nsec;
}

static struct timespec from_nsec(int64_t nsec) {
        return (struct timespec) { .tv_sec = (time_t) (nsec / NSEC_PER_SEC), .tv_nsec = (long) (nsec % NSEC_PER_SEC) };
}

int clock_gettime(clockid_t clock, struct timespec *ret) {
        if (syscall(SYS_clock_gettime, clock, ret) < 0)
                return -1;
        *ret = from_nsec(to_nsec(ret) + offset_of(clock));
        return 0;
}

/* 0 would disarm it; what is past rings at once. */
int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *ret_old) {
        struct itimerspec mine = *value;

        if ((flags & TFD_TIMER_ABSTIME) && to_nsec(&mine.it_value) > 0) {
                int64_t nsec = to_nsec(&mine.it_value) - offset_of(CLOCK_MONOTONIC);
                mine.it_value = from_nsec(nsec > 0 ? nsec : 1);
        }
        return (int) syscall(SYS_timerfd_settime, fd, flags, &mine, ret_old);
}
