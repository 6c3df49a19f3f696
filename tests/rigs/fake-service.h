/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A service that behaves as a test tells it, at the other end of a socketpair, in a thread of its own. Tests only.
 *
 * Calls that are not scripted succeed: Prepare and Query give a pipe, Fetch and Query send `rows` (bytes of a Stream,
 * tagged with the number of the run that they were made for), Cancel and Finalize answer. A test sets fields before it
 * calls the library, and reads the counters afterwards. There are no bus names here: see tests/bus for those.
 */
#ifndef SQLIPC_TESTS_RIGS_FAKE_SERVICE_H
#define SQLIPC_TESTS_RIGS_FAKE_SERVICE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "client-lib/sqlipc.h"
#include "tests/unit/stream.h"

#define FAKE_RUN 7

typedef struct FakeService FakeService;

/* Takes over a call: 0 leaves it to the usual answer, anything else means that it was dealt with. */
typedef int (*fake_handler)(FakeService *f, sd_bus_message *m, const char *member);

struct FakeService {
        sqlipc_connection *connection; /* the library's end */
        sd_bus *client_bus, *bus;
        pthread_t thread;
        atomic_bool stop;

        fake_handler on_call;          /* may be NULL */
        const char *parameters[4];     /* names that Prepare tells, up to NULL */
        Stream rows;                   /* what a run sends; empty: nothing, its pipe stays open */
        bool writes;                   /* Prepare and Query do not say that the statement is read-only */
        bool close_pipe;               /* closes the write end behind them */
        bool reply_late;               /* Fetch replies 20 ms after its rows went out, not before */

        int write_fd;                  /* of the last pipe, -1: none */
        sd_bus_message *last;          /* the last Fetch or Query */
        atomic_int n_prepare, n_fetch, n_query, n_cancel, n_finalize;
        atomic_int n_cancel_call;      /* by the serial of a call, without a reply */
        uint32_t cancelled;            /* the last such serial */
        bool has_page_version;   /* in info; a service may say nothing */
        uint32_t page_version;
};

/* Streams of tests fit a pipe; the library may have closed its end. The test may make the next stream as soon as it has read
 * this one, which can be before write() returns. A copy is written, because a sanitizer looks at the bytes after write(). */
static inline void fake_write(FakeService *f, const Stream *s) {
        Stream copy = STREAM_INIT;
        ssize_t n;

        stream_add(&copy, s->bytes, s->size);
        n = write(f->write_fd, copy.bytes, copy.size);
        if (n < 0)
                CHECK_INT(errno, EPIPE);
        else
                CHECK_INT(n, copy.size);
        stream_done(&copy);
}

static inline void fake_close_pipe(FakeService *f) {
        if (f->write_fd >= 0)
                close(f->write_fd);
        f->write_fd = -1;
}

/* (h, columns, info) behind a number, as Prepare and Query reply; the columns are one, "c". */
static inline void fake_reply_pipe(FakeService *f, sd_bus_message *m, uint64_t number) {
        sd_bus_message *reply = NULL;
        int fds[2];

        CHECK(pipe2(fds, O_CLOEXEC) >= 0);
        fake_close_pipe(f);
        f->write_fd = fds[1];
        CHECK(sd_bus_message_new_method_return(m, &reply) >= 0);
        CHECK(sd_bus_message_append(reply, "tha(ssa{sv})", number, fds[0], 1, "c", "TEXT", 0) >= 0);
        close(fds[0]);
        CHECK(sd_bus_message_open_container(reply, 'a', "{sv}") >= 0);
        CHECK(sd_bus_message_append(reply, "{sv}", "page-size", "u", (uint32_t) SQLIPC_PAGE_SIZE_MIN) >= 0);
        if (f->has_page_version)
                CHECK(sd_bus_message_append(reply, "{sv}", "page-version", "u", f->page_version) >= 0);
        CHECK(sd_bus_message_append(reply, "{sv}", "x-future", "as", 1, "whatever") >= 0);
        CHECK(sd_bus_message_append(reply, "{sv}", "readonly", "b", !f->writes) >= 0);
        CHECK(sd_bus_message_open_container(reply, 'e', "sv") >= 0);
        CHECK(sd_bus_message_append(reply, "s", "parameters") >= 0);
        CHECK(sd_bus_message_open_container(reply, 'v', "as") >= 0);
        CHECK(sd_bus_message_open_container(reply, 'a', "s") >= 0);
        for (size_t i = 0; i < N_ELEMENTS(f->parameters) && f->parameters[i]; i++)
                CHECK(sd_bus_message_append(reply, "s", f->parameters[i]) >= 0);
        for (int i = 0; i < 4; i++)
                CHECK(sd_bus_message_close_container(reply) >= 0);
        CHECK(sd_bus_send(f->bus, reply, NULL) >= 0);
        sd_bus_message_unref(reply);
}

