/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs that a program gives up, against a scripted service: it closes the cursor or the connection, executes the statement
 * again, or cancels. The library releases everything, and the statement can be used again.
 */
#include "tests/unit/cursor-checks.h"

/* ---- losing interest ---------------------------------------------------------------------------------------------- */

static void test_close_query_midway(void) {
        FakeService f;
        sqlipc_cursor *c;

        fake_start(&f);
        fake_set_unfinished(&f, 1, 10);
        c = query(&f);
        check_rows(c, 1, 2);
        sqlipc_cursor_close(c);
        fake_wait_for(&f.n_cancel, 1);
        CHECK_INT(write(f.write_fd, "", 1), -1);
        CHECK_INT(errno, EPIPE);
        fake_done(&f);
}

/* On Cancel the run ends as the daemon would end it, 20 ms later. */
static int end_on_cancel(FakeService *f, sd_bus_message *m, const char *member) {
        Stream s = STREAM_INIT;

        (void) m;
        if (strcmp(member, "Cancel") != 0)
                return 0;
        usleep(20000);
        fake_add_rows(&s, FAKE_RUN, 50, 60);
        stream_add_error(&s, FAKE_RUN, SQLIPC_ERROR_CANCELLED, "cancelled");
        fake_write(f, &s);
        stream_done(&s);
        return 0;
}

static void test_execute_again_midway(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *first, *second, *third;

        fake_start(&f);
        f.on_call = end_on_cancel;
        fake_set_unfinished(&f, 1, 10);
        s = prepare(&f);
        first = execute(s);
        check_rows(first, 1, 3);
        second = execute(s);
        check_failure(&f, first, -ESTALE, SQLIPC_ERROR_NONE);
        CHECK_INT(sqlipc_column_count(first), 0);
        check_rows(second, 1, 3); /* and none of the first run's 50... */
        sqlipc_cursor_close(second);
        third = execute(s);
        check_rows(third, 1, 10);
        sqlipc_finalize(s);
        check_failure(&f, third, -ESTALE, SQLIPC_ERROR_NONE);
        sqlipc_cursor_close(first);
        sqlipc_cursor_close(third);
        CHECK_INT(f.n_prepare, 1);
        fake_done(&f);
        CHECK_INT(f.n_finalize, 1);
}

static int close_connection(const sqlipc_database *database, void *userdata) {
        (void) database;
        (void) sqlipc_close(userdata);
        return 5;
}

static void check_closed(sqlipc_connection *connection) {
        sqlipc_statement *s = NULL;
        sqlipc_cursor *c = NULL;
        uint64_t usec;

        CHECK_INT(sqlipc_prepare(connection, "db", "SELECT 1", &s), -ENOTCONN);
        CHECK_INT(sqlipc_query(connection, "db", "SELECT 1", &c, NULL), -ENOTCONN);
        CHECK_INT(sqlipc_list_databases(connection, close_connection, NULL), -ENOTCONN);
        CHECK(!s && !c && !sqlipc_get_bus(connection));
        CHECK_INT(sqlipc_process(connection), -ENOTCONN);
        CHECK_INT(sqlipc_get_fd(connection), -ENOTCONN);
        CHECK_INT(sqlipc_get_events(connection), -ENOTCONN);
        CHECK_INT(sqlipc_get_timeout(connection, &usec), -ENOTCONN);
        CHECK_INT(sqlipc_set_blocking(connection, 1), -ENOTCONN);
        CHECK_INT(sqlipc_set_transport(connection, SQLIPC_TRANSPORT_AUTO), -ENOTCONN);
        CHECK_INT(sqlipc_set_timeout(connection, 1), -ENOTCONN);
        CHECK_INT(sqlipc_error_code(connection), SQLIPC_ERROR_NONE);
        CHECK_STRING(sqlipc_error_message(connection), "The connection was closed.");
}

/* Runs under way end at once, and the service is told; its bus is not ours to close. Objects that the program still has are
 * valid, and report the end. */
