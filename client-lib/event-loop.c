/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Event loops (event-loop.h). Library. */
#include <poll.h>
#include <sys/epoll.h>

#include "client-lib/connection.h"
#include "client-lib/event-loop.h"

enum { TAG_BUS, TAG_WAKE, TAG_MAX }; /* higher values: the address of the run, load, watch or channel that waits */

static int set_fd(int epoll_fd, int fd, struct epoll_event *event) {
        if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, event) >= 0)
                return 0;
        if (errno == ENOENT && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, event) >= 0)
                return 0;
        return -errno;
}

static void remove_bus(BusSet *set) {
        if (set->fd >= 0)
                (void) epoll_ctl(set->epoll_fd, EPOLL_CTL_DEL, set->fd, NULL);
        set->fd = -1;
}

static void update_bus(BusSet *set, sqlipc_connection *c) {
        struct epoll_event event = { .data.u64 = TAG_BUS };
        int fd, events;

        if (set->epoll_fd < 0)
                return;
        fd = sd_bus_get_fd(c->bus);
        if (fd != set->fd)
                remove_bus(set);
        if (fd < 0)
                return;
        events = sd_bus_get_events(c->bus);
        event.events = (events & POLLIN ? (uint32_t) EPOLLIN : 0) | (events & POLLOUT ? (uint32_t) EPOLLOUT : 0);

        /* While sd-bus is still connecting, it may use another socket under the same number. */
        if (fd == set->fd && event.events == set->events && sd_bus_is_ready(c->bus) > 0)
                return;
        if (set_fd(set->epoll_fd, fd, &event) < 0)
                return;
        set->fd = fd;
        set->events = event.events;
}

void event_loop_update(sqlipc_connection *c) {
        if (c->closed || connection_is_foreign(c))
                return;
        update_bus(&c->loop_set, c);
        update_bus(&c->bus_set, c);
}

static void close_set(BusSet *set) {
        set->fd = -1;
        set->epoll_fd = safe_close(set->epoll_fd);
}

void event_loop_close(sqlipc_connection *c) {
        close_set(&c->loop_set);
        close_set(&c->bus_set);
}

int event_loop_arm(sqlipc_connection *c, struct pollfd data, const void *whose) {
        struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.u64 = (uintptr_t) whose };

        if (data.events & POLLOUT)
                event.events |= EPOLLOUT;
        return c->loop_set.epoll_fd < 0 || connection_is_foreign(c) ? 0 : set_fd(c->loop_set.epoll_fd, data.fd, &event);
}

