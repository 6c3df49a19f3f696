/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands whose input we write (feed.h). */
#include "tools/cli/output/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tools/cli/output/program.h"

int feed_start(const char *command, Feed *ret) {
        const char *const argv[] = { "sh", "-c", command, NULL };
        ProgramFiles files = PROGRAM_FILES_OURS;
        int fds[2], r;
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        files.input = fds[0];
        r = fcntl(fds[1], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0; /* only our end becomes non-blocking */
        if (r >= 0)
                r = program_start(argv, &files, &pid);
        (void) close(fds[0]);
        if (r < 0) {
                (void) close(fds[1]);
                return r;
        }
        *ret = (Feed) { .pid = pid, .fd = fds[1] };
        return 0;
}

void feed_close(Feed *feed) {
        if (feed->fd >= 0)
                (void) close(feed->fd);
        feed->fd = -1;
}

int feed_wait(Feed *feed, int timeout_msec) {
        int r = program_wait(feed->pid, timeout_msec);

        if (r != -ETIMEDOUT)
                feed->pid = 0;
        return r;
}