static void test_close_connection_midway(void) {
        FakeService f;
        sqlipc_statement *executed, *idle;
        sqlipc_cursor *of_statement, *of_query, *ended, *late;

        fake_start(&f);
        fake_set_result(&f, 1, 1);
        ended = query(&f);
        check_rows(ended, 1, 1);
        check_end(ended);
        executed = prepare(&f); /* the service is done with the rows of the query */
        fake_set_unfinished(&f, 1, 10);
        of_statement = execute(executed);
        check_rows(of_statement, 1, 3);
        idle = prepare(&f);
        of_query = query(&f);
        (void) sqlipc_connection_ref(f.connection);
        CHECK(!sqlipc_close(f.connection));
        check_closed(f.connection);
        CHECK_INT(sqlipc_cursor_next(of_statement), -ENOTCONN);
        CHECK_INT(sqlipc_column_is_null(of_statement, 0), 1);
        CHECK_INT(sqlipc_cursor_cancel(of_statement), 0);
        CHECK_INT(sqlipc_cursor_next(of_query), -ENOTCONN);
        CHECK_INT(sqlipc_cursor_next(ended), 0);
        CHECK_INT(sqlipc_statement_is_ready(idle), -ENOTCONN);
        CHECK_INT(sqlipc_execute(idle, &late), -ENOTCONN);
        CHECK_INT(sqlipc_statement_column_count(idle), 1);
        sqlipc_cursor_close(of_query);
        sqlipc_finalize(executed);
        CHECK_INT(sqlipc_cursor_next(of_statement), -ENOTCONN);
        sqlipc_cursor_close(of_statement);
        sqlipc_cursor_close(ended);
        CHECK(!sqlipc_connection_unref(f.connection));
        CHECK_INT(sqlipc_statement_is_ready(idle), -ENOTCONN);
        sqlipc_finalize(idle);
        f.connection = NULL;
        fake_done(&f);
        CHECK_INT(f.n_finalize, 2);
        CHECK_INT(f.n_cancel, 2);
}

static int close_from_handler(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        FakeService *f = userdata;

        (void) m, (void) error;
        f->connection = sqlipc_close(f->connection);
        return 0;
}

/* A visitor, or a handler of the bus while a call of ours waits: that call ends. */
static void test_close_from_callbacks(void) {
        sqlipc_cursor *c;
        FakeService f;

        fake_start(&f);
        CHECK_INT(sqlipc_list_databases(f.connection, close_connection, f.connection), 5);
        f.connection = NULL;
        fake_done(&f);

        fake_start(&f);
        fake_set_unfinished(&f, 1, 2);
        c = query(&f);
        check_rows(c, 1, 2);
        CHECK(sd_bus_call_method_async(f.client_bus, NULL, NULL, "/", "a.b", "Ping", close_from_handler, &f, "") >= 0);
        CHECK_INT(sqlipc_cursor_next(c), -ENOTCONN);
        CHECK(!f.connection);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

static int call_query(sqlipc_connection *connection) {
        sqlipc_cursor *c;

        return sqlipc_query(connection, "db", "SELECT 1", &c, NULL);
}

static int call_exec(sqlipc_connection *connection) {
        return sqlipc_exec(connection, "db", "SELECT 1", NULL);
}

static int call_prepare(sqlipc_connection *connection) {
        sqlipc_statement *s;

        return sqlipc_prepare(connection, "db", "SELECT 1", &s);
}

static int call_begin(sqlipc_connection *connection) {
        sqlipc_transaction *t;

        return sqlipc_begin(connection, "db", SQLIPC_TRANSACTION_WRITE, &t);
}

static int call_load(sqlipc_connection *connection) {
        sqlipc_load *l;

        return sqlipc_load_open(connection, "db", "INSERT INTO t VALUES (?)", &l);
}

static int call_watch(sqlipc_connection *connection) {
        sqlipc_watch *w;

        return sqlipc_watch_open(connection, "db", NULL, &w);
}

static int call_live(sqlipc_connection *connection) {
        sqlipc_live *l;

        return sqlipc_live_open(connection, "db", "SELECT 1", NULL, 0, NULL, &l);
}

static int answer_only_ping(FakeService *f, sd_bus_message *m, const char *member) {
        (void) f, (void) m;
        return strcmp(member, "Ping") != 0;
}

/* The same while a call waits that has made the only other reference on the connection. */
static void test_close_while_opening(void) {
        static int (*const calls[])(sqlipc_connection *) = { call_query, call_exec, call_prepare, call_begin,
                                                             call_load, call_watch, call_live };

        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
                for (int transport = SQLIPC_TRANSPORT_AUTO; transport <= SQLIPC_TRANSPORT_CHANNEL; transport++) {
                        FakeService f;

                        fake_start(&f);
                        f.on_call = answer_only_ping;
                        CHECK_INT(sqlipc_set_transport(f.connection, (sqlipc_transport) transport), 0);
                        CHECK(sd_bus_call_method_async(f.client_bus, NULL, NULL, "/", "a.b", "Ping", close_from_handler,
                                                       &f, "") >= 0);
                        CHECK_INT(calls[i](f.connection), -ENOTCONN);
                        CHECK(!f.connection);
                        fake_done(&f);
                }
}

enum { FREE_CONNECTION, FREE_STATEMENT, FREE_CURSOR, FREE_QUERY, N_KINDS };

/* Frees four kinds of object in the order of the digits of `order`. */
static void check_order(const unsigned *order, bool at_once, int transport) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *of_statement, *of_query;

        fake_start(&f);
        CHECK_INT(sqlipc_set_transport(f.connection, (sqlipc_transport) transport), 0);
        fake_set_unfinished(&f, 1, 4);
        s = prepare(&f);
        of_statement = execute(s);
        check_rows(of_statement, 1, 2);
        of_query = query(&f);
        check_rows(of_query, 1, 2);
        for (unsigned i = 0; i < N_KINDS; i++)
                switch (order[i]) {
                case FREE_CONNECTION:
                        f.connection = at_once ? sqlipc_close(f.connection) : sqlipc_connection_unref(f.connection);
                        break;
                case FREE_STATEMENT:
                        s = sqlipc_finalize(s);
                        break;
                case FREE_CURSOR:
                        of_statement = sqlipc_cursor_close(of_statement);
                        break;
                case FREE_QUERY:
                        if (f.connection || !at_once) /* it goes on, whatever was freed before */
                                check_rows(of_query, 3, 4);
                        else
                                CHECK_INT(sqlipc_cursor_next(of_query), -ENOTCONN);
                        of_query = sqlipc_cursor_close(of_query);
                        break;
                }
        fake_done(&f);
}

