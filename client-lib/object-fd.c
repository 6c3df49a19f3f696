/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The descriptor of one object (object-fd.h). Library. */
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "client-lib/event-loop.h"
#include "client-lib/object-fd.h"

static int open_timer(int epoll_fd) {
        struct epoll_event event = { .events = EPOLLIN };
        int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), r;

        if (fd < 0)
                return -errno;
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) >= 0)
                return fd;
        r = -errno;
        (void) safe_close(fd);
        return r;
}

int object_fd_open(ObjectFd *o) {
        int epoll_fd, timer_fd;

        if (o->epoll_fd >= 0)
                return 0;
        epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (epoll_fd < 0)
                return -errno;
        timer_fd = open_timer(epoll_fd);
        if (timer_fd < 0) {
                (void) safe_close(epoll_fd);
                return timer_fd;
        }
        o->epoll_fd = epoll_fd;
        o->timer_fd = timer_fd;
        return 0;
}

/* Without the set a change would be missed, so a timer replaces a descriptor that the kernel does not add. If the kernel
 * does not remove one, the program may be woken for nothing, and each update tries again. */
#define SUBSTITUTE_USEC (USEC_PER_SEC / 10)

/* False: the descriptor is still in the set. One that was closed has left it. */
static bool remove_data(ObjectFd *o) {
        if (o->data.fd >= 0 && epoll_ctl(o->epoll_fd, EPOLL_CTL_DEL, o->data.fd, NULL) < 0 && errno != ENOENT &&
            errno != EBADF)
                return false;
        o->data.fd = -1;
        return true;
}

static bool set_data(ObjectFd *o, struct pollfd data) {
        struct epoll_event event = { .events = (data.events & POLLIN ? (uint32_t) EPOLLIN : 0) |
                                               (data.events & POLLOUT ? (uint32_t) EPOLLOUT : 0) };

        if (data.fd != o->data.fd && !remove_data(o))
                return false;
        o->data = data; /* also after a failure: it may be in the set, and the next update tries again */
        if (data.fd < 0 || epoll_ctl(o->epoll_fd, EPOLL_CTL_MOD, data.fd, &event) >= 0)
                return true;
        /* a cursor may have closed a descriptor, which has left the set then, and opened another one of the same number */
        return errno == ENOENT && epoll_ctl(o->epoll_fd, EPOLL_CTL_ADD, data.fd, &event) >= 0;
}

static bool set_bus(ObjectFd *o, sqlipc_connection *c, bool wanted) {
        struct epoll_event event = { .events = EPOLLIN };
        int fd = c->bus_set.epoll_fd;

        if (wanted == o->has_bus)
                return true;
        if (wanted) {
                fd = event_loop_get_bus_set(c);
                if (fd < 0)
                        return false;
        }
        if (epoll_ctl(o->epoll_fd, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &event) < 0)
                return false;
        o->has_bus = wanted;
        return true;
}

static void set_timer(ObjectFd *o, uint64_t until) {
        struct itimerspec spec = { .it_value.tv_nsec = until < UINT64_MAX }; /* all 0: off; else 1 ns since boot: now */

        if (until == o->until)
                return;
        if (until > 0 && until < UINT64_MAX)
                spec.it_value = (struct timespec) { .tv_sec = (time_t) (until / USEC_PER_SEC),
                                                    .tv_nsec = (long) (until % USEC_PER_SEC) * 1000 };
        if (timerfd_settime(o->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) >= 0)
                o->until = until;
}

void object_fd_update(ObjectFd *o, sqlipc_connection *c, ObjectNews news) {
        uint64_t bus_until;

        if (o->epoll_fd < 0 || connection_is_foreign(c))
                return;
        if (c->closed) {
                news = (ObjectNews) { .data.fd = -1 };
                o->has_bus = false; /* its set was closed */
        }
        if (news.bus && sd_bus_get_timeout(c->bus, &bus_until) >= 0 && bus_until < news.until)
                news.until = bus_until;
        if (!set_data(o, news.data) || !set_bus(o, c, news.bus)) {
                uint64_t substitute = now_usec() + SUBSTITUTE_USEC;

                if (substitute < news.until)
                        news.until = substitute;
        }
        set_timer(o, news.until);
}

int object_fd_turn(ObjectFd *o, sqlipc_connection *c, ObjectNews news) {
        struct epoll_event event;

        if (o->epoll_fd < 0)
                return 0;
        object_fd_update(o, c, news);
        o->turns.n_steps = c->turns.n_steps;
        if (epoll_wait(o->epoll_fd, &event, 1, 0) > 0)
                return turns_next(&o->turns);
        turns_wait(&o->turns);
        return 0;
}

void object_fd_forget(ObjectFd *o, sqlipc_connection *c, int fd) {
        if (o->epoll_fd < 0 || fd < 0 || fd != o->data.fd)
                return;
        if (!connection_is_foreign(c))
                (void) epoll_ctl(o->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        o->data.fd = -1;
}

void object_fd_done(ObjectFd *o) {
        o->timer_fd = safe_close(o->timer_fd);
        o->epoll_fd = safe_close(o->epoll_fd);
}
