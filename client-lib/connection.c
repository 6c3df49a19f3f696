/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opening, closing and driving a connection (connection.h). Library.
 *
 * Waiting. A blocking call polls three descriptors directly: the bus, the pipe or channel that it reads, and wake_fd. A
 * program with a loop polls epoll_fd, which contains the bus, wake_fd and, for one wake-up after each -EAGAIN, the pipes and
 * channels of its cursors.
 *
 * Losing the bus. sd-bus answers every call in progress with an error, so nothing waits forever. Rows that are in a pipe can
 * still be read. The next call that needs a bus opens another one, unless the bus is the caller's.
 */
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "client-lib/channel-link.h"
#include "client-lib/connection.h"
#include "client-lib/cursor.h"
#include "client-lib/prepared.h"
#include "config.h"
#include "dbus-interfaces/sqlipc-names.h"

#define TIMEOUT_DEFAULT_USEC (25 * USEC_PER_SEC)

/* A blocking call with a shorter timeout than this always polls, and never waits for the channel alone. */
#define PATIENT_TIMEOUT_MIN_USEC (USEC_PER_SEC / 10)

/* How many messages of the bus are processed in one turn. */
#define N_MESSAGES_MAX 256u

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
                .row_memory_max = SIZE_MAX,
                .wake_fd = -1,
                .epoll_fd = -1,
                .polled_bus_fd = -1,
                .error = { .sql_offset = -1 },
                .n_turns = 1,
                .forks = n_forks,
        };
        LIST_INIT(&c->statements);
        TAILQ_INIT(&c->cursors);
        LIST_INIT(&c->channels);

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
        connection_look_at_address(c);
        *ret = steal(c);
        return 0;
}

_public_ int sqlipc_open_system(sqlipc_connection **ret_connection) {
        return open_own(open_system_bus, NULL, ret_connection);
}

_public_ int sqlipc_open_user(sqlipc_connection **ret_connection) {
        return open_own(open_user_bus, NULL, ret_connection);
}

_public_ int sqlipc_open_address(const char *address, sqlipc_connection **ret_connection) {
        return address ? open_own(open_address_bus, address, ret_connection) : -EINVAL;
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
        connection_look_at_address(c);
        *ret_connection = c;
        return 0;
}

/* ---- Ending ------------------------------------------------------------------------------------------------------- */

