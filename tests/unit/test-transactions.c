/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Transactions of clients, in the supervisor: Begin, Commit and Rollback if they are carried out, refused or cancelled, if
 * the worker is lost before or after COMMITTING, if the client leaves, or if it loses its rights; and many at once. The
 * test's clock does not advance by itself.
 */
#include <string.h>

#include "tests/rigs/script.h"

/* ---- The client ---- */

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

static const RigCall *call_try_commit(uint64_t number) {
        sd_bus_message *m = rig_new_call(A, OPEN, SQLIPC_DATABASE_INTERFACE, "Commit");

        CHECK(sd_bus_message_append(m, "ta{sv}", number, 1, "x-keeps-open", "b", 1) >= 0);
        return send_call(A, m);
}

/* ---- The worker ---- */

static void say_refused(uint64_t number) {
        say(&(Message) { .kind = MESSAGE_COMMIT_REFUSED,
                         .ended = { .number = number, .failure = { .error = ERROR_COMMIT_REFUSED, .sql_offset = -1,
                                                                   .message = "a rule is broken" } } });
}

static void say_ended(uint64_t number, bool wrote) {
        say(&(Message) { .kind = MESSAGE_ENDED, .ended = { .number = number, .wrote = wrote, .drained = true } });
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

        *ret = call_with_number(A, "Commit", number);
        CHECK_INT(stub_worker_commits(0), 1);
        check_waits(*ret);
        return number;
}

/* The transaction `number` is known as ended. */
static void check_is_over(uint64_t number) {
        CHECK(!find(number));
        check_error(call_with_number(A, "Commit", number), ERROR("TransactionEnded"));
        check_error(call_with_number(A, "Rollback", number), ERROR("TransactionEnded"));
        check_error(call_statement("Execute", number), ERROR("TransactionEnded"));
}

/* ---- Begin ---- */

static const RigCall *call_begin_with(const char *option, const char *type, uint64_t value) {
        sd_bus_message *m = rig_new_call(A, OPEN, SQLIPC_DATABASE_INTERFACE, "Begin");

        CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        CHECK(sd_bus_message_append(m, "{sv}{sv}", "mode", "s", "write", option, type, value) >= 0);
        CHECK(sd_bus_message_close_container(m) >= 0);
        return send_call(A, m);
}

static void test_lock_wait(void) {
        const RigCall *c;

        (void) begin_waiting(&c);
        CHECK(only_run()->lock_wait_usec == UINT64_MAX);
        end();

        begin();
        check_error(call_begin_with("lock-wait-usec", "u", 1), ERROR("InvalidOption"));
        check_error(call_begin_with("lock-wait", "t", 1), ERROR("UnknownOption"));
        check_waits(call_begin_with("lock-wait-usec", "t", 0));
        CHECK_INT(only_run()->lock_wait_usec, 0);
        end();
}

/* ---- Commit, Rollback ---- */

static void test_commit(void) {
        const RigCall *c;
        uint64_t number = begin_committing(&c);

        check_error(call_with_number(A, "Commit", number), ERROR("Busy"));
        check_error(call_with_number(A, "Rollback", number), ERROR("Busy"));
        check_error(call_with_number(B, "Commit", number), ERROR("TransactionEnded"));
        CHECK_INT(stub_worker_commits(0), 1);
        CHECK_INT(stub_worker_cancels(0), 0);
        commit(number);
        check_waits(c);
        say_ended(number, true);
        check_error(c, "");
        check_is_over(number);
        end();

        number = begin_committing(&c); /* a deferred constraint */
        commit(number);
        say_failed(number, ERROR_SQL);
        check_error(c, ERROR("Sql"));
        check_is_over(number);
        end();
}

static void test_rollback(void) {
        uint64_t number = begin_open();
        const RigCall *c = call_with_number(A, "Rollback", number);

        CHECK_INT(stub_worker_cancels(0), 1);
        check_waits(c);
        check_error(call_with_number(A, "Commit", number), ERROR("Busy"));
        check_error(call_statement("Execute", number), ERROR("TransactionEnded"));
        say_failed(number, ERROR_CANCELLED);
        check_error(c, "");
        check_is_over(number);
        end();

        number = begin_open(); /* the worker had ended it before */
        c = call_with_number(A, "Rollback", number);
        say_failed(number, ERROR_TRANSACTION_ENDED);
        check_error(c, ERROR("TransactionEnded"));
        end();
}

