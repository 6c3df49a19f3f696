/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Transactions of the library against a FakeService: which runs belong to one, what is never sent again, and every end.
 * Library.
 */
#include <sys/wait.h>

#include "tests/rigs/fake-service.h"

#define DB "db"
#define NUMBER UINT64_C(41)
#define SQL "UPDATE t SET a = 1"

/* How the service answers Begin, Commit and Rollback. */
typedef enum Answer {
        ANSWER_OK,
        ANSWER_ERROR,
        ANSWER_FAILURE,
        ANSWER_NONE,
        ANSWER_DIE,
        ANSWER_LATE,
        ANSWER_INTERRUPT,
} Answer;

typedef struct Script {
        Answer answer;
        const char *error; /* ANSWER_ERROR, and ANSWER_FAILURE with details: name without prefix */
} Script;

static Script on_begin, on_commit, on_rollback;
static atomic_bool held;  /* ANSWER_LATE, ANSWER_INTERRUPT: not yet */
static bool asks_user_allowed; /* by the last Begin */
static bool asks_user;    /* a statement is ReadOnly until Begin was answered */
static Script on_run; /* of Query, Fetch and OpenRows; ANSWER_OK: the usual answer */
static atomic_int n_begin, n_commit, n_rollback, n_channels, n_rows;
static uint64_t begin_cookie; /* of the last Begin */
static uint64_t named;    /* the transaction of the last run, 0: none */
static char mode[16];
static uint64_t lock_wait_usec; /* of the last Begin; UINT64_MAX: none */
static bool keeps_none;          /* Prepare is refused, and Begin is answered after that */
static bool refuses_limit;       /* Begin does not know the option about locks */
static sd_bus_message *held_begin;
static FakeService f;

/* ---- The service -------------------------------------------------------------------------------------------------- */

/* `details`: the error is that of the transaction, not a refusal of the call. */
static int fail(sd_bus_message *m, const char *error, bool details) {
        sd_bus_message *reply = NULL;
        char name[100];

        (void) snprintf(name, sizeof name, "org.sqlipc1.Error.%s", error);
        CHECK(sd_bus_message_new_method_error(m, &reply, &SD_BUS_ERROR_MAKE_CONST(name, "It failed.")) >= 0);
        CHECK(!details || sd_bus_message_append(reply, "ii", 0, -1) >= 0);
        CHECK(fake_answered(sd_bus_send(NULL, reply, NULL)));
        sd_bus_message_unref(reply);
        return 1;
}

/* 1: answered, or not to be; 0: the usual answer follows. */
static int follow(const Script *script, sd_bus_message *m) {
        switch (script->answer) {
        case ANSWER_OK:
                return 0;
        case ANSWER_ERROR:
        case ANSWER_FAILURE:
                return fail(m, script->error, script->answer == ANSWER_FAILURE);
        case ANSWER_NONE:
                return 1;
        case ANSWER_DIE:
                f.stop = true;
                return 1;
        case ANSWER_INTERRUPT: /* before the answer comes */
                CHECK_INT(sqlipc_interrupt(f.connection), 0);
                while (held)
                        usleep(1000);
                return 0;
        case ANSWER_LATE:
                usleep(50000);
                while (held)
                        usleep(1000);
                return 0;
        }
        return 0;
}

/* Reads an option, which may be absent. */
static uint64_t read_number(sd_bus_message *m, const char *name, uint64_t absent) {
        uint64_t number = absent;
        const char *key;

        CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                CHECK(sd_bus_message_read(m, "s", &key) > 0);
                if (strcmp(key, name) == 0)
                        CHECK(sd_bus_message_read(m, "v", "t", &number) > 0);
                else
                        CHECK(sd_bus_message_skip(m, "v") > 0);
                CHECK(sd_bus_message_exit_container(m) >= 0);
        }
        CHECK(sd_bus_message_rewind(m, true) >= 0);
        return number;
}

/* Reads the options at the end of a run's call. */
static uint64_t read_transaction(sd_bus_message *m, const char *before) {
        CHECK(sd_bus_message_rewind(m, true) >= 0);
        CHECK(sd_bus_message_skip(m, before) > 0);
        return read_number(m, "transaction", 0);
}

static int on_begin_call(sd_bus_message *m) {
        const char *key, *value;
        int r;

        CHECK(sd_bus_message_get_cookie(m, &begin_cookie) >= 0);
        n_begin++;
        CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        CHECK(sd_bus_message_read(m, "{sv}", &key, "s", &value) > 0);
        CHECK_STRING(key, "mode");
        (void) snprintf(mode, sizeof mode, "%s", value);
        CHECK(sd_bus_message_rewind(m, true) >= 0);
        lock_wait_usec = read_number(m, "lock-wait-usec", UINT64_MAX);
        asks_user_allowed = sd_bus_message_get_allow_interactive_authorization(m) > 0;
        if (refuses_limit && lock_wait_usec != UINT64_MAX)
                return fail(m, "UnknownOption", false);
        if (keeps_none && !held_begin) {
                held_begin = sd_bus_message_ref(m);
                return 1;
        }
        r = follow(&on_begin, m);
        if (r == 0 && asks_user)
                on_run = (Script) { ANSWER_OK, NULL };
        if (r == 0)
                CHECK(fake_answered(sd_bus_reply_method_return(m, "ta{sv}", NUMBER, 0)));
        return 1;
}

static int refuse_prepare(sd_bus_message *m) {
        int r = fail(m, "LimitsExceeded", false);

        if (held_begin) {
                CHECK(sd_bus_message_rewind(held_begin, true) >= 0);
                CHECK_INT(on_begin_call(held_begin), 1);
                held_begin = sd_bus_message_unref(held_begin);
        }
        return r;
}

static int on_end_call(sd_bus_message *m, atomic_int *n, const Script *script) {
        uint64_t number;

        CHECK(sd_bus_message_read(m, "t", &number) > 0);
        CHECK_INT(number, NUMBER);
        (*n)++;
        if (sd_bus_message_get_expect_reply(m) && follow(script, m) == 0)
                CHECK(fake_answered(sd_bus_reply_method_return(m, "a{sv}", 1, "usec", "t", UINT64_C(5))));
        return 1;
}

static int on_rows(sd_bus_message *m) {
        n_rows++;
        named = read_transaction(m, "sava{sv}");
        CHECK(sd_bus_reply_method_return(m, "ta(ssa{sv})a{sv}", (uint64_t) FAKE_RUN, 0, 1, "readonly", "b", 0) >= 0);
        return 1;
}

