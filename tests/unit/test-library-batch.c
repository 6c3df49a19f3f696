/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Batches of the library against a FakeService: the call and its values, failures and unknown outcomes, and that no batch is
 * sent twice if it may have taken effect. Library.
 */
#include <sys/wait.h>

#include "tests/rigs/fake-service.h"

#define DB "db"
#define NUMBER UINT64_C(41)
#define SQL "INSERT INTO t VALUES (?)"

/* How the service answers a batch. */
typedef enum Answer {
        ANSWER_OK,        /* each statement has changed as many rows as its number, from 1 */
        ANSWER_ERROR,     /* as `error_name` says */
        ANSWER_NONE,
        ANSWER_DIE,
        ANSWER_INTERRUPT, /* the program is interrupted, and the batch cancelled */
        ANSWER_INTERRUPT_DONE, /* the program is interrupted too late */
        ANSWER_INTERRUPT_UNKNOWN, /* the program is interrupted, and the service knows no such run */
        ANSWER_REFUSED,   /* the first one is refused as never begun, the others as ANSWER_OK */
        ANSWER_FEW,       /* one number too few */
        ANSWER_OTHER_TYPE,
        ANSWER_EXTREMES,  /* numbers that have no sum */
} Answer;

static Answer answer;
static const char *error_name;
static atomic_int n_sent;
static uint64_t named, limit; /* the transaction and the time limit of the last batch, 0: none */
static size_t n_read;         /* statements of the last batch */
static sd_bus_message *last;  /* if a test wants to read it */
static sd_bus_message *pending; /* the call that the program will cancel */

static FakeService f;

/* ---- The service -------------------------------------------------------------------------------------------------- */

static void read_options(sd_bus_message *m) {
        bool details = false;
        const char *key;

        named = limit = 0;
        CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                CHECK(sd_bus_message_read(m, "s", &key) > 0);
                if (strcmp(key, "transaction") == 0)
                        CHECK(sd_bus_message_read(m, "v", "t", &named) > 0);
                else if (strcmp(key, "timeout-usec") == 0)
                        CHECK(sd_bus_message_read(m, "v", "t", &limit) > 0);
                else if (strcmp(key, "x-time-zone") == 0)
                        CHECK(sd_bus_message_skip(m, "v") >= 0);
                else {
                        CHECK_STRING(key, "error-details");
                        CHECK(sd_bus_message_read(m, "v", "b", &(int) { 0 }) > 0);
                        details = true;
                }
                CHECK(sd_bus_message_exit_container(m) >= 0);
        }
        CHECK(details);
}

static void read_batch(sd_bus_message *m) {
        CHECK_STRING(sd_bus_message_get_signature(m, true), "a(sava{sv})a{sv}");
        n_read = 0;
        CHECK(sd_bus_message_enter_container(m, 'a', "(sava{sv})") > 0);
        while (sd_bus_message_skip(m, "(sava{sv})") > 0)
                n_read++;
        CHECK(sd_bus_message_exit_container(m) >= 0);
        read_options(m);
        sd_bus_message_unref(last);
        last = sd_bus_message_ref(m);
        CHECK(sd_bus_message_rewind(last, true) >= 0);
}

static void send_changes(sd_bus_message *m) {
        sd_bus_message *reply = NULL;
        int64_t *changes = calloc(n_read, sizeof *changes);

        CHECK(changes);
        for (size_t i = 0; i < n_read; i++)
                changes[i] = answer == ANSWER_EXTREMES ? INT64_MAX : (int64_t) i + 1;
        CHECK(sd_bus_message_new_method_return(m, &reply) >= 0);
        if (answer == ANSWER_OTHER_TYPE)
                CHECK(sd_bus_message_append(reply, "s", "all of them") >= 0);
        else
                CHECK(sd_bus_message_append_array(reply, 'x', changes,
                                                  (n_read - (answer == ANSWER_FEW)) * sizeof *changes) >= 0);
        CHECK(sd_bus_message_append(reply, "a{sv}", 1, "x-future", "s", "whatever") >= 0);
        CHECK(fake_answered(sd_bus_send(f.bus, reply, NULL)));
        sd_bus_message_unref(reply);
        free(changes);
}

static int fail(sd_bus_message *m, const char *name) {
        char whole[100];

        (void) snprintf(whole, sizeof whole, "org.sqlipc1.Error.%s", name);
        return sd_bus_reply_method_errorf(m, whole, "statement 2 of 3: no");
}

