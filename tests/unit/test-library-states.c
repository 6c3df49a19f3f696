/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The states of the library's objects. For each kind of object, the header of its life cycle lists all transitions. This
 * test reads the lists and checks that the code permits these transitions and no others, that all others abort, and that
 * each of them occurs in the library. The arguments are the headers.
 */
#include <signal.h>

#include "client-lib/channel-link-life.h"
#include "client-lib/cursor-life.h"
#include "client-lib/fetch-life.h"
#include "client-lib/live-life.h"
#include "client-lib/load-life.h"
#include "client-lib/prepared-life.h"
#include "client-lib/transact-life.h"
#include "client-lib/watch-life.h"
#include "dbus-interfaces/sqlipc-errors.h"
#include "tests/rigs/fake-load.h"
#include "tests/rigs/fake-service.h"
#include "tests/rigs/fake-watch.h"
#include "tests/rigs/life.h"

/* ---- Life cycles ---- */

LIFE_FUNCTIONS(cursor_life, CursorState)
LIFE_FUNCTIONS(fetch_life, FetchState)
LIFE_FUNCTIONS(prepared_life, StatementState)
LIFE_FUNCTIONS(channel_link_life, ChannelLinkState)
LIFE_FUNCTIONS(transact_life, TransactionState)
LIFE_FUNCTIONS(load_life, LoadState)
LIFE_FUNCTIONS(watch_life, WatchState)
LIFE_FUNCTIONS(live_life, LiveState)

static Life cursor_life = LIFE(cursor_life, "cursor", CURSOR_STATE_MAX, [CURSOR_WAITING] = "WAITING",
                               [CURSOR_DRAINING] = "DRAINING", [CURSOR_RUNNING] = "RUNNING",
                               [CURSOR_ASKING] = "ASKING", [CURSOR_DONE] = "DONE");
static Life fetch_life = LIFE(fetch_life, "fetch", FETCH_STATE_MAX, [FETCH_IDLE] = "IDLE", [FETCH_RUNNING] = "RUNNING",
                              [FETCH_CANCELLING] = "CANCELLING", [FETCH_CANCELLED] = "CANCELLED");
static Life prepared_life = LIFE(prepared_life, "statement", STATEMENT_STATE_MAX, [STATEMENT_PREPARING] = "PREPARING",
                                 [STATEMENT_READY] = "READY", [STATEMENT_FAILED] = "FAILED",
                                 [STATEMENT_LOST] = "LOST");
static Life channel_link_life = LIFE(channel_link_life, "channel link", CHANNEL_LINK_STATE_MAX,
                                     [CHANNEL_LINK_CLOSED] = "CLOSED", [CHANNEL_LINK_OPENING] = "OPENING",
                                     [CHANNEL_LINK_OPEN] = "OPEN");
static Life transact_life = LIFE(transact_life, "transaction", TRANSACTION_STATE_MAX,
                                    [TRANSACTION_BEGINNING] = "BEGINNING", [TRANSACTION_OPEN] = "OPEN",
                                    [TRANSACTION_ENDING] = "ENDING", [TRANSACTION_OVER] = "OVER");
static Life load_life = LIFE(load_life, "load", LOAD_STATE_MAX, [LOAD_BEGINNING] = "BEGINNING", [LOAD_OPEN] = "OPEN",
                             [LOAD_ENDING] = "ENDING", [LOAD_BROKEN] = "BROKEN", [LOAD_OVER] = "OVER");
static Life watch_life = LIFE(watch_life, "watch", WATCH_STATE_MAX, [WATCH_OPENING] = "OPENING", [WATCH_OPEN] = "OPEN",
                              [WATCH_LOST] = "LOST", [WATCH_OVER] = "OVER");
static Life live_life = LIFE(live_life, "live query", LIVE_STATE_MAX, [LIVE_WAITING] = "WAITING",
                             [LIVE_RUNNING] = "RUNNING", [LIVE_TELLING] = "TELLING", [LIVE_OVER] = "OVER");

/* In the order of the arguments. */
static Life *const lives[] = { &cursor_life,   &fetch_life, &prepared_life, &channel_link_life,
                               &transact_life, &load_life,  &watch_life,    &live_life };

static void test_code_agrees_with_headers(void) {
        life_check_documented(lives, N_ELEMENTS(lives));
}

static void test_others_are_rejected(void) {
        life_check_others_are_rejected(lives, N_ELEMENTS(lives));
}

/* ---- The library ---- */

static FakeService f;
static FakeLoad loading;
static FakeWatch watching;