static int on_call(FakeService *service, sd_bus_message *m, const char *member) {
        (void) service;
        if (strcmp(member, "Begin") == 0)
                return on_begin_call(m);
        if (strcmp(member, "Commit") == 0)
                return on_end_call(m, &n_commit, &on_commit);
        if (strcmp(member, "Rollback") == 0)
                return on_end_call(m, &n_rollback, &on_rollback);
        if (strcmp(member, "Prepare") == 0 && keeps_none)
                return refuse_prepare(m);
        if (strcmp(member, "OpenChannel") == 0) {
                n_channels++;
                return fail(m, "LimitsExceeded", false);
        }
        if (strcmp(member, "OpenRows") == 0)
                return on_rows(m);
        if (strcmp(member, "NextRows") == 0)
                return sd_bus_reply_method_return(m, "aavba{sv}", 0, 0, 2, "columns", "a(ssa{sv})", 0, "rows", "t",
                                                  UINT64_C(0));
        if (strcmp(member, "Query") != 0 && strcmp(member, "Fetch") != 0)
                return 0;
        named = read_transaction(m, strcmp(member, "Query") == 0 ? "sava{sv}" : "tava{sv}");
        return follow(&on_run, m);
}

/* ---- The program -------------------------------------------------------------------------------------------------- */

static void start(void) {
        on_begin = on_commit = on_rollback = on_run = (Script) { ANSWER_OK, NULL };
        n_begin = n_commit = n_rollback = n_channels = n_rows = 0;
        named = 0;
        asks_user = keeps_none = refuses_limit = false;
        fake_start(&f);
        f.writes = true;
        f.on_call = on_call;
        fake_set_result(&f, 1, 1);
}

static sqlipc_transaction *begin(sqlipc_transaction_mode how) {
        sqlipc_transaction *t;

        CHECK_INT(sqlipc_begin(f.connection, DB, how, &t), 0);
        return t;
}

static int exec(void) {
        return sqlipc_exec(f.connection, DB, SQL, NULL);
}

/* Waits for news, as the loop of a program. */
static void turn(void) {
        struct pollfd fd = { .fd = sqlipc_get_fd(f.connection), .events = POLLIN };

        CHECK(poll(&fd, 1, 120000) > 0);
        CHECK(sqlipc_process(f.connection) >= 0);
}

static void check_code(sqlipc_error code) {
        CHECK_INT(sqlipc_error_code(f.connection), code);
        CHECK(sqlipc_error_message(f.connection)[0]);
}

/* ---- What belongs to a transaction -------------------------------------------------------------------------------- */

static void test_lock_wait(void) {
        static const uint64_t waits[] = { 0, 50000, UINT64_MAX };
        sqlipc_transaction *t;

        start();
        for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
                CHECK_INT(sqlipc_set_lock_wait(f.connection, waits[i]), 0);
                t = begin(i % 2 ? SQLIPC_TRANSACTION_WRITE : SQLIPC_TRANSACTION_DEFERRED);
                CHECK(lock_wait_usec == waits[i]);
                sqlipc_transaction_close(t);
        }
        CHECK_INT(sqlipc_set_lock_wait(NULL, 0), -EINVAL);
        on_begin = (Script) { ANSWER_ERROR, "Busy" };
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), -EBUSY);
        check_code(SQLIPC_ERROR_BUSY);
        fake_done(&f);
}

static void test_commit(void) {
        sqlipc_transaction *t;

        start();
        t = begin(SQLIPC_TRANSACTION_WRITE);
        CHECK_STRING(mode, "write");
        CHECK_INT(sqlipc_transaction_is_open(t), 1);
        CHECK_INT(exec(), 0);
        CHECK_INT(named, NUMBER);
        CHECK_INT(sqlipc_exec(f.connection, "another", SQL, NULL), 0);
        CHECK_INT(named, 0);
        CHECK_INT(sqlipc_commit(t), 0);
        CHECK_INT(exec(), 0);
        CHECK_INT(named, 0);
        CHECK_INT(sqlipc_commit(t), 0); /* repeats its answer */
        CHECK_INT(n_commit, 1);
        CHECK_INT(sqlipc_rollback(t), -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        CHECK_INT(sqlipc_transaction_is_open(t), -ENOTCONN);
        sqlipc_transaction_close(t);
        fake_done(&f);
        CHECK_INT(n_rollback, 0);
}

static void test_rollback(void) {
        sqlipc_transaction *t;

        start();
        t = begin(SQLIPC_TRANSACTION_DEFERRED);
        CHECK_STRING(mode, "deferred");
        sqlipc_transaction_close(t);
        fake_done(&f);
        CHECK_INT(n_rollback, 1);

        start();
        t = begin(SQLIPC_TRANSACTION_READ);
        CHECK_STRING(mode, "read");
        CHECK_INT(sqlipc_rollback(t), 0);
        CHECK_INT(sqlipc_rollback(t), 0);
        CHECK_INT(n_rollback, 1);
        CHECK_INT(sqlipc_commit(t), -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        CHECK_INT(sqlipc_transaction_close(t) == NULL, 1);
        CHECK_INT(sqlipc_transaction_close(NULL) == NULL, 1);
        fake_done(&f);
        CHECK_INT(n_rollback, 1);
        CHECK_INT(n_commit, 0);
}

static void leave_scope(void) {
        __attribute__((cleanup(sqlipc_transaction_closep))) sqlipc_transaction *t = NULL;

        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), 0);
        CHECK_INT(exec(), 0);
}

/* The cleanup helper rolls back, and so does the end of the connection. Runs after it are on their own. */
static void test_close(void) {
        sqlipc_transaction *t;

        start();
        leave_scope();
        CHECK_INT(exec(), 0);
        CHECK_INT(named, 0);
        CHECK_INT(n_rollback, 1);
        t = begin(SQLIPC_TRANSACTION_WRITE);
        sqlipc_connection_ref(f.connection);
        sqlipc_close(f.connection);
        CHECK_INT(sqlipc_commit(t), -ENOTCONN);
        CHECK_INT(sqlipc_rollback(t), -ENOTCONN);
        CHECK_INT(sqlipc_transaction_is_open(t), -ENOTCONN);
        fake_wait_for(&n_rollback, 2);
        sqlipc_transaction_close(t);
        fake_done(&f);
        CHECK_INT(n_commit, 0);
}