static int on_batch(sd_bus_message *m) {
        n_sent++;
        read_batch(m);
        switch (answer) {
        case ANSWER_ERROR:
                return fail(m, error_name);
        case ANSWER_NONE:
                return 1;
        case ANSWER_DIE:
                f.stop = true;
                return 1;
        case ANSWER_INTERRUPT:
        case ANSWER_INTERRUPT_DONE:
        case ANSWER_INTERRUPT_UNKNOWN:
                pending = sd_bus_message_ref(m);
                CHECK_INT(sqlipc_interrupt(f.connection), 0);
                return 1;
        case ANSWER_REFUSED:
                if (n_sent == 1)
                        return fail(m, "ShuttingDown");
                break;
        case ANSWER_OK:
        case ANSWER_FEW:
        case ANSWER_OTHER_TYPE:
        case ANSWER_EXTREMES:
                break;
        }
        send_changes(m);
        return 1;
}

static int on_cancel(sd_bus_message *m) {
        uint64_t number, cookie;
        const char *key;
        uint32_t serial;

        CHECK(sd_bus_message_read(m, "ta{sv}", &number, 1, &key, "u", &serial) > 0);
        CHECK_INT(number, 0);
        CHECK_STRING(key, "call");
        CHECK(sd_bus_message_get_cookie(pending, &cookie) >= 0);
        CHECK_INT(serial, cookie);
        if (answer == ANSWER_INTERRUPT_UNKNOWN)
                return fail(m, "UnknownRun");
        if (answer == ANSWER_INTERRUPT_DONE)
                send_changes(pending);
        else
                CHECK(fail(pending, "Cancelled") >= 0);
        return 0;
}

static int on_call(FakeService *service, sd_bus_message *m, const char *member) {
        (void) service;
        if (strcmp(member, "Cancel") == 0 && pending)
                return on_cancel(m);
        if (strcmp(member, "ExecuteBatch") == 0)
                return on_batch(m);
        if (strcmp(member, "Begin") == 0)
                return sd_bus_reply_method_return(m, "ta{sv}", NUMBER, 0);
        return 0;
}

/* ---- The program -------------------------------------------------------------------------------------------------- */

static void start_with(bool descriptors) {
        answer = ANSWER_OK;
        n_sent = 0;
        named = limit = 0;
        fake_start_with(&f, descriptors);
        f.on_call = on_call;
}

static void stop(void) {
        fake_done(&f);
        last = sd_bus_message_unref(last);
        pending = sd_bus_message_unref(pending);
}

/* A batch of `n` statements. */
static sqlipc_batch *make(size_t n) {
        sqlipc_batch *b;

        CHECK_INT(sqlipc_batch_new(f.connection, DB, &b), 0);
        for (size_t i = 0; i < n; i++)
                CHECK_INT(sqlipc_batch_add(b, SQL, "i", (int64_t) i), 0);
        return b;
}

static void check_code(sqlipc_error code) {
        CHECK_INT(sqlipc_error_code(f.connection), code);
        CHECK(sqlipc_error_message(f.connection)[0]);
}

/* ---- What is sent ------------------------------------------------------------------------------------------------- */

static void check_values(void) {
        const char *sql, *text, *key;
        const void *bytes;
        int64_t integer;
        double real;
        size_t size;

        CHECK(sd_bus_message_enter_container(last, 'a', "(sava{sv})") > 0);
        CHECK(sd_bus_message_read(last, "(sava{sv})", &sql, 0, 0) > 0);
        CHECK_STRING(sql, "DELETE FROM t");
        CHECK(sd_bus_message_enter_container(last, 'r', "sava{sv}") > 0);
        CHECK(sd_bus_message_read(last, "s", &sql) > 0);
        CHECK_STRING(sql, "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)");
        CHECK(sd_bus_message_enter_container(last, 'a', "v") > 0);
        CHECK(sd_bus_message_read(last, "vvv", "x", &integer, "d", &real, "s", &text) > 0);
        CHECK_INT(integer, -5);
        CHECK(real == 0.5);
        CHECK_STRING(text, "text");
        CHECK(sd_bus_message_read(last, "v", "a{sv}", 0) > 0); /* NULL */
        CHECK(sd_bus_message_enter_container(last, 'v', "a{sv}") > 0);
        CHECK(sd_bus_message_enter_container(last, 'a', "{sv}") > 0);
        CHECK(sd_bus_message_enter_container(last, 'e', "sv") > 0);
        CHECK(sd_bus_message_read(last, "s", &key) > 0);
        CHECK_STRING(key, "text");
        CHECK(sd_bus_message_enter_container(last, 'v', "ay") > 0);
        CHECK(sd_bus_message_read_array(last, 'y', &bytes, &size) > 0);
        CHECK_INT(size, 3);
        CHECK(memcmp(bytes, "a\0\xff", 3) == 0);
        for (int i = 0; i < 4; i++)
                CHECK(sd_bus_message_exit_container(last) >= 0);
        CHECK(sd_bus_message_enter_container(last, 'v', "ay") > 0);
        CHECK(sd_bus_message_read_array(last, 'y', &bytes, &size) > 0);
        CHECK_INT(size, 2);
        CHECK(memcmp(bytes, "b\0", 2) == 0);
        CHECK(sd_bus_message_exit_container(last) >= 0);
        CHECK(sd_bus_message_exit_container(last) >= 0);
        CHECK(sd_bus_message_read(last, "a{sv}", 0) > 0);
        CHECK(sd_bus_message_exit_container(last) >= 0);
        CHECK(sd_bus_message_read(last, "(sava{sv})", &sql, 1, "x", &integer, 1, &key, "s", &text) > 0);
        CHECK_STRING(sql, "UPDATE t SET a = ?, b = :b");
        CHECK_INT(integer, 42);
        CHECK_STRING(key, ":b");
        CHECK_STRING(text, "named");
}

