/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waits for the library (wait.h). */
#include "tools/cli/shell/wait.h"

#include <errno.h>
#include <glib.h>
#include <poll.h>

#include "tools/cli/output/interrupt.h"

int wait_check_cancelled(void) {
        if (!interrupt_pending() && !interrupt_leave())
                return 0;
        (void) interrupt_take();
        return -ECANCELED;
}

int wait_for_library(sqlipc_connection *connection, bool cancels, uint64_t until) {
        struct pollfd fds[2] = { { .fd = sqlipc_get_fd(connection), .events = (short) sqlipc_get_events(connection) },
                                 { .fd = cancels ? interrupt_fd() : -1, .events = POLLIN } };
        uint64_t library = UINT64_MAX, now = (uint64_t) g_get_monotonic_time();
        int timeout = -1;

        (void) sqlipc_get_timeout(connection, &library);
        until = MIN(until, library);
        if (until != UINT64_MAX)
                timeout = until <= now ? 0 : (int) MIN((until - now) / 1000 + 1, (uint64_t) G_MAXINT);
        if (poll(fds, G_N_ELEMENTS(fds), timeout) < 0 && errno != EINTR)
                return -errno;
        (void) sqlipc_process(connection);
        return cancels ? wait_check_cancelled() : 0;
}