/* Commit with x-keeps-open waits. */
static uint64_t begin_trying(const RigCall **ret) {
        uint64_t number = begin_open();

        *ret = call_try_commit(number);
        CHECK_INT(stub_worker_commits(0), 1);
        check_waits(*ret);
        return number;
}

/* A commit that is refused leaves the transaction open, unless a Rollback came meanwhile. */
static void test_commit_refused(void) {
        const RigCall *c, *d;
        uint64_t number = begin_trying(&c);

        commit(number);
        say_refused(number);
        check_error(c, ERROR("CommitRefused"));
        CHECK_INT(stub_worker_cancels(0), 0);
        d = call_statement("Execute", number);
        say_ended(((const Run *) worker(0)->runs.tail->data)->number, true);
        check_error(d, "");
        c = call_try_commit(number);
        say_committing(number);
        say_ended(number, true);
        check_error(c, "");
        check_is_over(number);
        end();

        number = begin_trying(&c);
        check_error(call_with_number(A, "Rollback", number), ERROR("Busy"));
        commit(number);
        CHECK_INT(stub_worker_cancels(0), 0);
        say_refused(number);
        CHECK_INT(stub_worker_cancels(0), 1);
        check_waits(c);
        say_failed(number, ERROR_SQL);
        check_error(c, ERROR("Sql"));
        check_is_over(number);
        end();

        number = begin_trying(&c); /* the worker is lost later: nothing was written */
        commit(number);
        say_refused(number);
        check_error(c, ERROR("CommitRefused"));
        die();
        check_is_over(number);
        end();

        number = begin_trying(&c);
        commit(number);
        say_refused(number);
        c = call_try_commit(number);
        die();
        check_error(c, ERROR("WorkerLost"));
        check_is_over(number);
        end();
}

/* It was told to end before: its end is the answer. */
static void test_commit_refused_late(void) {
        const RigCall *c;
        uint64_t number = begin_trying(&c);

        commit(number);
        cancel();
        say_refused(number);
        check_waits(c);
        say_failed(number, ERROR_CANCELLED);
        check_error(c, ERROR("Cancelled"));
        check_is_over(number);
        end();

        number = begin_trying(&c); /* the worker is lost: nothing was written */
        commit(number);
        cancel();
        say_refused(number);
        die();
        check_error(c, ERROR("Cancelled"));
        check_is_over(number);
        end();

        number = begin_trying(&c);
        commit(number);
        rig_leave(A);
        pump();
        say_refused(number);
        CHECK_INT(stub_worker_cancels(0), 1);
        say_failed(number, ERROR_CANCELLED);
        CHECK_INT(n_runs(), 0);
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
        c = call_with_number(A, "Rollback", number);
        die();
        check_error(c, ERROR("Cancelled"));
        end();
}

static void check_why(uint64_t number, const char *why) {
        const RigCall *c = call_statement("Execute", number);

        check_error(c, ERROR("TransactionEnded"));
        if (!strstr(c->sentence, why))
                CHECK_STRING(c->sentence, why);
        c = call_with_number(A, "Commit", number);
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

        commit(number);
        die();
        check_error(c, ERROR("OutcomeUnknown"));
        check_is_over(number);
        end();

        number = begin_committing(&c); /* its report arrives all the same */
        commit(number);
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
        commit(number);
        say_ended(number, true);
        check_error(c, "");
        end();

        number = begin_committing(&c); /* it does not obey, and is killed */
        cancel();
        commit(number);
        rig_pass_time(6 * SECOND);
        check_error(c, ERROR("OutcomeUnknown"));
        end();
}

