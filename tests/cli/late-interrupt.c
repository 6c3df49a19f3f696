/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ctrl-C at the worst moment: preloaded (LD_PRELOAD), it has a program get SIGINT when it is about to wait, once the file
 * $TEST_LATE_INTERRUPT is there, which it removes. Waits for keys are left alone: at a prompt a signal means another thing.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void interrupt_if_due(const struct pollfd *fds, nfds_t n) {
        const char *file = getenv("TEST_LATE_INTERRUPT");

        for (nfds_t i = 0; i < n; i++)
                if (fds[i].fd == STDIN_FILENO)
                        return;
        if (file && unlink(file) == 0)
                (void) raise(SIGINT);
}

static int wait_for(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask) {
        struct timespec left = timeout ? *timeout : (struct timespec) {};

        interrupt_if_due(fds, n);
        return (int) syscall(SYS_ppoll, fds, n, timeout ? &left : NULL, mask, (size_t) (_NSIG / 8));
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask) {
        return wait_for(fds, n, timeout, mask);
}

int poll(struct pollfd *fds, nfds_t n, int msec) {
        struct timespec timeout = { .tv_sec = msec / 1000, .tv_nsec = msec % 1000 * 1000000L };

        return wait_for(fds, n, msec < 0 ? NULL : &timeout, NULL);
}