/* Each kind of value, also those that D-Bus has no type for. The program's memory is not needed later. */
static void test_values(void) {
        char sql[] = "UPDATE t SET a = ?, b = :b", text[] = "named";
        const sqlipc_parameter parameters[] = {
                { .struct_size = sizeof parameters[0], .name = ":b", .type = SQLIPC_TEXT, .bytes = text, .size = 5 },
                { .struct_size = sizeof parameters[0], .type = SQLIPC_INTEGER, .integer = 42 },
        };
        int64_t changes = -1;
        sqlipc_batch *b;

        start_with(true);
        b = make(0);
        CHECK_INT(sqlipc_batch_add(b, "DELETE FROM t", NULL), 0);
        CHECK_INT(sqlipc_batch_add(b, "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", "idsntb", (int64_t) -5, 0.5, "text",
                                   "a\0\xff", (size_t) 3, "b", (size_t) 2), 0);
        CHECK_INT(sqlipc_batch_add_with(b, sql, parameters, 2), 0);
        memset(sql, 'x', sizeof sql);
        memset(text, 'x', sizeof text);
        CHECK_INT(n_sent, 0);
        CHECK_INT(sqlipc_batch_run(b, &changes), 0);
        CHECK_INT(changes, 6);
        check_values();
        sqlipc_batch_close(b);
        stop();
}

/* A batch is empty after it has run, and keeps what its statements have changed until it runs again. */
static void test_changes(void) {
        int64_t changes = -1;
        sqlipc_batch *b;

        start_with(true);
        b = make(3);
        CHECK_INT(sqlipc_batch_changes(b, 0), 0);
        CHECK_INT(sqlipc_batch_run(b, &changes), 0);
        CHECK_INT(changes, 6);
        for (size_t i = 0; i < 3; i++)
                CHECK_INT(sqlipc_batch_changes(b, i), i + 1);
        CHECK_INT(sqlipc_batch_changes(b, 3), 0);
        CHECK_INT(sqlipc_batch_changes(NULL, 0), 0);
        CHECK_INT(sqlipc_batch_run(b, &changes), -EINVAL);
        check_code(SQLIPC_ERROR_EMPTY_STATEMENT);
        CHECK_INT(sqlipc_batch_changes(b, 2), 3);
        CHECK_INT(sqlipc_batch_add(b, SQL, "n"), 0);
        CHECK_INT(sqlipc_batch_run(b, NULL), 0);
        CHECK_INT(n_read, 1);
        CHECK_INT(sqlipc_batch_changes(b, 0), 1);
        CHECK_INT(sqlipc_batch_changes(b, 1), 0);
        sqlipc_batch_close(b);
        stop();
        CHECK_INT(n_sent, 2);
}

/* It waits even if other functions do not, and needs neither descriptors nor a channel. */
static void test_each_transport(void) {
        int64_t changes = -1;
        sqlipc_batch *b;

        for (int i = 0; i < 2; i++) {
                start_with(i == 0);
                CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
                CHECK_INT(sqlipc_set_run_timeout(f.connection, 5000), 0);
                if (i == 0)
                        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_CHANNEL), 0);
                b = make(2);
                CHECK_INT(sqlipc_batch_run(b, &changes), 0);
                CHECK_INT(changes, 3);
                CHECK_INT(limit, 5000);
                sqlipc_batch_close(b);
                stop();
        }
}

