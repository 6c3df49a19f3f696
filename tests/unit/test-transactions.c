/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Transactions of clients, in the supervisor: Begin, Commit and Rollback if they are carried out, refused or cancelled, if
 * the worker is lost before or after COMMITTING, if the client leaves, or if it loses its rights. The test's clock does not
 * advance by itself.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "daemon/supervisor/base/database.h"
#include "daemon/supervisor/runs/run.h"
#include "daemon/supervisor/service/invariants.h"
#include "daemon/supervisor/workers/worker.h"
#include "dbus-interfaces/sqlipc-names.h"
#include "tests/rigs/bus-rig.h"
#include "tests/rigs/stub-worker.h"
#include "tests/unit/test.h"

#define OPEN SQLIPC_DATABASE_PATH "/open"
#define SECOND UINT64_C(1000000)
#define ERROR(name) (SQLIPC_ERROR_PREFIX name)

enum { A, B }; /* peers, each of a user of its own */

/* While this is set, the supervisor cannot make replies. */
static bool out_of_memory;

int __wrap_sd_bus_reply_method_return(sd_bus_message *call, const char *types, ...);
int __wrap_sd_bus_message_new_method_return(sd_bus_message *call, sd_bus_message **m);
int __real_sd_bus_message_new_method_return(sd_bus_message *call, sd_bus_message **m);

int __wrap_sd_bus_reply_method_return(sd_bus_message *call, const char *types, ...) {
        va_list values;
        int r;

        if (out_of_memory)
                return -ENOMEM;
        va_start(values, types);
        r = sd_bus_reply_method_returnv(call, types, values);
        va_end(values);
        return r;
}

int __wrap_sd_bus_message_new_method_return(sd_bus_message *call, sd_bus_message **m) {
        return out_of_memory ? -ENOMEM : __real_sd_bus_message_new_method_return(call, m);
}

static void begin(void) {
        if (!rig.manager)
                rig_init();
        rig_begin();
        for (unsigned i = 0; i < RIG_N_PEERS; i++)
                rig.peers[i] = (RigPeer) { .uid = 1000 + i };
        rig_set_mode("open", "read-write");
}

static void end(void) {
        out_of_memory = false;
        rig_check_nothing_left();
}

static void pump(void) {
        rig_pump();
        invariants_check(&rig.manager->context);
}

static Worker *worker(unsigned n) {
        Worker *w = g_queue_peek_nth(&rig.manager->context.workers, n);

        CHECK(w);
        return w;
}

static Run *find(uint64_t number) {
        return g_hash_table_lookup(rig.manager->context.runs, &number);
}

static unsigned n_runs(void) {
        return g_hash_table_size(rig.manager->context.runs);
}

static Run *only_run(void) {
        GHashTableIter i;
        void *value = NULL;

        CHECK_INT(n_runs(), 1);
        g_hash_table_iter_init(&i, rig.manager->context.runs);
        CHECK(g_hash_table_iter_next(&i, NULL, &value));
        return value;
}

/* ---- The client ---- */

static const RigCall *send_call(unsigned peer, sd_bus_message *m) {
        rig_send_call(peer, m, true);
        pump();
        return &rig.calls[rig.n_calls - 1];
}

static const RigCall *call_begin(unsigned peer, const char *mode) {
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, "Begin");

        CHECK(sd_bus_message_append(m, "a{sv}", 1, "mode", "s", mode) >= 0);
        return send_call(peer, m);
}

/* Commit or Rollback. */
static const RigCall *call_end(unsigned peer, const char *method, uint64_t number) {
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, method);

        CHECK(sd_bus_message_append(m, "ta{sv}", number, 0) >= 0);
        return send_call(peer, m);
}

/* Execute or Query in a transaction; 0: in none. */
static const RigCall *call_statement(const char *method, uint64_t transaction) {
        sd_bus_message *m = rig_new_call(A, OPEN, SQLIPC_DATABASE_INTERFACE, method);

        CHECK(sd_bus_message_append(m, "sava{sv}", "UPDATE t SET a = 1", 0, 0) >= 0);
        if (transaction > 0)
                CHECK(sd_bus_message_append(m, "a{sv}", 1, "transaction", "t", transaction) >= 0);
        else
                CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
        return send_call(A, m);
}

static void check_waits(const RigCall *c) {
        CHECK_INT(c->n_replies, 0);
}

static void check_error(const RigCall *c, const char *name) {
        CHECK_INT(c->n_replies, 1);
        CHECK_STRING(c->error, name);
}

