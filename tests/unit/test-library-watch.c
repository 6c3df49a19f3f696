/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Watches of the library against a FakeService: changes and their numbers, with and without a loop, a service that restarts,
 * ends the watch or is hostile, and a bus without descriptors. Library.
 */
#include <sys/wait.h>
#include <time.h>

#include "tests/rigs/fake-watch.h"

#define DB "db"
#define FOREVER UINT64_MAX

static FakeService f;
static FakeWatch w;

static int on_call(FakeService *service, sd_bus_message *m, const char *member) {
        (void) service;
        return fake_watch_on_call(&w, m, member);
}

static void start(void) {
        w = (FakeWatch) FAKE_WATCH_INIT;
        fake_start(&f);
        f.on_call = on_call;
}

static void start_without_descriptors(void) {
        w = (FakeWatch) FAKE_WATCH_INIT;
        fake_start_with(&f, false);
        f.on_call = on_call;
}

static void finish(void) {
        fake_done(&f);
        fake_watch_done(&w);
}

static sqlipc_watch *watch_open(void) {
        static const char *const tables[] = { "a", "b", NULL };
        sqlipc_watch *watch;

        CHECK_INT(sqlipc_watch_open(f.connection, DB, tables, &watch), 0);
        return watch;
}

static void check_code(sqlipc_error code) {
        CHECK_INT(sqlipc_error_code(f.connection), code);
        CHECK(sqlipc_error_message(f.connection)[0]);
}

/* The next change, and no other after it. */
static void check_change(sqlipc_watch *watch) {
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), 1);
        CHECK_INT(sqlipc_watch_sequence(watch), w.sequence);
        CHECK_INT(sqlipc_watch_next(watch, 0), 0);
}

static bool is_readable(int fd, int msec) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int n = poll(&p, 1, msec);

        CHECK(n >= 0 && (n == 0 || p.revents == POLLIN));
        return n > 0;
}

/* ---- Blocking ----------------------------------------------------------------------------------------------------- */

static void test_changes(void) {
        sqlipc_watch *watch;

        start();
        watch = watch_open();
        CHECK_STRING(w.tables, "a,b");
        CHECK_STRING(w.sql, "");
        CHECK_INT(sqlipc_watch_sequence(watch), 1000);
        CHECK_INT(sqlipc_watch_next(watch, 0), 0);
        CHECK_INT(sqlipc_watch_next(watch, 1000), 0);
        for (int i = 0; i < 3; i++) {
                fake_watch_signal(&w);
                check_change(watch);
        }
        CHECK(!sqlipc_watch_close(watch));
        finish();
        CHECK_INT(w.n_watch, 1);
        CHECK_INT(w.n_unwatch, 1);
}

static void test_openings(void) {
        const char *none[] = { NULL };
        sqlipc_watch *watch;

        start();
        CHECK_INT(sqlipc_watch_open(f.connection, DB, NULL, &watch), 0);
        CHECK_STRING(w.tables, "");
        CHECK(!sqlipc_watch_close(watch));
        CHECK_INT(sqlipc_watch_open(f.connection, DB, none, &watch), 0);
        CHECK_STRING(w.tables, "");
        CHECK(!sqlipc_watch_close(watch));
        CHECK_INT(sqlipc_watch_open_sql(f.connection, DB, "SELECT 1", &watch), 0);
        CHECK_STRING(w.sql, "SELECT 1");
        CHECK(!sqlipc_watch_close(watch));

        watch = NULL;
        CHECK_INT(sqlipc_watch_open(NULL, DB, NULL, &watch), -EINVAL);
        CHECK_INT(sqlipc_watch_open(f.connection, NULL, NULL, &watch), -EINVAL);
        CHECK_INT(sqlipc_watch_open(f.connection, DB, NULL, NULL), -EINVAL);
        CHECK_INT(sqlipc_watch_open_sql(f.connection, DB, NULL, &watch), -EINVAL);
        CHECK_INT(sqlipc_watch_open_sql(f.connection, DB, "\xff", &watch), -EINVAL);
        check_code(SQLIPC_ERROR_SQL);
        CHECK_INT(sqlipc_watch_next(NULL, 0), -EINVAL);
        CHECK_INT(sqlipc_watch_get_fd(NULL), -EINVAL);
        CHECK_INT(sqlipc_watch_sequence(NULL), 0);
        CHECK_INT(sqlipc_watch_set_ready_callback(NULL, NULL, NULL), -EINVAL);
        CHECK(!watch && !sqlipc_watch_close(NULL));
        finish();
}