static void test_transaction(void) {
        sqlipc_transaction *t;
        sqlipc_batch *b;

        for (int blocking = 0; blocking < 2; blocking++) { /* without blocking, it waits until the transaction has begun */
                start_with(true);
                CHECK_INT(sqlipc_set_blocking(f.connection, blocking), 0);
                CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), 0);
                b = make(2);
                CHECK_INT(sqlipc_batch_run(b, NULL), 0);
                CHECK_INT(named, NUMBER);
                sqlipc_transaction_close(t);
                CHECK_INT(sqlipc_batch_add(b, SQL, "n"), 0);
                CHECK_INT(sqlipc_batch_run(b, NULL), 0);
                CHECK_INT(named, 0);
                sqlipc_batch_close(b);
                stop();
        }
}

/* ---- Limits and arguments ----------------------------------------------------------------------------------------- */

static void test_most_statements(void) {
        int64_t changes;
        sqlipc_batch *b;

        start_with(true);
        b = make(4096);
        CHECK_INT(sqlipc_batch_add(b, SQL, "n"), -EDQUOT);
        check_code(SQLIPC_ERROR_LIMITS_EXCEEDED);
        CHECK_INT(sqlipc_batch_run(b, &changes), 0);
        CHECK_INT(n_read, 4096);
        CHECK_INT(changes, 4096 * 4097 / 2);
        sqlipc_batch_close(b);
        stop();
}

static void test_most_bytes(void) {
        const size_t size = 1024 * 1024 - 5; /* the most for one statement: one value needs five bytes */
        char *bytes = calloc(1, size + 1);
        sqlipc_batch *b;

        CHECK(bytes);
        start_with(true);
        b = make(0);
        CHECK_INT(sqlipc_batch_add(b, SQL, "b", bytes, size + 1), -EDQUOT);
        check_code(SQLIPC_ERROR_LIMITS_EXCEEDED);
        for (int i = 0; i < 3; i++)
                CHECK_INT(sqlipc_batch_add(b, SQL, "b", bytes, size), 0);
        CHECK_INT(sqlipc_batch_add(b, SQL, "b", bytes, size), -EDQUOT);
        check_code(SQLIPC_ERROR_LIMITS_EXCEEDED);
        memset(bytes, ' ', size);
        CHECK_INT(sqlipc_batch_add(b, bytes, NULL), -EDQUOT);
        CHECK_INT(sqlipc_batch_add(b, SQL, "b", bytes, size - 1000), 0);
        CHECK_INT(sqlipc_batch_run(b, NULL), 0);
        CHECK_INT(n_read, 4);
        CHECK_INT(sqlipc_batch_add(b, SQL, "b", bytes, size), 0); /* there is room again */
        sqlipc_batch_close(b);
        stop();
        free(bytes);
}

static void test_arguments(void) {
        const sqlipc_parameter wrong = { .struct_size = 3, .type = SQLIPC_NULL };
        sqlipc_batch *b;

        start_with(true);
        CHECK_INT(sqlipc_batch_new(NULL, DB, &b), -EINVAL);
        CHECK_INT(sqlipc_batch_new(f.connection, NULL, &b), -EINVAL);
        CHECK_INT(sqlipc_batch_new(f.connection, DB, NULL), -EINVAL);
        CHECK_INT(sqlipc_batch_add(NULL, SQL, NULL), -EINVAL);
        CHECK_INT(sqlipc_batch_add_with(NULL, SQL, NULL, 0), -EINVAL);
        CHECK_INT(sqlipc_batch_run(NULL, NULL), -EINVAL);
        CHECK(!sqlipc_batch_close(NULL));
        b = make(1);
        CHECK_INT(sqlipc_batch_add(b, NULL, NULL), -EINVAL);
        CHECK_INT(sqlipc_batch_add(b, SQL, "z"), -EINVAL);
        check_code(SQLIPC_ERROR_NONE);
        CHECK_INT(sqlipc_batch_add(b, "SELECT '\xff'", NULL), -EINVAL);
        check_code(SQLIPC_ERROR_SQL);
        CHECK_INT(sqlipc_error_sql_offset(f.connection), 8);
        CHECK_INT(sqlipc_batch_add_with(b, NULL, NULL, 0), -EINVAL);
        CHECK_INT(sqlipc_batch_add_with(b, SQL, NULL, 1), -EINVAL);
        CHECK_INT(sqlipc_batch_add_with(b, SQL, &wrong, 1), -EINVAL);
        CHECK_INT(sqlipc_batch_run(b, NULL), 0);
        CHECK_INT(n_read, 1);
        sqlipc_batch_close(b);
        stop();
}