/* ---- The worker ---- */

static void take(unsigned n) {
        CHECK(stub_worker_take(n));
        pump();
}

static void say(const Message *m) {
        stub_worker_say(0, m);
        pump();
}

static void say_started(uint64_t number) {
        say(&(Message) { .kind = MESSAGE_STARTED, .started = { .number = number } });
}

static void say_committing(uint64_t number) {
        uint8_t bytes[8];

        store_le64(bytes, number);
        say(&(Message) { .kind = MESSAGE_LEASE_WANTED });
        say(&(Message) { .kind = MESSAGE_COMMITTING, .committing.numbers = { (const char *) bytes, sizeof bytes } });
}

static void say_ended(uint64_t number, bool wrote) {
        say(&(Message) { .kind = MESSAGE_ENDED, .ended = { .number = number, .wrote = wrote, .drained = true } });
}

static void say_failed(uint64_t number, ErrorNumber error) {
        say(&(Message) { .kind = MESSAGE_ENDED,
                         .ended = { .number = number, .drained = true,
                                    .failure = { .error = error, .sql_offset = -1, .message = "It failed." } } });
}

static void die(void) {
        stub_worker_die(0, CLD_KILLED, SIGSEGV);
        pump();
}

/* Messages to the worker that it does not react to, until its socket is full. */
static void fill_socket(void) {
        while (message_send(worker(0)->control_fd, &(Message) { .kind = MESSAGE_RETIRE }, -1) >= 0)
                ;
}

/* ---- Together ---- */

/* Begin waits for a worker that has taken it. */
static uint64_t begin_waiting(const RigCall **ret) {
        begin();
        *ret = call_begin(A, "write");
        check_waits(*ret);
        take(0);
        CHECK_INT(only_run()->state, RUN_TAKEN);
        return only_run()->number;
}

/* A transaction is open. */
static uint64_t begin_open(void) {
        const RigCall *c;
        uint64_t number = begin_waiting(&c);

        say_started(number);
        check_error(c, "");
        CHECK_INT(rig.numbers[0], number);
        CHECK_INT(only_run()->user->n_transactions, 1);
        return number;
}

/* Its Commit waits. */
static uint64_t begin_committing(const RigCall **ret) {
        uint64_t number = begin_open();

        *ret = call_end(A, "Commit", number);
        CHECK_INT(stub_worker_commits(0), 1);
        check_waits(*ret);
        return number;
}

/* The transaction `number` is known as ended. */
static void check_is_over(uint64_t number) {
        CHECK(!find(number));
        check_error(call_end(A, "Commit", number), ERROR("TransactionEnded"));
        check_error(call_end(A, "Rollback", number), ERROR("TransactionEnded"));
        check_error(call_statement("Execute", number), ERROR("TransactionEnded"));
}

static void cancel(void) {
        run_end(only_run(), RUN_END_BY_ADMINISTRATOR, ERROR_CANCELLED, "An administrator cancelled it.");
        pump();
        CHECK_INT(stub_worker_cancels(0), 1);
}

/* ---- Commit, Rollback ---- */

static void test_commit(void) {
        const RigCall *c;
        uint64_t number = begin_committing(&c);

        check_error(call_end(A, "Commit", number), ERROR("Busy"));
        check_error(call_end(A, "Rollback", number), ERROR("Busy"));
        check_error(call_end(B, "Commit", number), ERROR("TransactionEnded"));
        CHECK_INT(stub_worker_commits(0), 1);
        CHECK_INT(stub_worker_cancels(0), 0);
        say_committing(number);
        check_waits(c);
        say_ended(number, true);
        check_error(c, "");
        check_is_over(number);
        end();

        number = begin_committing(&c); /* a deferred constraint */
        say_committing(number);
        say_failed(number, ERROR_SQL);
        check_error(c, ERROR("Sql"));
        check_is_over(number);
        end();
}

static void test_rollback(void) {
        uint64_t number = begin_open();
        const RigCall *c = call_end(A, "Rollback", number);

        CHECK_INT(stub_worker_cancels(0), 1);
        check_waits(c);
        check_error(call_end(A, "Commit", number), ERROR("Busy"));
        check_error(call_statement("Execute", number), ERROR("TransactionEnded"));
        say_failed(number, ERROR_CANCELLED);
        check_error(c, "");
        check_is_over(number);
        end();

        number = begin_open(); /* the worker had ended it before */
        c = call_end(A, "Rollback", number);
        say_failed(number, ERROR_TRANSACTION_ENDED);
        check_error(c, ERROR("TransactionEnded"));
        end();
}