/* The member whose next calls fail, and how often. */
static const char *failing, *failing_with;
static atomic_int n_failing;
static atomic_bool answers_channels;

static int on_call(FakeService *service, sd_bus_message *m, const char *member) {
        int sockets[2];

        if (failing && strcmp(member, failing) == 0 && n_failing > 0) {
                n_failing--;
                CHECK(sd_bus_reply_method_errorf(m, failing_with, "It failed.") >= 0);
                return 1;
        }
        if (strcmp(member, "Begin") == 0)
                return sd_bus_reply_method_return(m, "ta{sv}", UINT64_C(5), 0);
        if (fake_load_on_call(&loading, service, m, member) || fake_watch_on_call(&watching, m, member))
                return 1;
        if (strcmp(member, "OpenChannel") != 0 || !answers_channels)
                return 0;
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) >= 0);
        CHECK(sd_bus_reply_method_return(m, "ha{sv}", sockets[0], 1, "page-size", "u", (uint32_t) 65536) >= 0);
        close(sockets[0]);
        close(sockets[1]); /* at once: the library finds a closed channel */
        return 1;
}

static void begin(void) {
        watching = (FakeWatch) FAKE_WATCH_INIT;
        fake_start(&f);
        f.on_call = on_call;
        failing = NULL;
        failing_with = "org.sqlipc1.Error.UnknownStatement";
        answers_channels = false;
        fake_set_result(&f, 1, 2);
}

static void fail_next(const char *member) {
        failing = member;
        n_failing = 1;
}

static sqlipc_statement *prepare(void) {
        sqlipc_statement *s;

        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT c FROM t", &s), 0);
        return s;
}

static sqlipc_cursor *execute(sqlipc_statement *s) {
        sqlipc_cursor *c;

        CHECK_INT(sqlipc_execute(s, &c), 0);
        return c;
}

/* Reads to the end, or to a failure, which it returns. */
static int read_all(sqlipc_cursor *c) {
        int r;

        while ((r = sqlipc_cursor_next(c)) > 0)
                ;
        (void) sqlipc_cursor_close(c);
        return r;
}

static void turn(void) {
        struct pollfd fd = { .fd = sqlipc_get_fd(f.connection), .events = POLLIN };

        CHECK(poll(&fd, 1, 120000) > 0);
        CHECK(sqlipc_process(f.connection) >= 0);
}

/* Cancel has no answer that wakes the client: after it is sent, only the service's thread knows. */
static void turn_until_cancelled(void) {
        while (f.n_cancel == 0) {
                struct pollfd fd = { .fd = sqlipc_get_fd(f.connection), .events = POLLIN };

                CHECK(poll(&fd, 1, 10) >= 0);
                CHECK(sqlipc_process(f.connection) >= 0);
        }
}

/* A statement that runs, and is lost with its worker. */
static void test_statement(void) {
        sqlipc_statement *s;

        begin();
        s = prepare();
        CHECK_INT(read_all(execute(s)), 0);
        fail_next("Fetch"); /* the service does not know the statement any more */
        CHECK_INT(read_all(execute(s)), 0);
        fake_set_unfinished(&f, 1, 2);
        f.close_pipe = true;
        CHECK_INT(read_all(execute(s)), -ECONNRESET);
        sqlipc_finalize(s);
        fake_done(&f);
}

static void test_failing_statement(void) {
        sqlipc_statement *failed, *ready, *lost;

        begin();
        ready = prepare();
        lost = prepare();
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        fail_next("Prepare");
        failed = prepare();
        while (sqlipc_statement_is_ready(failed) == 0)
                turn();
        sqlipc_cursor_close(execute(failed)); /* prepares it again */
        while (sqlipc_statement_is_ready(failed) == 0)
                turn();
        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        fake_set_unfinished(&f, 1, 2);
        f.close_pipe = true;
        CHECK_INT(read_all(execute(lost)), -ECONNRESET);
        sqlipc_connection_ref(f.connection);
        fake_done(&f); /* closes the connection: they fail */
        sqlipc_finalize(failed);
        sqlipc_finalize(ready);
        sqlipc_finalize(lost);
        sqlipc_connection_unref(f.connection);
}

/* A statement that was lost runs by OpenRows, which needs no pipe. */
static void test_statement_without_pipe(void) {
        sqlipc_statement *s;

        begin();
        s = prepare();
        fake_set_unfinished(&f, 1, 2);
        f.close_pipe = true;
        CHECK_INT(read_all(execute(s)), -ECONNRESET);
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_DBUS), 0);
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        sqlipc_cursor_close(execute(s));
        sqlipc_finalize(s);
        fake_done(&f);
}

