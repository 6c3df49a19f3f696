/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opening, closing and driving a connection (connection.h). Library.
 *
 * Waiting. A blocking call polls three descriptors directly: the bus, the pipe or channel that it reads, and wake_fd. A
 * program with a loop polls epoll_fd, which contains the bus, wake_fd and, for one wake-up after each -EAGAIN, the pipes and
 * channels of its cursors and loads.
 *
 * Losing the bus. sd-bus answers every call in progress with an error, so nothing waits forever. Rows that are in a pipe can
 * still be read. The next call that needs a bus opens another one, unless the bus is the caller's.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "client-lib/bus-open.h"
#include "client-lib/connection-bus.h"
#include "client-lib/connection.h"
#include "client-lib/error.h"
#include "client-lib/event-loop.h"
#include "config.h"

#define TIMEOUT_DEFAULT_USEC (25 * USEC_PER_SEC)

/* A blocking call with a shorter timeout than this always polls, and never waits for the channel alone. */
#define PATIENT_TIMEOUT_MIN_USEC (USEC_PER_SEC / 10)

/* After this many runs over channels the bus is processed. */
#define N_QUIET_MAX 1024u

static atomic_uint n_forks;

static void on_fork(void) {
        n_forks++;
}

__attribute__((constructor)) static void count_forks(void) {
        (void) pthread_atfork(NULL, NULL, on_fork);
}

bool connection_is_foreign(const sqlipc_connection *c) {
        return c->forks != n_forks;
}

static int connection_new(sqlipc_connection **ret) {
        _cleanup_(sqlipc_connection_unrefp) sqlipc_connection *c = malloc(sizeof *c);

        if (!c)
                return -ENOMEM;
        *c = (sqlipc_connection) {
                .n_ref = 1,
                .blocking = true,
                .timeout_usec = TIMEOUT_DEFAULT_USEC,
                .run_timeout_usec = UINT64_MAX,
                .lock_wait_usec = UINT64_MAX,
                .row_memory_max = SIZE_MAX,
                .wake_fd = -1,
                .loop_set = { .epoll_fd = -1, .fd = -1 },
                .bus_set = { .epoll_fd = -1, .fd = -1 },
                .error = { .sql_offset = -1 },
                .n_turns = 1,
                .forks = n_forks,
        };
        TAILQ_INIT(&c->statements);
        TAILQ_INIT(&c->cursors);
        TAILQ_INIT(&c->transactions);
        TAILQ_INIT(&c->loads);
        TAILQ_INIT(&c->watches);
        TAILQ_INIT(&c->lives);
        TAILQ_INIT(&c->channels);

        c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (c->wake_fd < 0)
                return -errno;
        *ret = steal(c);
        return 0;
}

static int open_own(int (*open_bus)(sd_bus **, const char *), const char *address, sqlipc_connection **ret) {
        _cleanup_(sqlipc_connection_unrefp) sqlipc_connection *c = NULL;
        int r;

        if (!ret)
                return -EINVAL;
        r = connection_new(&c);
        if (r < 0)
                return r;
        c->open_bus = open_bus;
        if (address) {
                c->address = strdup(address);
                if (!c->address)
                        return -ENOMEM;
        }
        r = open_bus(&c->bus, c->address);
        if (r < 0)
                return r;
        connection_bus_look_at_address(c);
        *ret = steal(c);
        return 0;
}

_public_ int sqlipc_open_system(sqlipc_connection **ret_connection) {
        return open_own(bus_open_system, NULL, ret_connection);
}

_public_ int sqlipc_open_user(sqlipc_connection **ret_connection) {
        return open_own(bus_open_user, NULL, ret_connection);
}

_public_ int sqlipc_open_address(const char *address, sqlipc_connection **ret_connection) {
        return address ? open_own(bus_open_address, address, ret_connection) : -EINVAL;
}

_public_ int sqlipc_open_bus(sd_bus *bus, sqlipc_connection **ret_connection) {
        sqlipc_connection *c = NULL;
        int r;

        if (!bus || !ret_connection)
                return -EINVAL;
        r = connection_new(&c);
        if (r < 0)
                return r;
        c->bus = sd_bus_ref(bus);
        connection_bus_look_at_address(c);
        *ret_connection = c;
        return 0;
}

