/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's loop with an engine for a server: its share of the connections, jobs that await answers, channels that stay
 * together while a request to the server is short, and a server that does not answer to a commit. Time advances only when
 * the test says so.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/rigs/writing-rig.h"

#define MSEC UINT64_C(1000)

static Engine engine;
static EngineConnections connections;
static unsigned n_idle;
static bool silent;    /* the server does not answer */
static int server[2];  /* its answers; the engine reads none of them */

static EngineConnections *get_connections(EnginePool *pool) {
        (void) pool;
        return &connections;
}

static bool close_idle(EnginePool *pool) {
        (void) pool;
        if (n_idle == 0)
                return false;
        n_idle--;
        connections.n--;
        return true;
}

static bool connect_one(EnginePool *pool, const char *sql, size_t sql_size, const EngineHint *hint, EngineConnection **ret,
                        SqlError *error) {
        if (n_idle > 0)
                n_idle--;
        else if (connections.n < connections.n_max)
                connections.n++;
        else {
                connections.lacks = true;
                return sql_error_set(error, ERROR_BUSY, "all are in use");
        }
        return writing_engine.connect(pool, sql, sql_size, hint, ret, error);
}

static void disconnect(EnginePool *pool, EngineConnection *c) {
        n_idle++;
        writing_engine.disconnect(pool, c);
}

static EngineResult step(EngineStatement *statement, RowSink *sink, SqlError *error) {
        return silent && sink->may_await ? ENGINE_AWAITS : writing_engine.step(statement, sink, error);
}

static int awaited_fd(const EngineConnection *c) {
        (void) c;
        return server[0];
}

static void begin(uint64_t busy_usec) {
        Setup setup = wide;

        engine = writing_engine;
        engine.state_is_remote = true;
        engine.connections = get_connections;
        engine.close_idle = close_idle;
        engine.connect = connect_one;
        engine.disconnect = disconnect;
        engine.step = step;
        engine.awaited_fd = awaited_fd;
        connections = (EngineConnections) { .n_max = 1 };
        n_idle = 0;
        setup.busy_usec = busy_usec;
        setup.writes = true;
        writing_begin_on(&engine, &setup);
}

/* A run whose result does not fit the pipe, so that it keeps its connection. */
static int park(void) {
        int fd;

        (void) writing_run("p read rows=100", &fd);
        return fd;
}

/* A run without rows. The reports of the worker meanwhile must be `expected`. */
static void run_quickly(const char *sql, const char *expected) {
        int fd;

        (void) writing_run(sql, &fd);
        writing_expect(expected);
        close(fd);
}

/* ---- its share of the connections ---- */

static void test_wants(void) {
        int first, second;

        begin(5000 * MSEC);
        first = park();
        writing_expect("started 1; ");
        second = park();
        writing_expect("connection wanted; ");
        writing_pass(1000 * MSEC);
        writing_expect(""); /* it says so once */
        writing_say(MESSAGE_CONNECTION);
        writing_pass(100 * MSEC);
        writing_expect("started 2; ");
        g_assert_cmpuint(connections.n, ==, 2);
        close(first);
        close(second);
        writing_settle();
        g_free(writing_reports());
        writing_end();
}

/* Even with BusyTimeoutSec=0 a job waits for the answer, but not for ever. */
static void test_waits_for_the_answer(void) {
        int fds[3];

        begin(0);
        fds[0] = park();
        writing_expect("started 1; ");
        fds[1] = park();
        writing_expect("connection wanted; ");
        writing_say(MESSAGE_CONNECTION);
        writing_pass(100 * MSEC);
        writing_expect("started 2; ");
        fds[2] = park();
        writing_expect("connection wanted; ");
        writing_pass(1000 * MSEC);
        writing_expect("ended 3 error 27; ");
        for (unsigned i = 0; i < 3; i++)
                close(fds[i]);
        writing_settle();
        g_free(writing_reports());
        writing_end();
}

static void fall_silent(void) {
        g_assert_cmpint(pipe2(server, O_CLOEXEC), ==, 0);
        silent = true;
}

static void answer(void) {
        silent = false;
        g_assert_cmpint(write(server[1], "", 1), ==, 1);
}

/* While a job awaits its server, others run on other connections. Without one they wait as long as it takes. */
static void test_awaits(void) {
        int fds[3];

        begin(0);
        connections.n_max = 2;
        fall_silent();
        (void) writing_run("a read", &fds[0]);
        writing_expect("started 1; ");
        silent = false;
        run_quickly("b read", "started 2; ended 2; ");
        silent = true;
        (void) writing_run("c read", &fds[1]);
        writing_expect("started 3; ");
        (void) writing_run("d read", &fds[2]);
        writing_expect("connection wanted; ");
        writing_pass(10000 * MSEC);
        writing_expect("");
        answer();
        writing_pass(100 * MSEC);
        writing_expect("ended 1; ended 3; started 4; ended 4; ");
        for (unsigned i = 0; i < 3; i++)
                close(fds[i]);
        writing_end();
        close(server[0]);
        close(server[1]);
}

