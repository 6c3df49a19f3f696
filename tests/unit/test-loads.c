/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads, in the supervisor: Load and Wait if the load is carried out, fails or is cancelled, if the worker is lost before or
 * after COMMITTING, if the client leaves, or if it loses its rights; and how long a result is kept for Wait. The test's
 * clock does not advance by itself.
 */
#include <string.h>

#include "tests/rigs/script.h"

/* ---- The client ---- */

/* Load in a transaction; 0: in none. */
static const RigCall *call_load(unsigned peer, uint64_t transaction) {
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, "Load");

        CHECK(sd_bus_message_append(m, "s", "INSERT INTO t VALUES(?)") >= 0);
        if (transaction > 0)
                CHECK(sd_bus_message_append(m, "a{sv}", 1, "transaction", "t", transaction) >= 0);
        else
                CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
        return send_call(peer, m);
}

static const RigCall *call_wait(uint64_t number) {
        return call_with_number(A, "Wait", number);
}

static void check_changes(const RigCall *c, int64_t n) {
        check_error(c, "");
        CHECK_INT(c->n_changes, n);
}

/* ---- The worker ---- */

static Message loaded(uint64_t number) {
        return (Message) { .kind = MESSAGE_ENDED,
                           .ended = { .number = number, .wrote = true, .n_changes = 7, .n_rows = 7, .drained = true } };
}

static void say_loaded(uint64_t number) {
        const Message m = loaded(number);

        say(&m);
}

/* ---- Together ---- */

/* Load waits for a worker that has taken it. */
static uint64_t begin_taken(const RigCall **ret) {
        begin();
        *ret = call_load(A, 0);
        check_waits(*ret);
        take(0);
        CHECK_INT(only_run()->state, RUN_TAKEN);
        return only_run()->number;
}

/* The client has the pipe. */
static uint64_t begin_started(void) {
        const RigCall *c;
        uint64_t number = begin_taken(&c);

        say_started(number);
        check_error(c, "");
        CHECK_INT(rig.numbers[0], number);
        CHECK_INT(rig.n_fds, 1);
        return number;
}

/* Its Wait has no answer yet. */
static uint64_t begin_waiting(const RigCall **ret) {
        uint64_t number = begin_started();

        *ret = call_wait(number);
        check_waits(*ret);
        return number;
}

/* Nothing is left of the load. */
static void check_is_over(uint64_t number) {
        CHECK(!find(number));
        check_error(call_wait(number), ERROR("UnknownRun"));
}

/* Wait, called only now, answers with this error, once. */
static void check_result(uint64_t number, const char *name) {
        CHECK_INT(only_run()->state, RUN_OVER);
        check_error(call_wait(number), name);
        check_is_over(number);
        end();
}

/* ---- Load, Wait ---- */

static void test_wait(void) {
        const RigCall *c;
        uint64_t number = begin_waiting(&c);

        check_error(call_wait(number), ERROR("Busy"));
        check_error(call_with_number(B, "Wait", number), ERROR("UnknownRun"));
        commit(number);
        check_waits(c);
        say_loaded(number);
        check_changes(c, 7);
        check_is_over(number);
        end();

        number = begin_started();
        commit(number);
        say_loaded(number);
        CHECK_INT(only_run()->state, RUN_OVER);
        check_error(call_with_number(B, "Wait", number), ERROR("UnknownRun"));
        check_changes(call_wait(number), 7);
        check_is_over(number);
        end();
}

static void test_fails(void) {
        const RigCall *c;
        uint64_t number = begin_taken(&c);

        say_failed(number, ERROR_SQL);
        check_error(c, ERROR("Sql"));
        check_is_over(number);
        end();

        number = begin_waiting(&c);
        say_failed(number, ERROR_SQL);
        check_error(c, ERROR("Sql"));
        check_is_over(number);
        end();

        number = begin_started();
        say_failed(number, ERROR_SQL);
        check_result(number, ERROR("Sql"));
}

/* Wait does not answer for other runs, nor before Load is answered. */
static void test_wait_for_others(void) {
        const RigCall *c;
        uint64_t number = begin_taken(&c);

        check_error(call_wait(number), ERROR("UnknownRun"));
        check_waits(c);
        sd_bus_message *m = rig_new_call(A, OPEN, SQLIPC_DATABASE_INTERFACE, "Query");
        CHECK(sd_bus_message_append(m, "sava{sv}a{sv}", "SELECT 1", 0, 0, 0) >= 0);
        (void) send_call(A, m);
        CHECK_INT(n_runs(), 2);
        check_error(call_wait(number + 1), ERROR("UnknownRun"));
        end();
}

