/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Statements that write, in the supervisor: who may, the workers that are started for them, and the answer to a client if
 * the statement is carried out, fails, is cancelled, or loses its worker before or after COMMITTING. The test's clock does
 * not advance by itself.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/supervisor/runs/group-jobs.h"
#include "dbus-interfaces/wire/page-decoder.h"
#include "tests/rigs/script.h"

/* Execute, Query, QueryRows or OpenRows. Returns the call. */
static const RigCall *call(unsigned peer, const char *method) {
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, method);

        CHECK(sd_bus_message_append(m, "sava{sv}a{sv}", "UPDATE t SET a = 1", 0, 0, 0) >= 0);
        return send_call(peer, m);
}

static const RigCall *execute(unsigned peer) {
        return call(peer, "Execute");
}

/* ---- The worker ---- */

static void say_wrote(uint64_t number, int64_t n_changes) {
        say(&(Message) { .kind = MESSAGE_ENDED, .ended = { .number = number, .wrote = true, .n_changes = n_changes,
                                                           .last_rowid = 12, .usec = 34, .drained = true } });
}

/* ---- Rights ---- */

/* A worker that only reads looks at the statement, which may have nothing to do. */
static void check_who_may(const char *sentence) {
        const RigCall *c = execute(A);

        take(0);
        check_waits(c);
        CHECK(!only_run()->group->writes);
        say_failed(only_run()->number, ERROR_READ_ONLY);
        check_error(c, ERROR("ReadOnly"));
        CHECK(strstr(c->sentence, sentence));
}

static void test_who_may(void) {
        begin();
        DatabaseConfig *config = database_find(&rig.manager->context, "open")->config;
        config->write_everybody = false;
        check_who_may("WriteUsers=");
        end();

        begin();
        rig_set_mode("open", "read-only");
        check_who_may("Mode=read-write");
        end();
}

/* A call that wants no reply is refused, like any other that is run at once. */
static void test_no_reply_wanted(void) {
        begin();
        sd_bus_message *m = rig_new_call(A, OPEN, SQLIPC_DATABASE_INTERFACE, "Execute");
        CHECK(sd_bus_message_append(m, "sava{sv}a{sv}", "DELETE FROM t", 0, 0, 0) >= 0);
        rig_send_call(A, m, false);
        pump();
        CHECK_INT(rig.manager->context.workers.length, 0);
        end();
}

/* Two connections of one uid, of which only one may write: each has a worker with its right. The bounds count both. */
static void test_groups_by_right(void) {
        static char *tables[] = { (char *) "t", (char *) "u", NULL };

        begin();
        DatabaseConfig *config = database_find(&rig.manager->context, "open")->config;
        rig.peers[B].uid = rig.peers[A].uid;
        config->write_schema = true;
        config->wal_size_max = 123;
        config->write_everybody = true;
        char **before = config->write_tables;
        config->write_tables = tables;
        (void) call(A, "Query");
        CHECK(worker(0)->group->writes);
        CHECK(stub_worker_setup(0).writes && stub_worker_setup(0).write_schema);
        CHECK_INT(stub_worker_setup(0).n_write_tables, 2);
        CHECK_INT(stub_worker_setup(0).wal_size_max, 123);
        config->write_everybody = false;
        (void) call(B, "Query");
        CHECK_INT(rig.manager->context.workers.length, 2);
        CHECK(!worker(1)->group->writes);
        CHECK(!stub_worker_setup(1).writes && !stub_worker_setup(1).write_schema);
        CHECK_INT(stub_worker_setup(1).n_write_tables, 0);
        CHECK(worker(0)->group->user == worker(1)->group->user);
        CHECK_INT(group_n_on_database(worker(0)->group), 2);
        CHECK_INT(worker(0)->group->workers.length, 1);
        config->write_tables = before;
        end();
}

/* ---- Execute ---- */

/* A run of Execute that a worker has taken. Returns its number. */
static uint64_t begin_execute(const RigCall **ret) {
        begin();
        *ret = execute(A);
        take(0);
        check_waits(*ret);
        CHECK_INT(only_run()->state, RUN_TAKEN);
        CHECK(!only_run()->pipe);
        return only_run()->number;
}