/* ---- Ending ------------------------------------------------------------------------------------------------------- */

static void close_members(struct MemberList *members) {
        Member *member;

        TAILQ_FOREACH(member, members, link)
                member->operations->close(member);
}

/* Ends everything in progress. The other objects stay for the program to free, and return -ENOTCONN. */
static void close_connection(sqlipc_connection *c) {
        if (c->closed)
                return;
        close_members(&c->lives);
        close_members(&c->watches);
        close_members(&c->cursors);
        close_members(&c->statements);
        close_members(&c->loads);
        close_members(&c->transactions);
        close_members(&c->channels);
        c->closed = true;
        event_loop_close(c);
        if (c->open_bus)
                sd_bus_close_unref(c->bus); /* the daemon frees our statements and runs when it sees us leave */
        else
                sd_bus_unref(c->bus);
        c->bus = NULL;
}

_public_ sqlipc_connection *sqlipc_connection_ref(sqlipc_connection *c) {
        if (c)
                atomic_fetch_add_explicit(&c->n_ref, 1, memory_order_relaxed);
        return c;
}

/* Each object that is neither a channel nor a pin holds a reference, so there are none here. */
_public_ sqlipc_connection *sqlipc_connection_unref(sqlipc_connection *c) {
        Member *channel, *pin, *next;

        if (!c || atomic_fetch_sub_explicit(&c->n_ref, 1, memory_order_acq_rel) > 1)
                return NULL;
        close_connection(c);
        for (pin = TAILQ_FIRST(&c->transactions); pin; pin = next) {
                next = TAILQ_NEXT(pin, link);
                pin->operations->free(pin);
        }
        for (channel = TAILQ_FIRST(&c->channels); channel; channel = next) {
                next = TAILQ_NEXT(channel, link);
                channel->operations->free(channel);
        }
        free(c->spare_cursor);
        c->wake_fd = safe_close(c->wake_fd); /* last: a cursor may be cancelled as long as it exists */
        free(c->address);
        client_zone_done(&c->zone);
        free(c);
        return NULL;
}

_public_ void sqlipc_connection_unrefp(sqlipc_connection **connection) {
        (void) sqlipc_connection_unref(*connection);
}

_public_ sqlipc_connection *sqlipc_close(sqlipc_connection *c) {
        if (c)
                close_connection(c);
        return sqlipc_connection_unref(c);
}

_public_ void sqlipc_closep(sqlipc_connection **connection) {
        (void) sqlipc_close(*connection);
}

int connection_check(sqlipc_connection *c) {
        if (!c)
                return -EINVAL;
        if (connection_is_foreign(c))
                return error_set_errno(&c->error, -ECHILD, "The connection belongs to the parent of this process.");
        return c->closed ? error_set_errno(&c->error, -ENOTCONN, "The connection was closed.") : 0;
}

_public_ int sqlipc_set_timeout(sqlipc_connection *connection, uint64_t usec) {
        int r = connection_check(connection);

        if (r < 0)
                return r;
        connection->timeout_usec = usec;
        return 0;
}

_public_ int sqlipc_set_allow_interactive_authorization(sqlipc_connection *connection, int allow) {
        int r = connection_check(connection);

        if (r < 0)
                return r;
        connection->allow_interactive_authorization = allow != 0;
        return 0;
}

_public_ int sqlipc_set_row_memory_max(sqlipc_connection *connection, size_t size) {
        int r = connection_check(connection);

        if (r < 0)
                return r;
        connection->row_memory_max = size;
        return 0;
}

_public_ int sqlipc_set_run_timeout(sqlipc_connection *connection, uint64_t usec) {
        int r = connection_check(connection);

        if (r < 0)
                return r;
        if (usec == 0)
                return connection_fail_errno(connection, -EINVAL);
        connection->run_timeout_usec = usec;
        return 0;
}

_public_ int sqlipc_set_lock_wait(sqlipc_connection *connection, uint64_t usec) {
        int r = connection_check(connection);

        if (r < 0)
                return r;
        connection->lock_wait_usec = usec;
        return 0;
}