/* A client that gives Begin up cancels the call, and need not have read that it was answered. */
static void test_begin_cancelled(void) {
        const RigCall *begun, *c;
        uint64_t number = begin_waiting(&begun);

        check_error(call_cancel_of(B, begun->cookie), ERROR("UnknownRun"));
        check_error(call_cancel_of(A, begun->cookie), "");
        CHECK_INT(stub_worker_cancels(0), 1);
        check_waits(begun);
        say_failed(number, ERROR_CANCELLED);
        check_error(begun, ERROR("Cancelled"));
        check_is_over(number);
        end();

        number = begin_waiting(&begun);
        say_started(number);
        check_error(begun, "");
        check_error(call_cancel_of(B, begun->cookie), ERROR("UnknownRun"));
        check_error(call_cancel_of(A, begun->cookie + 1000), ERROR("UnknownRun"));
        CHECK_INT(stub_worker_cancels(0), 0);
        check_error(call_cancel_of(A, begun->cookie), "");
        CHECK_INT(stub_worker_cancels(0), 1);
        check_error(call_cancel_of(A, begun->cookie), ERROR("UnknownRun")); /* it ends */
        check_error(call_with_number(A, "Commit", number), ERROR("TransactionEnded"));
        check_error(call_with_number(A, "Rollback", number), ERROR("TransactionEnded"));
        say_failed(number, ERROR_CANCELLED);
        check_is_over(number);
        CHECK_INT(n_runs(), 0);
        end();

        number = begin_waiting(&begun); /* its client has read the answer, and its end is known soon */
        say_started(number);
        c = call_with_number(A, "Commit", number);
        check_error(call_cancel_of(A, begun->cookie), ERROR("UnknownRun"));
        CHECK_INT(stub_worker_cancels(0), 0);
        commit(number);
        say_ended(number, true);
        check_error(c, "");
        check_error(call_cancel_of(A, begun->cookie), ERROR("UnknownRun"));
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
        commit(number);
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
        check_error(call_with_number(A, "Commit", number), ERROR("TransactionEnded"));
        say_failed(number, ERROR_TRANSACTION_ENDED);
        check_is_over(number);
        end();
}

/* The sentence names the limit that has passed. */
static void test_deadline_before_a_worker(void) {
        uint64_t *limit = &rig.manager->context.config->limits.transaction_timeout_usec, before = *limit;
        const RigCall *c;

        *limit = SECOND;
        begin();
        c = call_begin(A, "write");
        check_waits(c);
        rig_pass_time(SECOND);
        rig_pass_time(6 * SECOND);
        check_error(c, ERROR("TimedOut"));
        CHECK(strstr(c->sentence, "TransactionTimeoutSec="));
        end();
        *limit = before;
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
        check_error(call_with_number(A, "Commit", number), ERROR("Busy"));
        CHECK_INT(only_run()->state, RUN_STARTED);
        CHECK_INT(stub_worker_commits(0), 0);
        const RigCall *c = call_with_number(A, "Commit", number); /* the worker has read them */
        CHECK_INT(stub_worker_commits(0), 1);
        say_ended(number, true);
        check_error(c, "");
        end();

        number = begin_open(); /* CANCEL is sent again later */
        fill_socket();
        c = call_with_number(A, "Rollback", number);
        check_waits(c);
        CHECK_INT(stub_worker_cancels(0), 0);
        rig_pass_time(SECOND / 10);
        CHECK_INT(stub_worker_cancels(0), 1);
        say_failed(number, ERROR_CANCELLED);
        check_error(c, "");
        end();
}

/* ---- Many at once ---- */

/* The transaction that this Begin asks for. NULL: there is none, or it is open. */
static Run *run_of(const RigCall *c) {
        GHashTableIter i;
        void *value;

        g_hash_table_iter_init(&i, rig.manager->context.runs);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                Run *run = value;

                if (run->kind == RUN_TRANSACTION && run->call && run->cookie == c->cookie)
                        return run;
        }
        return NULL;
}

static void check_refused(const RigCall *c, const char *key) {
        check_error(c, ERROR("LimitsExceeded"));
        if (!strstr(c->sentence, key))
                CHECK_STRING(c->sentence, key);
}

/* Those that write take turns, so all on a database count as one. */
static void test_bound(void) {
        Limits *l = &rig.manager->context.config->limits;
        uint64_t number = begin_open(), before = l->transactions_max;
        const User *u = only_run()->user;

        l->transactions_max = 2;
        for (unsigned i = 0; i < 8; i++)
                check_waits(call_begin(A, "write"));
        CHECK_INT(u->n_writers, 9);
        CHECK_INT(u->n_transactions, 1);
        check_waits(call_begin(A, "read"));
        check_refused(call_begin(A, "read"), "TransactionsMax=");
        check_refused(call_begin(A, "deferred"), "TransactionsMax=");
        check_waits(call_begin(A, "write"));
        check_waits(call_begin(B, "read"));
        (void) call_with_number(A, "Rollback", number); /* the next one that writes takes its place */
        say_failed(number, ERROR_CANCELLED);
        check_refused(call_begin(A, "read"), "TransactionsMax=");
        l->transactions_max = before;
        end();

        number = begin_open();
        l->transactions_max = 1;
        check_refused(call_begin(A, "read"), "TransactionsMax=");
        (void) call_with_number(A, "Rollback", number);
        say_failed(number, ERROR_CANCELLED);
        check_waits(call_begin(A, "read"));
        check_refused(call_begin(A, "write"), "TransactionsMax="); /* none of them has a place */
        l->transactions_max = before;
        end();
}