static void test_free_in_any_order(void) {
        for (unsigned n = 0; n < 256; n++) {
                const unsigned order[] = { n % 4, n / 4 % 4, n / 16 % 4, n / 64 };

                if ((1u << order[0] | 1u << order[1] | 1u << order[2] | 1u << order[3]) != 15)
                        continue;
                check_order(order, false, SQLIPC_TRANSPORT_AUTO);
                check_order(order, true, SQLIPC_TRANSPORT_PIPE);
        }
}

static atomic_bool dawdling;

/* A reply that comes too late is given back: or the statement would stay for as long as the bus. */
static int dawdle(FakeService *f, sd_bus_message *m, const char *member) {
        (void) f, (void) m, (void) member;
        while (dawdling)
                usleep(1000);
        return 0;
}

static void test_late_replies(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        fake_start(&f);
        f.on_call = dawdle;
        dawdling = true;
        CHECK_INT(sqlipc_set_timeout(f.connection, 10000), 0);
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT 1", &s), -ETIMEDOUT);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_NONE);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), -ECONNABORTED); /* it may write */
        dawdling = false;
        for (int i = 0; i < 120000 && (f.n_finalize < 1 || f.n_cancel < 1); i++) {
                usleep(1000);
                CHECK(sqlipc_process(f.connection) >= 0);
        }
        CHECK_INT(f.n_finalize, 1);
        CHECK_INT(f.n_cancel, 1); /* of the run */
        fake_done(&f);
}

static void test_timeout_goes_on(void) {
        FakeService f;
        sqlipc_cursor *c;
        Stream more = STREAM_INIT;

        fake_start(&f);
        fake_set_unfinished(&f, 1, 2);
        c = query(&f);
        check_rows(c, 1, 2);
        CHECK_INT(sqlipc_set_timeout(f.connection, 20000), 0);
        CHECK_INT(sqlipc_cursor_next(c), -ETIMEDOUT);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_NONE);
        CHECK_INT(sqlipc_cursor_next(c), -ETIMEDOUT);
        fake_add_rows(&more, FAKE_RUN, 3, 4);
        stream_add_end_behind(&more, FAKE_RUN, 4, stream_run_size(&f.rows));
        fake_write(&f, &more);
        stream_done(&more);
        check_rows(c, 3, 4);
        check_end(c);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

/* ---- cancellation ------------------------------------------------------------------------------------------------- */

static void *cancel_soon(void *cursor) {
        usleep(20000);
        CHECK_INT(sqlipc_cursor_cancel(cursor), 0);
        return NULL;
}

