/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The library in a program's own event loop, against a scripted service: no call blocks, and one descriptor becomes
 * readable whenever there is something to do, and only then.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "client-lib/turns.h"
#include "tests/rigs/fake-load.h"
#include "tests/rigs/fake-service.h"
#include "tests/rigs/fake-watch.h"

/* Waits of the library. A test may make one descriptor ready for ever: of blocking calls, which use ppoll(), by its place;
 * of loops, which use epoll_wait(), by the data of its events. */
#define NO_EVENT UINT64_MAX

static atomic_uint n_waits;
static int ready_place = -1;
static uint64_t ready_event = NO_EVENT;
static uint64_t last_event; /* the data that was added or armed last */
int __real_ppoll(struct pollfd *fds, nfds_t n_fds, const struct timespec *timeout, const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t n_fds, const struct timespec *timeout, const sigset_t *mask);
int __real_epoll_wait(int fd, struct epoll_event *events, int n_events, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n_events, int timeout);
int __real_epoll_ctl(int fd, int operation, int which, struct epoll_event *event);
int __wrap_epoll_ctl(int fd, int operation, int which, struct epoll_event *event);

int __wrap_ppoll(struct pollfd *fds, nfds_t n_fds, const struct timespec *timeout, const sigset_t *mask) {
        n_waits++;
        if (ready_place < 0)
                return __real_ppoll(fds, n_fds, timeout, mask);
        for (nfds_t i = 0; i < n_fds; i++)
                fds[i].revents = 0;
        CHECK(fds[ready_place].fd >= 0);
        fds[ready_place].revents = POLLIN;
        return 1;
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int n_events, int timeout) {
        n_waits++;
        if (ready_event == NO_EVENT)
                return __real_epoll_wait(fd, events, n_events, timeout);
        events[0] = (struct epoll_event) { .events = EPOLLIN, .data.u64 = ready_event };
        return 1;
}

/* Operations that the kernel refuses, of pipes or of all else. */
static struct {
        int operation;
        bool of_pipes;
        unsigned n; /* left */
} refused;

static bool is_refused(int operation, int which) {
        struct stat st;

        if (refused.n == 0 || operation != refused.operation || fstat(which, &st) < 0 ||
            S_ISFIFO(st.st_mode) != refused.of_pipes)
                return false;
        refused.n--;
        errno = ENOMEM;
        return true;
}

int __wrap_epoll_ctl(int fd, int operation, int which, struct epoll_event *event) {
        if (is_refused(operation, which))
                return -1;
        if (event)
                last_event = event->data.u64;
        return __real_epoll_ctl(fd, operation, which, event);
}