/* The batch keeps the connection; a closed connection takes no statements. */
static void test_closed_connection(void) {
        sqlipc_batch *b, *other;

        start_with(true);
        b = make(1);
        f.connection = sqlipc_connection_unref(f.connection);
        CHECK_INT(sqlipc_batch_run(b, NULL), 0);
        f.connection = NULL;
        sqlipc_batch_close(b);
        stop();

        start_with(true);
        b = make(1);
        sqlipc_connection_ref(f.connection);
        sqlipc_close(f.connection);
        CHECK_INT(sqlipc_batch_add(b, SQL, "n"), -ENOTCONN);
        CHECK_INT(sqlipc_batch_run(b, NULL), -ENOTCONN);
        CHECK_INT(sqlipc_batch_new(f.connection, DB, &other), -ENOTCONN);
        sqlipc_batch_close(b);
        stop();
        CHECK_INT(n_sent, 0);
}

/* ---- Failures ----------------------------------------------------------------------------------------------------- */

/* Runs a batch that fails, in a transaction or not. It is sent once, and keeps its statements. */
static void check_failure(bool in_transaction, Answer how, uint64_t timeout_usec, int r, sqlipc_error code) {
        sqlipc_transaction *t = NULL;
        int64_t changes = -5;
        sqlipc_batch *b;

        start_with(true);
        answer = how;
        if (in_transaction)
                CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), 0);
        CHECK_INT(sqlipc_set_timeout(f.connection, timeout_usec), 0);
        b = make(3);
        CHECK_INT(sqlipc_batch_run(b, &changes), r);
        check_code(code);
        CHECK_INT(changes, -5);
        fake_wait_for(&n_sent, 1);
        if (in_transaction) /* without an answer, it is rolled back with the batch */
                CHECK_INT(sqlipc_transaction_is_open(t), how == ANSWER_ERROR || how == ANSWER_INTERRUPT ? 1 : -ENOTCONN);
        if (how != ANSWER_DIE && !in_transaction) {
                CHECK_INT(sqlipc_set_timeout(f.connection, UINT64_MAX), 0);
                answer = ANSWER_OK;
                CHECK_INT(sqlipc_batch_run(b, &changes), 0);
                CHECK_INT(changes, 6);
        }
        sqlipc_batch_close(b);
        sqlipc_transaction_close(t);
        stop();
}

