/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Commands that are written to (feed.h). */
#include "feed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "interrupt.h"

/* What ends us leaves it so long to put the terminal in order. */
enum { LEAVE_MSEC = 1000 };

int feed_start(const char *command, Feed *ret) {
        const char *const argv[] = { "sh", "-c", command, NULL };
        ChildFiles files = CHILD_FILES_OURS;
        int fds[2], r;
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        files.input = fds[0];
        r = fcntl(fds[1], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0; /* the reader's end is another file */
        if (r >= 0)
                r = child_start(argv, &files, &pid);
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

static int reap(Feed *feed) {
        int status;

        while (waitpid(feed->pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        feed->pid = 0;
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int feed_wait(Feed *feed, int timeout_msec) {
        struct pollfd fds[2] = { { .events = POLLIN }, { .fd = interrupt_fd(), .events = POLLIN } };
        int n = 1;

        fds[0].fd = pidfd_open(feed->pid, 0);
        if (fds[0].fd < 0)
                return reap(feed);
        while (n != 0 && fds[0].revents == 0) {
                if (interrupt_leave() && fds[1].fd >= 0) {
                        fds[1].fd = -1;
                        timeout_msec = LEAVE_MSEC;
                        (void) kill(feed->pid, SIGTERM);
                }
                n = poll(fds, 2, timeout_msec);
                if (n > 0 && fds[1].revents)
                        (void) interrupt_take();
        }
        (void) close(fds[0].fd);
        return n == 0 ? -ETIMEDOUT : reap(feed);
}