static uint64_t now_usec(void) {
        struct timespec now;

        CHECK(clock_gettime(CLOCK_MONOTONIC, &now) >= 0);
        return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

/* One turn of a loop: 1 if the descriptor woke up, 0 after `msec` of silence. */
static int turn(sqlipc_connection *c, int msec) {
        struct pollfd fd = { .fd = sqlipc_get_fd(c), .events = (short) sqlipc_get_events(c) };
        uint64_t until;
        int n;

        CHECK(fd.fd >= 0 && fd.events == POLLIN);
        CHECK_INT(sqlipc_get_timeout(c, &until), 0);
        if (until != UINT64_MAX) {
                uint64_t now = now_usec(), left = until > now ? (until - now + 999) / 1000 : 0;

                if (left < (uint64_t) msec)
                        msec = (int) left;
        }
        n = poll(&fd, 1, msec);
        CHECK(n >= 0);
        CHECK(sqlipc_process(c) >= 0);
        return n > 0 || until != UINT64_MAX;
}

/* Until nothing is to come. */
static void settle(FakeService *f) {
        do
                fake_barrier(f);
        while (turn(f->connection, 0) > 0);
}

static int next(sqlipc_connection *connection, sqlipc_cursor *c) {
        int r;

        while ((r = sqlipc_cursor_next(c)) == -EAGAIN)
                CHECK_INT(turn(connection, 120000), 1); /* a turn for nothing is a missed wake-up */
        return r;
}

static void start(FakeService *f) {
        fake_start(f);
        CHECK_INT(sqlipc_set_blocking(f->connection, 0), 0);
}

static void check_result_begin(FakeService *f, sqlipc_cursor *c, int first, int last) {
        for (int i = first; i <= last; i++) {
                CHECK_INT(next(f->connection, c), 1);
                CHECK_INT(sqlipc_column_int64(c, 0), i);
        }
}

static void check_result(FakeService *f, sqlipc_cursor *c, int first, int last) {
        check_result_begin(f, c, first, last);
        CHECK_INT(next(f->connection, c), 0);
}

static void test_prepare_bind_execute_at_once(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;
        int64_t got;

        start(&f);
        f.parameters[0] = "$id";
        fake_set_result(&f, 1, 20);
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT c FROM t WHERE id = $id", &s), 0);
        CHECK_INT(sqlipc_statement_is_ready(s), 0);
        CHECK_INT(sqlipc_bind_int64_by_name(s, "id", 5), 0);
        CHECK_INT(sqlipc_execute(s, &c), 0);
        CHECK_INT(sqlipc_bind_int64_by_name(s, "id", 6), 0); /* of the next execution */
        CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
        check_result(&f, c, 1, 20);
        CHECK_INT(sqlipc_statement_is_ready(s), 1);
        CHECK(sd_bus_message_rewind(f.last, true) >= 0);
        CHECK(sd_bus_message_read(f.last, "tav", NULL, 1, "x", &got) >= 0);
        CHECK_INT(got, 5);
        sqlipc_cursor_close(c);

        CHECK_INT(sqlipc_execute(s, &c), 0);
        check_result(&f, c, 1, 20);
        CHECK(sd_bus_message_rewind(f.last, true) >= 0);
        CHECK(sd_bus_message_read(f.last, "tav", NULL, 1, "x", &got) >= 0);
        CHECK_INT(got, 6);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        fake_done(&f);
}

static void test_wrong_bindings_fail_the_run(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        start(&f);
        f.parameters[0] = ":id";
        fake_set_result(&f, 1, 1);
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT :id", &s), 0);
        CHECK_INT(sqlipc_bind_int64_by_name(s, "other", 5), 0);
        CHECK_INT(sqlipc_execute(s, &c), 0);
        CHECK_INT(next(f.connection, c), -ENXIO);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_UNKNOWN_PARAMETER);
        CHECK_INT(f.n_fetch, 0);
        sqlipc_cursor_close(c);
        CHECK_INT(sqlipc_clear_bindings(s), 0);
        CHECK_INT(sqlipc_execute(s, &c), 0);
        check_result(&f, c, 1, 1);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);

        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT :id", &s), 0);
        CHECK_INT(sqlipc_bind_int64(s, 2, 5), 0);
        CHECK_INT(sqlipc_execute(s, &c), 0);
        CHECK_INT(next(f.connection, c), -EINVAL);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_PARAMETER_COUNT);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        fake_done(&f);
}

static int refuse(FakeService *f, sd_bus_message *m, const char *member) {
        (void) f, (void) member;
        CHECK(sd_bus_reply_method_errorf(m, "org.freedesktop.DBus.Error.UnknownObject", "Unknown object") >= 0);
        return 1;
}

static void test_errors_come_later(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *of_statement, *of_query;
        int r;

        start(&f);
        f.on_call = refuse;
        CHECK_INT(sqlipc_prepare(f.connection, "nowhere", "SELECT 1", &s), 0);
        CHECK_INT(sqlipc_execute(s, &of_statement), 0);
        CHECK_INT(sqlipc_query(f.connection, "nowhere", "SELECT 1", &of_query, NULL), 0);
        CHECK_INT(next(f.connection, of_query), -ENOENT);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_UNKNOWN_DATABASE);
        while ((r = sqlipc_statement_is_ready(s)) == 0)
                CHECK_INT(turn(f.connection, 120000), 1);
        CHECK_INT(r, -ENOENT);
        CHECK_INT(next(f.connection, of_statement), -ENOENT);

        f.on_call = NULL; /* it appeared: executing again tries again */
        fake_set_result(&f, 1, 2);
        sqlipc_cursor_close(of_statement);
        CHECK_INT(sqlipc_execute(s, &of_statement), 0);
        check_result(&f, of_statement, 1, 2);
        sqlipc_cursor_close(of_statement);
        sqlipc_cursor_close(of_query);
        sqlipc_finalize(s);
        fake_done(&f);
}

/* A byte at a time: every -EAGAIN is followed by one wake-up, and by none if nothing came. */
static void test_dribble(void) {
        FakeService f;
        sqlipc_cursor *c;
        Stream rest;
        size_t i = 0;
        int n_rows = 0, r;

        start(&f);
        fake_set_result(&f, 1, 3);
        rest = f.rows;
        f.rows = STREAM_INIT;
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), 0);
        while (sqlipc_cursor_next(c) == -EAGAIN && f.write_fd < 0)
                CHECK_INT(turn(f.connection, 120000), 1);
        settle(&f); /* the reply */
        CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
        CHECK_INT(turn(f.connection, 20), 0);
        while ((r = sqlipc_cursor_next(c)) == -EAGAIN || r == 1) {
                n_rows += r == 1;
                if (r == 1)
                        continue;
                CHECK(i < rest.size);
                CHECK_INT(write(f.write_fd, rest.bytes + i++, 1), 1);
                CHECK_INT(turn(f.connection, 120000), 1);
        }
        CHECK_INT(r, 0);
        CHECK_INT(n_rows, 3);
        CHECK_INT(i, rest.size);
        stream_done(&rest);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