/* So many may wait that ordinary programs do not meet the bound. One that is cancelled, or whose client has left, waits no
 * longer. */
static void test_bound_of_waiting(void) {
        Limits *l = &rig.manager->context.config->limits;
        uint64_t number = begin_open(), before = l->transactions_max;
        const RigCall *c = NULL;

        l->transactions_max = 1;
        for (unsigned i = 1; i < 16; i++)
                check_waits(c = call_begin(A, "write"));
        check_refused(call_begin(A, "write"), "TransactionsMax=");
        check_waits(call_begin(B, "write"));
        uint64_t last = run_of(c)->number;
        check_error(call_cancel_of(A, c->cookie), "");
        say_failed(last, ERROR_CANCELLED);
        check_error(c, ERROR("Cancelled"));
        check_waits(call_begin(A, "write"));
        check_refused(call_begin(A, "write"), "TransactionsMax=");
        unsigned n_cancels = stub_worker_cancels(0);
        rig_leave(A);
        pump();
        CHECK_INT(stub_worker_cancels(0) - n_cancels, 16);
        CHECK_INT(find(number)->user->n_writers, 16); /* the worker may still begin them */
        while (worker(0)->runs.head)
                say_failed(((const Run *) worker(0)->runs.head->data)->number, ERROR_CANCELLED);
        CHECK_INT(n_runs(), 1);
        l->transactions_max = before;
        end();
}

/* RunsMax= is for statements: it is as small as the number of processors for some administrators. */
static void test_bound_of_runs(void) {
        Limits *l = &rig.manager->context.config->limits;
        uint64_t number = begin_open(), before = l->runs_max;

        l->runs_max = 1;
        check_waits(call_begin(A, "write"));
        check_waits(call_begin(A, "read"));
        check_waits(call_statement("Execute", number));
        check_refused(call_statement("Execute", number), "RunsMax=");
        l->runs_max = before;
        end();
}

/* SQLITE_BUSY, for callers that ask for the code. */
static void test_code_of_refusal(void) {
        Limits *l = &rig.manager->context.config->limits;
        uint64_t before = l->transactions_max;

        (void) begin_open();
        l->transactions_max = 1;
        const RigCall *c = call_begin(A, "read");
        check_refused(c, "TransactionsMax=");
        CHECK_INT(c->extended_code, 0);
        sd_bus_message *m = rig_new_call(A, OPEN, SQLIPC_DATABASE_INTERFACE, "Begin");
        CHECK(sd_bus_message_append(m, "a{sv}", 2, "mode", "s", "read", "error-details", "b", 1) >= 0);
        c = send_call(A, m);
        check_refused(c, "TransactionsMax=");
        CHECK_INT(c->extended_code, 5);
        l->transactions_max = before;
        end();
}

/* The transactions of these calls are at worker `n`, in this order, before other runs of it. */
static void check_at(unsigned n, const RigCall *const calls[], size_t n_calls) {
        GList *i = worker(n)->runs.head;

        for (size_t k = 0; k < n_calls; k++, i = i->next) {
                CHECK(i);
                CHECK(i->data == run_of(calls[k]));
        }
}

/* Calls that came before a worker was up: three to write, and one to read, before the last. */
static void call_early(const RigCall *ret[static 3], const RigCall **ret_reads) {
        begin();
        ret[0] = call_begin(A, "write");
        ret[1] = call_begin(A, "write");
        *ret_reads = call_begin(A, "read");
        ret[2] = call_begin(A, "write");
        CHECK_INT(run_of(ret[0])->state, RUN_SENT);
        CHECK_INT(run_of(ret[1])->state, RUN_WAITING);
        CHECK_INT(run_of(*ret_reads)->state, RUN_SENT);
        CHECK_INT(run_of(ret[2])->state, RUN_WAITING);
}

/* One of those that write is in the socket. The worker that takes it gets the others at once: another worker cannot take
 * them, and they keep their order, also when the worker ends before it begins them. */