/* May run in any thread and in a signal handler, and so touches only the counter and wake_fd. */
_public_ int sqlipc_interrupt(sqlipc_connection *c) {
        int saved = errno;
        uint64_t one = 1;

        if (!c)
                return -EINVAL;
        atomic_fetch_add_explicit(&c->n_interrupts, 1, memory_order_release);
        if (write(c->wake_fd, &one, sizeof one) < 0)
                errno = saved; /* the counter is full: wake_fd is readable in any case */
        return 0;
}

unsigned connection_interrupts(const sqlipc_connection *c) {
        return atomic_load_explicit(&c->n_interrupts, memory_order_acquire);
}

static void advance_members(struct MemberList *members) {
        Member *member;

        TAILQ_FOREACH(member, members, link)
                member->operations->advance(member);
}

/* `may_be_woken`: wake_fd may be readable. */
static int process(sqlipc_connection *c, bool may_be_woken) {
        bool woke_itself = c->is_woken;
        uint64_t count = 0;
        int r;

        if (c->closed || connection_is_foreign(c))
                return connection_check(c);
        if (c->dispatching) /* a handler of the caller's bus called the library again */
                return -EBUSY;

        c->patient = false;
        c->dispatching = true;
        c->n_turns++;
        c->n_quiet = 0;
        if (may_be_woken) {
                c->is_woken = false;
                if (read(c->wake_fd, &count, sizeof count) < 0)
                        count = 0;
                else if (count > 1 || !woke_itself)
                        turns_step(&c->turns);
        }
        r = connection_bus_dispatch(c, CONNECTION_BUS_MESSAGES_MAX);
        c->dispatching = false;
        if (c->closed)
                return connection_check(c);
        if (c->n_watches_lost > 0)
                advance_members(&c->watches);
        if (r >= 0)
                advance_members(&c->cursors);
        advance_members(&c->channels);
        advance_members(&c->lives);
        event_loop_update(c);
        return r < 0 ? r : r > 0 || count > 0;
}

int connection_process(sqlipc_connection *c) {
        return process(c, true);
}

int connection_process_aside(sqlipc_connection *c) {
        int r = process(c, false);

        if (r > 0)
                event_loop_wake(c);
        return r;
}