/* Rows that the program does not read do not wake its loop. */
static void test_unread_cursor_is_silent(void) {
        FakeService f;
        sqlipc_cursor *c;
        Stream more = STREAM_INIT;

        start(&f);
        fake_set_unfinished(&f, 1, 1);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), 0);
        CHECK_INT(next(f.connection, c), 1);
        CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
        fake_add_rows(&more, FAKE_RUN, 2, 3);
        stream_add_end_behind(&more, FAKE_RUN, 3, stream_run_size(&f.rows));
        fake_write(&f, &more);
        stream_done(&more);
        CHECK_INT(turn(f.connection, 120000), 1);
        CHECK_INT(turn(f.connection, 20), 0); /* said once */
        check_result(&f, c, 2, 3);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

typedef struct Ready {
        sqlipc_connection *connection;
        int n_calls, n_rows, last, n_statement_calls;
        bool close;
} Ready;

/* Reads what is there; at the end it closes the cursor, and the connection with it if it is to. */
static void on_ready(sqlipc_cursor *c, void *userdata) {
        Ready *ready = userdata;

        ready->n_calls++;
        CHECK_INT(sqlipc_process(ready->connection), -EBUSY);
        while ((ready->last = sqlipc_cursor_next(c)) > 0)
                ready->n_rows++;
        if (ready->last == -EAGAIN)
                return;
        (void) sqlipc_cursor_close(c);
        if (ready->close)
                ready->connection = sqlipc_close(ready->connection);
}

static void on_statement_ready(sqlipc_statement *s, void *userdata) {
        ((Ready *) userdata)->n_statement_calls++;
        if (sqlipc_statement_is_ready(s) == 1)
                CHECK_INT(sqlipc_statement_set_ready_callback(s, NULL, NULL), 0);
}

/* A program that only waits and calls sqlipc_process() is told when to ask, and not told otherwise. */
static void check_callbacks(bool close) {
        Ready ready = { .last = -EAGAIN, .close = close }, other = { .last = -EAGAIN };
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c, *silent;
        Stream more = STREAM_INIT;

        start(&f);
        ready.connection = other.connection = f.connection;
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT 1", &s), 0);
        CHECK_INT(sqlipc_statement_set_ready_callback(s, on_statement_ready, &ready), 0);
        CHECK_INT(sqlipc_statement_is_ready(s), 0);
        while (!ready.n_statement_calls || sqlipc_statement_is_ready(s) == 0)
                CHECK_INT(turn(f.connection, 120000), 1);
        fake_set_unfinished(&f, 1, 2);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &silent, NULL), 0);
        CHECK_INT(next(f.connection, silent), 1);
        CHECK_INT(next(f.connection, silent), 1);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), 0);
        CHECK_INT(sqlipc_cursor_set_ready_callback(c, on_ready, &ready), 0);
        CHECK_INT(turn(f.connection, 120000), 1);
        CHECK_INT(ready.n_calls, 0); /* it was not asked yet */
        CHECK_INT(sqlipc_cursor_set_ready_callback(silent, on_ready, &other), 0);
        while ((ready.last = sqlipc_cursor_next(c)) == 1)
                ready.n_rows++;
        while (ready.n_rows < 2)
                CHECK_INT(turn(f.connection, 120000), 1);
        settle(&f); /* what else the bus brings */
        ready.n_calls = 0;
        fake_add_rows(&more, FAKE_RUN, 3, 4);
        stream_add_end_behind(&more, FAKE_RUN, 4, stream_run_size(&f.rows));
        fake_write(&f, &more);
        stream_done(&more);
        CHECK_INT(turn(f.connection, 120000), 1);
        CHECK_INT(ready.n_calls, 1);
        CHECK_INT(ready.n_rows, 4);
        CHECK_INT(ready.last, 0);
        CHECK_INT(other.n_calls, 0);
        f.connection = ready.connection;
        sqlipc_cursor_close(silent);
        sqlipc_finalize(s);
        fake_done(&f);
}

static void test_ready_callbacks(void) {
        CHECK_INT(sqlipc_cursor_set_ready_callback(NULL, on_ready, NULL), -EINVAL);
        CHECK_INT(sqlipc_statement_set_ready_callback(NULL, on_statement_ready, NULL), -EINVAL);
        check_callbacks(false);
        check_callbacks(true);
}

static void *cancel_soon(void *cursor) {
        usleep(20000);
        CHECK_INT(sqlipc_cursor_cancel(cursor), 0);
        return NULL;
}

static int end_on_cancel(FakeService *f, sd_bus_message *m, const char *member) {
        Stream s = STREAM_INIT;

        (void) m;
        if (strcmp(member, "Cancel") == 0) {
                stream_add_error(&s, FAKE_RUN, SQLIPC_ERROR_CANCELLED, "cancelled");
                fake_write(f, &s);
                stream_done(&s);
        }
        return 0;
}

