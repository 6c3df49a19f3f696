/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ctrl-C, see interrupt.h. The lock keeps the cursor alive while the watching thread cancels it. */
#include "interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sqlipc_cursor *current; /* under the lock */
static bool happened;          /* under the lock */

static void on_interrupt(void) {
        pthread_mutex_lock(&lock);
        if (happened || !current || sqlipc_cursor_cancel(current) < 0)
                _exit(EXIT_INTERRUPTED); /* not exit(): the main thread may hold a stream's lock for ever */
        happened = true;
        pthread_mutex_unlock(&lock);
}

static void *watch(void *userdata) {
        const sigset_t *signals = userdata;
        int signal;

        while (sigwait(signals, &signal) == 0)
                on_interrupt();
        return NULL;
}

int interrupt_begin(void) {
        static sigset_t signals;
        struct sigaction action;
        pthread_t thread;
        int r;

        if (sigaction(SIGINT, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
                return 0;

        sigemptyset(&signals);
        sigaddset(&signals, SIGINT);
        r = pthread_sigmask(SIG_BLOCK, &signals, NULL);
        if (r == 0)
                r = pthread_create(&thread, NULL, watch, &signals);
        if (r == 0)
                r = pthread_detach(thread);
        return -r;
}

void interrupt_set_cursor(sqlipc_cursor *cursor) {
        pthread_mutex_lock(&lock);
        current = cursor;
        pthread_mutex_unlock(&lock);
}

bool interrupt_happened(void) {
        bool result;

        pthread_mutex_lock(&lock);
        result = happened;
        pthread_mutex_unlock(&lock);
        return result;
}