/* Ends everything in progress. Statements and cursors stay for the program to free, and return -ENOTCONN. */
static void close_connection(sqlipc_connection *c) {
        sqlipc_cursor *cursor;
        sqlipc_statement *statement;

        if (c->closed)
                return;
        TAILQ_FOREACH(cursor, &c->cursors, link)
                cursor_close_connection(cursor);
        LIST_FOREACH(statement, &c->statements, link)
                prepared_close_connection(statement);
        channel_link_close_all(c);
        c->closed = true;
        c->polled_bus_fd = -1;
        c->epoll_fd = safe_close(c->epoll_fd);
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

/* Each statement and cursor holds a reference, so there are none here. */
_public_ sqlipc_connection *sqlipc_connection_unref(sqlipc_connection *c) {
        if (!c || atomic_fetch_sub_explicit(&c->n_ref, 1, memory_order_acq_rel) > 1)
                return NULL;
        close_connection(c);
        channel_link_free_all(c);
        free(c->spare_cursor);
        c->wake_fd = safe_close(c->wake_fd); /* last: a cursor may be cancelled as long as it exists */
        free(c->address);
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

bool connection_is_open(sqlipc_connection *c) {
        return sd_bus_is_open(c->bus) > 0;
}

/* Processes at most `n_max` messages, so that a peer that floods the bus cannot keep the library here. */
static int dispatch_bus(sqlipc_connection *c, unsigned n_max) {
        int r = 0, done = 0;

        /* a handler of the program may close the connection */
        while (!c->closed && n_max-- > 0 && (r = sd_bus_process(c->bus, NULL)) > 0) {
                done = 1;
                c->bus_was_ready |= !c->closed && sd_bus_is_ready(c->bus) > 0;
        }
        if (c->closed)
                return -ENOTCONN;
        if (r == -ENOTCONN || r == -ECONNRESET) /* the bus is gone: every call in progress has been answered */
                return done;
        return r < 0 ? r : done;
}

/* ssh may have asked for a password. If it ends before the bus has answered, one call must fail and report that; only the
 * call after that starts ssh again. */
static bool never_answered(sqlipc_connection *c) {
        return !connection_is_open(c) && c->open_bus && c->descriptors == DESCRIPTORS_NONE && !c->bus_was_ready;
}

bool connection_must_tell_loss(sqlipc_connection *c) {
        return never_answered(c) && !c->bus_loss_told;
}

bool connection_may_send_again(sqlipc_connection *c, int r) {
        if (r >= 0 || connection_is_open(c))
                return false;
        if (!never_answered(c))
                return true;
        c->bus_loss_told = true;
        return false;
}

/* A bus drops a connection that does not say Hello in time (dbus-daemon's auth_timeout), and ours says Hello only when it
 * is first used. So this function processes the bus to learn its state. It does not do that with a relay such as ssh: see
 * never_answered(). */
static bool is_usable(sqlipc_connection *c) {
        if (connection_is_open(c) && c->open_bus && c->descriptors != DESCRIPTORS_NONE && !c->dispatching &&
            sd_bus_is_ready(c->bus) == 0 && dispatch_bus(c, N_MESSAGES_MAX) < 0)
                return false;
        return connection_is_open(c);
}

int connection_ensure_bus(sqlipc_connection *c) {
        sd_bus *bus = NULL;
        int r;

        if (connection_is_foreign(c))
                return -ECHILD;
        c->bus_was_ready |= sd_bus_is_ready(c->bus) > 0;
        if (is_usable(c) || !c->open_bus)
                return 0;
        if (connection_must_tell_loss(c)) {
                c->bus_loss_told = true;
                return -ENOTCONN;
        }

        /* Calls in progress learn of the loss before their slots are freed; the program may wait for them, so this wakes
         * its loop. Cursors are not advanced here, because one of them may be opening the bus. */
        (void) dispatch_bus(c, UINT_MAX); /* the bus is closed: no more messages come */
        r = c->open_bus(&bus, c->address);
        if (r < 0)
                return -ENOTCONN; /* there is no bus, for one reason or another */
        prepared_on_bus_lost(c);
        sd_bus_close_unref(c->bus);
        c->bus = bus;
        c->bus_was_ready = c->bus_loss_told = false;
        c->bus_generation++;
        connection_update_events(c);
        return 0;
}

int connection_new_call(sqlipc_connection *c, sd_bus_message **ret, const char *destination, const char *path,
                        const char *method) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(c->bus, &m, destination ? destination : SQLIPC_BUS_NAME, path,
                                           SQLIPC_DATABASE_INTERFACE, method);
        if (r < 0)
                return r;
        r = sd_bus_message_set_allow_interactive_authorization(m, c->allow_interactive_authorization);
        if (r < 0)
                return r;
        if (destination) {
                r = sd_bus_message_set_auto_start(m, false);
                if (r < 0)
                        return r;
        }
        *ret = steal(m);
        return 0;
}

int connection_process(sqlipc_connection *c) {
        sqlipc_cursor *cursor;
        uint64_t count;
        int r;

        if (c->closed || connection_is_foreign(c))
                return connection_check(c);
        if (c->dispatching) /* a handler of the caller's bus called the library again */
                return -EBUSY;

        c->patient = false;
        c->dispatching = true;
        c->n_turns++;
        c->n_quiet = 0;
        if (read(c->wake_fd, &count, sizeof count) < 0)
                count = 0;
        r = dispatch_bus(c, N_MESSAGES_MAX);
        c->dispatching = false;
        if (c->closed)
                return connection_check(c);
        if (r >= 0)
                TAILQ_FOREACH(cursor, &c->cursors, link)
                        cursor_advance(cursor);
        channel_link_process_all(c);
        connection_update_events(c);
        return r < 0 ? r : r > 0 || count > 0;
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
        uint64_t bus_until = UINT64_MAX, channels_until = channel_link_deadline(c);
        int r;

        if (c->closed || connection_is_foreign(c))
                return connection_check(c);
        if (*deadline == 0) {
                uint64_t now = now_usec();

                *deadline = c->timeout_usec < UINT64_MAX - now ? now + c->timeout_usec : UINT64_MAX;
        } else if (*deadline != UINT64_MAX && now_usec() >= *deadline) /* also if bytes keep trickling in */
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

        r = poll_until(fds, 3, earlier(*deadline, earlier(bus_until, channels_until)));
        if (r < 0)
                return r;
        if (fds[0].revents)
                return 1;
        if (fds[1].revents || fds[2].revents || bus_until != UINT64_MAX || channels_until != UINT64_MAX) {
                r = connection_process(c);
                if (r != 0)
                        return r < 0 ? r : 0;
        }
        return *deadline != UINT64_MAX && now_usec() >= *deadline ? -ETIMEDOUT : 0;
}

_public_ const char *sqlipc_version(void) {
        return SQLIPC_VERSION;
}