/* Cancelling in another thread wakes the loop, which sends it. */
static void test_cancel_wakes(void) {
        FakeService f;
        sqlipc_cursor *c;
        pthread_t thread;

        start(&f);
        f.on_call = end_on_cancel;
        fake_set_unfinished(&f, 1, 1);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), 0);
        CHECK_INT(next(f.connection, c), 1);
        CHECK_INT(pthread_create(&thread, NULL, cancel_soon, c), 0);
        CHECK_INT(next(f.connection, c), -ECANCELED);
        CHECK_INT(f.n_cancel, 1);
        CHECK_INT(pthread_join(thread, NULL), 0);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

/* Cancelling a run that was not sent does not wait. One that was sent may have written. */
static int stay_silent(FakeService *f, sd_bus_message *m, const char *member) {
        (void) f;
        if (strcmp(member, "Cancel") == 0)
                return sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.UnknownRun", "There is no such run.");
        return 1;
}

static void test_cancel_before_anything(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *of_statement, *of_query;

        start(&f);
        f.on_call = stay_silent;
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT 1", &s), 0);
        CHECK_INT(sqlipc_execute(s, &of_statement), 0);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &of_query, NULL), 0);
        CHECK_INT(sqlipc_cursor_cancel(of_statement), 0);
        CHECK_INT(sqlipc_cursor_cancel(of_query), 0);
        CHECK_INT(sqlipc_cursor_next(of_statement), -ECANCELED);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_CANCELLED);
        CHECK_INT(sqlipc_cursor_next(of_query), -EAGAIN);
        CHECK_INT(next(f.connection, of_query), -ECONNABORTED);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_OUTCOME_UNKNOWN);
        sqlipc_cursor_close(of_statement);
        sqlipc_cursor_close(of_query);
        sqlipc_finalize(s);
        fake_done(&f);
}

/* The run that was given up is drained before the next one starts, all without waiting. */
static void test_execute_again_midway(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *first, *second;

        start(&f);
        f.on_call = end_on_cancel;
        fake_set_unfinished(&f, 1, 5);
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT 1", &s), 0);
        CHECK_INT(sqlipc_execute(s, &first), 0);
        CHECK_INT(next(f.connection, first), 1);
        CHECK_INT(sqlipc_execute(s, &second), 0);
        CHECK_INT(sqlipc_cursor_next(first), -ESTALE);
        CHECK_INT(next(f.connection, second), 1);
        CHECK_INT(sqlipc_column_int64(second, 0), 1);
        CHECK_INT(f.n_fetch, 2);
        CHECK_INT(f.n_prepare, 1);
        sqlipc_cursor_close(first);
        sqlipc_cursor_close(second);
        sqlipc_finalize(s);
        fake_done(&f);
}

/* The caller's own loop dispatches the bus: our descriptor says that there is news. */
static void test_bus_driven_by_caller(void) {
        FakeService f;
        sqlipc_statement *s;
        struct pollfd fd;

        start(&f);
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT 1", &s), 0);
        while (sqlipc_statement_is_ready(s) == 0) {
                CHECK(sd_bus_wait(f.client_bus, 5000000) >= 0);
                while (sd_bus_process(f.client_bus, NULL) > 0)
                        ;
        }
        fd = (struct pollfd) { .fd = sqlipc_get_fd(f.connection), .events = POLLIN };
        CHECK_INT(poll(&fd, 1, 0), 1);
        CHECK_INT(sqlipc_process(f.connection), 1);
        CHECK_INT(poll(&fd, 1, 0), 0);
        sqlipc_finalize(s);
        fake_done(&f);
}

/* The child closes all that it got from its parent, whose loop still wakes for the reply, the rows and a cancellation. */
static void test_close_in_forked_child(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *unread, *c;
        int status;
        pid_t child;

        start(&f);
        fake_set_unfinished(&f, 1, 2);
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT 1", &s), 0);
        CHECK_INT(sqlipc_execute(s, &unread), 0);
        CHECK_INT(next(f.connection, unread), 1);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), 0);
        CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
        child = fork();
        CHECK(child >= 0);
        if (child == 0) {
                CHECK_INT(sqlipc_process(f.connection), -ECHILD);
                CHECK_INT(sqlipc_get_fd(f.connection), -ECHILD);
                CHECK_INT(sqlipc_cursor_next(c), -ECHILD);
                CHECK_INT(sqlipc_cursor_next(unread), -ECHILD);
                CHECK_INT(sqlipc_cursor_cancel(c), -ECHILD);
                sqlipc_cursor_close(c);
                sqlipc_cursor_close(unread);
                sqlipc_finalize(s);
                sqlipc_close(f.connection);
                _exit(0);
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
        check_result_begin(&f, c, 1, 2);
        CHECK_INT(next(f.connection, unread), 1);
        CHECK_INT(sqlipc_column_int64(unread, 0), 2);
        CHECK_INT(f.n_cancel, 0);
        CHECK_INT(f.n_finalize, 0);
        sqlipc_cursor_close(c);
        sqlipc_cursor_close(unread);
        sqlipc_finalize(s);
        fake_done(&f);
}