/* Its statements go to its worker. */
static void test_statements(void) {
        uint64_t number = begin_open();
        const RigCall *in_it = call_statement("Execute", number), *beside;
        uint64_t statement = worker(0)->runs.tail ? ((const Run *) worker(0)->runs.tail->data)->number : 0;

        CHECK_INT(worker(0)->runs.length, 2);
        CHECK_INT(find(statement)->transaction, number);
        CHECK_INT(find(statement)->state, RUN_TAKEN);
        beside = call_statement("Execute", 0);
        CHECK_INT(worker(0)->runs.length, 2);
        say_ended(statement, true);
        check_error(in_it, "");
        check_waits(beside);
        end();
}

/* ---- Loss ---- */

static void test_lost_before_commit(void) {
        const RigCall *c;
        uint64_t number = begin_waiting(&c);

        die();
        check_error(c, ERROR("WorkerLost"));
        end();

        number = begin_open(); /* between two calls */
        die();
        check_is_over(number);
        end();

        (void) begin_committing(&c);
        die();
        check_error(c, ERROR("WorkerLost"));
        CHECK(strstr(c->sentence, "nothing was written"));
        end();

        number = begin_open();
        c = call_end(A, "Rollback", number);
        die();
        check_error(c, ERROR("Cancelled"));
        end();
}

static void check_why(uint64_t number, const char *why) {
        const RigCall *c = call_statement("Execute", number);

        check_error(c, ERROR("TransactionEnded"));
        if (!strstr(c->sentence, why))
                CHECK_STRING(c->sentence, why);
        c = call_end(A, "Commit", number);
        check_error(c, ERROR("TransactionEnded"));
        CHECK(strstr(c->sentence, why));
}

/* Each later call gets the reason, for the last few transactions of a client. */
static void test_tells_why_it_ended(void) {
        uint64_t first = begin_open(), number = first;

        say_failed(first, ERROR_TRANSACTION_ENDED);
        check_why(first, "has ended: It failed.");
        die();
        for (unsigned i = 0; i < SESSION_N_ENDED; i++) {
                check_why(first, "has ended: It failed.");
                (void) call_begin(A, "write");
                take(0);
                number = only_run()->number;
                say_started(number);
                die();
                check_why(number, "nothing was written");
        }
        check_why(first, "it may have ended");
        end();
}

static void test_lost_after_commit(void) {
        const RigCall *c;
        uint64_t number = begin_committing(&c);

        say_committing(number);
        die();
        check_error(c, ERROR("OutcomeUnknown"));
        check_is_over(number);
        end();

        number = begin_committing(&c); /* its report arrives all the same */
        say_committing(number);
        stub_worker_say(0, &(Message) { .kind = MESSAGE_ENDED, .ended = { .number = number, .wrote = true,
                                                                          .drained = true } });
        die();
        check_error(c, "");
        end();

        number = begin_committing(&c); /* COMMITTING may be among the unread messages of a worker that lied */
        say(&(Message) { .kind = MESSAGE_LEASE_RETURNED });
        check_error(c, ERROR("OutcomeUnknown"));
        end();
}

/* EXIT and BEGIN crossed each other: another worker gets it. */
static void test_worker_that_ends(void) {
        const RigCall *c;
        uint64_t number = begin_waiting(&c);

        CHECK(worker_end(worker(0), WORKER_END_STOPPING));
        stub_worker_die(0, CLD_EXITED, 0);
        pump();
        check_waits(c);
        CHECK_INT(only_run()->number, number);
        take(0);
        say_started(number);
        check_error(c, "");

        CHECK(worker_end(worker(0), WORKER_END_STOPPING)); /* an open one ends with its worker */
        stub_worker_die(0, CLD_EXITED, 0);
        pump();
        check_is_over(number);
        end();
}

/* ---- Cancelled ---- */

static void test_cancelled(void) {
        const RigCall *c;
        uint64_t number = begin_waiting(&c);

        cancel();
        say_started(number); /* on its way already: nothing was written, so its client need not know of it */
        check_error(c, ERROR("Cancelled"));
        say_failed(number, ERROR_CANCELLED);
        end();

        number = begin_committing(&c);
        cancel();
        check_waits(c);
        say_failed(number, ERROR_CANCELLED);
        check_error(c, ERROR("Cancelled"));
        end();

        number = begin_committing(&c); /* the worker was faster */
        cancel();
        say_committing(number);
        say_ended(number, true);
        check_error(c, "");
        end();

        number = begin_committing(&c); /* it does not obey, and is killed */
        cancel();
        say_committing(number);
        rig_pass_time(6 * SECOND);
        check_error(c, ERROR("OutcomeUnknown"));
        end();
}