/* The transaction keeps the connection, and its cursors the transaction. */
static void test_freed_in_any_order(void) {
        sqlipc_transaction *t;
        sqlipc_cursor *c;

        start();
        fake_set_unfinished(&f, 1, 2);
        t = begin(SQLIPC_TRANSACTION_READ);
        CHECK_INT(sqlipc_query(f.connection, DB, "SELECT c FROM t", &c, NULL), 0);
        CHECK_INT(sqlipc_cursor_next(c), 1);
        CHECK_INT(named, NUMBER);
        sqlipc_transaction_close(t);
        CHECK_INT(sqlipc_cursor_next(c), 1); /* it has arrived */
        f.connection = sqlipc_connection_unref(f.connection);
        sqlipc_cursor_close(c);
        fake_done(&f);
        CHECK_INT(n_rollback, 1);
}

static void test_statement(void) {
        sqlipc_transaction *t;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        start();
        CHECK_INT(sqlipc_prepare(f.connection, DB, SQL, &s), 0);
        t = begin(SQLIPC_TRANSACTION_WRITE);
        for (int i = 0; i < 3; i++) {
                named = 0;
                CHECK_INT(sqlipc_execute(s, &c), 0);
                CHECK_INT(sqlipc_cursor_next(c), 1);
                CHECK_INT(sqlipc_cursor_next(c), 0);
                CHECK_INT(named, NUMBER);
                sqlipc_cursor_close(c);
        }
        CHECK_INT(sqlipc_commit(t), 0);
        CHECK_INT(sqlipc_execute(s, &c), 0);
        CHECK_INT(named, 0);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

/* Executes a statement that the service does not keep, in a transaction that begins later. */
static int execute_not_kept(void) {
        sqlipc_transaction *t;
        sqlipc_statement *s;
        sqlipc_cursor *c;
        int r;

        keeps_none = true;
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        t = begin(SQLIPC_TRANSACTION_WRITE);
        CHECK_INT(sqlipc_prepare(f.connection, DB, SQL, &s), 0);
        CHECK_INT(sqlipc_execute(s, &c), 0);
        while ((r = sqlipc_cursor_next(c)) == -EAGAIN)
                turn();
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        sqlipc_transaction_close(t);
        fake_done(&f);
        return r;
}

/* A statement that the service does not keep waits for its transaction, too, and never runs without it. */
static void test_statement_not_kept(void) {
        start();
        CHECK_INT(execute_not_kept(), 0);
        CHECK_INT(n_rows, 1);
        CHECK_INT(named, NUMBER);

        start();
        on_begin = (Script) { ANSWER_ERROR, "Busy" };
        CHECK_INT(execute_not_kept(), -EBUSY);
        CHECK_INT(n_rows, 0);
}

/* Runs in a transaction never use a channel, whatever the program wants; as rows they name it, too. */
static void test_transports(void) {
        sqlipc_transaction *t;

        start();
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_CHANNEL), 0);
        t = begin(SQLIPC_TRANSACTION_WRITE);
        CHECK_INT(exec(), 0);
        CHECK_INT(named, NUMBER);
        CHECK_INT(n_channels, 0);
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_DBUS), 0);
        CHECK_INT(exec(), 0);
        CHECK_INT(n_rows, 1);
        CHECK_INT(named, NUMBER);
        CHECK_INT(sqlipc_commit(t), 0);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

static void test_arguments(void) {
        sqlipc_transaction *t, *other;

        start();
        CHECK_INT(sqlipc_begin(NULL, DB, SQLIPC_TRANSACTION_READ, &t), -EINVAL);
        CHECK_INT(sqlipc_begin(f.connection, NULL, SQLIPC_TRANSACTION_READ, &t), -EINVAL);
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_READ, NULL), -EINVAL);
        CHECK_INT(sqlipc_begin(f.connection, DB, (sqlipc_transaction_mode) 4, &t), -EINVAL);
        CHECK_INT(sqlipc_commit(NULL), -EINVAL);
        CHECK_INT(sqlipc_rollback(NULL), -EINVAL);
        CHECK_INT(sqlipc_transaction_is_open(NULL), -EINVAL);
        CHECK_INT(sqlipc_transaction_set_ready_callback(NULL, NULL, NULL), -EINVAL);
        CHECK_INT(n_begin, 0);
        t = begin(SQLIPC_TRANSACTION_READ);
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_READ, &other), -EBUSY);
        check_code(SQLIPC_ERROR_NONE);
        CHECK_INT(sqlipc_begin(f.connection, "another", SQLIPC_TRANSACTION_READ, &other), 0);
        sqlipc_transaction_close(other);
        sqlipc_transaction_close(t);
        fake_done(&f);
        CHECK_INT(n_begin, 2);
}

/* ---- Failures ----------------------------------------------------------------------------------------------------- */

static void check_begin(Script script, uint64_t timeout_usec, int r, sqlipc_error code) {
        sqlipc_transaction *t = NULL;

        start();
        on_begin = script;
        CHECK_INT(sqlipc_set_timeout(f.connection, timeout_usec), 0);
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), r);
        check_code(code);
        CHECK(!t);
        fake_done(&f);
        CHECK_INT(n_begin, 1);
}

static void test_begin_fails(void) {
        check_begin((Script) { ANSWER_ERROR, "ReadOnly" }, UINT64_MAX, -EROFS, SQLIPC_ERROR_READ_ONLY);
        check_begin((Script) { ANSWER_DIE, NULL }, UINT64_MAX, -ECONNRESET, SQLIPC_ERROR_DAEMON_LOST);
        check_begin((Script) { ANSWER_NONE, NULL }, 50000, -ETIMEDOUT, SQLIPC_ERROR_NONE);
}

/* A transaction that begins too late is rolled back. */
static void test_late_begin(void) {
        sqlipc_transaction *t;

        start();
        on_begin.answer = ANSWER_LATE;
        held = true;
        CHECK_INT(sqlipc_set_timeout(f.connection, 1000), 0);
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), -ETIMEDOUT);
        held = false;
        CHECK_INT(sqlipc_set_timeout(f.connection, UINT64_MAX), 0);
        CHECK_INT(exec(), 0);
        CHECK_INT(named, 0);
        fake_wait_for(&n_rollback, 1);
        fake_done(&f);
}

/* The program gives Begin up, and reads nothing from the bus: the service is told to end what it may have begun. */
static void test_abandoned_begin(void) {
        sqlipc_transaction *t;

        start();
        CHECK_INT(exec(), 0); /* the connection is made */
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        t = begin(SQLIPC_TRANSACTION_WRITE);
        fake_wait_for(&n_begin, 1);
        sqlipc_transaction_close(t);
        fake_wait_for(&f.n_cancel_call, 1);
        CHECK_INT(f.cancelled, begin_cookie);
        CHECK_INT(n_rollback, 0);
        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        CHECK_INT(exec(), 0); /* it reads the answer, and a service that has refused the Cancel learns it by Rollback */
        fake_wait_for(&n_rollback, 1);

        t = begin(SQLIPC_TRANSACTION_WRITE);
        sqlipc_transaction_close(t);
        fake_wait_for(&n_rollback, 2);
        fake_done(&f);
        CHECK_INT(f.n_cancel_call, 1); /* no call is cancelled whose answer was read */
}