static void test_cancel_from_thread(void) {
        FakeService f;
        sqlipc_cursor *c;
        pthread_t thread;

        fake_start(&f);
        f.on_call = end_on_cancel;
        fake_set_unfinished(&f, 1, 2);
        c = query(&f);
        check_rows(c, 1, 2);
        CHECK_INT(pthread_create(&thread, NULL, cancel_soon, c), 0);
        check_rows(c, 50, 60); /* what was on its way */
        check_failure(&f, c, -ECANCELED, SQLIPC_ERROR_CANCELLED);
        CHECK_INT(f.n_cancel, 1);
        CHECK_INT(pthread_join(thread, NULL), 0);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

static int kill_on_cancel(FakeService *f, sd_bus_message *m, const char *member) {
        (void) m;
        if (strcmp(member, "Cancel") == 0)
                fake_close_pipe(f);
        return 0;
}

/* The worker had to be killed: the end-of-file is our own doing. */
static void test_cancel_kills_worker(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        fake_start(&f);
        f.on_call = kill_on_cancel;
        fake_set_unfinished(&f, 1, 2);
        s = prepare(&f);
        c = execute(s);
        check_rows(c, 1, 2);
        CHECK_INT(sqlipc_cursor_cancel(c), 0);
        check_failure(&f, c, -ECANCELED, SQLIPC_ERROR_CANCELLED);
        sqlipc_cursor_close(c);

        f.on_call = NULL;
        fake_set_result(&f, 5, 6);
        c = execute(s); /* compiled again */
        check_rows(c, 5, 6);
        check_end(c);
        CHECK_INT(f.n_prepare, 2);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        fake_done(&f);
}

static void test_cancel_too_late(void) {
        FakeService f;
        sqlipc_cursor *c;

        fake_start(&f);
        fake_set_result(&f, 1, 2);
        c = query(&f);
        check_rows(c, 1, 1);
        CHECK_INT(sqlipc_cursor_cancel(c), 0);
        check_rows(c, 2, 2);
        check_end(c);
        CHECK_INT(sqlipc_cursor_cancel(c), 0);
        check_end(c);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

/* In the service's thread, once the call has arrived, which is then not answered. */
static int interrupt_on_call(FakeService *f, sd_bus_message *m, const char *member) {
        static sd_bus_message *query;

        if (strcmp(member, "Cancel") == 0 && query) { /* cancelled before it began */
                CHECK(sd_bus_reply_method_errorf(query, "org.sqlipc1.Error.Cancelled", "cancelled") >= 0);
                query = sd_bus_message_unref(query);
        }
        if (strcmp(member, "Cancel") == 0 || strcmp(member, "Finalize") == 0)
                return 0;
        if (strcmp(member, "Query") == 0)
                query = sd_bus_message_ref(m);
        CHECK_INT(sqlipc_interrupt(f->connection), 0);
        return 1;
}

static int ignore_database(const sqlipc_database *database, void *userdata) {
        (void) database, (void) userdata;
        return 0;
}

/* All that goes on ends, whatever call waits for it; what comes after is not affected. */
static void test_interrupt(void) {
        FakeService f;
        sqlipc_statement *s, *idle;
        sqlipc_cursor *c, *other;

        fake_start(&f);
        fake_set_unfinished(&f, 1, 2);
        idle = prepare(&f);
        other = execute(idle);
        check_rows(other, 1, 1);
        f.on_call = interrupt_on_call;
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT 1", &s), -ECANCELED);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_CANCELLED);
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), -ECANCELED);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_CANCELLED);
        CHECK_INT(sqlipc_list_databases(f.connection, ignore_database, NULL), -ECANCELED);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_CANCELLED);
        check_rows(other, 2, 2); /* it had come before */
        f.on_call = kill_on_cancel;
        fake_close_pipe(&f);
        check_failure(&f, other, -ECANCELED, SQLIPC_ERROR_CANCELLED);
        sqlipc_cursor_close(other);

        f.on_call = NULL;
        fake_set_result(&f, 1, 3);
        c = execute(idle);
        check_rows(c, 1, 3);
        check_end(c);
        CHECK_INT(sqlipc_interrupt(f.connection), 0);
        check_end(c);
        CHECK_INT(sqlipc_interrupt(NULL), -EINVAL);
        sqlipc_cursor_close(c);
        sqlipc_finalize(idle);
        fake_done(&f);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_close_query_midway),
                TEST(test_execute_again_midway),
                TEST(test_close_connection_midway),
                TEST(test_close_from_callbacks),
                TEST(test_close_while_opening),
                TEST(test_free_in_any_order),
                TEST(test_late_replies),
                TEST(test_timeout_goes_on),
                TEST(test_cancel_from_thread),
                TEST(test_cancel_kills_worker),
                TEST(test_cancel_too_late),
                TEST(test_interrupt),
        };

        (void) signal(SIGPIPE, SIG_IGN); /* the service's, which writes into pipes that we close */
        return test_main(tests, N_ELEMENTS(tests));
}