static void test_execute(void) {
        const RigCall *c;
        uint64_t number = begin_execute(&c);

        commit(number);
        check_waits(c);
        say(&(Message) { .kind = MESSAGE_PROGRESS, .progress = { .number = number } });
        say_wrote(number, 7);
        check_error(c, "");
        CHECK_INT(c->n_changes, 7);
        CHECK_INT(n_runs(), 0);
        end();

        number = begin_execute(&c); /* a statement that changed no table */
        say(&(Message) { .kind = MESSAGE_ENDED, .ended = { .number = number, .n_changes = 99, .drained = true } });
        check_error(c, "");
        CHECK_INT(c->n_changes, 0);
        end();
}

static void test_execute_fails(void) {
        const RigCall *c;
        uint64_t number = begin_execute(&c);

        say_failed(number, ERROR_SQL);
        check_error(c, ERROR("Sql"));
        end();
}

static void test_execute_is_lost(void) {
        const RigCall *c;
        uint64_t number = begin_execute(&c);

        die(); /* it had not begun to commit */
        check_error(c, ERROR("WorkerLost"));
        CHECK(strstr(c->sentence, "nothing was written"));
        end();

        number = begin_execute(&c);
        commit(number);
        die();
        check_error(c, ERROR("OutcomeUnknown"));
        end();

        number = begin_execute(&c);
        commit(number);
        stub_worker_say(0, &(Message) { .kind = MESSAGE_ENDED, .ended = { .number = number, .wrote = true, .n_changes = 3,
                                                                          .drained = true } });
        die(); /* its report arrives all the same */
        check_error(c, "");
        CHECK_INT(c->n_changes, 3);
        end();
}

/* A worker that broke the protocol is not read any more: COMMITTING may be among what it has said. */
static void test_execute_at_a_worker_that_lies(void) {
        const RigCall *c;

        (void) begin_execute(&c);
        say(&(Message) { .kind = MESSAGE_LEASE_RETURNED });
        CHECK_INT(rig.manager->context.workers.length, 0);
        check_error(c, ERROR("OutcomeUnknown"));
        end();
}

/* EXIT and the job crossed each other: another worker gets the job, unless it may be committed. */
static void test_execute_at_a_worker_that_ends(void) {
        const RigCall *c;
        uint64_t number = begin_execute(&c);

        CHECK(worker_end(worker(0), WORKER_END_STOPPING));
        stub_worker_die(0, CLD_EXITED, 0);
        pump();
        check_waits(c);
        CHECK_INT(only_run()->number, number);
        take(0);
        say_wrote(number, 1);
        check_error(c, "");
        end();

        number = begin_execute(&c);
        commit(number);
        CHECK(worker_end(worker(0), WORKER_END_STOPPING));
        stub_worker_die(0, CLD_EXITED, 0);
        pump();
        check_error(c, ERROR("OutcomeUnknown"));
        end();

        (void) begin_execute(&c); /* it lied, so COMMITTING may be among what was not read */
        CHECK(worker_end(worker(0), WORKER_END_STOPPING));
        stub_worker_say(0, &(Message) { .kind = MESSAGE_LEASE_RETURNED });
        stub_worker_die(0, CLD_EXITED, 0);
        pump();
        check_error(c, ERROR("OutcomeUnknown"));
        end();
}

/* The job was taken out of the socket, and TAKEN comes too late: the worker may carry it out all the same. */
static void test_execute_that_is_missing(void) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;

        begin();
        const RigCall *c = execute(A);
        CHECK_INT(message_receive(worker(0)->group->workers_fd, &m), 1);
        received_message_done(&m);
        group_jobs_recall(worker(0)->group);
        CHECK_INT(only_run()->state, RUN_MISSING);
        rig_pass_time(6 * SECOND);
        check_error(c, ERROR("OutcomeUnknown"));
        end();
}

/* The worker decides: it has committed, or it obeys the CANCEL. */
static void test_execute_is_cancelled(void) {
        const RigCall *c;
        uint64_t number = begin_execute(&c);

        cancel();
        check_waits(c);
        say_failed(number, ERROR_CANCELLED);
        check_error(c, ERROR("Cancelled"));
        end();

        number = begin_execute(&c);
        cancel_run();
        say_wrote(number, 5);
        check_error(c, "");
        CHECK_INT(c->n_changes, 5);
        end();

        (void) begin_execute(&c); /* it does not obey, and is killed; it had not begun to commit */
        cancel_run();
        rig_pass_time(6 * SECOND);
        check_error(c, ERROR("Cancelled"));
        end();

        number = begin_execute(&c);
        cancel_run();
        commit(number);
        rig_pass_time(6 * SECOND);
        check_error(c, ERROR("OutcomeUnknown"));
        end();
}