static uint64_t earlier(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

/* poll() until `until` (CLOCK_MONOTONIC usec, UINT64_MAX: forever). */
static int poll_until(struct pollfd *fds, nfds_t n_fds, uint64_t until) {
        struct timespec timeout, *t = NULL;
        int n;

        if (until != UINT64_MAX) {
                uint64_t now = now_usec(), left = until > now ? until - now : 0;

                timeout = (struct timespec) { .tv_sec = (time_t) (left / USEC_PER_SEC),
                                              .tv_nsec = (long) (left % USEC_PER_SEC) * 1000 };
                t = &timeout;
        }
        n = ppoll(fds, n_fds, t, NULL);
        return n < 0 ? (errno == EINTR ? 0 : -errno) : n;
}

/* The same as poll_until(). After a turn without progress it finds out if something is ready at once. */
static int poll_turn(Turns *t, struct pollfd *fds, nfds_t n_fds, uint64_t until) {
        int r = turns_next(t);

        if (r < 0)
                return r;
        if (t->n_idle > 0 && until > now_usec() && poll_until(fds, n_fds, 0) == 0)
                turns_wait(t);
        return poll_until(fds, n_fds, until);
}

static uint64_t earliest(const struct MemberList *members) {
        uint64_t deadline = UINT64_MAX;
        Member *member;

        TAILQ_FOREACH(member, members, link)
                deadline = earlier(deadline, member->operations->deadline(member));
        return deadline;
}

uint64_t connection_deadline(const sqlipc_connection *c) {
        uint64_t deadline = earlier(earliest(&c->channels), earliest(&c->lives));

        return c->n_watches_lost > 0 ? earlier(deadline, earliest(&c->watches)) : deadline;
}

uint64_t connection_deadline_after(uint64_t timeout_usec) {
        uint64_t now = now_usec();

        return timeout_usec < UINT64_MAX - now ? now + timeout_usec : UINT64_MAX;
}

uint64_t connection_answer_deadline(const sqlipc_connection *c) {
        return c->allow_interactive_authorization ? UINT64_MAX : 0;
}

void connection_be_patient(sqlipc_connection *c) {
        c->patient = c->blocking && c->timeout_usec >= PATIENT_TIMEOUT_MIN_USEC;
}

void connection_look_at_bus(sqlipc_connection *c) {
        c->patient = false;
        if (++c->n_quiet >= N_QUIET_MAX && !c->dispatching)
                (void) connection_process(c); /* the next call that needs the bus reports a loss */
}

int connection_wait(sqlipc_connection *c, struct pollfd data, uint64_t *deadline) {
        struct pollfd fds[3] = {
                data,
                { .fd = c->wake_fd, .events = POLLIN },
                { .fd = -1 },
        };
        uint64_t bus_until = UINT64_MAX, members_until = connection_deadline(c);
        int r;

        if (c->closed || connection_is_foreign(c))
                return connection_check(c);
        if (*deadline == 0)
                *deadline = connection_deadline_after(c->timeout_usec);
        else if (*deadline != UINT64_MAX && now_usec() >= *deadline) /* also if bytes keep trickling in */
                return -ETIMEDOUT;

        r = sd_bus_get_fd(c->bus);
        if (r >= 0) {
                fds[2].fd = r;
                r = sd_bus_get_events(c->bus);
                if (r < 0)
                        return r;
                fds[2].events = (short) r;
                r = sd_bus_get_timeout(c->bus, &bus_until);
                if (r < 0)
                        return r;
        } else if (r != -ENOTCONN)
                return r;

        r = poll_turn(&c->turns, fds, 3, earlier(*deadline, earlier(bus_until, members_until)));
        if (r < 0)
                return r;
        if (fds[0].revents && c->turns.n_idle == 0)
                return 1;
        /* also if there is data of which nothing was read at the last turn: the rest may bring the caller on */
        if (fds[1].revents || fds[2].revents || bus_until != UINT64_MAX || members_until != UINT64_MAX) {
                r = process(c, fds[1].revents != 0);
                if (r != 0)
                        return r < 0 ? r : 0;
        }
        if (fds[0].revents)
                return 1;
        return *deadline != UINT64_MAX && now_usec() >= *deadline ? -ETIMEDOUT : 0;
}

/* ---- Failures ----------------------------------------------------------------------------------------------------- */

int connection_fail(sqlipc_connection *connection, const Error *e) {
        Member *member;

        if (&connection->error != e)
                connection->error = *e;
        if (e->lost_pin > 0)
                TAILQ_FOREACH(member, &connection->transactions, link)
                        member->operations->tell_loss(member, e->lost_pin);
        return e->result;
}

int connection_fail_errno(sqlipc_connection *connection, int r) {
        return connection ? error_set_errno(&connection->error, r, NULL) : r;
}

int connection_fail_send(sqlipc_connection *connection, int r) {
        if (connection->closed)
                return connection_check(connection);
        if (r == -ENOTCONN && connection->bus && !connection_bus_is_open(connection))
                return error_set_bus_lost(&connection->error, connection->bus);
        return error_set_send(&connection->error, r);
}

int connection_fail_loop(sqlipc_connection *connection) {
        return error_set_errno(&connection->error, -ELOOP,
                               "The library woke up %u times in a row and found nothing to do, which is an error of the "
                               "library. Close the connection and open another; please report this.", TURNS_IDLE_MAX);
}

int connection_fail_wait(sqlipc_connection *connection, int r) {
        if (r == -ELOOP)
                return connection_fail_loop(connection);
        if (r != -ETIMEDOUT)
                return connection_fail_send(connection, r);
        return error_set_errno(&connection->error, r, "No answer within %.3g s.", (double) connection->timeout_usec / 1e6);
}

/* ---- The bus, and the version ------------------------------------------------------------------------------------- */

_public_ sd_bus *sqlipc_get_bus(sqlipc_connection *connection) {
        int r;

        if (connection_check(connection) < 0)
                return NULL;
        if (connection->open_bus)
                (void) connection_process(connection); /* finds out if the bus was lost since */
        if (connection->closed || connection_bus_must_tell_loss(connection))
                r = -ENOTCONN;
        else
                r = connection_bus_ensure(connection);
        if (r >= 0 && !connection_bus_is_open(connection))
                r = -ENOTCONN;
        if (r < 0) {
                (void) connection_fail_send(connection, r);
                return NULL;
        }
        return connection->bus;
}

_public_ const char *sqlipc_version(void) {
        return SQLIPC_VERSION;
}
