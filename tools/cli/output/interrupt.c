/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes signals available as a descriptor (interrupt.h): the self-pipe trick. Unlike a blocked mask with a signalfd,
 * handlers do not survive exec(), so that children need no special care. There is no SA_RESTART, so that a system call that
 * waits returns when a signal comes.
 */
#include "tools/cli/output/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static int interrupt_pipe[2] = { -1, -1 }, resize_pipe[2] = { -1, -1 };
static volatile sig_atomic_t n_interrupts; /* SIGINTs that were not taken yet */
static volatile sig_atomic_t leave_signal;

static void on_signal(int signal) {
        int saved = errno;

        if (signal == SIGINT)
                n_interrupts++;
        else if (signal == SIGTERM || signal == SIGHUP)
                leave_signal = signal;
        /* a failure is harmless: a full pipe also wakes its reader */
        (void) !write(signal == SIGWINCH ? resize_pipe[1] : interrupt_pipe[1], "", 1);
        errno = saved;
}

static int watch(int signal) {
        struct sigaction action;

        if (sigaction(signal, NULL, &action) < 0)
                return -errno;
        if (action.sa_handler == SIG_IGN)
                return 0;
        action = (struct sigaction) { .sa_handler = on_signal };
        return sigaction(signal, &action, NULL) < 0 ? -errno : 0;
}

static int open_pipe(int ends[2]) {
        return ends[0] < 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0 ? -errno : 0;
}

static void empty_pipe(int fd) {
        char bytes[64];

        while (fd >= 0 && read(fd, bytes, sizeof bytes) > 0)
                ;
}

int interrupt_begin(void) {
        static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH };
        int r = open_pipe(interrupt_pipe);

        if (r >= 0)
                r = open_pipe(resize_pipe);
        for (size_t i = 0; i < sizeof signals / sizeof *signals && r >= 0; i++)
                r = watch(signals[i]);
        return r;
}

int interrupt_fd(void) {
        return interrupt_pipe[0];
}

unsigned interrupt_take(void) {
        sigset_t interrupt, before;
        unsigned n;

        sigemptyset(&interrupt);
        sigaddset(&interrupt, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &interrupt, &before); /* no SIGINT between emptying and counting */
        empty_pipe(interrupt_pipe[0]);
        n = (unsigned) n_interrupts;
        n_interrupts = 0;
        (void) sigprocmask(SIG_SETMASK, &before, NULL);
        return n;
}

bool interrupt_pending(void) {
        return n_interrupts > 0;
}

int interrupt_leave(void) {
        return leave_signal;
}

int resized_fd(void) {
        return resize_pipe[0];
}

void resized_take(void) {
        empty_pipe(resize_pipe[0]);
}