static inline void fake_send_rows(FakeService *f) {
        const bool close_pipe = f->close_pipe; /* the test may change it once it has read the rows */

        if (f->rows.size > 0 && f->write_fd >= 0) /* closed with the run before */
                fake_write(f, &f->rows);
        if (close_pipe)
                fake_close_pipe(f);
}

static inline void fake_remember(FakeService *f, sd_bus_message *m) {
        sd_bus_message_unref(f->last);
        f->last = sd_bus_message_ref(m);
}

/* A client may leave without reading the answer. */
static inline bool fake_answered(int r) {
        return r >= 0 || r == -ENOTCONN || r == -ECONNRESET || r == -EPIPE;
}

/* The number of the run is 0. All calls were answered before, unless the test says otherwise. */
static inline bool fake_is_cancel_of_call(sd_bus_message *m) {
        uint64_t number;

        CHECK(sd_bus_message_rewind(m, true) >= 0);
        CHECK(sd_bus_message_read(m, "t", &number) > 0);
        CHECK(sd_bus_message_rewind(m, true) >= 0);
        return number == 0;
}

/* The program gave the call up, and waits for nothing. */
static inline void fake_note_cancel_of_call(FakeService *f, sd_bus_message *m) {
        uint64_t number;
        const char *key;

        if (sd_bus_message_get_expect_reply(m) > 0)
                return;
        CHECK(sd_bus_message_read(m, "ta{sv}", &number, 1, &key, "u", &f->cancelled) > 0);
        CHECK_STRING(key, "call");
        CHECK(sd_bus_message_rewind(m, true) >= 0);
        f->n_cancel_call++;
}

static inline void fake_answer(FakeService *f, sd_bus_message *m, const char *member) {
        if (strcmp(member, "Prepare") == 0)
                fake_reply_pipe(f, m, 1000 + (uint64_t) f->n_prepare);
        else if (strcmp(member, "Query") == 0) {
                fake_reply_pipe(f, m, FAKE_RUN);
                fake_send_rows(f);
        } else if (strcmp(member, "Fetch") == 0) {
                if (f->reply_late) {
                        fake_send_rows(f);
                        usleep(20000);
                }
                CHECK(fake_answered(sd_bus_reply_method_return(m, "ta{sv}", (uint64_t) FAKE_RUN, 0)));
                if (!f->reply_late)
                        fake_send_rows(f);
        } else if (strcmp(member, "ListDatabases") == 0)
                CHECK(sd_bus_reply_method_return(m, "a(soa{sv})a{sv}", 2, "chinook", "/org/sqlipc1/database/chinook", 2,
                                                 "mode", "s", "read-only", "description", "s", "Music", "empty",
                                                 "/org/sqlipc1/database/empty", 0, 0) >= 0);
        else if (strcmp(member, "Cancel") == 0 && fake_is_cancel_of_call(m))
                CHECK(fake_answered(sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.UnknownRun", "No such run.")));
        else if (sd_bus_message_get_expect_reply(m))
                CHECK(fake_answered(sd_bus_reply_method_return(m, "a{sv}", 0)));
}

static inline int fake_on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        FakeService *f = userdata;
        const char *member = sd_bus_message_get_member(m);
        uint8_t type;

        (void) error;
        CHECK(sd_bus_message_get_type(m, &type) >= 0);
        if (type != SD_BUS_MESSAGE_METHOD_CALL)
                return 0;
        f->n_prepare += strcmp(member, "Prepare") == 0;
        f->n_fetch += strcmp(member, "Fetch") == 0;
        f->n_query += strcmp(member, "Query") == 0;
        f->n_cancel += strcmp(member, "Cancel") == 0 && !fake_is_cancel_of_call(m);
        f->n_finalize += strcmp(member, "Finalize") == 0;
        if (strcmp(member, "Cancel") == 0 && fake_is_cancel_of_call(m))
                fake_note_cancel_of_call(f, m);
        if (strcmp(member, "Fetch") == 0 || strcmp(member, "Query") == 0)
                fake_remember(f, m);
        if (!f->on_call || f->on_call(f, m, member) == 0)
                fake_answer(f, m, member);
        return 1;
}

static inline void *fake_thread(void *userdata) {
        FakeService *f = userdata;

        while (!f->stop) {
                int r = sd_bus_process(f->bus, NULL);

                if (r < 0)
                        break;
                if (r == 0)
                        (void) sd_bus_wait(f->bus, 5000);
        }
        sd_bus_flush(f->bus);
        sd_bus_close(f->bus);
        return NULL;
}

/* Both ends, talking; the library blocks, for five seconds at most. */
static inline void fake_start_with(FakeService *f, bool descriptors) {
        sd_id128_t id;
        int fds[2];

        *f = (FakeService) { .write_fd = -1, .rows = STREAM_INIT };
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) >= 0);
        CHECK(sd_id128_randomize(&id) >= 0);
        CHECK(sd_bus_new(&f->bus) >= 0);
        CHECK(sd_bus_set_fd(f->bus, fds[0], fds[0]) >= 0);
        CHECK(sd_bus_set_server(f->bus, true, id) >= 0);
        CHECK(sd_bus_negotiate_fds(f->bus, true) >= 0);
        CHECK(sd_bus_start(f->bus) >= 0);
        CHECK(sd_bus_add_filter(f->bus, NULL, fake_on_message, f) >= 0);
        CHECK(sd_bus_new(&f->client_bus) >= 0);
        CHECK(sd_bus_set_fd(f->client_bus, fds[1], fds[1]) >= 0);
        CHECK(sd_bus_negotiate_fds(f->client_bus, descriptors) >= 0);
        CHECK(sd_bus_start(f->client_bus) >= 0);
        CHECK_INT(sqlipc_open_bus(f->client_bus, &f->connection), 0);
        CHECK_INT(sqlipc_set_timeout(f->connection, 120000000), 0);
        CHECK_INT(pthread_create(&f->thread, NULL, fake_thread, f), 0);
}