/* A connection that is not in use goes back at once, others when their runs have ended. */
static void test_returns(void) {
        int fd;

        begin(5000 * MSEC);
        connections.n_max = 3;
        fd = park();
        writing_expect("started 1; ");
        run_quickly("a read", "started 2; ended 2; "); /* this connection is idle now, and the third was never opened */
        g_assert_cmpuint(connections.n, ==, 2);
        writing_say(MESSAGE_CONNECTION_ASKED);
        writing_expect("connection returned; ");
        g_assert_cmpuint(connections.n, ==, 2);
        writing_say(MESSAGE_CONNECTION_ASKED);
        writing_expect("connection returned; ");
        g_assert_cmpuint(connections.n, ==, 1);
        writing_say(MESSAGE_CONNECTION_ASKED);
        writing_expect("");
        close(fd);
        writing_expect("ended 1 error 31; connection returned; ");
        g_assert_cmpuint(connections.n_max, ==, 0);
        (void) writing_run("b read", &fd);
        writing_expect("connection wanted; ");
        writing_say(MESSAGE_CONNECTION);
        writing_pass(100 * MSEC);
        writing_expect("started 3; ended 3; ");
        close(fd);
        writing_end();
}

static void ask_in_step(void) {
        n_idle++;
        connections.n++;
        writing_say(MESSAGE_CONNECTION_ASKED);
        for (unsigned i = 0; i < 10; i++) {
                writing.clock_usec += MSEC;
                g_assert_cmpint(writing.progress(writing.userdata), ==, 0);
        }
        writing_expect_last("started 1; connection returned; ");
}

/* A long step does not keep other workers from idle connections. */
static void test_returns_inside_a_step(void) {
        begin(5000 * MSEC);
        connections.n_max = 2;
        writing.hook = ask_in_step;
        run_quickly("a read hook", "ended 1; ");
        g_assert_cmpuint(connections.n_max, ==, 1);
        writing_end();
}

/* The messages are not for the engine of a file. */
static void test_file(void) {
        static const MessageKind kinds[] = { MESSAGE_CONNECTION, MESSAGE_CONNECTION_ASKED };

        for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
                writing_begin();
                writing_say(kinds[i]);
                g_assert_cmpint(worker_loop_run(&writing.loop), ==, -EBADMSG);
                writing_end();
        }
}

/* ---- channels ---- */

static Client client;

/* The server needs so long for its answer. */
static void compute(uint64_t usec) {
        for (uint64_t until = writing.clock_usec + usec; writing.clock_usec < until;) {
                writing.clock_usec += MSEC;
                g_assert_cmpint(writing.progress(writing.userdata), ==, 0);
        }
}

static void compute_beside_channel(void) {
        (void) client_add_query(&client, "b read", 0, NULL);
        client_send(&client);
        compute(90 * MSEC);
        writing_expect_last("started 2; ");
        compute(20 * MSEC);
        writing_expect_last("rested; ");
}

/* A channel whose request waits stays with the worker for a tenth of a second, and then goes to another one. */
static void test_channels_stay(void) {
        begin(5000 * MSEC);
        connections.n_max = 2;
        client_start(&writing.rig, &client);
        writing_settle();
        writing.hook = compute_beside_channel;
        run_quickly("a read hook", "ended 2; ");
        client_done(&client);
        writing_end();
}

/* ---- a commit without an answer ---- */

static uint64_t waited_usec;

static bool commit_in_silence(EngineConnection *connection, SqlError *error) {
        uint64_t began = writing.clock_usec;

        (void) connection;
        while (writing.progress(writing.userdata) == 0) {
                g_assert_cmpuint(writing.clock_usec, <, began + LATER);
                writing.clock_usec += 5 * MSEC;
        }
        waited_usec = writing.clock_usec - began;
        writing.in_transaction = false;
        return sql_error_set(error, ERROR_OUTCOME_UNKNOWN, "no answer");
}

/* A worker with the lease, whose server will not answer. */
static void begin_silent(void) {
        begin(5000 * MSEC);
        engine.commit = commit_in_silence;
        (void) writing_execute("first");
        writing_expect("wanted; ");
        writing_cancel(1);
        writing_say(MESSAGE_LEASE);
        writing_expect("ended 1 error 30; ");
}

static void expect_wait(uint64_t msec) {
        g_assert_cmpuint(waited_usec, >=, msec * MSEC);
        g_assert_cmpuint(waited_usec, <, (msec + 20) * MSEC);
}

static void cancel_it(void) {
        writing_cancel(2);
}

static void say_exit(void) {
        writing_say(MESSAGE_EXIT);
}

static void leave_it(void) {
        shutdown(writing.rig.control_fd, SHUT_RDWR);
}