static void check_refused(const char *error, int r, sqlipc_error code) {
        sqlipc_watch *watch = NULL;

        w.error = error;
        w.n_errors = 1;
        CHECK_INT(sqlipc_watch_open_sql(f.connection, DB, "SELECT 1", &watch), r);
        check_code(code);
        CHECK(!watch);
}

/* Changes before the watch, which the program may not know. */
static void check_since(void) {
        sqlipc_watch *watch;

        CHECK_INT(sqlipc_watch_open_since(f.connection, DB, NULL, 999, &watch), 0);
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), 1);
        CHECK_INT(sqlipc_watch_sequence(watch), 1000);
        CHECK_INT(sqlipc_watch_next(watch, 20000), 0);
        sqlipc_watch_close(watch);
        CHECK_INT(sqlipc_watch_open_since(f.connection, DB, NULL, 1000, &watch), 0);
        CHECK_INT(sqlipc_watch_next(watch, 20000), 0);
        sqlipc_watch_close(watch);
        CHECK_INT(sqlipc_watch_open_since(f.connection, DB, NULL, 1000, NULL), -EINVAL);
        finish();
}

static void test_since(void) {
        start();
        check_since();
        start_without_descriptors();
        check_since();
}

static void test_refusals(void) {
        start();
        check_refused("org.sqlipc1.Error.Sql", -EINVAL, SQLIPC_ERROR_SQL);
        check_refused("org.sqlipc1.Error.NotAllowed", -EPERM, SQLIPC_ERROR_NOT_ALLOWED);
        check_refused("org.sqlipc1.Error.LimitsExceeded", -EDQUOT, SQLIPC_ERROR_LIMITS_EXCEEDED);
        check_refused("org.freedesktop.DBus.Error.UnknownMethod", -EOPNOTSUPP, SQLIPC_ERROR_NONE);
        check_refused("org.freedesktop.DBus.Error.ServiceUnknown", -EHOSTDOWN, SQLIPC_ERROR_DAEMON_LOST);
        finish();
        CHECK_INT(w.n_watch, 5);
        CHECK_INT(w.n_unwatch, 0);
}

static void test_open_times_out(void) {
        sqlipc_watch *watch;

        start();
        w.silent = true;
        CHECK_INT(sqlipc_set_timeout(f.connection, 20000), 0);
        CHECK_INT(sqlipc_watch_open(f.connection, DB, NULL, &watch), -ETIMEDOUT);
        finish();
}

static void test_interrupt(void) {
        FakeInterrupter interrupter;
        sqlipc_watch *watch, *other;

        start();
        watch = watch_open();
        fake_interrupt_begin(&interrupter, &f, NULL, 0);
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), -ECANCELED);
        check_code(SQLIPC_ERROR_CANCELLED);
        fake_interrupt_end(&interrupter);
        fake_watch_signal(&w); /* the watch goes on */
        check_change(watch);

        w.silent = true;
        fake_interrupt_begin(&interrupter, &f, NULL, 0);
        CHECK_INT(sqlipc_watch_open(f.connection, DB, NULL, &other), -ECANCELED);
        fake_interrupt_end(&interrupter);
        sqlipc_watch_close(watch);
        finish();
}