void event_loop_disarm(sqlipc_connection *c, int fd) {
        if (c->loop_set.epoll_fd >= 0 && !connection_is_foreign(c))
                (void) epoll_ctl(c->loop_set.epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void event_loop_wake(sqlipc_connection *c) {
        if (c->loop_set.epoll_fd >= 0 && !connection_is_foreign(c))
                event_loop_come_back(c);
}

void event_loop_come_back(sqlipc_connection *c) {
        uint64_t one = 1;

        if (c->is_woken)
                return;
        if (write(c->wake_fd, &one, sizeof one) < 0)
                return; /* the counter is full: wake_fd is readable in any case */
        c->is_woken = true;
}

void event_loop_wake_if_idle(sqlipc_connection *c) {
        if (!c->dispatching && !connection_is_foreign(c))
                event_loop_come_back(c);
}

static int ensure_epoll(sqlipc_connection *c) {
        struct epoll_event event = { .events = EPOLLIN, .data.u64 = TAG_WAKE };
        int fd;

        if (connection_is_foreign(c))
                return -ECHILD;
        if (c->loop_set.epoll_fd >= 0)
                return 0;
        fd = epoll_create1(EPOLL_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (epoll_ctl(fd, EPOLL_CTL_ADD, c->wake_fd, &event) < 0) {
                int r = -errno;

                (void) safe_close(fd);
                return r;
        }
        c->loop_set.epoll_fd = fd;
        event_loop_update(c);
        return 0;
}

int event_loop_get_bus_set(sqlipc_connection *c) {
        if (c->bus_set.epoll_fd < 0) {
                int fd = epoll_create1(EPOLL_CLOEXEC);

                if (fd < 0)
                        return -errno;
                c->bus_set.epoll_fd = fd;
        }
        event_loop_update(c);
        return c->bus_set.epoll_fd;
}

_public_ int sqlipc_set_blocking(sqlipc_connection *connection, int blocking) {
        int r = connection_check(connection);

        if (r < 0)
                return r;
        if (!blocking) {
                r = ensure_epoll(connection); /* from now on -EAGAIN adds pipes to it */
                if (r < 0)
                        return connection_fail_errno(connection, r);
        }
        connection->blocking = blocking != 0;
        connection->patient = false;
        return 0;
}

_public_ int sqlipc_get_fd(sqlipc_connection *connection) {
        int r = connection_check(connection);

        if (r < 0)
                return r;
        r = ensure_epoll(connection);
        if (r < 0)
                return connection_fail_errno(connection, r);
        event_loop_update(connection);
        return connection->loop_set.epoll_fd;
}

_public_ int sqlipc_get_events(sqlipc_connection *connection) {
        int r = connection_check(connection);

        if (r < 0)
                return r;
        event_loop_update(connection);
        return POLLIN;
}

_public_ int sqlipc_get_timeout(sqlipc_connection *connection, uint64_t *ret_usec) {
        uint64_t members_until;
        int r = connection_check(connection);

        if (r < 0)
                return r;
        if (!ret_usec)
                return connection_fail_errno(connection, -EINVAL);
        event_loop_update(connection);
        *ret_usec = UINT64_MAX;
        r = sd_bus_get_timeout(connection->bus, ret_usec);
        if (r < 0 && r != -ENOTCONN) /* the bus is closed: nothing more comes */
                return connection_fail_errno(connection, r);
        members_until = connection_deadline(connection);
        if (members_until < *ret_usec)
                *ret_usec = members_until;
        return 0;
}

/* ---- Calling back ------------------------------------------------------------------------------------------------- */

static void note(struct MemberList *members, const void *owner) {
        Member *member;

        TAILQ_FOREACH(member, members, link)
                if (member->wait == MEMBER_WAITS && (!owner || member->operations->descriptor_owner(member) == owner))
                        member->wait = MEMBER_HAS_NEWS;
}

/* Marks the objects that wait for the descriptor of `owner`, which may have been freed. NULL: something came from the bus,
 * which any of them may wait for, except watches and live queries, which know it themselves. */
static void note_news(sqlipc_connection *c, const void *owner) {
        note(&c->cursors, owner);
        note(&c->statements, owner);
        note(&c->transactions, owner);
        note(&c->loads, owner);
        if (owner)
                note(&c->watches, owner);
}

/* An object that is called back no longer waits, until the program asks it again. */
static bool call_back_one(struct MemberList *members) {
        Member *member;

        TAILQ_FOREACH(member, members, link) {
                if (member->wait != MEMBER_HAS_NEWS)
                        continue;
                member->wait = MEMBER_WAITS_NOT;
                if (member->operations->call_back(member))
                        return true;
        }
        return false;
}

/* Calls one callback. False: there is none. A callback may free any object, so each search starts from the beginning. */
static bool call_back(sqlipc_connection *c) {
        return call_back_one(&c->transactions) || call_back_one(&c->loads) || call_back_one(&c->statements) ||
               call_back_one(&c->watches) || call_back_one(&c->cursors) || call_back_one(&c->lives);
}

/* ---- Processing --------------------------------------------------------------------------------------------------- */

/* Removes the one-shot events of pipes from the set; level-triggered events remain as long as their cause does. 1: there
 * were events of pipes; 0; -ELOOP: something is ready again and again, and leads to nothing (turns.h). */
static int collect_pipes(sqlipc_connection *c) {
        struct epoll_event events[16];
        bool ready = false;
        int n, done = 0;

        if (c->loop_set.epoll_fd < 0)
                return 0;
        do {
                n = epoll_wait(c->loop_set.epoll_fd, events, 16, 0);
                bool pipes = false;

                ready |= n > 0;
                for (int i = 0; i < n; i++)
                        if (events[i].data.u64 >= TAG_MAX) {
                                note_news(c, (const void *) (uintptr_t) events[i].data.u64);
                                pipes = true;
                        }
                done |= pipes;
                if (!pipes)
                        break;
        } while (n == 16);
        if (!ready && connection_deadline(c) > now_usec())
                turns_wait(&c->turns);
        else if (turns_next(&c->turns) < 0)
                return -ELOOP;
        return done;
}

_public_ int sqlipc_process(sqlipc_connection *connection) {
        _cleanup_(sqlipc_connection_unrefp) sqlipc_connection *kept = NULL;
        int r = connection_check(connection), pipes;

        if (r < 0)
                return r;
        kept = sqlipc_connection_ref(connection); /* a handler may close it */
        if (connection->delivering)
                return connection_fail_errno(connection, -EBUSY);
        pipes = collect_pipes(connection);
        r = connection_process(connection);
        if (r >= 0 && pipes < 0)
                return connection_fail_loop(connection);
        if (r < 0)
                return connection_fail_errno(connection, r);
        if (r > 0)
                note_news(connection, NULL);
        connection->delivering = true;
        while (call_back(connection))
                ;
        connection->delivering = false;
        return r > 0 || pipes;
}