static void test_bus_lost(void) {
        FakeService f;
        sqlipc_cursor *c;
        uint64_t until;

        start(&f);
        f.on_call = stay_silent;
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), 0);
        (void) turn(f.connection, 20);
        fake_stop_service(&f);
        CHECK_INT(next(f.connection, c), -ECONNABORTED); /* the service had not said what kind of statement it is */
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_OUTCOME_UNKNOWN);
        for (int i = 0; i < 10 && turn(f.connection, 0) > 0; i++)
                ;
        CHECK_INT(sqlipc_get_timeout(f.connection, &until), 0);
        CHECK(until == UINT64_MAX);
        CHECK_INT(turn(f.connection, 0), 0); /* and no busy loop over a dead socket */
        sqlipc_cursor_close(c);
        fake_done(&f);
}

/* ---- Waits that lead to nothing ---- */

/* A call that is refused after a while, in which a library that does not wait turns thousands of times. */
static int refuse_channel(FakeService *f, sd_bus_message *m, const char *member) {
        if (strcmp(member, "OpenChannel") != 0)
                return 0;
        usleep(20000);
        CHECK(sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.LimitsExceeded", "Enough.") >= 0);
        return 1;
}

/* A statement whose pipe has bytes of a run that was given up, and a small result after it: so its next run waits for a
 * channel. */
static sqlipc_statement *begin_unread(FakeService *f, bool broken) {
        sqlipc_statement *s;
        sqlipc_cursor *c;
        int kept;

        f->on_call = refuse_channel;
        fake_set_unfinished(f, 1, 5);
        CHECK_INT(sqlipc_prepare(f->connection, "db", "SELECT 1", &s), 0);
        CHECK_INT(sqlipc_execute(s, &c), 0);
        CHECK_INT(next(f->connection, c), 1);
        kept = f->write_fd;
        f->write_fd = broken ? kept : -1; /* the next pipe closes it */
        sqlipc_cursor_close(c);
        fake_wait_for(&f->n_cancel, 1);
        fake_set_result(f, 1, 1);
        CHECK_INT(sqlipc_query(f->connection, "db", "SELECT 2", &c, NULL), 0);
        check_result(f, c, 1, 1);
        sqlipc_cursor_close(c);
        if (!broken) {
                fake_close_pipe(f);
                f->write_fd = kept;
                stream_done(&f->rows);
                stream_add_error(&f->rows, FAKE_RUN, SQLIPC_ERROR_CANCELLED, "cancelled");
                fake_write(f, &f->rows);
        }
        fake_set_result(f, 1, 5);
        return s;
}

/* While the channel opens, the pipe is not read, so it must not wake the program either. */
static void check_unread(bool blocking, bool broken) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;
        unsigned before;

        fake_start(&f);
        s = begin_unread(&f, broken);
        CHECK_INT(sqlipc_set_blocking(f.connection, blocking), 0);
        before = n_waits;
        CHECK_INT(sqlipc_execute(s, &c), 0);
        check_result(&f, c, 1, 5);
        CHECK(n_waits - before < 50);
        CHECK_INT(f.n_prepare, broken ? 2 : 1);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        fake_done(&f);
}

static void test_unread_pipe(void) {
        for (int i = 0; i < 4; i++)
                check_unread(i % 2, i / 2);
}

/* A call that waits for a silent descriptor, and the service of that call. */
typedef enum VainKind {
        VAIN_PIPE,     /* rows */
        VAIN_CHANNEL,  /* rows, by way of a socket */
        VAIN_WATCH,
        VAIN_LOAD,     /* room in the pipe */
        VAIN_LIVE,     /* a change */
        VAIN_LIVE_RUN, /* rows of a live query */
        VAIN_N,
} VainKind;

#define OF_OBJECT 3 /* sqlipc_watch_get_fd(), sqlipc_live_get_fd() */

static struct {
        VainKind kind;
        FakeService service;
        FakeWatch of_watch;
        FakeLoad of_load;
        int channel_fd; /* the service's end */
        sqlipc_cursor *cursor;
        sqlipc_watch *watch;
        sqlipc_load *load;
        sqlipc_live *live;
} vain;