static void test_connection_closed(void) {
        sqlipc_watch *watch;
        int fd;

        start();
        watch = watch_open();
        fd = sqlipc_watch_get_fd(watch);
        CHECK(fd >= 0 && !is_readable(fd, 0));
        sqlipc_close(f.connection);
        CHECK(is_readable(fd, 0));
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), -ENOTCONN);
        CHECK_INT(sqlipc_watch_next(watch, 0), -ENOTCONN);
        sqlipc_watch_close(watch);
        f.connection = NULL;
        finish();
}

/* ---- A service that goes away ------------------------------------------------------------------------------------- */

/* The pipe ends; the next instance counts from elsewhere. */
static void restart(void) {
        w.sequence = 77;
        fake_watch_close(&w);
}

static void test_restart(void) {
        sqlipc_watch *watch;

        start();
        watch = watch_open();
        for (int i = 0; i < 2; i++) {
                restart();
                check_change(watch); /* exactly one */
        }
        fake_watch_signal(&w);
        restart(); /* a change that was not read, and the end */
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), 1);
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), 1);
        fake_watch_signal(&w);
        check_change(watch);
        sqlipc_watch_close(watch);
        finish();
        CHECK_INT(w.n_watch, 4);
        CHECK_INT(w.n_unwatch, 1); /* of the last one */
}

static uint64_t now_usec(void) {
        struct timespec now;

        CHECK(clock_gettime(CLOCK_MONOTONIC, &now) >= 0);
        return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

/* While no service is there, there are few attempts, and the program hears nothing. */
static void test_pauses(void) {
        sqlipc_watch *watch;
        uint64_t begin;

        start();
        watch = watch_open();
        w.error = "org.freedesktop.DBus.Error.ServiceUnknown";
        w.n_errors = 3;
        begin = now_usec();
        restart();
        check_change(watch);
        CHECK_INT(w.n_watch, 5);
        CHECK(now_usec() - begin >= 50000 + 100000 + 200000);
        w.error = "org.sqlipc1.Error.LimitsExceeded";
        w.n_errors = 1000;
        restart();
        CHECK_INT(sqlipc_watch_next(watch, 200000), 0);
        CHECK(w.n_errors >= 996);
        w.n_errors = 0;
        check_change(watch);
        sqlipc_watch_close(watch);
        finish();
}

/* The database or the right is gone. */
static void test_ended(void) {
        sqlipc_watch *watch;

        start();
        watch = watch_open();
        w.error = "org.freedesktop.DBus.Error.UnknownObject";
        w.n_errors = 1;
        fake_watch_signal(&w);
        restart();
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), 1);
        for (int i = 0; i < 2; i++) {
                CHECK_INT(sqlipc_watch_next(watch, FOREVER), -ENOENT);
                check_code(SQLIPC_ERROR_UNKNOWN_DATABASE);
        }
        CHECK(is_readable(sqlipc_watch_get_fd(watch), 0));
        sqlipc_watch_close(watch);
        finish();
        CHECK_INT(w.n_watch, 2);
}

/* The library cannot open another bus in place of the program's. */
static void test_bus_lost(void) {
        sqlipc_watch *watch;

        start();
        watch = watch_open();
        fake_stop_service(&f);
        fake_watch_close(&w);
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), -ECONNRESET);
        check_code(SQLIPC_ERROR_DAEMON_LOST);
        CHECK_INT(sqlipc_watch_next(watch, 0), -ECONNRESET);
        sqlipc_watch_close(watch);
        finish();
}

/* ---- A hostile service -------------------------------------------------------------------------------------------- */