/* A query whose service ends before it answers runs again if it only reads. */
static void test_lost_query(void) {
        sqlipc_cursor *c;

        begin();
        fail_next("Query");
        failing_with = "org.freedesktop.DBus.Error.NoReply";
        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT c FROM t", &c, NULL), 0);
        CHECK_INT(read_all(c), 0);
        fake_done(&f);
}

/* Cursors that are closed at each stage of a run. */
static void test_closed_cursors(void) {
        sqlipc_statement *s;
        sqlipc_cursor *c;

        begin();
        s = prepare();
        fake_set_unfinished(&f, 1, 2);
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        sqlipc_cursor_close(execute(s)); /* before the number of the run is known */
        fake_wait_for(&f.n_fetch, 1);
        c = execute(s); /* reads the rest of that run, when its number has come */
        turn_until_cancelled();
        CHECK_INT(sqlipc_cursor_cancel(c), 0);
        CHECK_INT(sqlipc_cursor_next(c), -ECANCELED); /* before it is sent */
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);

        s = prepare();
        while (sqlipc_statement_is_ready(s) == 0)
                turn();
        sqlipc_cursor_close(execute(s));
        sqlipc_finalize(s); /* before the number is known */

        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        s = prepare();
        c = execute(s);
        CHECK_INT(sqlipc_cursor_next(c), 1);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        fake_done(&f);
}

/* A channel that closes at once, and one that does not open. */
static void test_channels(void) {
        sqlipc_statement *s;

        begin();
        answers_channels = true;
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_CHANNEL), 0);
        s = prepare(); /* over the bus, after some channels */
        sqlipc_finalize(s);
        fail_next("OpenChannel");
        CHECK(sqlipc_prepare(f.connection, "another", "SELECT 1", &s) < 0);
        fake_done(&f);
}