/* ---- Loss ---- */

static void test_lost_before_commit(void) {
        const RigCall *c;
        uint64_t number = begin_taken(&c);

        die();
        check_error(c, ERROR("WorkerLost"));
        check_is_over(number);
        end();

        number = begin_waiting(&c);
        die();
        check_error(c, ERROR("WorkerLost"));
        CHECK(strstr(c->sentence, "nothing was written"));
        check_is_over(number);
        end();

        number = begin_started();
        die();
        check_result(number, ERROR("WorkerLost"));
}

static void test_lost_after_commit(void) {
        const RigCall *c;
        uint64_t number = begin_waiting(&c);

        commit(number);
        die();
        check_error(c, ERROR("OutcomeUnknown"));
        check_is_over(number);
        end();

        number = begin_started();
        commit(number);
        die();
        check_result(number, ERROR("OutcomeUnknown"));

        number = begin_waiting(&c); /* its report arrives all the same */
        commit(number);
        const Message m = loaded(number);
        stub_worker_say(0, &m);
        die();
        check_changes(c, 7);
        end();

        number = begin_waiting(&c); /* COMMITTING may be among the unread messages of a worker that lied */
        say(&(Message) { .kind = MESSAGE_LEASE_RETURNED });
        check_error(c, ERROR("OutcomeUnknown"));
        end();

        number = begin_started();
        say(&(Message) { .kind = MESSAGE_LEASE_RETURNED });
        check_result(number, ERROR("OutcomeUnknown"));
}

/* EXIT and LOAD crossed each other: another worker gets it. */
static void test_worker_that_ends(void) {
        const RigCall *c;
        uint64_t number = begin_taken(&c);

        CHECK(worker_end(worker(0), WORKER_END_STOPPING));
        stub_worker_die(0, CLD_EXITED, 0);
        pump();
        check_waits(c);
        CHECK_INT(only_run()->number, number);
        take(0);
        say_started(number);
        check_error(c, "");
        CHECK_INT(rig.n_fds, 1);
        end();
}

/* ---- Cancelled ---- */

static void test_cancelled(void) {
        const RigCall *c;
        uint64_t number = begin_taken(&c);

        cancel();
        say_failed(number, ERROR_CANCELLED);
        check_error(c, ERROR("Cancelled"));
        check_is_over(number);
        end();

        number = begin_taken(&c); /* STARTED was on its way: Wait tells the end */
        cancel();
        say_started(number);
        check_error(c, "");
        say_failed(number, ERROR_CANCELLED);
        check_result(number, ERROR("Cancelled"));

        number = begin_waiting(&c);
        cancel();
        check_waits(c);
        say_failed(number, ERROR_CANCELLED);
        check_error(c, ERROR("Cancelled"));
        end();

        number = begin_waiting(&c); /* the worker was faster */
        cancel();
        commit(number);
        say_loaded(number);
        check_changes(c, 7);
        end();

        number = begin_waiting(&c); /* it does not obey, and is killed */
        cancel();
        rig_pass_time(6 * SECOND);
        check_error(c, ERROR("Cancelled"));
        end();

        number = begin_started();
        cancel();
        commit(number);
        rig_pass_time(6 * SECOND);
        check_result(number, ERROR("OutcomeUnknown"));
}

/* A client that gives Load up cancels the call, and need not have read that it was answered. */
static void test_load_cancelled(void) {
        const RigCall *loads, *c;
        uint64_t number = begin_taken(&loads);

        check_error(call_cancel_of(B, loads->cookie), ERROR("UnknownRun"));
        check_error(call_cancel_of(A, loads->cookie), "");
        CHECK_INT(stub_worker_cancels(0), 1);
        say_failed(number, ERROR_CANCELLED);
        check_error(loads, ERROR("Cancelled"));
        check_is_over(number);
        end();

        number = begin_taken(&loads);
        say_started(number);
        check_error(loads, "");
        check_error(call_cancel_of(B, loads->cookie), ERROR("UnknownRun"));
        CHECK_INT(stub_worker_cancels(0), 0);
        check_error(call_cancel_of(A, loads->cookie), "");
        CHECK_INT(stub_worker_cancels(0), 1);
        check_error(call_wait(number), ERROR("UnknownRun"));
        say_failed(number, ERROR_CANCELLED); /* no result is kept */
        CHECK_INT(n_runs(), 0);
        end();

        number = begin_taken(&loads); /* its client has read the answer, and waits */
        say_started(number);
        c = call_wait(number);
        check_error(call_cancel_of(A, loads->cookie), ERROR("UnknownRun"));
        CHECK_INT(stub_worker_cancels(0), 0);
        commit(number);
        say_loaded(number);
        check_changes(c, 7);
        end();

        number = begin_taken(&loads); /* it has sent its rows */
        say_started(number);
        commit(number);
        check_error(call_cancel_of(A, loads->cookie), ERROR("UnknownRun"));
        say_loaded(number);
        check_error(call_cancel_of(A, loads->cookie), ERROR("UnknownRun"));
        check_changes(call_wait(number), 7);
        end();
}