static void test_hostile(void) {
        sqlipc_watch *watch;
        uint8_t bytes[4096] = { 0 };

        start();
        w.gives_write_end = true;
        CHECK_INT(sqlipc_watch_open(f.connection, DB, NULL, &watch), -EBADMSG);
        w.gives_write_end = false;

        watch = watch_open();
        CHECK_INT(write(w.write_fd, bytes, 7), 7);
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), -EBADMSG);
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), -EBADMSG);
        sqlipc_watch_close(watch);

        watch = watch_open(); /* more messages than there can be: changes */
        CHECK_INT(write(w.write_fd, bytes, sizeof bytes), sizeof bytes);
        for (size_t i = 0; i < sizeof bytes / 64; i++)
                CHECK_INT(sqlipc_watch_next(watch, 0), 1);
        CHECK_INT(sqlipc_watch_next(watch, 0), 0);
        sqlipc_watch_close(watch);
        finish();
}

/* A pipe that is read late, after the watch was closed. */
static void test_closed_while_opening(void) {
        sqlipc_watch *watch;

        start();
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        CHECK_INT(sqlipc_watch_open(f.connection, DB, NULL, &watch), 0);
        CHECK(!sqlipc_watch_close(watch));
        for (int i = 0; i < 12000 && w.n_unwatch == 0; i++) {
                (void) is_readable(sqlipc_get_fd(f.connection), 10);
                CHECK(sqlipc_process(f.connection) >= 0);
        }
        CHECK_INT(w.n_unwatch, 1);
        finish();
}

/* ---- Loops -------------------------------------------------------------------------------------------------------- */

/* A turn of the loop that polls the connection's descriptor. False: nothing came. */
static bool turn(int msec) {
        uint64_t until, now = now_usec();
        bool ready;

        CHECK_INT(sqlipc_get_timeout(f.connection, &until), 0);
        if (until != UINT64_MAX && until < now + (uint64_t) msec * 1000)
                msec = until > now ? (int) ((until - now + 999) / 1000) : 0;
        ready = is_readable(sqlipc_get_fd(f.connection), msec);
        CHECK(sqlipc_process(f.connection) >= 0);
        return ready || until != UINT64_MAX;
}

/* Until nothing is to come. */
static void settle(void) {
        do
                fake_barrier(&f);
        while (turn(0));
}

static int next_in_loop(sqlipc_watch *watch) {
        int r;

        while ((r = sqlipc_watch_next(watch, FOREVER)) == -EAGAIN)
                CHECK(turn(120000)); /* a turn for nothing is a missed wake-up */
        return r;
}

static void test_loop(void) {
        sqlipc_watch *watch;

        start();
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        watch = watch_open();
        CHECK_INT(next_in_loop(watch), 1); /* it has begun */
        CHECK_INT(sqlipc_watch_sequence(watch), 1000);
        settle();
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), -EAGAIN);
        CHECK(!turn(20));
        fake_watch_signal(&w);
        CHECK(turn(120000));
        CHECK(!turn(20)); /* said once */
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), 1);
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), -EAGAIN);
        w.error = "org.sqlipc1.Error.ShuttingDown";
        w.n_errors = 2; /* the call is repeated once by itself */
        restart();
        CHECK_INT(next_in_loop(watch), 1);
        CHECK_INT(sqlipc_watch_sequence(watch), 77);
        w.error = "org.sqlipc1.Error.AccessDenied";
        w.n_errors = 1;
        restart();
        CHECK_INT(next_in_loop(watch), -EACCES);
        sqlipc_watch_close(watch);
        finish();
}

typedef struct Ready {
        int n_calls, n_changes, last;
        bool close;
} Ready;

static void on_ready(sqlipc_watch *watch, void *userdata) {
        Ready *ready = userdata;

        ready->n_calls++;
        while ((ready->last = sqlipc_watch_next(watch, FOREVER)) > 0)
                ready->n_changes++;
        if (ready->close)
                sqlipc_watch_close(watch);
}