static int on_vain_call(FakeService *f, sd_bus_message *m, const char *member) {
        int fds[2], r;

        if (strcmp(member, "OpenChannel") == 0) {
                CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) >= 0);
                vain.channel_fd = fds[1];
                CHECK(sd_bus_reply_method_return(m, "ha{sv}", fds[0], 2, "page-size", "u", (uint32_t) 65536, "readonly", "b",
                                                 true) >= 0);
                close(fds[0]);
                return 1;
        }
        if (strcmp(member, "Wait") == 0) /* so the pipe is full */
                return 1;
        r = fake_load_on_call(&vain.of_load, f, m, member);
        return r != 0 ? r : fake_watch_on_call(&vain.of_watch, m, member);
}

static int add_row(void) {
        static const char blob[1000];
        const sqlipc_parameter row = { .struct_size = sizeof row, .type = SQLIPC_BLOB, .bytes = blob, .size = sizeof blob };
        int r;

        while ((r = sqlipc_load_row(vain.load, &row, 1)) == 0)
                ;
        return r;
}

static int ask_in_vain(void) {
        const sqlipc_live_change *change;
        int r;

        switch (vain.kind) {
        case VAIN_PIPE:
        case VAIN_CHANNEL:
                return sqlipc_cursor_next(vain.cursor);
        case VAIN_WATCH:
                return sqlipc_watch_next(vain.watch, UINT64_MAX);
        case VAIN_LOAD:
                return add_row();
        case VAIN_LIVE:
        case VAIN_LIVE_RUN:
                while ((r = sqlipc_live_next(vain.live, UINT64_MAX, &change)) == 1)
                        ;
                return r;
        case VAIN_N:
                break;
        }
        CHECK(false);
        return 0;
}

static void begin_vain(void) {
        FakeService *f = &vain.service;
        static const char *const tables[] = { "t", NULL };

        fake_start(f);
        f->on_call = on_vain_call;
        CHECK_INT(sqlipc_set_transport(f->connection, vain.kind == VAIN_CHANNEL ? SQLIPC_TRANSPORT_CHANNEL
                                                                                 : SQLIPC_TRANSPORT_PIPE), 0);
        if (vain.kind == VAIN_LIVE)
                fake_set_result(f, 1, 1);
        else
                fake_set_unfinished(f, 1, 1);
        CHECK_INT(sqlipc_set_blocking(f->connection, 0), 0);
        if (vain.kind == VAIN_PIPE || vain.kind == VAIN_CHANNEL)
                CHECK_INT(sqlipc_query(f->connection, "db", "SELECT 1", &vain.cursor, NULL), 0);
        else if (vain.kind == VAIN_WATCH)
                CHECK_INT(sqlipc_watch_open(f->connection, "db", tables, &vain.watch), 0);
        else if (vain.kind == VAIN_LOAD)
                CHECK_INT(sqlipc_load_open(f->connection, "db", "INSERT INTO t VALUES (?)", &vain.load), 0);
        else
                CHECK_INT(sqlipc_live_open(f->connection, "db", "SELECT 1", NULL, 0, NULL, &vain.live), 0);
}

/* Until the call waits for its descriptor, and nothing else is to come. */
static void settle_in_vain(void) {
        FakeService *f = &vain.service;
        int r;

        for (unsigned n = 0; n < 20; n++) {
                while ((r = ask_in_vain()) == 1)
                        ;
                CHECK_INT(r, -EAGAIN);
                settle(f);
        }
        CHECK(vain.kind != VAIN_CHANNEL || vain.channel_fd >= 0);
        CHECK_INT(ask_in_vain(), -EAGAIN);
}

static int wait_in_vain(int which) {
        int r;

        CHECK_INT(sqlipc_set_blocking(vain.service.connection, 1), 0);
        if (vain.kind == VAIN_CHANNEL && !SQLIPC_INVARIANTS)
                CHECK_INT(sqlipc_set_timeout(vain.service.connection, 1000000), 0);
        ready_place = which;
        n_waits = 0;
        r = ask_in_vain();
        ready_place = -1;
        return r;
}

static int turn_in_vain(uint64_t event) {
        int r = 0;

        ready_event = event;
        n_waits = 0;
        while (r >= 0 && n_waits < 2 * TURNS_IDLE_MAX + 10) {
                r = sqlipc_process(vain.service.connection);
                if (r >= 0)
                        CHECK_INT(ask_in_vain(), -EAGAIN);
        }
        ready_event = NO_EVENT;
        return r;
}