/* Transactions that are committed, closed while they are open, and refused; and one whose commits are refused. */
static void test_transactions(void) {
        sqlipc_transaction *t;
        int r;

        begin();
        CHECK_INT(sqlipc_begin(f.connection, "db", SQLIPC_TRANSACTION_WRITE, &t), 0);
        CHECK_INT(sqlipc_commit(t), 0);
        sqlipc_transaction_close(t);
        CHECK_INT(sqlipc_begin(f.connection, "db", SQLIPC_TRANSACTION_WRITE, &t), 0);
        sqlipc_transaction_close(t);
        fail_next("Begin");
        CHECK(sqlipc_begin(f.connection, "db", SQLIPC_TRANSACTION_WRITE, &t) < 0);

        failing_with = "org.sqlipc1.Error.CommitRefused";
        CHECK_INT(sqlipc_begin(f.connection, "db", SQLIPC_TRANSACTION_WRITE, &t), 0);
        for (unsigned i = 0; i < 2; i++) {
                fail_next("Commit");
                CHECK_INT(sqlipc_commit(t), -EINVAL);
                CHECK_INT((int) sqlipc_error_code(f.connection), SQLIPC_ERROR_COMMIT_REFUSED);
                CHECK_INT(sqlipc_transaction_is_open(t), 1);
        }
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        fail_next("Commit");
        CHECK_INT(sqlipc_commit(t), -EAGAIN);
        while ((r = sqlipc_commit(t)) == -EAGAIN)
                CHECK(sqlipc_process(f.connection) >= 0);
        CHECK_INT(r, -EINVAL);
        CHECK_INT(sqlipc_transaction_is_open(t), 1);
        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        CHECK_INT(sqlipc_commit(t), 0);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

static sqlipc_load *begin_load(uint64_t n_rows_max) {
        sqlipc_load *load;

        loading = (FakeLoad) FAKE_LOAD_INIT(1);
        loading.wait = n_rows_max < UINT64_MAX ? FAKE_WAIT_FAILS : FAKE_WAIT_ANSWERS;
        loading.error = "Sql";
        loading.n_rows_max = n_rows_max;
        loading.paused = n_rows_max == 0;
        CHECK_INT(sqlipc_load_open(f.connection, "db", "INSERT INTO t VALUES (?)", &load), 0);
        return load;
}

/* The service closes the pipe before or after the program has no more rows. */
static void test_loads(void) {
        static const uint8_t blob[256 * 1024];
        const sqlipc_parameter value = { .struct_size = sizeof value, .type = SQLIPC_BLOB, .bytes = blob,
                                         .size = sizeof blob };
        sqlipc_load *load;

        begin();
        load = begin_load(UINT64_MAX);
        CHECK_INT(sqlipc_load_finish(load, NULL), 0);
        sqlipc_load_close(load);
        sqlipc_load_close(begin_load(UINT64_MAX));
        load = begin_load(1);
        while (sqlipc_load_row(load, &value, 1) == 0)
                ;
        sqlipc_load_close(load);
        load = begin_load(0);
        CHECK_INT(sqlipc_load_row(load, &value, 1), 0);
        CHECK_INT(sqlipc_set_timeout(f.connection, 10000), 0);
        CHECK_INT(sqlipc_load_finish(load, NULL), -ETIMEDOUT);
        CHECK_INT(sqlipc_set_timeout(f.connection, UINT64_MAX), 0);
        loading.paused = false;
        CHECK_INT(sqlipc_load_finish(load, NULL), -EINVAL);
        sqlipc_load_close(load);
        fail_next("Load");
        CHECK(sqlipc_load_open(f.connection, "db", "INSERT INTO t VALUES (?)", &load) < 0);
        fake_done(&f);
        fake_load_close(&loading);
}

static sqlipc_watch *begin_watch(void) {
        sqlipc_watch *watch;

        CHECK_INT(sqlipc_watch_open(f.connection, "db", NULL, &watch), 0);
        return watch;
}

/* Watches that are refused, closed, lost and made again, and lost for good. */
static void test_watches(void) {
        sqlipc_watch *watch;

        begin();
        fail_next("Watch");
        CHECK(sqlipc_watch_open(f.connection, "db", NULL, &watch) < 0);
        sqlipc_watch_close(begin_watch());
        watch = begin_watch();
        fake_watch_close(&watching);
        CHECK_INT(sqlipc_watch_next(watch, UINT64_MAX), 1);
        fake_watch_close(&watching);
        fail_next("Watch");
        CHECK(sqlipc_watch_next(watch, UINT64_MAX) < 0);
        sqlipc_watch_close(watch);
        fake_done(&f);
        fake_watch_done(&watching);
}

static int live_next(sqlipc_live *live) {
        const sqlipc_live_change *change;

        return sqlipc_live_next(live, UINT64_MAX, &change);
}

static void settle(sqlipc_live *live) {
        const sqlipc_live_change *change;

        do
                CHECK_INT(sqlipc_live_next(live, UINT64_MAX, &change), 1);
        while (change->kind != SQLIPC_LIVE_SETTLED);
}

/* Live queries that tell, fail, and are closed in each state. */
static void test_live_queries(void) {
        sqlipc_live *waiting, *running, *telling;
        const sqlipc_live_change *change;

        begin();
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_PIPE), 0);
        CHECK_INT(sqlipc_live_open(f.connection, "db", "SELECT 1", NULL, 0, NULL, &waiting), 0);
        settle(waiting);
        fail_next("Query");
        fake_watch_signal(&watching);
        CHECK(live_next(waiting) < 0);
        fake_watch_close(&watching);
        fail_next("Watch");
        CHECK(live_next(waiting) < 0); /* the watch is over */

        CHECK_INT(sqlipc_live_open(f.connection, "db", "SELECT 1", NULL, 0, NULL, &telling), 0);
        CHECK_INT(live_next(telling), 1);
        fake_set_unfinished(&f, 1, 2);
        CHECK_INT(sqlipc_live_open(f.connection, "db", "SELECT 1", NULL, 0, NULL, &running), 0);
        CHECK_INT(sqlipc_live_next(running, 10000, &change), 0);
        sqlipc_connection_ref(f.connection);
        fake_done(&f);
        CHECK_INT(live_next(running), -ENOTCONN);
        CHECK_INT(live_next(telling), -ENOTCONN);
        sqlipc_live_close(waiting);
        sqlipc_live_close(running);
        sqlipc_live_close(telling);
        sqlipc_connection_unref(f.connection);
        fake_watch_done(&watching);
}

static void test_each_transition_occurred(void) {
        life_check_walked(lives, N_ELEMENTS(lives));
}

int main(int argc, char **argv) {
        static const Test tests[] = {
                TEST(test_code_agrees_with_headers),
                TEST(test_others_are_rejected),
                TEST(test_statement),
                TEST(test_failing_statement),
                TEST(test_statement_without_pipe),
                TEST(test_lost_query),
                TEST(test_closed_cursors),
                TEST(test_channels),
                TEST(test_transactions),
                TEST(test_loads),
                TEST(test_watches),
                TEST(test_live_queries),
                TEST(test_each_transition_occurred),
        };

        signal(SIGPIPE, SIG_IGN);
        life_take_headers(lives, N_ELEMENTS(lives), argc, argv);
        return test_main(tests, N_ELEMENTS(tests));
}