static void test_callbacks(void) {
        Ready ready = { .n_calls = 0 }, other = { .n_calls = 0 };
        sqlipc_watch *watch, *silent;
        int write_fd;

        start();
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        silent = watch_open();
        CHECK_INT(next_in_loop(silent), 1);
        write_fd = atomic_exchange(&w.write_fd, -1);
        CHECK_INT(sqlipc_watch_next(silent, 0), -EAGAIN);
        CHECK_INT(sqlipc_watch_set_ready_callback(silent, on_ready, &other), 0);
        watch = watch_open();
        CHECK_INT(sqlipc_watch_set_ready_callback(watch, on_ready, &ready), 0);
        CHECK_INT(sqlipc_watch_next(watch, 0), -EAGAIN);
        while (ready.n_changes == 0)
                CHECK(turn(120000));
        CHECK_INT(ready.n_calls, 1); /* it has begun */
        ready.n_calls = ready.n_changes = 0;
        fake_watch_signal(&w);
        CHECK(turn(120000));
        CHECK_INT(ready.n_calls, 1);
        CHECK_INT(ready.n_changes, 1);
        CHECK_INT(ready.last, -EAGAIN);
        restart();
        while (ready.n_changes < 2)
                CHECK(turn(120000));
        ready.close = true;
        fake_watch_signal(&w);
        while (ready.n_changes < 3)
                CHECK(turn(120000));
        CHECK_INT(other.n_changes, 0);
        CHECK_INT(other.n_calls, 0);
        sqlipc_watch_close(silent);
        close(write_fd);
        finish();
}

/* The watch's own descriptor is readable when there is a change, and only then; it survives restarts. The connection blocks
 * or does not. */
static void check_own_descriptor(bool blocking) {
        sqlipc_watch *watch;
        int fd, nothing = blocking ? 0 : -EAGAIN, r;

        start();
        CHECK_INT(sqlipc_set_blocking(f.connection, blocking), 0);
        watch = watch_open();
        fd = sqlipc_watch_get_fd(watch);
        CHECK(fd >= 0);
        CHECK_INT(sqlipc_watch_get_fd(watch), fd);
        while (!blocking && (r = sqlipc_watch_next(watch, 0)) != 1) { /* it has begun */
                CHECK_INT(r, nothing);
                CHECK(is_readable(fd, 120000));
        }
        while (is_readable(fd, 20))
                CHECK_INT(sqlipc_watch_next(watch, 0), nothing);
        for (int i = 0; i < 6; i++) {
                if (i % 3 == 2)
                        restart();
                else
                        fake_watch_signal(&w);
                do {
                        CHECK(is_readable(fd, 120000));
                        r = sqlipc_watch_next(watch, 0);
                        CHECK(r == nothing || r == 1);
                } while (r != 1);
                CHECK_INT(sqlipc_watch_next(watch, 0), nothing);
                CHECK(!is_readable(fd, 10));
        }
        w.error = "org.freedesktop.DBus.Error.ServiceUnknown";
        w.n_errors = 2;
        restart();
        for (int i = 0; (r = sqlipc_watch_next(watch, 0)) == nothing; i++) {
                CHECK(i < 50); /* no busy loop */
                CHECK(is_readable(fd, 120000));
        }
        CHECK_INT(r, 1);
        CHECK_INT(sqlipc_watch_get_fd(watch), fd);
        sqlipc_watch_close(watch);
        finish();
}

static void test_own_descriptor(void) {
        check_own_descriptor(true);
        check_own_descriptor(false);
}

/* The child closes the watch and its connection: the parent still hears of changes. */
static void test_fork(void) {
        sqlipc_watch *watch;
        int fd, status;
        pid_t pid;

        start();
        watch = watch_open();
        fd = sqlipc_watch_get_fd(watch);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                bool ok = sqlipc_watch_next(watch, 0) == -ECHILD && sqlipc_watch_get_fd(watch) == -ECHILD;

                sqlipc_watch_close(watch);
                sqlipc_close(f.connection);
                _exit(!ok);
        }
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK_INT(status, 0);
        fake_watch_signal(&w);
        CHECK(is_readable(fd, 120000));
        check_change(watch);
        sqlipc_watch_close(watch);
        finish();
        CHECK_INT(w.n_unwatch, 1);
}