/* A descriptor in the set of the object is ready for ever. The program polls the object's descriptor, and calls. */
static int turn_object_in_vain(bool blocking) {
        struct epoll_event event = { .events = EPOLLIN };
        struct pollfd object = { .events = POLLIN };
        const sqlipc_live_change *change;
        int r = 0;

        CHECK_INT(sqlipc_set_blocking(vain.service.connection, blocking), 0);
        object.fd = vain.watch ? sqlipc_watch_get_fd(vain.watch) : sqlipc_live_get_fd(vain.live);
        CHECK(object.fd >= 0);
        CHECK_INT(poll(&object, 1, 0), 0);
        CHECK(epoll_ctl(object.fd, EPOLL_CTL_ADD, eventfd(1, EFD_CLOEXEC), &event) >= 0);
        for (unsigned n = 0; (r == 0 || r == -EAGAIN) && n < 2 * TURNS_IDLE_MAX + 10; n++) {
                CHECK_INT(poll(&object, 1, 0), 1);
                r = vain.watch ? sqlipc_watch_next(vain.watch, 0) : sqlipc_live_next(vain.live, 0, &change);
        }
        return r;
}

/* `which` is the place of a blocking wait: the descriptor of the call, what wakes the library, the bus; or OF_OBJECT. */
static void run_in_vain(VainKind kind, bool blocking, int which) {
        static const uint64_t events[] = { [1] = 1, [2] = 0 }; /* of a loop */
        sqlipc_connection *c;
        int r;

        vain.kind = kind;
        vain.channel_fd = -1;
        vain.of_watch = (FakeWatch) FAKE_WATCH_INIT;
        vain.of_load = (FakeLoad) FAKE_LOAD_INIT(1);
        begin_vain();
        settle_in_vain();
        c = vain.service.connection;
        CHECK(last_event > 1); /* the call has armed its own descriptor */
        if (which == OF_OBJECT)
                r = turn_object_in_vain(blocking);
        else
                r = blocking ? wait_in_vain(which) : turn_in_vain(which == 0 ? last_event : events[which]);
        CHECK_INT(sqlipc_error_code(c), SQLIPC_ERROR_NONE);
        CHECK(n_waits <= 2 * TURNS_IDLE_MAX + 10);
        if (kind == VAIN_CHANNEL && blocking && r == -ETIMEDOUT) /* it sleeps in recv(), not in ppoll() */
                _exit(0);
        CHECK_INT(r, -ELOOP);
        CHECK(strstr(sqlipc_error_message(c), "error of the library"));
        _exit(0); /* without closing, which could wait for the service */
}

