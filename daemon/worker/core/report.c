/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See report.h.
 */
#include "daemon/worker/core/report.h"

#include <errno.h>
#include <poll.h>

int report_send(int control_fd, const Message *m) {
        for (;;) {
                struct pollfd p = { .fd = control_fd, .events = POLLOUT };
                int r = message_send(control_fd, m, -1);

                if (r != -EAGAIN)
                        return r;
                if (poll(&p, 1, -1) < 0 && errno != EINTR)
                        return -errno;
        }
}