/* It may run until RunTimeoutSec=: PrepareTimeoutSec= is for compiling alone. */
static void test_execute_takes_long(void) {
        const Limits *l = &rig.manager->context.config->limits;
        const RigCall *c;

        (void) begin_execute(&c);
        rig_pass_time(l->run_timeout_usec - SECOND);
        CHECK_INT(stub_worker_cancels(0), 0);
        rig_pass_time(SECOND);
        CHECK_INT(stub_worker_cancels(0), 1);
        check_waits(c);
        rig_pass_time(6 * SECOND);
        check_error(c, ERROR("TimedOut"));
        end();
}

static void test_execute_while_the_client_leaves(void) {
        const RigCall *c;
        uint64_t number = begin_execute(&c);

        rig_leave(A);
        pump();
        CHECK_INT(stub_worker_cancels(0), 1);
        CHECK(!only_run()->session);
        say_wrote(number, 5);
        CHECK_INT(n_runs(), 0);
        end();

        begin(); /* before a worker took it */
        (void) execute(A);
        rig_leave(A);
        pump();
        CHECK_INT(n_runs(), 0);
        CHECK(!stub_worker_take(0));
        end();
}

/* A call that a worker may be carrying out is not refused when the rights change, and no other call is carried out. */
static void test_rights_change(void) {
        const RigCall *c;
        uint64_t number = begin_execute(&c);

        const RigCall *queued = execute(B);
        check_waits(queued);
        lose_right();
        check_error(queued, ERROR("ReadOnly"));
        check_waits(c);
        CHECK_INT(stub_worker_cancels(0), 1);
        say_wrote(number, 5);
        check_error(c, "");
        end();
}

/* ---- ExecuteBatch ---- */

/* So many times the same statement, with one parameter. */
static const RigCall *call_batch(unsigned n, const char *sql, const char *type, bool wants_reply) {
        sd_bus_message *m = rig_new_call(A, OPEN, SQLIPC_DATABASE_INTERFACE, "ExecuteBatch");

        CHECK(sd_bus_message_open_container(m, 'a', "(sava{sv})") >= 0);
        for (unsigned i = 0; i < n; i++) /* the last one has a parameter of this type */
                CHECK(sd_bus_message_append(m, "(sava{sv})", sql, 1, i + 1 < n ? "i" : type, 5, 0) >= 0);
        CHECK(sd_bus_message_close_container(m) >= 0);
        CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
        rig_send_call(A, m, wants_reply);
        pump();
        return &rig.calls[rig.n_calls - 1];
}

static uint64_t begin_batch(const RigCall **ret) {
        begin();
        *ret = call_batch(2, "UPDATE t SET a = ?", "i", true);
        take(0);
        check_waits(*ret);
        CHECK(!only_run()->pipe && only_run()->list.n == 2);
        CHECK_STRING(only_run()->excerpt, "UPDATE t SET a = ?");
        return only_run()->number;
}

static void say_batch_ended(uint64_t number, size_t n) {
        uint8_t changes[24];

        for (size_t i = 0; i < n; i++)
                store_le64(changes + 8 * i, i + 6);
        say(&(Message) { .kind = MESSAGE_ENDED, .ended = { .number = number, .wrote = true, .n_changes = 13, .drained = true,
                                                           .changes = { (const char *) changes, 8 * n } } });
}

static void test_batch(void) {
        const RigCall *c;
        uint64_t number = begin_batch(&c);

        commit(number);
        check_waits(c);
        say_batch_ended(number, 2);
        check_error(c, "");
        CHECK_INT(c->n_changes, 7);
        CHECK_INT(n_runs(), 0);
        end();

        number = begin_batch(&c);
        say_failed(number, ERROR_SQL);
        check_error(c, ERROR("Sql"));
        end();
}