/* In builds for tests the library aborts. */
static void check_in_vain(VainKind kind, bool blocking, int which) {
        pid_t pid = fork();
        int status;

        CHECK(pid >= 0);
        if (pid == 0) {
                const struct rlimit none = { 0 };

                (void) setrlimit(RLIMIT_CORE, &none);
                run_in_vain(kind, blocking, which);
        }
        CHECK_INT(waitpid(pid, &status, 0), pid);
        if (SQLIPC_INVARIANTS)
                CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        else
                CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A descriptor that is ready for ever, although there is nothing to read, leads to an error after a limited number of turns:
 * the one that the call waits for, what wakes the library, the bus; in a blocking call and in a loop; and in the loop of a
 * program that polls the descriptor of a watch or live query. */
static void test_ready_for_ever(void) {
        for (VainKind kind = 0; kind < VAIN_N; kind++)
                for (int which = 0; which < 3; which++) {
                        check_in_vain(kind, true, which);
                        check_in_vain(kind, false, which);
                }
        for (int blocking = 0; blocking < 2; blocking++) {
                check_in_vain(VAIN_WATCH, blocking, OF_OBJECT);
                check_in_vain(VAIN_LIVE, blocking, OF_OBJECT);
                check_in_vain(VAIN_LIVE_RUN, blocking, OF_OBJECT);
        }
}

/* ---- Sets that the kernel does not change ------------------------------------------------------------------------- */

static void start_watched(void) {
        vain.of_watch = (FakeWatch) FAKE_WATCH_INIT;
        vain.of_load = (FakeLoad) FAKE_LOAD_INIT(1);
        fake_start(&vain.service);
        vain.service.on_call = on_vain_call;
        CHECK_INT(sqlipc_set_transport(vain.service.connection, SQLIPC_TRANSPORT_PIPE), 0);
}

static void finish_watched(void) {
        fake_done(&vain.service);
        fake_watch_done(&vain.of_watch);
}

/* The set does not take the pipe of a watch: a timer wakes the program instead, not all the time, and it hears of
 * changes. */
static void test_pipe_not_taken(void) {
        static const char *const tables[] = { "t", NULL };
        struct pollfd object = { .events = POLLIN };
        sqlipc_watch *watch;
        uint64_t begin;

        start_watched();
        CHECK_INT(sqlipc_watch_open(vain.service.connection, "db", tables, &watch), 0);
        refused = (typeof(refused)) { .operation = EPOLL_CTL_ADD, .of_pipes = true, .n = 1000 };
        begin = now_usec();
        object.fd = sqlipc_watch_get_fd(watch);
        for (unsigned n = 0; n < 5; n++) {
                CHECK_INT(poll(&object, 1, 120000), 1);
                CHECK_INT(sqlipc_watch_next(watch, 0), 0);
        }
        CHECK(now_usec() - begin >= 5 * UINT64_C(100000));
        fake_watch_signal(&vain.of_watch);
        CHECK_INT(poll(&object, 1, 120000), 1);
        CHECK_INT(sqlipc_watch_next(watch, 0), 1);

        refused.n = 0;
        CHECK_INT(sqlipc_watch_next(watch, 0), 0);
        CHECK_INT(poll(&object, 1, 0), 0);
        fake_watch_signal(&vain.of_watch);
        CHECK_INT(poll(&object, 1, 0), 1);
        CHECK_INT(sqlipc_watch_next(watch, 0), 1);
        sqlipc_watch_close(watch);
        finish_watched();
}

/* A live query that has told its result, and whose descriptor is silent. */
static sqlipc_live *open_settled(struct pollfd *object) {
        const sqlipc_live_change *change = NULL;
        sqlipc_live *live;

        start_watched();
        fake_set_result(&vain.service, 1, 1);
        CHECK_INT(sqlipc_live_open(vain.service.connection, "db", "SELECT 1", NULL, 0, NULL, &live), 0);
        do
                CHECK_INT(sqlipc_live_next(live, UINT64_MAX, &change), 1);
        while (change->kind != SQLIPC_LIVE_SETTLED);
        *object = (struct pollfd) { .fd = sqlipc_live_get_fd(live), .events = POLLIN };
        CHECK_INT(sqlipc_live_next(live, 0, &change), 0);
        CHECK_INT(poll(object, 1, 0), 0);
        return live;
}

/* A change, until the set has refused to give up a descriptor because of it. The change makes no difference. */
static void refuse_to_give(sqlipc_live *live, struct pollfd *object, bool pipe) {
        const sqlipc_live_change *change;

        refused = (typeof(refused)) { .operation = EPOLL_CTL_DEL, .of_pipes = pipe, .n = 1 };
        fake_watch_signal(&vain.of_watch);
        while (refused.n > 0) {
                CHECK_INT(poll(object, 1, 120000), 1);
                CHECK_INT(sqlipc_live_next(live, 0, &change), 0);
        }
}

/* The set keeps the pipe of the watch, which is not read while the statement runs. */
static void test_pipe_not_given_back(void) {
        const sqlipc_live_change *change;
        struct pollfd object;
        sqlipc_live *live = open_settled(&object);

        fake_set_unfinished(&vain.service, 1, 1);
        refuse_to_give(live, &object, true);
        for (unsigned n = 0; n < 20; n++) {
                fake_barrier(&vain.service);
                CHECK_INT(sqlipc_live_next(live, 0, &change), 0);
        }
        CHECK_INT(poll(&object, 1, 0), 0);
        fake_watch_signal(&vain.of_watch);
        CHECK_INT(poll(&object, 1, 0), 0);
        sqlipc_live_close(live);
        finish_watched();
}

static int on_pong(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        (void) reply;
        (void) userdata;
        (void) error;
        return 0;
}

/* The set keeps the bus, which is not processed while the live query waits for the pipe of its watch. */
static void test_bus_not_given_back(void) {
        const sqlipc_live_change *change;
        struct pollfd object, bus = { .events = POLLIN };
        sqlipc_live *live = open_settled(&object);

        refuse_to_give(live, &object, false);
        CHECK(sd_bus_call_method_async(vain.service.client_bus, NULL, NULL, "/", "org.freedesktop.DBus.Peer", "Ping",
                                       on_pong, NULL, "") >= 0);
        bus.fd = sd_bus_get_fd(vain.service.client_bus);
        CHECK_INT(poll(&bus, 1, 120000), 1);
        CHECK_INT(sqlipc_live_next(live, 0, &change), 0);
        CHECK_INT(poll(&object, 1, 0), 0);
        sqlipc_live_close(live);
        finish_watched();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_unread_pipe),
                TEST(test_ready_for_ever),
                TEST(test_pipe_not_taken),
                TEST(test_pipe_not_given_back),
                TEST(test_bus_not_given_back),
                TEST(test_prepare_bind_execute_at_once),
                TEST(test_wrong_bindings_fail_the_run),
                TEST(test_errors_come_later),
                TEST(test_dribble),
                TEST(test_unread_cursor_is_silent),
                TEST(test_ready_callbacks),
                TEST(test_cancel_wakes),
                TEST(test_cancel_before_anything),
                TEST(test_execute_again_midway),
                TEST(test_bus_driven_by_caller),
                TEST(test_close_in_forked_child),
                TEST(test_bus_lost),
        };

        (void) signal(SIGPIPE, SIG_IGN); /* the service's, which writes into pipes that we close */
        return test_main(tests, N_ELEMENTS(tests));
}