static void test_interrupted_begin(void) {
        sqlipc_transaction *t;

        start();
        on_begin.answer = ANSWER_INTERRUPT;
        held = true;
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), -ECANCELED);
        held = false;
        on_begin.answer = ANSWER_OK;
        CHECK_INT(exec(), 0);
        CHECK_INT(named, 0);
        fake_wait_for(&n_rollback, 1);
        t = begin(SQLIPC_TRANSACTION_WRITE); /* the next one is not affected */
        CHECK_INT(exec(), 0);
        CHECK_INT(named, NUMBER);
        CHECK_INT(sqlipc_commit(t), 0);
        sqlipc_transaction_close(t);
        fake_done(&f);
        CHECK_INT(n_begin, 2);
        CHECK_INT(n_rollback, 1);
}

/* The bus is the program's, and outlives the connection. */
static void check_closed_begin(bool with_connection) {
        sqlipc_transaction *t;

        start();
        on_begin.answer = ANSWER_LATE;
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        t = begin(SQLIPC_TRANSACTION_WRITE);
        CHECK_INT(sqlipc_transaction_is_open(t), 0);
        if (with_connection) {
                sqlipc_connection_ref(f.connection);
                sqlipc_close(f.connection);
                CHECK_INT(sqlipc_transaction_is_open(t), -ENOTCONN);
        } else
                sqlipc_transaction_close(t);
        while (n_rollback == 0) {
                CHECK(sd_bus_process(f.client_bus, NULL) >= 0);
                CHECK(sd_bus_wait(f.client_bus, 1000) >= 0);
        }
        if (with_connection)
                sqlipc_transaction_close(t);
        fake_done(&f);
        CHECK_INT(n_begin, 1);
        CHECK_INT(n_rollback, 1);
}

static void test_closed_begin(void) {
        check_closed_begin(false);
        check_closed_begin(true);
}

static void check_commit(sqlipc_transaction_mode how, Script script, int r, sqlipc_error code) {
        sqlipc_transaction *t;

        start();
        on_commit = script;
        t = begin(how);
        CHECK_INT(sqlipc_commit(t), r);
        check_code(code);
        CHECK_INT(sqlipc_commit(t), r);
        check_code(code);
        sqlipc_transaction_close(t);
        fake_done(&f);
        CHECK_INT(n_commit, 1);
}

