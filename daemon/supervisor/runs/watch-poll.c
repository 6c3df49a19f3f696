/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Polls the pipes of all watches. Supervisor. */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon/supervisor/runs/watch-poll.h"

#define N_EACH_TURN 128 /* pipes, before the loop does something else */

static int on_pipes(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        const WatchPoll *p = userdata;
        struct epoll_event events[N_EACH_TURN];
        int n = epoll_wait(fd, events, N_EACH_TURN, 0);

        for (int i = 0; i < n; i++)
                p->handler(p->context, events[i].data.u64, events[i].events & (EPOLLERR | EPOLLHUP));
        return 0;
}

int watch_poll_start(WatchPoll *p, Context *context, WatchPollHandler handler) {
        *p = (WatchPoll) { .context = context, .handler = handler, .fd = epoll_create1(EPOLL_CLOEXEC) };
        if (p->fd < 0)
                return -errno;
        return sd_event_add_io(context->event, &p->source, p->fd, EPOLLIN, on_pipes, p);
}

void watch_poll_stop(WatchPoll *p) {
        p->source = sd_event_source_disable_unref(p->source);
        if (p->fd >= 0)
                close(p->fd);
        p->fd = -1;
}

int watch_poll_add(const WatchPoll *p, int fd, uint64_t number) {
        struct epoll_event e = { .events = EPOLLOUT | EPOLLET, .data.u64 = number };

        return epoll_ctl(p->fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

void watch_poll_remove(const WatchPoll *p, int fd) {
        (void) epoll_ctl(p->fd, EPOLL_CTL_DEL, fd, NULL);
}