static void test_errors(void) {
        error_name = "Sql";
        check_failure(false, ANSWER_ERROR, UINT64_MAX, -EINVAL, SQLIPC_ERROR_SQL);
        check_failure(true, ANSWER_ERROR, UINT64_MAX, -EINVAL, SQLIPC_ERROR_SQL);
        error_name = "WorkerLost";
        check_failure(false, ANSWER_ERROR, UINT64_MAX, -ECONNRESET, SQLIPC_ERROR_WORKER_LOST);
        error_name = "OutcomeUnknown";
        check_failure(false, ANSWER_ERROR, UINT64_MAX, -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
}

static void test_message_names_the_statement(void) {
        sqlipc_batch *b;

        start_with(true);
        answer = ANSWER_ERROR;
        error_name = "Sql";
        b = make(3);
        CHECK_INT(sqlipc_batch_run(b, NULL), -EINVAL);
        CHECK_STRING(sqlipc_error_message(f.connection), "statement 2 of 3: no");
        sqlipc_batch_close(b);
        stop();
}

/* The service took the batch, and was lost: with it, an open transaction. */
static void test_lost(void) {
        check_failure(false, ANSWER_DIE, UINT64_MAX, -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
        check_failure(true, ANSWER_DIE, UINT64_MAX, -ENOTCONN, SQLIPC_ERROR_TRANSACTION_ENDED);
}

static void test_no_answer(void) {
        check_failure(false, ANSWER_NONE, 50000, -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
        check_failure(true, ANSWER_NONE, 50000, -ETIMEDOUT, SQLIPC_ERROR_NONE); /* nothing of it is committed */
        check_failure(true, ANSWER_INTERRUPT, UINT64_MAX, -ECANCELED, SQLIPC_ERROR_CANCELLED);
        check_failure(false, ANSWER_INTERRUPT, UINT64_MAX, -ECANCELED, SQLIPC_ERROR_CANCELLED);
        check_failure(false, ANSWER_INTERRUPT_UNKNOWN, UINT64_MAX, -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
        check_failure(true, ANSWER_INTERRUPT_UNKNOWN, UINT64_MAX, -ECANCELED, SQLIPC_ERROR_CANCELLED);
}

static void test_wrong_answers(void) {
        check_failure(false, ANSWER_FEW, UINT64_MAX, -EBADMSG, SQLIPC_ERROR_NONE);
        check_failure(false, ANSWER_OTHER_TYPE, UINT64_MAX, -EBADMSG, SQLIPC_ERROR_NONE);
}

static void test_extremes(void) {
        int64_t changes;
        sqlipc_batch *b;

        start_with(true);
        answer = ANSWER_EXTREMES;
        b = make(3);
        CHECK_INT(sqlipc_batch_run(b, &changes), 0);
        CHECK_INT(sqlipc_batch_changes(b, 2), INT64_MAX);
        sqlipc_batch_close(b);
        stop();
}

/* The transaction ended before: the batch does not run on its own. */
static void test_ended_transaction(void) {
        sqlipc_transaction *t;
        sqlipc_batch *b;

        start_with(true);
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), 0);
        answer = ANSWER_ERROR;
        error_name = "TransactionEnded";
        b = make(2);
        for (int i = 0; i < 2; i++) {
                CHECK_INT(sqlipc_batch_run(b, NULL), -ENOTCONN);
                check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        }
        CHECK_INT(n_sent, 1);
        sqlipc_batch_close(b);
        sqlipc_transaction_close(t);
        stop();
}

/* A batch that was refused before it began is sent again. */
static void test_refused(void) {
        sqlipc_batch *b;

        start_with(true);
        answer = ANSWER_REFUSED;
        b = make(2);
        CHECK_INT(sqlipc_batch_run(b, NULL), 0);
        CHECK_INT(n_sent, 2);
        sqlipc_batch_close(b);
        stop();
}

static int run_in_handler(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        sqlipc_batch *b = userdata;

        (void) m;
        (void) error;
        CHECK_INT(sqlipc_batch_run(b, NULL), -EBUSY);
        CHECK_INT(sqlipc_batch_add(b, SQL, "n"), -EBUSY);
        return 0;
}

static int signal_first(FakeService *service, sd_bus_message *m, const char *member) {
        CHECK(sd_bus_emit_signal(service->bus, "/", "org.example", "News", "") >= 0);
        return on_call(service, m, member);
}

/* A handler of the bus cannot wait, so nothing is sent from there. */
static void test_in_handler(void) {
        sd_bus_slot *slot;
        sqlipc_batch *b;

        start_with(true);
        b = make(1);
        f.on_call = signal_first;
        CHECK(sd_bus_add_filter(f.client_bus, &slot, run_in_handler, b) >= 0);
        CHECK_INT(sqlipc_batch_run(b, NULL), 0);
        sd_bus_slot_unref(slot);
        CHECK_INT(n_sent, 1);
        sqlipc_batch_close(b);
        stop();
}

/* A child may only close what it has inherited. */
static void test_fork(void) {
        sqlipc_batch *b;
        int status;
        pid_t pid;

        start_with(true);
        b = make(1);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                bool ok = sqlipc_batch_run(b, NULL) == -ECHILD && sqlipc_batch_add(b, SQL, "n") == -ECHILD;

                sqlipc_batch_close(b);
                sqlipc_close(f.connection);
                _exit(ok ? 0 : 1);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK_INT(status, 0);
        CHECK_INT(n_sent, 0);
        CHECK_INT(sqlipc_batch_run(b, NULL), 0);
        sqlipc_batch_close(b);
        stop();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_values),
                TEST(test_changes),
                TEST(test_each_transport),
                TEST(test_transaction),
                TEST(test_most_statements),
                TEST(test_most_bytes),
                TEST(test_arguments),
                TEST(test_closed_connection),
                TEST(test_errors),
                TEST(test_message_names_the_statement),
                TEST(test_lost),
                TEST(test_no_answer),
                TEST(test_wrong_answers),
                TEST(test_extremes),
                TEST(test_ended_transaction),
                TEST(test_refused),
                TEST(test_in_handler),
                TEST(test_fork),
        };

        signal(SIGPIPE, SIG_IGN); /* of the service, whose client leaves */
        return test_main(tests, N_ELEMENTS(tests));
}