static void test_batch_is_lost(void) {
        const RigCall *c;
        uint64_t number = begin_batch(&c);

        die(); /* it had not begun to commit */
        check_error(c, ERROR("WorkerLost"));
        CHECK(strstr(c->sentence, "nothing was written"));
        end();

        number = begin_batch(&c);
        commit(number);
        die();
        check_error(c, ERROR("OutcomeUnknown"));
        end();
}

/* The worker reports the changes of more or fewer statements than there are, or of one that is no batch. */
static void test_batch_with_other_changes(void) {
        for (size_t n = 0; n <= 3; n++) {
                const RigCall *c;
                uint64_t number = n == 2 ? begin_execute(&c) : begin_batch(&c);

                say_batch_ended(number, n);
                CHECK_INT(rig.manager->context.workers.length, 0);
                check_error(c, ERROR("OutcomeUnknown"));
                end();
        }
}

static void check_batch_refused(const RigCall *c, const char *name, const char *part) {
        check_error(c, name);
        CHECK(strstr(c->sentence, part));
        CHECK_INT(n_runs(), 0);
        CHECK_INT(rig.manager->context.workers.length, 0);
}

/* At most so many statements, and so many bytes; each error of an argument names its statement. */
static void test_batch_refused(void) {
        begin();
        size_t size = (size_t) rig.manager->context.config->limits.sql_size_max;
        g_autofree char *sql = g_strnfill(size + 1, 'x');
        check_batch_refused(call_batch(0, "", "i", true), ERROR("EmptyStatement"), "no statement");
        check_batch_refused(call_batch(STATEMENT_LIST_N_MAX + 1, "X", "i", true), ERROR("LimitsExceeded"), "4096");
        check_batch_refused(call_batch(3, "X", "(i)", true), ERROR("ParameterType"), "Statement 3: Parameter 1");
        check_batch_refused(call_batch(1, sql, "i", true), ERROR("LimitsExceeded"), "Statement 1: The SQL");
        sql[size] = 0;
        check_batch_refused(call_batch((unsigned) (STATEMENT_LIST_SIZE_MAX / size) + 1, sql, "i", true),
                            ERROR("LimitsExceeded"), "4 MiB");
        (void) call_batch(1, "X", "i", false);
        CHECK_INT(rig.manager->context.workers.length, 0);
        rig_set_mode("open", "read-only");
        check_batch_refused(call_batch(1, "X", "i", true), ERROR("ReadOnly"), "Mode=read-write");
        rig_set_mode("open", "read-write");
        (void) call_batch(STATEMENT_LIST_N_MAX, "X", "i", true);
        CHECK_INT(only_run()->list.n, STATEMENT_LIST_N_MAX);
        end();
}

/* ---- Messages of a worker that are out of turn ---- */

/* The worker is ended for it, and the client of `c` learns that the outcome is unknown. */
static void check_is_ended(const RigCall *c) {
        CHECK_INT(rig.manager->context.workers.length, 0);
        check_error(c, ERROR("OutcomeUnknown"));
        end();
}

static void test_messages_out_of_turn(void) {
        const RigCall *c;
        uint64_t number = begin_execute(&c);

        say_started(number);
        check_is_ended(c);

        number = begin_execute(&c);
        say(&(Message) { .kind = MESSAGE_PARKED, .parked = { .number = number, .parked = true } });
        check_is_ended(c);

        number = begin_execute(&c);
        say(&(Message) { .kind = MESSAGE_FILLING, .number = number });
        check_is_ended(c);

        number = begin_execute(&c);
        say(&(Message) { .kind = MESSAGE_DRAINED, .drained = { .number = number } });
        check_is_ended(c);

        number = begin_execute(&c); /* without the lease */
        say_committing(number);
        check_is_ended(c);

        number = begin_execute(&c); /* of no run */
        commit(number + 1);
        check_is_ended(c);
}