static void test_gathers_those_that_write(void) {
        const RigCall *calls[3], *reads;

        call_early(calls, &reads);
        take(0);
        check_at(0, calls, 3);
        CHECK_INT(run_of(reads)->state, RUN_SENT);
        CHECK(worker_end(worker(0), WORKER_END_STOPPING));
        stub_worker_die(0, CLD_EXITED, 0);
        pump();
        CHECK_INT(run_of(calls[0])->state, RUN_SENT);
        CHECK_INT(run_of(calls[1])->state, RUN_WAITING);
        take(0);
        check_at(0, calls, 3);
        end();
}

/* The one in the socket is given up, or its worker dies before it says that it has taken it: the others go on. */
static void test_first_of_those_that_write_is_lost(void) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        const RigCall *calls[3], *reads;

        call_early(calls, &reads);
        check_error(call_cancel_of(A, calls[0]->cookie), "");
        take(0);
        take(0);
        check_at(0, (const RigCall *const []) { reads, calls[1], calls[2] }, 3);
        end();

        call_early(calls, &reads);
        CHECK_INT(message_receive(run_of(calls[0])->group->workers_fd, &m), 1);
        CHECK_INT(m.message.begin.number, run_of(calls[0])->number);
        received_message_done(&m);
        stub_worker_die(0, CLD_KILLED, SIGSEGV);
        pump();
        CHECK_INT(run_of(calls[0])->state, RUN_MISSING);
        CHECK_INT(run_of(calls[1])->state, RUN_WAITING);
        rig_pass_time(2 * SECOND);
        check_error(calls[0], ERROR("WorkerLost"));
        CHECK_INT(run_of(calls[1])->state, RUN_SENT);
        end();
}

/* A job of another run is cancelled between the moments at which a worker reads one that writes, and says so. */
static void test_order_beside_cancel(void) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        const RigCall *calls[3], *reads;

        call_early(calls, &reads);
        CHECK_INT(message_receive(run_of(calls[0])->group->workers_fd, &m), 1);
        check_error(call_cancel_of(A, reads->cookie), "");
        CHECK_INT(run_of(calls[1])->state, RUN_WAITING);
        say(&(Message) { .kind = MESSAGE_TAKEN, .number = m.message.begin.number });
        received_message_done(&m);
        check_at(0, calls, 3);
        end();
}

/* One that comes while the worker of the one before it ends, and is in the socket, stays behind that one. */
static void test_order_of_those_put_back(void) {
        const RigCall *calls[2];

        (void) begin_waiting(&calls[0]);
        CHECK(worker_end(worker(0), WORKER_END_STOPPING));
        calls[1] = call_begin(A, "write");
        stub_worker_die(0, CLD_EXITED, 0);
        pump();
        take(0);
        check_at(0, calls, 2);
        end();
}

/* Those that came while the worker computed are in the socket, and one that comes after that does not go past them. */
static void test_order_behind_query(void) {
        const RigCall *calls[4];
        uint64_t query;

        begin();
        rig.manager->context.config->limits.workers_max = 1;
        calls[0] = call_begin(A, "write");
        take(0);
        rig_query(A, "open");
        pump();
        take(0);
        query = ((const Run *) worker(0)->runs.tail->data)->number;
        CHECK(query != run_of(calls[0])->number);
        for (size_t i = 1; i < 3; i++) {
                calls[i] = call_begin(A, "write");
                CHECK_INT(run_of(calls[i])->state, RUN_SENT);
        }
        say_failed(query, ERROR_SQL);
        calls[3] = call_begin(A, "write");
        for (size_t i = 1; i < 4; i++)
                if (run_of(calls[i])->state != RUN_TAKEN)
                        take(0);
        check_at(0, calls, 4);
        rig.manager->context.config->limits.workers_max = 2;
        end();
}

/* A transaction on a pin goes to the worker of the pin, even if others wait for theirs. Those that come while that worker
 * computes keep their places among all jobs. */
static void test_no_wait_for_those_that_write(void) {
        const RigCall *calls[3], *on_pin;
        uint64_t pin;

        begin();
        (void) call_begin(A, "pin");
        take(0);
        pin = only_run()->number;
        say_started(pin);
        rig_query(A, "open");
        pump();
        take(0);
        for (size_t i = 0; i < 2; i++)
                calls[i] = call_begin(A, "write");
        CHECK_INT(run_of(calls[0])->state, RUN_SENT);
        CHECK_INT(run_of(calls[1])->state, RUN_WAITING);
        on_pin = call_begin_with("pin", "t", pin);
        CHECK_INT(run_of(on_pin)->state, RUN_TAKEN);
        CHECK_INT(run_of(calls[1])->state, RUN_SENT);
        calls[2] = call_begin(A, "write");
        CHECK_INT(run_of(calls[2])->state, RUN_SENT);
        end();
}