/* It waits for a minute, and for half a second after the deadline or a CANCEL. */
static void test_silent_commit(void) {
        begin_silent();
        (void) writing_execute("a");
        writing_expect("committing 2; ended 2 error 39; ");
        expect_wait(60000);
        (void) writing_execute_until("b", 10000 * MSEC);
        writing_expect("committing 3; ended 3 error 39; ");
        expect_wait(10500);
        writing_end();

        begin_silent();
        writing.later = cancel_it;
        writing.later_usec = writing.clock_usec + 20000 * MSEC;
        (void) writing_execute("a");
        writing_expect("committing 2; ended 2 error 39; ");
        expect_wait(20500);
        writing_end();
}

static void test_silent_commit_of_transaction(void) {
        begin_silent();
        writing.transaction = writing_open(true, LATER);
        writing_expect("started 2 to write; ");
        (void) writing_execute("a");
        writing_commit(writing.transaction);
        writing_expect("ended 3 wrote 3 77; committing 2; ended 2 error 39; ");
        expect_wait(60000);
        writing_end();
}

/* A worker that is told to end waits for some seconds, and not at all without its supervisor. Its supervisor tells the
 * clients, because it knows which jobs are being committed. */
static void test_end_in_silent_commit(void) {
        static const struct {
                void (*how)(void);
                uint64_t msec;
        } cases[] = { { say_exit, 4000 }, { leave_it, 0 } };

        for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
                begin_silent();
                writing.later = cases[i].how;
                writing.later_usec = writing.clock_usec + 1000 * MSEC;
                (void) writing_execute("a");
                writing.until_usec = UINT64_MAX;
                g_assert_cmpint(worker_loop_run(&writing.loop), <=, 0);
                expect_wait(1000 + cases[i].msec);
                writing_end();
        }
}

/* ---- writing ---- */

static void begin_with_lease(void) {
        begin(5000 * MSEC);
        engine.connect = writing_engine.connect;
        engine.disconnect = writing_engine.disconnect;
        (void) writing_execute("first");
        writing_expect("wanted; ");
        writing_say(MESSAGE_LEASE);
        writing_expect("committing 1; ended 1 wrote 3 77; ");
}

static void compute_for_900_msec(void) {
        compute(900 * MSEC);
}

/* Returns the time after which the worker interrupts the step, at most 2 s. */
static uint64_t interrupted_after;

static void compute_until_interrupted(void) {
        uint64_t since = writing.clock_usec;

        while (writing.clock_usec < since + 2000 * MSEC && writing.progress(writing.userdata) == 0)
                writing.clock_usec += MSEC;
        interrupted_after = writing.clock_usec - since;
        writing.hook = compute_for_900_msec;
}

static void answer_and_compute(void) {
        answer();
        compute_until_interrupted();
}

/* The answer to a job may have locks for which a statement waits, so that is interrupted once, and runs again after it. */
static void test_gives_way(void) {
        int fd;

        begin_with_lease();
        fall_silent();
        (void) writing_run("a read", &fd);
        writing_expect("started 2; ");
        writing.hook = answer_and_compute;
        (void) writing_execute("b hook");
        writing_expect("ended 2; ");
        writing_pass(100 * MSEC);
        writing_expect_last("committing 3; ended 3 wrote 3 77; ");
        g_assert_cmpuint(interrupted_after / MSEC / 10, ==, 100); /* the loop looks around now and then */
        writing_expect_durable("first | b | ");
        writing_end();
        close(fd);
        close(server[0]);
        close(server[1]);
}

/* A statement that lasts is interrupted for those before it in its batch, but later than one of a file. */
static void test_long_statement(void) {
        begin_with_lease();
        writing.hook = compute_for_900_msec;
        (void) writing_execute("b hook");
        (void) writing_execute("a");
        writing_expect("committing 3 2; ended 3 wrote 3 77; ended 2 wrote 3 77; ");
        writing.hook = compute_until_interrupted;
        (void) writing_execute("d hook");
        (void) writing_execute("c");
        writing_expect("committing 5; ended 5 wrote 3 77; committing 4; ended 4 wrote 3 77; ");
        g_assert_cmpuint(interrupted_after / MSEC, ==, 1000);
        writing_expect_durable("first | a b | c | d | ");
        writing_end();
}

int main(int argc, char **argv) {
        (void) signal(SIGPIPE, SIG_IGN);
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/server/wants", test_wants);
        g_test_add_func("/server/waits-for-the-answer", test_waits_for_the_answer);
        g_test_add_func("/server/awaits", test_awaits);
        g_test_add_func("/server/returns", test_returns);
        g_test_add_func("/server/returns-inside-a-step", test_returns_inside_a_step);
        g_test_add_func("/server/file", test_file);
        g_test_add_func("/server/long-statement", test_long_statement);
        g_test_add_func("/server/gives-way", test_gives_way);
        g_test_add_func("/server/channels-stay", test_channels_stay);
        g_test_add_func("/server/silent-commit", test_silent_commit);
        g_test_add_func("/server/silent-commit-of-transaction", test_silent_commit_of_transaction);
        g_test_add_func("/server/end-in-silent-commit", test_end_in_silent_commit);
        return g_test_run();
}