static void test_client_leaves(void) {
        const RigCall *c;
        uint64_t number = begin_waiting(&c);

        rig_leave(A);
        pump();
        CHECK_INT(stub_worker_cancels(0), 1);
        say_started(number);
        CHECK_INT(n_runs(), 1);
        say_failed(number, ERROR_CANCELLED);
        CHECK_INT(n_runs(), 0);
        end();

        number = begin_open();
        (void) call_statement("Execute", number);
        rig_leave(A);
        pump();
        CHECK_INT(stub_worker_cancels(0), 2);
        end();

        number = begin_committing(&c);
        rig_leave(A);
        pump();
        CHECK_INT(stub_worker_cancels(0), 1);
        say_committing(number);
        say_ended(number, true);
        CHECK_INT(n_runs(), 0);
        end();

        begin(); /* before a worker took it */
        (void) call_begin(A, "write");
        rig_leave(A);
        pump();
        CHECK_INT(n_runs(), 0);
        CHECK(!stub_worker_take(0));
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
        say_failed(number, ERROR_TRANSACTION_ENDED);
        check_error(c, ERROR("TransactionEnded"));
        end();

        (void) begin_waiting(&c); /* the worker does not obey */
        rig_pass_time(usec + 6 * SECOND);
        CHECK_INT(n_runs(), 0);
        check_error(c, ERROR("TransactionEnded"));
        end();

        number = begin_open();
        rig_pass_time(usec);
        CHECK_INT(stub_worker_cancels(0), 1);
        check_error(call_end(A, "Commit", number), ERROR("Busy"));
        say_failed(number, ERROR_TRANSACTION_ENDED);
        check_is_over(number);
        end();
}

/* A statement whose worker does not obey has written nothing, because its transaction is lost with the worker. */
static void test_deadline_of_statement(void) {
        static const char *const methods[] = { "Execute", "Query" };

        for (unsigned i = 0; i < N_ELEMENTS(methods); i++) {
                uint64_t number = begin_open();
                const RigCall *c = call_statement(methods[i], number);

                check_waits(c);
                rig_pass_time(60 * SECOND);
                rig_pass_time(6 * SECOND);
                check_error(c, ERROR("TimedOut"));
                check_is_over(number);
                end();
        }
}

/* A statement waits for those before it, which is no fault of its SQL: PrepareTimeoutSec= is no limit for that. */
static void test_statement_waits(void) {
        static const char *const methods[] = { "Execute", "Query" };

        for (unsigned i = 0; i < N_ELEMENTS(methods); i++) {
                uint64_t number = begin_open();
                const RigCall *c = call_statement(methods[i], number);

                CHECK(n_runs() == 2);
                rig_pass_time(10 * SECOND);
                check_waits(c);
                CHECK_INT(stub_worker_cancels(0), 0);
                die();
                check_error(c, ERROR("WorkerLost"));
                end();
        }
}

/* ---- Refused ---- */

static void test_socket_full(void) {
        uint64_t number = begin_open();

        fill_socket();
        check_error(call_statement("Execute", number), ERROR("Busy"));
        check_error(call_statement("Query", number), ERROR("Busy"));
        check_error(call_end(A, "Commit", number), ERROR("Busy"));
        CHECK_INT(only_run()->state, RUN_STARTED);
        CHECK_INT(stub_worker_commits(0), 0);
        const RigCall *c = call_end(A, "Commit", number); /* the worker has read them */
        CHECK_INT(stub_worker_commits(0), 1);
        say_ended(number, true);
        check_error(c, "");
        end();

        number = begin_open(); /* CANCEL is sent again later */
        fill_socket();
        c = call_end(A, "Rollback", number);
        check_waits(c);
        CHECK_INT(stub_worker_cancels(0), 0);
        rig_pass_time(SECOND / 10);
        CHECK_INT(stub_worker_cancels(0), 1);
        say_failed(number, ERROR_CANCELLED);
        check_error(c, "");
        end();
}