/* Too late: the result stays. */
static void test_cancelled_after_the_end(void) {
        uint64_t number = begin_started();

        say_loaded(number);
        check_error(call_with_number(A, "Cancel", number), "");
        cancel_run();
        pump();
        CHECK_INT(stub_worker_cancels(0), 0);
        check_changes(call_wait(number), 7);
        end();
}

static void test_client_leaves(void) {
        const RigCall *c;
        uint64_t number = begin_taken(&c);

        rig_leave(A);
        pump();
        CHECK_INT(stub_worker_cancels(0), 1);
        say_started(number);
        say_failed(number, ERROR_CANCELLED);
        CHECK_INT(n_runs(), 0);
        end();

        number = begin_started();
        rig_leave(A);
        pump();
        CHECK_INT(stub_worker_cancels(0), 1);
        CHECK_INT(n_runs(), 1);
        say_failed(number, ERROR_CANCELLED);
        CHECK_INT(n_runs(), 0);
        end();

        number = begin_waiting(&c);
        commit(number);
        rig_leave(A);
        pump();
        CHECK_INT(stub_worker_cancels(0), 1);
        say_loaded(number);
        CHECK_INT(n_runs(), 0);
        end();

        number = begin_started(); /* its result is dropped with it */
        say_loaded(number);
        CHECK_INT(n_runs(), 1);
        rig_leave(A);
        pump();
        CHECK_INT(n_runs(), 0);
        end();
}

static void test_deadline(void) {
        const uint64_t usec = rig.manager->context.config->limits.transaction_timeout_usec;
        const RigCall *c;
        uint64_t number = begin_waiting(&c);

        rig_pass_time(usec - SECOND);
        CHECK_INT(stub_worker_cancels(0), 0);
        rig_pass_time(SECOND);
        CHECK_INT(stub_worker_cancels(0), 1);
        check_waits(c);
        say_failed(number, ERROR_TIMED_OUT);
        check_error(c, ERROR("TimedOut"));
        end();

        number = begin_started(); /* the worker does not obey */
        rig_pass_time(usec + 6 * SECOND);
        CHECK_INT(only_run()->state, RUN_OVER);
        CHECK(strstr(only_run()->end.message, "TransactionTimeoutSec="));
        check_result(number, ERROR("TimedOut"));
}

/* ---- Rights ---- */

static void test_rights_change(void) {
        const RigCall *c;
        uint64_t number;

        begin(); /* no worker has it */
        c = call_load(A, 0);
        lose_right();
        check_error(c, ERROR("ReadOnly"));
        CHECK(strstr(c->sentence, "nothing was written"));
        check_error(call_load(A, 0), ERROR("ReadOnly"));
        end();

        number = begin_waiting(&c); /* the worker decides */
        lose_right();
        CHECK_INT(stub_worker_cancels(0), 1);
        check_waits(c);
        CHECK_INT(only_run()->end.error, ERROR_READ_ONLY);
        say_failed(number, ERROR_READ_ONLY);
        check_error(c, ERROR("ReadOnly"));
        end();

        number = begin_started();
        lose_right();
        CHECK_INT(stub_worker_cancels(0), 1);
        die();
        check_result(number, ERROR("ReadOnly"));

        number = begin_waiting(&c); /* its commit has begun */
        commit(number);
        lose_right();
        CHECK_INT(stub_worker_cancels(0), 0);
        say_loaded(number);
        check_changes(c, 7);
        end();

        number = begin_started(); /* it is written: Wait only reports it */
        say_loaded(number);
        lose_right();
        check_changes(call_wait(number), 7);
        end();
}

/* ---- In a transaction ---- */

/* A transaction is open at a worker. */
static uint64_t begin_transaction(void) {
        const RigCall *c;

        begin();
        c = call_begin(A, "write");
        take(0);
        uint64_t number = only_run()->number;
        say_started(number);
        check_error(c, "");
        return number;
}