/* COMMITTING names a run of another worker, and one that is being compiled only. */
static void test_committing_others(void) {
        const RigCall *c;

        (void) begin_execute(&c);
        (void) execute(B);
        CHECK_INT(rig.manager->context.workers.length, 2);
        take(1);
        uint64_t other = ((const Run *) worker(1)->runs.head->data)->number;
        commit(other);
        CHECK_INT(rig.manager->context.workers.length, 1);
        check_error(c, ERROR("OutcomeUnknown"));
        end();

        begin();
        sd_bus_message *m = rig_new_call(A, OPEN, SQLIPC_DATABASE_INTERFACE, "Prepare");
        CHECK(sd_bus_message_append(m, "sa{sv}", "DELETE FROM t", 0) >= 0);
        rig_send_call(A, m, true);
        pump();
        take(0);
        commit(only_run()->number);
        CHECK_INT(rig.manager->context.workers.length, 0);
        check_error(&rig.calls[0], ERROR("WorkerLost"));
        end();
}

/* ---- Runs with a pipe ---- */

/* A Query that writes has started, and its client has the pipe. */
static uint64_t begin_query(void) {
        begin();
        const RigCall *c = call(A, "Query");
        take(0);
        uint64_t number = only_run()->number;
        say_started(number);
        check_error(c, "");
        CHECK_INT(rig.n_fds, 1);
        CHECK(only_run()->writes);
        return number;
}

/* The stream in the client's pipe consists of an ERROR frame with this number (0: of nothing), and ends there. */
static void check_stream(uint32_t error) {
        PageDecoder d;
        uint8_t *room;
        size_t size;
        ssize_t n;

        page_decoder_init(&d, SQLIPC_PAGE_SIZE_DEFAULT, SQLIPC_PAGE_SIZE_DEFAULT);
        CHECK(fcntl(rig.fds[0], F_SETFL, O_NONBLOCK) >= 0);
        while (CHECK_INT(page_decoder_reserve(&d, &room, &size), 0), (n = read(rig.fds[0], room, size)) > 0)
                page_decoder_commit(&d, (size_t) n);
        CHECK_INT(n, 0); /* the end of the file */
        CHECK_INT(page_decoder_next(&d), error != 0 ? PAGE_ERROR : PAGE_MORE);
        CHECK_INT(d.error_number, error);
        page_decoder_done(&d);
}

static void test_query_is_lost(void) {
        uint64_t number = begin_query();

        die();
        check_stream(ERROR_WORKER_LOST);
        end();

        number = begin_query(); /* then the pipe may hold a part of its rows */
        commit(number);
        die();
        check_stream(0);
        end();

        (void) begin_query(); /* its COMMITTING may not have been read */
        say(&(Message) { .kind = MESSAGE_LEASE_RETURNED });
        check_stream(0);
        end();
}

/* It waits for the lease when the right to write goes; if it is about to be committed, it is too late. */
static void test_query_loses_its_right(void) {
        uint64_t number = begin_query();

        lose_right();
        CHECK_INT(stub_worker_cancels(0), 1);
        say_failed(number, ERROR_BUSY);
        CHECK_INT(n_runs(), 0);
        end();

        number = begin_query();
        commit(number);
        lose_right();
        CHECK_INT(stub_worker_cancels(0), 0);
        say_wrote(number, 1);
        end();
}

/* A Query of a writer that was cancelled before it started: its client gets the pipe, and the end in it. */
static void test_query_that_started_late(void) {
        begin();
        const RigCall *c = call(A, "Query");
        take(0);
        uint64_t number = only_run()->number;
        cancel_run();
        say_started(number);
        check_error(c, "");
        CHECK_INT(rig.n_fds, 1);
        end();

        begin(); /* one that only reads is refused */
        c = call(A, "Query");
        take(0);
        number = only_run()->number;
        cancel_run();
        say(&(Message) { .kind = MESSAGE_STARTED, .started = { .number = number, .described = true, .read_only = true } });
        check_error(c, ERROR("Cancelled"));
        end();
}

/* ---- Rows as D-Bus values ---- */

static uint64_t begin_rows(const char *method, const RigCall **ret) {
        begin();
        *ret = call(A, method);
        take(0);
        uint64_t number = only_run()->number;
        say_started(number);
        return number;
}