static inline void fake_start(FakeService *f) {
        fake_start_with(f, true);
}

/* The service's end is over: it read all that we sent, or was told to stop. */
static inline void fake_join(FakeService *f) {
        if (!f->bus)
                return;
        CHECK_INT(pthread_join(f->thread, NULL), 0);
        fake_close_pipe(f);
        sd_bus_message_unref(f->last);
        f->last = NULL;
        sd_bus_unref(f->bus);
        f->bus = NULL;
}

/* The service goes away, as one that crashed. */
static inline void fake_stop_service(FakeService *f) {
        f->stop = true;
        fake_join(f);
}

/* Closes the library's end first, so that its farewells arrive, then all the rest. */
static inline void fake_done(FakeService *f) {
        sqlipc_close(f->connection);
        sd_bus_flush_close_unref(f->client_bus);
        fake_join(f);
        stream_done(&f->rows);
}

/* Waits up to two minutes for a counter. */
static inline void fake_wait_for(atomic_int *counter, int value) {
        for (int i = 0; i < 120000 && *counter < value; i++)
                usleep(1000);
        CHECK_INT(*counter, value);
}

/* Until the service has answered all that the library has sent, and the answers have come. */
static inline void fake_barrier(FakeService *f) {
        CHECK(sd_bus_call_method(f->client_bus, NULL, "/", "org.freedesktop.DBus.Peer", "Ping", NULL, NULL, NULL) >= 0);
}

/* Interrupts a connection again and again, until the call of the test has returned: an interrupt before the call has begun
 * does nothing to it. */
typedef struct FakeInterrupter {
        pthread_t thread;
        sqlipc_connection *connection;
        atomic_int *counter; /* of the service, by which it has heard of the call; NULL: it need not */
        int value;
        atomic_bool over;
} FakeInterrupter;

static inline void *fake_interrupt(void *userdata) {
        FakeInterrupter *i = userdata;

        if (i->counter)
                fake_wait_for(i->counter, i->value);
        while (!i->over) {
                CHECK_INT(sqlipc_interrupt(i->connection), 0);
                usleep(1000);
        }
        return NULL;
}

static inline void fake_interrupt_begin(FakeInterrupter *i, FakeService *f, atomic_int *counter, int value) {
        *i = (FakeInterrupter) { .connection = f->connection, .counter = counter, .value = value };
        CHECK_INT(pthread_create(&i->thread, NULL, fake_interrupt, i), 0);
}

static inline void fake_interrupt_end(FakeInterrupter *i) {
        i->over = true;
        CHECK_INT(pthread_join(i->thread, NULL), 0);
}

/* COLUMNS ("c"), a ROWS frame with the integers first..last, no end. */
static inline void fake_add_rows(Stream *s, uint64_t run, int first, int last) {
        uint8_t page[SQLIPC_PAGE_SIZE_MIN];
        PageEncoder e;

        page_encoder_init(&e, page, sizeof page, run);
        for (int i = first; i <= last; i++) {
                CHECK_INT(page_encoder_begin_row(&e, 1), 1);
                page_encoder_add_int64(&e, i);
                CHECK_INT(page_encoder_end_row(&e), 1);
        }
        stream_take_page(s, &e);
}

/* A whole result: the integers first..last. */
static inline void fake_set_result(FakeService *f, int first, int last) {
        stream_done(&f->rows);
        stream_add_columns(&f->rows, FAKE_RUN, 1, SQLIPC_PAGE_SIZE_MIN);
        if (last >= first)
                fake_add_rows(&f->rows, FAKE_RUN, first, last);
        stream_add_end(&f->rows, FAKE_RUN, (uint64_t) (last - first + 1));
}

/* A result without its end. */
static inline void fake_set_unfinished(FakeService *f, int first, int last) {
        stream_done(&f->rows);
        stream_add_columns(&f->rows, FAKE_RUN, 1, SQLIPC_PAGE_SIZE_MIN);
        fake_add_rows(&f->rows, FAKE_RUN, first, last);
}

#endif