static void test_bound(void) {
        Limits *l = &rig.manager->context.config->limits;
        uint64_t number = begin_open(), before = l->transactions_max;

        l->transactions_max = 2;
        const RigCall *second = call_begin(A, "read"); /* one that waits counts, too */
        check_waits(second);
        check_error(call_begin(A, "read"), ERROR("LimitsExceeded"));
        check_waits(call_begin(B, "read"));
        (void) call_end(A, "Rollback", number);
        say_failed(number, ERROR_CANCELLED);
        check_waits(call_begin(A, "read"));
        l->transactions_max = before;
        end();
}

static void lose_right(void) {
        database_find(&rig.manager->context, "open")->config->write_everybody = false;
        rig.manager->context.events->rights_changed(&rig.manager->context);
        pump();
}

static void test_rights_change(void) {
        const RigCall *c;
        uint64_t number;

        begin(); /* no worker has it */
        c = call_begin(A, "write");
        lose_right();
        check_error(c, ERROR("ReadOnly"));
        check_error(call_begin(A, "write"), ERROR("ReadOnly"));
        end();

        number = begin_waiting(&c); /* nothing was written, so its client need not wait */
        lose_right();
        check_error(c, ERROR("ReadOnly"));
        CHECK_INT(stub_worker_cancels(0), 1);
        say_started(number);
        say_failed(number, ERROR_READ_ONLY);
        CHECK_INT(n_runs(), 0);
        end();

        number = begin_open();
        lose_right();
        CHECK_INT(stub_worker_cancels(0), 1);
        check_error(call_statement("Query", number), ERROR("TransactionEnded"));
        check_error(call_statement("Execute", number), ERROR("ReadOnly"));
        say_failed(number, ERROR_TRANSACTION_ENDED);
        check_error(call_end(A, "Commit", number), ERROR("TransactionEnded"));
        end();

        number = begin_committing(&c); /* the worker decides */
        lose_right();
        check_waits(c);
        say_committing(number);
        say_ended(number, true);
        check_error(c, "");
        end();
}

/* ---- Messages of a worker that are out of turn: it is ended ---- */

static void check_is_ended(uint64_t number) {
        CHECK_INT(rig.manager->context.workers.length, 0);
        check_is_over(number);
        end();
}

static void test_messages_out_of_turn(void) {
        uint64_t number = begin_open();

        say(&(Message) { .kind = MESSAGE_PARKED, .parked = { .number = number, .parked = true } });
        check_is_ended(number);

        number = begin_open();
        say(&(Message) { .kind = MESSAGE_FILLING, .number = number });
        check_is_ended(number);

        number = begin_open();
        say(&(Message) { .kind = MESSAGE_DRAINED, .drained = { .number = number } });
        check_is_ended(number);

        number = begin_open(); /* no COMMIT was sent */
        say_committing(number);
        check_is_ended(number);

        number = begin_open();
        say_ended(number, true);
        check_is_ended(number);

        number = begin_open();
        const RigCall *c = call_end(A, "Rollback", number);
        say_ended(number, false);
        check_error(c, ERROR("Cancelled"));
        check_is_ended(number);
}

/* ---- Replies that cannot be made ---- */

static void test_no_reply(void) {
        const RigCall *c;
        uint64_t number = begin_waiting(&c);

        out_of_memory = true;
        say_started(number);
        check_error(c, ERROR("OutOfMemory")); /* nothing was written */
        out_of_memory = false;
        CHECK_INT(stub_worker_cancels(0), 1);
        say_failed(number, ERROR_OUT_OF_MEMORY);
        check_is_over(number);
        end();

        number = begin_committing(&c);
        out_of_memory = true;
        say_ended(number, true);
        check_error(c, ERROR("OutcomeUnknown"));
        end();

        number = begin_open();
        c = call_end(A, "Rollback", number);
        out_of_memory = true;
        say_failed(number, ERROR_CANCELLED);
        check_error(c, ERROR("OutOfMemory"));
        end();

        begin();
        c = call_statement("Execute", 0);
        take(0);
        out_of_memory = true;
        say_ended(only_run()->number, true);
        check_error(c, ERROR("OutcomeUnknown"));
        end();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_commit), TEST(test_rollback), TEST(test_statements), TEST(test_lost_before_commit),
                TEST(test_tells_why_it_ended), TEST(test_lost_after_commit), TEST(test_worker_that_ends),
                TEST(test_cancelled), TEST(test_client_leaves), TEST(test_deadline), TEST(test_deadline_of_statement),
                TEST(test_statement_waits), TEST(test_socket_full), TEST(test_bound), TEST(test_rights_change),
                TEST(test_messages_out_of_turn), TEST(test_no_reply),
        };

        begin();
        end();
        return test_main(tests, N_ELEMENTS(tests));
}
