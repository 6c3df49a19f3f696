/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Query without a description, in the supervisor: the call is answered before the worker reports anything, if the worker was
 * idle and the query can only read. An error that comes later is in the pipe. The test's clock does not advance by itself.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "dbus-interfaces/wire/page-decoder.h"
#include "tests/rigs/script.h"

static const RigCall *query(void) {
        sd_bus_message *m = rig_new_call(A, OPEN, SQLIPC_DATABASE_INTERFACE, "Query");

        CHECK(sd_bus_message_append(m, "sava{sv}a{sv}", "SELECT 1", 0, 0, 1, "describe", "b", false) >= 0);
        return send_call(A, m);
}

static void say_began(uint64_t number) {
        say(&(Message) { .kind = MESSAGE_STARTED, .started = { .number = number, .read_only = true } });
}

static void say_complete(uint64_t number) {
        say(&(Message) { .kind = MESSAGE_ENDED, .ended = { .number = number, .drained = true } });
}

/* A query was answered after it started, because it needed a worker, which is idle now. */
static void begin_idle(void) {
        rig_begin_users();
        rig_set_mode("open", "read-only");
        const RigCall *c = query();
        check_waits(c);
        take(0);
        check_waits(c);
        uint64_t number = only_run()->number;
        say_began(number);
        check_error(c, "");
        say_complete(number);
        CHECK_INT(n_runs(), 0);
        CHECK_INT(rig.n_fds, 1);
}

/* The last pipe holds one ERROR frame, of this run, and stays open. */
static void check_stream(uint64_t number, uint32_t error, const char *message) {
        int fd = rig.fds[rig.n_fds - 1];
        PageDecoder d;
        uint8_t *room;
        size_t size;

        page_decoder_init(&d, SQLIPC_PAGE_SIZE_DEFAULT, SQLIPC_PAGE_SIZE_DEFAULT);
        CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) >= 0);
        CHECK_INT(page_decoder_reserve(&d, &room, &size), 0);
        ssize_t n = read(fd, room, size);
        CHECK(n > 0);
        page_decoder_commit(&d, (size_t) n);
        CHECK_INT(page_decoder_next(&d), PAGE_ERROR);
        CHECK_INT(d.error_number, error);
        CHECK(d.run == number);
        CHECK_STRING(d.error_message, message);
        CHECK_INT(read(fd, room, 1), -1);
        page_decoder_done(&d);
}

static void test_idle_worker(void) {
        begin_idle();
        const RigCall *c = query();
        check_error(c, "");
        CHECK_INT(rig.n_fds, 2);
        CHECK_INT(only_run()->state, RUN_TAKEN);
        uint64_t number = only_run()->number;
        say_began(number);
        CHECK_INT(only_run()->state, RUN_STARTED);
        say_complete(number);
        CHECK_INT(n_runs(), 0);
        end();
}

static void test_worker_is_busy(void) {
        begin_idle();
        (void) query();
        check_waits(query());
        end();
}

/* The answer to a query that may write says what it does. */
static void test_writer(void) {
        begin();
        const RigCall *c = query();
        take(0);
        uint64_t number = only_run()->number;
        say_began(number);
        check_error(c, "");
        say_complete(number);
        c = query();
        check_waits(c);
        say_failed(only_run()->number, ERROR_SQL);
        check_error(c, ERROR("Sql"));
        end();
}

/* Its client need not have read the answer. */
static void test_cancelled_before_start(void) {
        begin_idle();
        const RigCall *c = query();
        check_error(c, "");
        check_error(call_cancel_of(A, c->cookie), "");
        CHECK_INT(stub_worker_cancels(0), 1);
        uint64_t number = only_run()->number;
        say_failed(number, ERROR_CANCELLED);
        CHECK_INT(n_runs(), 0);
        check_stream(number, ERROR_CANCELLED, "It failed.");
        end();
}

static void test_failure_before_start(void) {
        begin_idle();
        check_error(query(), "");
        uint64_t number = only_run()->number;
        say_failed(number, ERROR_SQL);
        CHECK_INT(n_runs(), 0);
        check_stream(number, ERROR_SQL, "It failed.");
        end();
}

/* The worker ended before it began the job, and no other is free in time. */
static void test_no_worker_in_the_end(void) {
        begin_idle();
        check_error(query(), "");
        Run *run = only_run();
        uint64_t number = run->number;
        run_put_back(run);
        CHECK_INT(run->state, RUN_WAITING);
        run_end(run, RUN_END_CANCELLED, ERROR_BUSY, "No worker is free.");
        pump();
        check_stream(number, ERROR_BUSY, "No worker is free.");
        end();
}

/* SQL that takes too long to compile is ended as ever. */
static void test_compile_timeout(void) {
        begin_idle();
        check_error(query(), "");
        uint64_t number = only_run()->number;
        unsigned n_seconds = 0;
        while (stub_worker_cancels(0) == 0 && n_seconds++ < 60) /* the stub uses no CPU time, so it gets some more */
                rig_pass_time(SECOND);
        CHECK_INT(stub_worker_cancels(0), 1);
        say_failed(number, ERROR_TIMED_OUT);
        check_stream(number, ERROR_TIMED_OUT, "It failed.");
        end();
}

/* The reader finds the end of the file. */
static void test_worker_dies(void) {
        uint8_t byte;

        begin_idle();
        check_error(query(), "");
        die();
        CHECK_INT(n_runs(), 0);
        CHECK_INT(read(rig.fds[1], &byte, 1), 0);
        end();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_idle_worker), TEST(test_worker_is_busy), TEST(test_writer), TEST(test_failure_before_start),
                TEST(test_cancelled_before_start),
                TEST(test_no_worker_in_the_end), TEST(test_compile_timeout), TEST(test_worker_dies),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