static void test_rows_are_lost(void) {
        const RigCall *c;
        uint64_t number = begin_rows("QueryRows", &c);

        die();
        check_error(c, ERROR("WorkerLost"));
        CHECK(strstr(c->sentence, "nothing was written"));
        end();

        number = begin_rows("QueryRows", &c);
        commit(number);
        die();
        check_error(c, ERROR("OutcomeUnknown"));
        end();

        number = begin_rows("QueryRows", &c); /* the worker does not know, and dies before its error was read */
        commit(number);
        say(&(Message) { .kind = MESSAGE_ENDED,
                         .ended = { .number = number, .failure = { .error = ERROR_OUTCOME_UNKNOWN, .sql_offset = -1,
                                                                   .message = "It is unknown." } } });
        die();
        check_error(c, ERROR("OutcomeUnknown"));
        end();

        number = begin_rows("OpenRows", &c); /* between two calls: the next one is told */
        commit(number);
        die();
        check_error(call_with_number(A, "NextRows", number), ERROR("OutcomeUnknown"));
        end();

        number = begin_rows("OpenRows", &c);
        die();
        check_error(call_with_number(A, "NextRows", number), ERROR("WorkerLost"));
        end();
}

/* A client that gives a call up need not have read that it was answered. */
static void test_answered_calls_are_cancelled(void) {
        static const char *const methods[] = { "Query", "OpenRows" };

        for (size_t i = 0; i < N_ELEMENTS(methods); i++) {
                const RigCall *c;
                uint64_t number = begin_rows(methods[i], &c);

                check_error(c, "");
                check_error(call_cancel_of(B, c->cookie), ERROR("UnknownRun"));
                CHECK_INT(stub_worker_cancels(0), 0);
                check_error(call_cancel_of(A, c->cookie), "");
                CHECK_INT(stub_worker_cancels(0), 1);
                check_error(call_cancel_of(A, c->cookie), ERROR("UnknownRun")); /* it ends */
                say_failed(number, ERROR_CANCELLED);
                CHECK_INT(n_runs(), i); /* its client may ask how one without a pipe has ended */
                end();

                begin();
                c = call(A, methods[i]);
                take(0);
                number = only_run()->number;
                say(&(Message) { .kind = MESSAGE_STARTED,
                                 .started = { .number = number, .described = true, .read_only = true } });
                check_error(call_cancel_of(A, c->cookie), "");
                CHECK_INT(stub_worker_cancels(0), 1);
                say_failed(number, ERROR_CANCELLED);
                CHECK_INT(n_runs(), 0);
                end();

                number = begin_rows(methods[i], &c);
                commit(number);
                check_error(call_cancel_of(A, c->cookie), ERROR("UnknownRun"));
                CHECK_INT(stub_worker_cancels(0), 0);
                say_wrote(number, 1);
                end();
        }
}

/* The client cancels a run while a call waits for its rows: the call is answered when the run has ended. */
static void test_rows_are_cancelled(void) {
        const RigCall *c, *next;
        uint64_t number = begin_rows("OpenRows", &c);

        check_error(c, "");
        next = call_with_number(A, "NextRows", number);
        check_waits(next);
        check_error(call_with_number(A, "Cancel", number), "");
        check_waits(next);
        rig_pass_time(6 * SECOND); /* the worker does not obey, and is killed; it had not begun to commit */
        check_error(next, ERROR("Cancelled"));
        end();

        number = begin_rows("OpenRows", &c); /* it may be committed already */
        next = call_with_number(A, "NextRows", number);
        commit(number);
        check_error(call_with_number(A, "Cancel", number), "");
        check_error(next, ERROR("OutcomeUnknown"));
        end();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_who_may), TEST(test_no_reply_wanted), TEST(test_groups_by_right), TEST(test_execute),
                TEST(test_execute_fails), TEST(test_execute_is_lost), TEST(test_execute_at_a_worker_that_lies),
                TEST(test_execute_at_a_worker_that_ends), TEST(test_execute_that_is_missing),
                TEST(test_execute_is_cancelled), TEST(test_execute_takes_long),
                TEST(test_execute_while_the_client_leaves), TEST(test_rights_change), TEST(test_query_loses_its_right),
                TEST(test_batch), TEST(test_batch_is_lost), TEST(test_batch_with_other_changes), TEST(test_batch_refused),
                TEST(test_messages_out_of_turn),
                TEST(test_committing_others), TEST(test_query_is_lost), TEST(test_query_that_started_late),
                TEST(test_rows_are_lost), TEST(test_rows_are_cancelled), TEST(test_answered_calls_are_cancelled),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