static void test_in_a_transaction(void) {
        uint64_t transaction = begin_transaction(), number;
        const RigCall *c = call_load(A, transaction), *rollback;

        CHECK_INT(worker(0)->runs.length, 2);
        number = ((const Run *) worker(0)->runs.tail->data)->number;
        say_started(number);
        check_error(c, "");
        c = call_wait(number);
        rollback = call_with_number(A, "Rollback", transaction);
        say_failed(number, ERROR_TRANSACTION_ENDED);
        check_error(c, ERROR("TransactionEnded"));
        say_failed(transaction, ERROR_CANCELLED);
        check_error(rollback, "");
        end();

        transaction = begin_transaction(); /* both end with the right */
        c = call_load(A, transaction);
        number = ((const Run *) worker(0)->runs.tail->data)->number;
        say_started(number);
        lose_right();
        CHECK_INT(stub_worker_cancels(0), 2);
        say_failed(number, ERROR_BUSY);
        say_failed(transaction, ERROR_TRANSACTION_ENDED);
        check_result(number, ERROR("Busy"));
}

/* ---- Bounds ---- */

static void test_socket_full(void) {
        const RigCall *c;
        uint64_t number = begin_transaction();

        fill_socket();
        check_error(call_load(A, number), ERROR("Busy"));
        CHECK_INT(rig.n_fds, 0);
        CHECK_INT(n_runs(), 1);
        stub_worker_hear(0); /* it has read them */
        check_waits(call_load(A, number));
        CHECK_INT(n_runs(), 2);
        end();

        number = begin_waiting(&c); /* CANCEL is sent again later */
        fill_socket();
        check_error(call_with_number(A, "Cancel", number), "");
        CHECK_INT(stub_worker_cancels(0), 0);
        rig_pass_time(SECOND / 10);
        CHECK_INT(stub_worker_cancels(0), 1);
        say_failed(number, ERROR_CANCELLED);
        check_error(c, ERROR("Cancelled"));
        end();
}

/* Results that no Wait has asked for count as runs. */
static void test_results_are_bounded(void) {
        const uint64_t n = rig.manager->context.config->limits.runs_max;
        uint64_t first = 0;

        begin();
        for (uint64_t i = 0; i < n; i++) {
                (void) call_load(A, 0);
                (void) stub_worker_take(0); /* unless it came over the control socket, as to a worker that is idle */
                stub_worker_hear(0);
                pump();
                uint64_t number = worker(0)->runs.length > 0 ? ((const Run *) worker(0)->runs.head->data)->number : 0;
                CHECK(number > 0);
                say_started(number);
                say_loaded(number);
                first = first > 0 ? first : number;
        }
        CHECK_INT(n_runs(), n);
        check_error(call_load(A, 0), ERROR("LimitsExceeded"));
        check_changes(call_wait(first), 7);
        check_waits(call_load(A, 0));
        check_waits(call_load(B, 0));
        end();
}

static void test_results_are_dropped(void) {
        const uint64_t usec = rig.manager->context.config->limits.statement_idle_usec;
        uint64_t number = begin_started();

        say_loaded(number);
        rig_pass_time(usec - SECOND);
        CHECK_INT(only_run()->state, RUN_OVER);
        rig_pass_time(SECOND);
        check_is_over(number);
        end();

        number = begin_started();
        die();
        rig_pass_time(usec);
        check_is_over(number);
        end();
}

/* ---- Replies that cannot be made ---- */

static void test_no_reply(void) {
        const RigCall *c;
        uint64_t number = begin_taken(&c);

        rig.out_of_memory = true;
        say_started(number);
        check_error(c, ERROR("OutOfMemory")); /* its client has no pipe, so nothing can be written */
        rig.out_of_memory = false;
        CHECK_INT(rig.n_fds, 0);
        CHECK_INT(stub_worker_cancels(0), 1);
        say_failed(number, ERROR_OUT_OF_MEMORY);
        check_is_over(number); /* no client can name it */
        end();

        number = begin_waiting(&c);
        commit(number);
        rig.out_of_memory = true;
        say_loaded(number);
        check_error(c, ERROR("OutcomeUnknown"));
        end();

        number = begin_started();
        say_loaded(number);
        rig.out_of_memory = true;
        check_error(call_wait(number), ERROR("OutcomeUnknown"));
        end();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_wait), TEST(test_fails), TEST(test_wait_for_others), TEST(test_lost_before_commit),
                TEST(test_lost_after_commit), TEST(test_worker_that_ends), TEST(test_cancelled), TEST(test_load_cancelled),
                TEST(test_cancelled_after_the_end), TEST(test_client_leaves), TEST(test_deadline), TEST(test_rights_change),
                TEST(test_in_a_transaction), TEST(test_socket_full), TEST(test_results_are_bounded),
                TEST(test_results_are_dropped), TEST(test_no_reply),
        };

        begin();
        end();
        return test_main(tests, N_ELEMENTS(tests));
}