/* ---- Without descriptors ------------------------------------------------------------------------------------------ */

/* The service's thread answers WaitChange when any call comes. */
static void signal_without_descriptors(void) {
        w.sequence++;
        CHECK(sd_bus_call_method_async(f.client_bus, NULL, NULL, "/", "a.b", "Turn", NULL, NULL, "") >= 0);
}

static void test_without_descriptors(void) {
        sqlipc_watch *watch;

        start_without_descriptors();
        watch = watch_open();
        CHECK_STRING(w.tables, "a,b");
        CHECK_INT(sqlipc_watch_sequence(watch), 1000);
        CHECK_INT(sqlipc_watch_next(watch, 1000), 0);
        for (int i = 0; i < 3; i++) {
                signal_without_descriptors();
                check_change(watch);
        }
        CHECK_INT(w.n_watch, 0);
        signal_without_descriptors();
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), 1);
        sqlipc_watch_close(watch);
        finish();
}

/* The service forgets calls after a while. */
static void test_forgotten_calls(void) {
        sqlipc_watch *watch;

        start_without_descriptors();
        watch = watch_open();
        fake_wait_for(&w.is_waiting, 1);
        signal_without_descriptors();
        w.error = "org.sqlipc1.Error.TimedOut";
        w.n_errors = 2;
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), 1); /* the next WaitChange is refused twice, and sent again */
        CHECK_INT(sqlipc_watch_next(watch, 50000), 0);
        CHECK_INT(w.n_errors, 0);
        signal_without_descriptors();
        check_change(watch);
        sqlipc_watch_close(watch);
        finish();
}

static void test_lost_without_descriptors(void) {
        sqlipc_watch *watch;

        start_without_descriptors();
        watch = watch_open();
        fake_wait_for(&w.is_waiting, 1);
        signal_without_descriptors();
        w.error = "org.freedesktop.DBus.Error.NoReply";
        w.n_errors = 2;
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), 1);
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), 1); /* the loss */
        CHECK_INT(sqlipc_watch_next(watch, 0), 0);
        signal_without_descriptors();
        check_change(watch);
        fake_wait_for(&w.is_waiting, 1);
        w.error = "org.sqlipc1.Error.AccessDenied";
        w.n_errors = 1;
        signal_without_descriptors();
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), 1);
        CHECK_INT(sqlipc_watch_next(watch, FOREVER), -EACCES);
        sqlipc_watch_close(watch);
        finish();
}

static void test_own_descriptor_without_descriptors(void) {
        sqlipc_watch *watch;
        int fd, r;

        start_without_descriptors();
        watch = watch_open();
        fd = sqlipc_watch_get_fd(watch);
        for (int i = 0; i < 3; i++) {
                while (is_readable(fd, 20))
                        CHECK_INT(sqlipc_watch_next(watch, 0), 0);
                signal_without_descriptors();
                do {
                        CHECK(is_readable(fd, 120000));
                        r = sqlipc_watch_next(watch, 0);
                } while (r == 0);
                CHECK_INT(r, 1);
        }
        sqlipc_watch_close(watch);
        finish();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_changes),
                TEST(test_openings),
                TEST(test_since),
                TEST(test_refusals),
                TEST(test_open_times_out),
                TEST(test_interrupt),
                TEST(test_connection_closed),
                TEST(test_restart),
                TEST(test_pauses),
                TEST(test_ended),
                TEST(test_bus_lost),
                TEST(test_hostile),
                TEST(test_closed_while_opening),
                TEST(test_loop),
                TEST(test_callbacks),
                TEST(test_own_descriptor),
                TEST(test_fork),
                TEST(test_without_descriptors),
                TEST(test_forgotten_calls),
                TEST(test_lost_without_descriptors),
                TEST(test_own_descriptor_without_descriptors),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