/* So they begin in the order in which they came, and the lease does not move. */
static void test_one_worker_writes(void) {
        const RigCall *calls[4];
        unsigned writer;

        begin();
        rig.manager->context.config->limits.workers_max = 8;
        for (unsigned i = 0; i < 2; i++) {
                rig_query(A, "open");
                rig_pass_time(SECOND / 10);
                take(i);
        }
        CHECK_INT(stub_workers_alive(), 2);
        for (unsigned i = 0; i < 2; i++)
                stub_worker_finish(i);
        pump();
        for (size_t i = 0; i < 3; i++)
                calls[i] = call_begin(A, "write");
        writer = run_of(calls[0])->worker == worker(0) ? 0 : 1;
        check_at(writer, calls, 3);
        CHECK(run_of(call_begin(A, "read"))->worker == worker(1 - writer));
        rig_query(A, "open"); /* no worker is idle; the one that writes takes it, and cannot begin anything for now */
        pump();
        take(writer);
        calls[3] = call_begin(A, "write");
        CHECK_INT(run_of(calls[3])->state, RUN_SENT);
        rig.manager->context.config->limits.workers_max = 2;
        end();
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
        check_error(call_statement("Execute", number), ERROR("TransactionEnded"));
        say_failed(number, ERROR_TRANSACTION_ENDED);
        check_error(call_with_number(A, "Commit", number), ERROR("TransactionEnded"));
        end();

        number = begin_committing(&c); /* the worker decides */
        lose_right();
        check_waits(c);
        commit(number);
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
        commit(number);
        check_is_ended(number);

        number = begin_open();
        say_ended(number, true);
        check_is_ended(number);

        number = begin_open(); /* the same */
        say_refused(number);
        check_is_ended(number);

        number = begin_open();
        const RigCall *c = call_with_number(A, "Rollback", number);
        say_ended(number, false);
        check_error(c, ERROR("Cancelled"));
        check_is_ended(number);
}

/* ---- Replies that cannot be made ---- */

static void test_no_reply(void) {
        const RigCall *c;
        uint64_t number = begin_waiting(&c);

        rig.out_of_memory = true;
        say_started(number);
        check_error(c, ERROR("OutOfMemory")); /* nothing was written */
        rig.out_of_memory = false;
        CHECK_INT(stub_worker_cancels(0), 1);
        say_failed(number, ERROR_OUT_OF_MEMORY);
        check_is_over(number);
        end();

        number = begin_committing(&c);
        rig.out_of_memory = true;
        say_ended(number, true);
        check_error(c, ERROR("OutcomeUnknown"));
        end();

        number = begin_open();
        c = call_with_number(A, "Rollback", number);
        rig.out_of_memory = true;
        say_failed(number, ERROR_CANCELLED);
        check_error(c, ERROR("OutOfMemory"));
        end();

        begin();
        c = call_statement("Execute", 0);
        take(0);
        rig.out_of_memory = true;
        say_ended(only_run()->number, true);
        check_error(c, ERROR("OutcomeUnknown"));
        end();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_lock_wait), TEST(test_commit), TEST(test_rollback), TEST(test_statements),
                TEST(test_commit_refused), TEST(test_commit_refused_late),
                TEST(test_lost_before_commit),
                TEST(test_tells_why_it_ended), TEST(test_lost_after_commit), TEST(test_worker_that_ends),
                TEST(test_cancelled), TEST(test_begin_cancelled), TEST(test_client_leaves), TEST(test_deadline),
                TEST(test_deadline_before_a_worker), TEST(test_deadline_of_statement),
                TEST(test_statement_waits), TEST(test_socket_full), TEST(test_bound), TEST(test_bound_of_waiting),
                TEST(test_bound_of_runs), TEST(test_code_of_refusal), TEST(test_gathers_those_that_write),
                TEST(test_first_of_those_that_write_is_lost), TEST(test_order_beside_cancel),
                TEST(test_order_of_those_put_back), TEST(test_no_wait_for_those_that_write),
                TEST(test_order_behind_query),
                TEST(test_one_worker_writes), TEST(test_rights_change),
                TEST(test_messages_out_of_turn), TEST(test_no_reply),
        };

        begin();
        end();
        return test_main(tests, N_ELEMENTS(tests));
}