/* Only the commit of a transaction that writes can have an unknown outcome. It is never sent again. */
static void test_commit_fails(void) {
        check_commit(SQLIPC_TRANSACTION_WRITE, (Script) { ANSWER_ERROR, "TransactionEnded" }, -ENOTCONN,
                     SQLIPC_ERROR_TRANSACTION_ENDED);
        check_commit(SQLIPC_TRANSACTION_WRITE, (Script) { ANSWER_ERROR, "WorkerLost" }, -ECONNRESET,
                     SQLIPC_ERROR_WORKER_LOST);
        check_commit(SQLIPC_TRANSACTION_WRITE, (Script) { ANSWER_ERROR, "OutcomeUnknown" }, -ECONNABORTED,
                     SQLIPC_ERROR_OUTCOME_UNKNOWN);
        check_commit(SQLIPC_TRANSACTION_WRITE, (Script) { ANSWER_ERROR, "Sql" }, -EINVAL, SQLIPC_ERROR_SQL);
        check_commit(SQLIPC_TRANSACTION_WRITE, (Script) { ANSWER_DIE, NULL }, -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
        check_commit(SQLIPC_TRANSACTION_READ, (Script) { ANSWER_DIE, NULL }, -ENOTCONN, SQLIPC_ERROR_TRANSACTION_ENDED);
}

static int load(void) {
        sqlipc_load *l;

        return sqlipc_load_open(f.connection, DB, SQL, &l);
}

static int batch(void) {
        sqlipc_batch *b;
        int r;

        CHECK_INT(sqlipc_batch_new(f.connection, DB, &b), 0);
        CHECK_INT(sqlipc_batch_add(b, SQL, NULL), 0);
        r = sqlipc_batch_run(b, NULL);
        sqlipc_batch_close(b);
        return r;
}

/* The service is lost during the commit of a deferred transaction, after `run` (NULL: none) and a query that is not read.
 * `writes`: the first of them may write. */
static void check_deferred(bool writes, int (*run)(void), int r) {
        sqlipc_transaction *t;
        sqlipc_cursor *c;

        start();
        f.writes = writes;
        on_commit = (Script) { ANSWER_DIE, NULL };
        t = begin(SQLIPC_TRANSACTION_DEFERRED);
        if (run) {
                (void) run();
                CHECK_INT(named, run == exec ? NUMBER : 0);
                f.writes = false;
        }
        CHECK_INT(sqlipc_query(f.connection, DB, "SELECT c FROM t", &c, NULL), 0);
        CHECK_INT(sqlipc_commit(t), r);
        check_code(r == -ENOTCONN ? SQLIPC_ERROR_TRANSACTION_ENDED : SQLIPC_ERROR_OUTCOME_UNKNOWN);
        sqlipc_cursor_close(c);
        sqlipc_transaction_close(t);
        fake_done(&f);
        CHECK_INT(n_commit, 1);
}

/* A deferred transaction that has only read has changed nothing, even if its commit was lost. */
static void test_deferred_commit_fails(void) {
        check_deferred(false, NULL, -ENOTCONN);
        check_deferred(false, exec, -ENOTCONN);
        check_deferred(true, NULL, -ECONNABORTED);
        check_deferred(true, exec, -ECONNABORTED);
        check_deferred(false, load, -ECONNABORTED);
        check_deferred(false, batch, -ECONNABORTED);
}

/* After an error of Commit that says nothing about the end, closing rolls back all the same. */
static void test_failed_commit_is_rolled_back(void) {
        sqlipc_transaction *t;

        start();
        on_commit = (Script) { ANSWER_ERROR, "OutOfMemory" };
        t = begin(SQLIPC_TRANSACTION_WRITE);
        CHECK_INT(sqlipc_commit(t), -ENOMEM);
        CHECK_INT(sqlipc_rollback(t), -ENOMEM);
        sqlipc_transaction_close(t);
        fake_done(&f);
        CHECK_INT(n_rollback, 1);
}

static void check_rollback_after_commit(const char *error, int committed, int rolled_back) {
        sqlipc_transaction *t;

        start();
        on_commit = (Script) { ANSWER_FAILURE, error };
        t = begin(SQLIPC_TRANSACTION_WRITE);
        CHECK_INT(sqlipc_commit(t), committed);
        CHECK_INT(sqlipc_rollback(t), rolled_back);
        CHECK_INT(sqlipc_commit(t), committed);
        CHECK_INT(n_commit, 1);
        CHECK_INT(n_rollback, 0);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

/* A commit that the service could not carry out has left nothing to roll back. */
static void test_failed_commit_needs_no_rollback(void) {
        check_rollback_after_commit("Busy", -EBUSY, 0);
        check_rollback_after_commit("Sql", -EINVAL, 0);
        check_rollback_after_commit("NoSpace", -ENOSPC, 0);
        check_rollback_after_commit("TimedOut", -ETIMEDOUT, 0);
        check_rollback_after_commit("OutcomeUnknown", -ECONNABORTED, -ECONNABORTED);
}

static void check_rollback(Script script, int r) {
        sqlipc_transaction *t;

        start();
        on_rollback = script;
        t = begin(SQLIPC_TRANSACTION_WRITE);
        CHECK_INT(sqlipc_rollback(t), r);
        CHECK_INT(sqlipc_rollback(t), r);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

/* A rollback has succeeded if nothing can have been written. */
static void test_rollback_fails(void) {
        check_rollback((Script) { ANSWER_ERROR, "TransactionEnded" }, 0);
        check_rollback((Script) { ANSWER_ERROR, "WorkerLost" }, 0);
        check_rollback((Script) { ANSWER_DIE, NULL }, 0);
        check_rollback((Script) { ANSWER_ERROR, "OutOfMemory" }, -ENOMEM);
}

/* No run takes the place of one in a transaction that ended: until the program has learned the end, runs fail. */
static void test_ended_by_service(void) {
        sqlipc_transaction *t, *other;

        start();
        t = begin(SQLIPC_TRANSACTION_WRITE);
        on_run = (Script) { ANSWER_ERROR, "TransactionEnded" };
        CHECK_INT(exec(), -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        on_run = (Script) { ANSWER_OK, NULL };
        CHECK_INT(f.n_query, 1);
        CHECK_INT(sqlipc_transaction_is_open(t), -ENOTCONN);
        CHECK_INT(exec(), -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        CHECK_INT(f.n_query, 1);
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_READ, &other), -EBUSY);
        CHECK_INT(sqlipc_commit(t), -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        CHECK_INT(sqlipc_rollback(t), 0);
        CHECK_INT(n_commit + n_rollback, 0);
        CHECK_INT(exec(), 0);
        CHECK_INT(named, 0);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

/* The failure of a run in a transaction; nothing is sent twice, and nothing has an unknown outcome. */
static void check_run(Script script, int r, sqlipc_error code, int open) {
        sqlipc_transaction *t;

        start();
        t = begin(SQLIPC_TRANSACTION_WRITE);
        on_run = script;
        CHECK_INT(exec(), r);
        check_code(code);
        CHECK_INT(f.n_query, 1);
        CHECK_INT(sqlipc_transaction_is_open(t), open);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

static void test_runs_fail(void) {
        check_run((Script) { ANSWER_ERROR, "Sql" }, -EINVAL, SQLIPC_ERROR_SQL, 1);
        check_run((Script) { ANSWER_ERROR, "WorkerLost" }, -ECONNRESET, SQLIPC_ERROR_WORKER_LOST, 1);
        check_run((Script) { ANSWER_DIE, NULL }, -ENOTCONN, SQLIPC_ERROR_TRANSACTION_ENDED, -ENOTCONN);
}

static void start_asking(bool allowed) {
        start();
        asks_user = true;
        on_run = (Script) { ANSWER_ERROR, "ReadOnly" };
        CHECK_INT(sqlipc_set_allow_interactive_authorization(f.connection, allowed), 0);
}

/* Query never has the user asked if a statement may write, because it may only read. */
static void test_user_is_asked(void) {
        sqlipc_transaction *t;
        sqlipc_cursor *c;

        start_asking(true);
        CHECK_INT(exec(), 0);
        CHECK(asks_user_allowed);
        CHECK_INT(named, 0);
        CHECK_INT(f.n_query, 2);
        fake_done(&f);
        CHECK_INT(n_begin, 1);
        CHECK_INT(n_rollback, 1);

        start_asking(true);
        CHECK_INT(sqlipc_query(f.connection, DB, SQL " RETURNING a", &c, NULL), 0);
        CHECK_INT(sqlipc_cursor_next(c), 1);
        sqlipc_cursor_close(c);
        fake_done(&f);
        CHECK_INT(n_begin, 1);

        start_asking(true); /* a service that knows no limit for locks */
        refuses_limit = true;
        CHECK_INT(sqlipc_set_lock_wait(f.connection, 1000), 0);
        CHECK_INT(exec(), 0);
        CHECK_INT(n_begin, 2);
        CHECK_INT(f.n_query, 2);
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), -EINVAL);
        check_code(SQLIPC_ERROR_UNKNOWN_OPTION);
        CHECK(lock_wait_usec == 1000);
        fake_done(&f);
        CHECK_INT(n_rollback, 1);

        start_asking(false);
        CHECK_INT(exec(), -EROFS);
        fake_done(&f);
        CHECK_INT(n_begin, 0);

        start_asking(true); /* in a transaction it is about something else */
        t = begin(SQLIPC_TRANSACTION_READ);
        on_run = (Script) { ANSWER_ERROR, "ReadOnly" };
        CHECK_INT(exec(), -EROFS);
        CHECK_INT(n_begin, 1);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

/* The error is that of the user's answer, if there is one. */
static void check_not_asked(const char *error, int r, sqlipc_error code) {
        start_asking(true);
        on_begin = (Script) { ANSWER_ERROR, error };
        CHECK_INT(exec(), r);
        check_code(code);
        CHECK_INT(f.n_query, 1);
        fake_done(&f);
        CHECK_INT(n_begin, 1);
}

static void test_user_refuses(void) {
        check_not_asked("AccessDenied", -EACCES, SQLIPC_ERROR_ACCESS_DENIED);
        check_not_asked("ReadOnly", -EROFS, SQLIPC_ERROR_READ_ONLY);
        check_not_asked("LimitsExceeded", -EDQUOT, SQLIPC_ERROR_LIMITS_EXCEEDED);
}

/* A statement got no answer, and the program was told that it has changed nothing: no commit makes that wrong. */
static void check_rolled_back(sqlipc_transaction *t) {
        CHECK(strstr(sqlipc_error_message(f.connection), "The transaction is rolled back."));
        CHECK_INT(sqlipc_transaction_is_open(t), -ENOTCONN);
        CHECK_INT(exec(), -ENOTCONN); /* not on its own either */
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        CHECK_INT(sqlipc_commit(t), -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        fake_wait_for(&n_rollback, 1);
        CHECK_INT(sqlipc_rollback(t), 0);
        sqlipc_transaction_close(t);
        fake_done(&f);
        CHECK_INT(n_commit, 0);
}

static void test_no_answer(void) {
        sqlipc_transaction *t;

        start();
        t = begin(SQLIPC_TRANSACTION_WRITE);
        on_run.answer = ANSWER_NONE;
        CHECK_INT(sqlipc_set_timeout(f.connection, 50000), 0);
        CHECK_INT(exec(), -ETIMEDOUT);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_NONE);
        CHECK_INT(sqlipc_set_timeout(f.connection, UINT64_MAX), 0);
        check_rolled_back(t);
}

/* A statement that only reads does not end the transaction. */
static void test_read_without_answer(void) {
        sqlipc_transaction *t;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        start();
        f.writes = false;
        CHECK_INT(sqlipc_prepare(f.connection, DB, "SELECT c FROM t", &s), 0);
        t = begin(SQLIPC_TRANSACTION_WRITE);
        on_run.answer = ANSWER_NONE;
        CHECK_INT(sqlipc_set_timeout(f.connection, 50000), 0);
        CHECK_INT(sqlipc_execute(s, &c), -ETIMEDOUT);
        CHECK(!strstr(sqlipc_error_message(f.connection), "transaction"));
        CHECK_INT(sqlipc_transaction_is_open(t), 1);
        sqlipc_finalize(s);
        sqlipc_transaction_close(t);
        fake_done(&f);

        start(); /* nothing is known of the statement, but the transaction only reads */
        t = begin(SQLIPC_TRANSACTION_READ);
        on_run.answer = ANSWER_NONE;
        CHECK_INT(sqlipc_set_timeout(f.connection, 50000), 0);
        CHECK_INT(exec(), -ETIMEDOUT);
        CHECK_INT(sqlipc_transaction_is_open(t), 1);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

static void test_cancelled_without_answer(void) {
        sqlipc_transaction *t;
        sqlipc_cursor *c;
        int r;

        start();
        t = begin(SQLIPC_TRANSACTION_WRITE);
        on_run.answer = ANSWER_NONE;
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        CHECK_INT(sqlipc_query(f.connection, DB, SQL, &c, NULL), 0);
        CHECK_INT(sqlipc_cursor_cancel(c), 0);
        while ((r = sqlipc_cursor_next(c)) == -EAGAIN)
                turn();
        CHECK_INT(r, -ECANCELED);
        check_code(SQLIPC_ERROR_CANCELLED);
        sqlipc_cursor_close(c);
        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        check_rolled_back(t);
}

/* The commit of the transaction was sent after the statement, so nothing can be taken back. */
static void check_committed_meanwhile(Script commit, bool cancel) {
        sqlipc_transaction *t;
        sqlipc_cursor *c;
        int r;

        start();
        t = begin(SQLIPC_TRANSACTION_WRITE);
        on_run.answer = ANSWER_NONE;
        on_commit = commit;
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        CHECK_INT(sqlipc_query(f.connection, DB, SQL, &c, NULL), 0);
        CHECK_INT(sqlipc_commit(t), -EAGAIN);
        fake_wait_for(&n_commit, 1);
        if (cancel)
                CHECK_INT(sqlipc_cursor_cancel(c), 0);
        while ((r = sqlipc_cursor_next(c)) == -EAGAIN)
                turn();
        CHECK_INT(r, -ECONNABORTED);
        check_code(SQLIPC_ERROR_OUTCOME_UNKNOWN);
        sqlipc_cursor_close(c);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

static void test_committed_without_answer(void) {
        check_committed_meanwhile((Script) { ANSWER_NONE, NULL }, true);
        check_committed_meanwhile((Script) { ANSWER_OK, NULL }, true);
        check_committed_meanwhile((Script) { ANSWER_DIE, NULL }, false);
}

/* The worker dies while the rows of a statement are read. */
static void test_broken_stream(void) {
        sqlipc_transaction *t;
        sqlipc_cursor *c;

        start();
        fake_set_unfinished(&f, 1, 1);
        f.close_pipe = true;
        t = begin(SQLIPC_TRANSACTION_WRITE);
        CHECK_INT(sqlipc_query(f.connection, DB, SQL " RETURNING a", &c, NULL), 0);
        CHECK_INT(sqlipc_cursor_next(c), 1);
        CHECK_INT(sqlipc_cursor_next(c), -ECONNRESET);
        CHECK_INT(sqlipc_cursor_error_code(c), SQLIPC_ERROR_WORKER_LOST);
        sqlipc_cursor_close(c);
        check_rolled_back(t);
}

/* A prepared statement that the service has forgotten is compiled again; one whose worker is lost does not run again. */
static void test_statement_fails(void) {
        sqlipc_transaction *t;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        start();
        f.writes = false; /* such a statement would be repeated outside */
        CHECK_INT(sqlipc_prepare(f.connection, DB, "SELECT c FROM t", &s), 0);
        t = begin(SQLIPC_TRANSACTION_READ);
        on_run = (Script) { ANSWER_ERROR, "UnknownStatement" };
        CHECK_INT(sqlipc_execute(s, &c), -ESTALE);
        CHECK_INT(f.n_fetch, 3);
        CHECK_INT(f.n_prepare, 3);
        on_run = (Script) { ANSWER_ERROR, "WorkerLost" };
        CHECK_INT(sqlipc_execute(s, &c), -ECONNRESET);
        CHECK_INT(f.n_fetch, 4);
        sqlipc_finalize(s);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

/* The service is lost while nothing is under way. */
static void test_bus_lost(void) {
        sqlipc_transaction *t;

        start();
        t = begin(SQLIPC_TRANSACTION_WRITE);
        fake_stop_service(&f);
        CHECK_INT(exec(), -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        CHECK_INT(sqlipc_commit(t), -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        CHECK_INT(sqlipc_rollback(t), 0);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

/* The same, if the program finds out when it commits: nothing was sent, so nothing can have been written. */
static void test_bus_lost_before_commit(void) {
        sqlipc_transaction *t;

        start();
        t = begin(SQLIPC_TRANSACTION_WRITE);
        fake_stop_service(&f);
        CHECK_INT(sqlipc_commit(t), -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        CHECK_INT(sqlipc_commit(t), -ENOTCONN);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

/* ---- Waiting ------------------------------------------------------------------------------------------------------ */

/* The outcome is unknown as long as the answer has not come; another call waits for it. */
static void test_commit_timeout(void) {
        sqlipc_transaction *t;

        start();
        on_commit.answer = ANSWER_LATE;
        t = begin(SQLIPC_TRANSACTION_WRITE);
        held = true;
        CHECK_INT(sqlipc_set_timeout(f.connection, 1000), 0);
        CHECK_INT(sqlipc_commit(t), -ECONNABORTED);
        check_code(SQLIPC_ERROR_OUTCOME_UNKNOWN);
        CHECK_INT(sqlipc_rollback(t), -EBUSY);
        CHECK_INT(sqlipc_set_timeout(f.connection, UINT64_MAX), 0);
        CHECK_INT(exec(), -ENOTCONN); /* neither in the transaction nor on its own */
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        held = false;
        CHECK_INT(sqlipc_commit(t), 0);
        CHECK_INT(n_commit, 1);
        CHECK_INT(exec(), 0);
        sqlipc_transaction_close(t);

        t = begin(SQLIPC_TRANSACTION_READ);
        held = true;
        CHECK_INT(sqlipc_set_timeout(f.connection, 1000), 0);
        CHECK_INT(sqlipc_commit(t), -ETIMEDOUT);
        check_code(SQLIPC_ERROR_NONE);
        sqlipc_transaction_close(t); /* while the commit goes on */
        held = false;
        fake_done(&f);
        CHECK_INT(n_rollback, 0);
}

static void test_interrupted(void) {
        FakeInterrupter interrupter;
        sqlipc_transaction *t;

        start();
        on_begin.answer = ANSWER_NONE;
        fake_interrupt_begin(&interrupter, &f, NULL, 0);
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), -ECANCELED);
        check_code(SQLIPC_ERROR_CANCELLED);
        fake_interrupt_end(&interrupter);

        on_begin.answer = ANSWER_OK;
        on_commit.answer = ANSWER_NONE;
        t = begin(SQLIPC_TRANSACTION_WRITE);
        CHECK_INT(sqlipc_interrupt(f.connection), 0); /* nothing is under way */
        CHECK_INT(sqlipc_transaction_is_open(t), 1);
        fake_interrupt_begin(&interrupter, &f, &n_commit, 1);
        CHECK_INT(sqlipc_commit(t), -ECONNABORTED);
        check_code(SQLIPC_ERROR_OUTCOME_UNKNOWN);
        fake_interrupt_end(&interrupter);
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        for (unsigned i = 0; i < 2; i++) {
                CHECK_INT(sqlipc_commit(t), -EAGAIN);
                CHECK_INT(sqlipc_interrupt(f.connection), 0);
                turn();
                CHECK_INT(sqlipc_commit(t), -ECONNABORTED);
                check_code(SQLIPC_ERROR_OUTCOME_UNKNOWN);
        }
        CHECK_INT(sqlipc_interrupt(f.connection), 0); /* before the program begins to wait for the commit that it sent */
        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        CHECK_INT(sqlipc_set_timeout(f.connection, UINT64_MAX), 0);
        CHECK_INT(sqlipc_commit(t), -ECONNABORTED);
        check_code(SQLIPC_ERROR_OUTCOME_UNKNOWN);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

static int n_called;

static void on_ready(sqlipc_transaction *t, void *userdata) {
        CHECK(t && userdata == &n_called);
        n_called++;
}

static void test_without_blocking(void) {
        sqlipc_transaction *t;
        sqlipc_cursor *c;
        int r;

        start();
        n_called = 0;
        on_begin.answer = on_commit.answer = ANSWER_LATE;
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        t = begin(SQLIPC_TRANSACTION_WRITE);
        CHECK_INT(sqlipc_transaction_set_ready_callback(t, on_ready, &n_called), 0);
        CHECK_INT(sqlipc_transaction_is_open(t), 0);
        CHECK_INT(sqlipc_query(f.connection, DB, SQL, &c, NULL), 0); /* waits for the transaction */
        CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
        CHECK_INT(sqlipc_commit(t), -EAGAIN);
        while ((r = sqlipc_transaction_is_open(t)) == 0)
                turn();
        CHECK_INT(r, 1);
        CHECK(n_called > 0);
        n_called = 0;
        while ((r = sqlipc_cursor_next(c)) != 0) {
                CHECK(r > 0 || r == -EAGAIN);
                if (r < 0)
                        turn();
        }
        CHECK_INT(named, NUMBER);
        sqlipc_cursor_close(c);
        while ((r = sqlipc_commit(t)) == -EAGAIN)
                turn();
        CHECK_INT(r, 0);
        CHECK_INT(n_commit, 1);
        CHECK(n_called > 0);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

/* A transaction that cannot begin fails the runs that wait for it. */
/* Sends Commit, which is refused, and reads the answer. The program does not know it yet. */
static sqlipc_transaction *commit_in_vain(void) {
        sqlipc_transaction *t;

        start();
        t = begin(SQLIPC_TRANSACTION_WRITE);
        n_called = 0;
        on_commit = (Script) { ANSWER_FAILURE, "CommitRefused" };
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        CHECK_INT(sqlipc_transaction_set_ready_callback(t, on_ready, &n_called), 0);
        CHECK_INT(sqlipc_commit(t), -EAGAIN);
        while (n_called == 0)
                turn();
        CHECK_INT(sqlipc_transaction_is_open(t), -ENOTCONN);
        return t;
}

/* A refused commit leaves the transaction open, once the program knows it. Until then statements fail. */
static void test_refused(void) {
        sqlipc_transaction *t = commit_in_vain();
        sqlipc_cursor *c;

        CHECK_INT(sqlipc_query(f.connection, DB, SQL, &c, NULL), 0);
        CHECK_INT(sqlipc_cursor_next(c), -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        sqlipc_cursor_close(c);
        CHECK_INT(sqlipc_commit(t), -EINVAL);
        check_code(SQLIPC_ERROR_COMMIT_REFUSED);
        CHECK_INT(sqlipc_transaction_is_open(t), 1);
        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        CHECK_INT(exec(), 0);
        CHECK_INT(named, NUMBER);
        on_commit = (Script) { ANSWER_OK, NULL };
        CHECK_INT(sqlipc_commit(t), 0);
        sqlipc_transaction_close(t);
        fake_done(&f);
        CHECK_INT(n_commit, 2);
        CHECK_INT(n_rollback, 0);

        t = commit_in_vain();
        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        CHECK_INT(sqlipc_rollback(t), 0);
        sqlipc_transaction_close(t);
        fake_done(&f);
        CHECK_INT(n_rollback, 1);
}

/* The program learns that the transaction is over, not that it is still open. */
static void test_refused_and_lost(void) {
        for (int commits = 0; commits < 2; commits++) {
                sqlipc_transaction *t = commit_in_vain();

                fake_stop_service(&f);
                for (int i = 0; i < 3; i++)
                        (void) sqlipc_process(f.connection);
                if (commits) {
                        CHECK_INT(sqlipc_commit(t), -ENOTCONN);
                        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
                } else
                        CHECK_INT(sqlipc_rollback(t), 0);
                sqlipc_transaction_close(t);
                fake_done(&f);
        }
}

/* The service gets a Rollback, so that a refused commit leaves no transaction open, if its transaction or connection is
 * closed before the program knows the answer, or before there is one. */
static void test_refused_and_closed(void) {
        sqlipc_transaction *t = commit_in_vain();

        sqlipc_transaction_close(t);
        fake_wait_for(&n_rollback, 1);
        fake_done(&f);

        for (unsigned i = 0; i < 2; i++) {
                start();
                t = begin(SQLIPC_TRANSACTION_WRITE);
                on_commit = (Script) { ANSWER_NONE, NULL };
                CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
                CHECK_INT(sqlipc_commit(t), -EAGAIN);
                if (i == 0) {
                        sqlipc_connection_ref(f.connection);
                        sqlipc_close(f.connection);
                }
                sqlipc_transaction_close(t);
                fake_wait_for(&n_rollback, 1);
                fake_done(&f);
                CHECK_INT(n_commit, 1);
        }
}

static void test_without_blocking_fails(void) {
        sqlipc_transaction *t;
        sqlipc_cursor *c;
        int r;

        start();
        on_begin = (Script) { ANSWER_ERROR, "LimitsExceeded" };
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        t = begin(SQLIPC_TRANSACTION_WRITE);
        CHECK_INT(sqlipc_query(f.connection, DB, SQL, &c, NULL), 0);
        while ((r = sqlipc_transaction_is_open(t)) == 0)
                turn();
        CHECK_INT(r, -EDQUOT);
        CHECK_INT(sqlipc_cursor_next(c), -EDQUOT);
        check_code(SQLIPC_ERROR_LIMITS_EXCEEDED);
        CHECK_INT(sqlipc_commit(t), -EDQUOT);
        CHECK_INT(f.n_query, 0);
        sqlipc_cursor_close(c);
        sqlipc_transaction_close(t);

        t = begin(SQLIPC_TRANSACTION_WRITE); /* is closed before it has begun */
        CHECK_INT(sqlipc_query(f.connection, DB, SQL, &c, NULL), 0);
        sqlipc_transaction_close(t);
        while ((r = sqlipc_cursor_next(c)) == -EAGAIN)
                turn();
        CHECK_INT(r, -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        sqlipc_cursor_close(c);
        fake_done(&f);
}

static int call_in_handler(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        sqlipc_transaction *other;

        (void) m;
        (void) error;
        CHECK_INT(sqlipc_commit(userdata), -EBUSY);
        CHECK_INT(sqlipc_begin(f.connection, "another", SQLIPC_TRANSACTION_READ, &other), -EBUSY);
        n_called++;
        return 0;
}

static int signal_first(FakeService *service, sd_bus_message *m, const char *member) {
        CHECK(fake_answered(sd_bus_emit_signal(service->bus, "/", "org.example", "News", "")));
        return on_call(service, m, member);
}

/* A handler of the bus cannot wait, so nothing is sent from there. */
static void test_in_handler(void) {
        sqlipc_transaction *t;
        sd_bus_slot *slot;

        start();
        n_called = 0;
        t = begin(SQLIPC_TRANSACTION_WRITE);
        CHECK(sd_bus_add_filter(f.client_bus, &slot, call_in_handler, t) >= 0);
        f.on_call = signal_first;
        CHECK_INT(exec(), 0);
        sd_bus_slot_unref(slot);
        CHECK(n_called > 0);
        CHECK_INT(n_commit, 0);
        CHECK_INT(n_begin, 1);
        CHECK_INT(sqlipc_commit(t), 0);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

/* A child may only close what it has inherited, and this does not reach the service. */
static void test_fork(void) {
        sqlipc_transaction *t, *other;
        int status;
        pid_t pid;

        start();
        t = begin(SQLIPC_TRANSACTION_WRITE);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                bool ok = sqlipc_commit(t) == -ECHILD && sqlipc_rollback(t) == -ECHILD &&
                          sqlipc_transaction_is_open(t) == -ECHILD &&
                          sqlipc_begin(f.connection, "another", SQLIPC_TRANSACTION_READ, &other) == -ECHILD;

                sqlipc_transaction_close(t);
                sqlipc_close(f.connection);
                _exit(ok ? 0 : 1);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK_INT(status, 0);
        CHECK_INT(exec(), 0);
        CHECK_INT(named, NUMBER);
        CHECK_INT(n_rollback, 0);
        CHECK_INT(sqlipc_commit(t), 0);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_lock_wait),
                TEST(test_commit),
                TEST(test_rollback),
                TEST(test_close),
                TEST(test_freed_in_any_order),
                TEST(test_statement),
                TEST(test_statement_not_kept),
                TEST(test_transports),
                TEST(test_arguments),
                TEST(test_begin_fails),
                TEST(test_interrupted_begin),
                TEST(test_closed_begin),
                TEST(test_late_begin),
                TEST(test_abandoned_begin),
                TEST(test_commit_fails),
                TEST(test_deferred_commit_fails),
                TEST(test_failed_commit_is_rolled_back),
                TEST(test_failed_commit_needs_no_rollback),
                TEST(test_rollback_fails),
                TEST(test_ended_by_service),
                TEST(test_runs_fail),
                TEST(test_user_is_asked),
                TEST(test_user_refuses),
                TEST(test_no_answer),
                TEST(test_read_without_answer),
                TEST(test_cancelled_without_answer),
                TEST(test_committed_without_answer),
                TEST(test_broken_stream),
                TEST(test_statement_fails),
                TEST(test_bus_lost),
                TEST(test_bus_lost_before_commit),
                TEST(test_commit_timeout),
                TEST(test_interrupted),
                TEST(test_without_blocking),
                TEST(test_refused),
                 TEST(test_refused_and_lost),
                TEST(test_refused_and_closed),
                TEST(test_without_blocking_fails),
                TEST(test_in_handler),
                TEST(test_fork),
        };

        signal(SIGPIPE, SIG_IGN); /* of the service, whose client leaves */
        return test_main(tests, N_ELEMENTS(tests));
}
