/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads of the library against a FakeService: the pages that arrive, every end, waiting with and without a loop, and a pipe
 * whose other end is hostile. Library.
 */
#include <sys/wait.h>

#include "tests/rigs/fake-load.h"

#define DB "db"
#define SQL "INSERT INTO t VALUES (?, ?)"
#define TRANSACTION UINT64_C(41)

static FakeService f;
static FakeLoad l;
static char blob[4 * 1024 * 1024];

static uint64_t load_cookie; /* of the last Load */

static int on_call(FakeService *service, sd_bus_message *m, const char *member) {
        if (strcmp(member, "Load") == 0)
                CHECK(sd_bus_message_get_cookie(m, &load_cookie) >= 0);
        if (strcmp(member, "Begin") == 0)
                return sd_bus_reply_method_return(m, "ta{sv}", TRANSACTION, 0);
        if (strcmp(member, "Rollback") == 0 && sd_bus_message_get_expect_reply(m) <= 0)
                return 1;
        return fake_load_on_call(&l, service, m, member);
}

static void start_with(unsigned n_parameters) {
        l = (FakeLoad) FAKE_LOAD_INIT(n_parameters);
        fake_start(&f);
        f.on_call = on_call;
}

static void start(void) {
        start_with(2);
}

static void finish(void) {
        fake_done(&f);
        fake_load_close(&l);
}

static sqlipc_load *load_open(void) {
        sqlipc_load *load;

        CHECK_INT(sqlipc_load_open(f.connection, DB, SQL, &load), 0);
        return load;
}

static sqlipc_parameter integer(int64_t value) {
        return (sqlipc_parameter) { .struct_size = sizeof(sqlipc_parameter), .type = SQLIPC_INTEGER, .integer = value };
}

static sqlipc_parameter bytes(sqlipc_type type, const void *value, size_t size) {
        return (sqlipc_parameter) { .struct_size = sizeof(sqlipc_parameter), .type = type, .bytes = value, .size = size };
}

static int add(sqlipc_load *load, int64_t n, size_t size) {
        const sqlipc_parameter values[] = { integer(n), bytes(SQLIPC_BLOB, blob, size) };

        return sqlipc_load_row(load, values, N_ELEMENTS(values));
}

/* Adds rows until one fails, whose error it returns. */
static int add_until_failure(sqlipc_load *load) {
        int r;

        while ((r = add(load, 1, 1000)) == 0)
                ;
        return r;
}

static void check_code(sqlipc_error code) {
        CHECK_INT(sqlipc_error_code(f.connection), code);
        CHECK(sqlipc_error_message(f.connection)[0]);
}

/* Waits for news, as the loop of a program. */
static void turn(void) {
        struct pollfd fd = { .fd = sqlipc_get_fd(f.connection), .events = POLLIN };

        CHECK(poll(&fd, 1, 120000) > 0);
        CHECK(sqlipc_process(f.connection) >= 0);
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static void check_types(const PageDecoder *d, uint64_t n) {
        PageValue text = page_decoder_value(d, 2), bytes_of = page_decoder_value(d, 3);

        CHECK_INT(d->n_columns, 5);
        CHECK_INT(page_decoder_value(d, 0).type, VALUE_INTEGER);
        CHECK_INT((int64_t) load_le64(page_decoder_value(d, 0).bytes), -(int64_t) n);
        CHECK_INT(page_decoder_value(d, 1).type, VALUE_REAL);
        CHECK(load_le_double(page_decoder_value(d, 1).bytes) == (double) n / 2);
        CHECK_INT(text.type, VALUE_TEXT);
        CHECK_INT(text.size, n % 3);
        CHECK(memcmp(text.bytes, "a\0b", text.size) == 0);
        CHECK_INT(bytes_of.type, VALUE_BLOB);
        CHECK_INT(bytes_of.size, n % 2);
        CHECK_INT(page_decoder_value(d, 4).type, VALUE_NULL);
}

static void test_types(void) {
        sqlipc_load *load;
        int64_t changes;

        start_with(5);
        l.on_row = check_types;
        load = load_open();
        for (int64_t n = 0; n < 100000; n++) {
                const sqlipc_parameter values[] = {
                        integer(-n),
                        { .struct_size = sizeof(sqlipc_parameter), .type = SQLIPC_REAL, .real = (double) n / 2 },
                        bytes(SQLIPC_TEXT, n % 3 > 0 ? "a\0b" : NULL, (size_t) n % 3),
                        bytes(SQLIPC_BLOB, n % 2 > 0 ? "x" : NULL, (size_t) n % 2),
                        { .struct_size = sizeof(sqlipc_parameter), .type = SQLIPC_NULL },
                };

                CHECK_INT(sqlipc_load_row(load, values, N_ELEMENTS(values)), 0);
        }
        CHECK_INT(sqlipc_load_finish(load, &changes), 0);
        CHECK_INT(changes, 100000);
        CHECK_INT(l.n_rows, 100000);
        CHECK_INT(l.transaction, 0);
        changes = 0;
        CHECK_INT(sqlipc_load_finish(load, &changes), 0); /* repeats its answer */
        CHECK_INT(changes, 100000);
        CHECK_INT(add(load, 1, 1), -EINVAL);
        check_code(SQLIPC_ERROR_NONE);
        CHECK(!sqlipc_load_close(load));
        finish();
        CHECK_INT(l.n_wait, 1);
        CHECK_INT(f.n_cancel, 0);
}

static size_t sizes[1000];

static void check_size(const PageDecoder *d, uint64_t n) {
        PageValue value = page_decoder_value(d, 1);

        CHECK_INT(load_le64(page_decoder_value(d, 0).bytes), n);
        CHECK_INT(value.size, sizes[n]);
        CHECK(memcmp(value.bytes, blob, value.size) == 0);
}

/* Rows of every size around the end of a page, and rows of many pages. */
static void load_sizes(uint32_t page_size) {
        size_t page = page_size < 65536 ? page_size : 65536;
        sqlipc_load *load;
        int64_t changes;

        start();
        l.page_size = page_size;
        l.on_row = check_size;
        load = load_open();
        for (size_t n = 0; n < N_ELEMENTS(sizes); n++) {
                sizes[n] = n % 100 == 99 ? sizeof blob - n : n % 3 == 0 ? n : page - 100 + n % 150;
                CHECK_INT(add(load, (int64_t) n, sizes[n]), 0);
        }
        CHECK_INT(sqlipc_load_finish(load, &changes), 0);
        CHECK_INT(changes, N_ELEMENTS(sizes));
        sqlipc_load_close(load);
        finish();
}

static void test_sizes(void) {
        for (size_t i = 0; i < sizeof blob; i++)
                blob[i] = (char) (i * 7 + i / 251);
        load_sizes(4096);
        load_sizes(262144);
}

/* COLUMNS alone is larger than a page. */
static void test_many_columns(void) {
        static sqlipc_parameter values[32766];
        sqlipc_load *load;

        start_with(N_ELEMENTS(values));
        for (size_t i = 0; i < N_ELEMENTS(values); i++)
                values[i] = integer((int64_t) i);
        load = load_open();
        for (int i = 0; i < 3; i++)
                CHECK_INT(sqlipc_load_row(load, values, N_ELEMENTS(values)), 0);
        CHECK_INT(sqlipc_load_finish(load, NULL), 0);
        CHECK_INT(l.n_columns, N_ELEMENTS(values));
        CHECK_INT(l.n_rows, 3);
        sqlipc_load_close(load);
        finish();
}

static void test_no_rows(void) {
        sqlipc_load *load;
        int64_t changes = 5;

        start();
        load = load_open();
        CHECK_INT(sqlipc_load_finish(load, &changes), 0);
        CHECK_INT(changes, 0);
        CHECK_INT(l.event, PAGE_END);
        CHECK_INT(l.n_columns, 2);
        sqlipc_load_close(load);
        finish();
}

/* A row that is refused leaves no trace, and the load goes on. */
static void test_bad_rows(void) {
        sqlipc_parameter values[] = { integer(1), integer(2) };
        sqlipc_load *load;
        int64_t changes;

        start();
        load = load_open();
        CHECK_INT(sqlipc_load_row(load, values, 1), -EINVAL);
        check_code(SQLIPC_ERROR_PARAMETER_COUNT);
        CHECK_INT(sqlipc_load_row(load, values, 3), -EINVAL);
        check_code(SQLIPC_ERROR_PARAMETER_COUNT);
        CHECK_INT(sqlipc_load_row(load, NULL, 2), -EINVAL);
        CHECK_INT(sqlipc_load_row(NULL, values, 2), -EINVAL);
        values[1].name = "a";
        CHECK_INT(sqlipc_load_row(load, values, 2), -EINVAL);
        check_code(SQLIPC_ERROR_NONE);
        values[1] = bytes((sqlipc_type) 6, "a", 1);
        CHECK_INT(sqlipc_load_row(load, values, 2), -EINVAL);
        values[1] = bytes(SQLIPC_TEXT, NULL, 1);
        CHECK_INT(sqlipc_load_row(load, values, 2), -EINVAL);
        values[1].struct_size = 1;
        CHECK_INT(sqlipc_load_row(load, values, 2), -EINVAL);
        values[1] = bytes(SQLIPC_BLOB, blob, SQLIPC_ROW_SIZE_MAX);
        CHECK_INT(sqlipc_load_row(load, values, 2), -EMSGSIZE);
        check_code(SQLIPC_ERROR_ROW_TOO_LARGE);
        values[1].size = SIZE_MAX;
        CHECK_INT(sqlipc_load_row(load, values, 2), -EMSGSIZE);
        CHECK_INT(add(load, 1, 1), 0);
        CHECK_INT(sqlipc_load_finish(load, &changes), 0);
        CHECK_INT(changes, 1);
        sqlipc_load_close(load);
        finish();
}

static void test_arguments(void) {
        sqlipc_load *load = NULL;

        start();
        CHECK_INT(sqlipc_load_open(NULL, DB, SQL, &load), -EINVAL);
        CHECK_INT(sqlipc_load_open(f.connection, NULL, SQL, &load), -EINVAL);
        CHECK_INT(sqlipc_load_open(f.connection, DB, NULL, &load), -EINVAL);
        CHECK_INT(sqlipc_load_open(f.connection, DB, SQL, NULL), -EINVAL);
        CHECK_INT(sqlipc_load_open(f.connection, DB, "INSERT \xff", &load), -EINVAL);
        check_code(SQLIPC_ERROR_SQL);
        CHECK_INT(sqlipc_load_finish(NULL, NULL), -EINVAL);
        CHECK_INT(sqlipc_load_set_ready_callback(NULL, NULL, NULL), -EINVAL);
        CHECK(!load && !sqlipc_load_close(NULL));
        CHECK_INT(l.n_load, 0);
        finish();
}

/* ---- Ends --------------------------------------------------------------------------------------------------------- */

static void leave_scope(void) {
        __attribute__((cleanup(sqlipc_load_closep))) sqlipc_load *load = load_open();

        CHECK_INT(add(load, 1, 100000), 0);
}

/* The service sees a pipe that ends before END, and is told, because a child of the program may still have the pipe. */
static void test_close(void) {
        start();
        leave_scope();
        fake_wait_for(&f.n_cancel, 1);
        CHECK_INT(l.event, -ECONNRESET);
        finish();
        CHECK_INT(l.n_wait, 1);
}

static void test_connection_closed(void) {
        sqlipc_load *load;

        start();
        load = load_open();
        CHECK_INT(add(load, 1, 1), 0);
        sqlipc_connection_ref(f.connection);
        sqlipc_close(f.connection);
        CHECK_INT(add(load, 1, 1), -ENOTCONN);
        CHECK_INT(sqlipc_load_finish(load, NULL), -ENOTCONN);
        sqlipc_load_close(load);
        finish();
        CHECK_INT(l.event, -ECONNRESET);
}

/* The load keeps the connection. */
static void test_freed_in_any_order(void) {
        sqlipc_load *load;

        start();
        load = load_open();
        f.connection = sqlipc_connection_unref(f.connection);
        CHECK_INT(add(load, 1, 1), 0);
        CHECK_INT(sqlipc_load_finish(load, NULL), 0);
        sqlipc_load_close(load);
        finish();
}

static void check_open_fails(int r, sqlipc_error code) {
        sqlipc_load *load = NULL;

        CHECK_INT(sqlipc_load_open(f.connection, DB, SQL, &load), r);
        check_code(code);
        CHECK(!load);
        finish();
}

static void test_open_fails(void) {
        start();
        l.load_error = "ReadOnly";
        check_open_fails(-EROFS, SQLIPC_ERROR_READ_ONLY);
        CHECK_INT(l.n_wait, 0);
        start();
        l.load_never = true;
        CHECK_INT(sqlipc_set_timeout(f.connection, 20000), 0);
        check_open_fails(-ETIMEDOUT, SQLIPC_ERROR_NONE);
        start();
        fake_stop_service(&f);
        check_open_fails(-ECONNRESET, SQLIPC_ERROR_DAEMON_LOST);
        l = (FakeLoad) FAKE_LOAD_INIT(2);
        fake_start_with(&f, false);
        check_open_fails(-EOPNOTSUPP, SQLIPC_ERROR_NO_DESCRIPTORS);
        CHECK_INT(l.n_load, 0);
}

/* A service that breaks the rules gets no rows. */
static void test_open_is_invalid(void) {
        start();
        l.gives_read_end = true;
        check_open_fails(-EBADMSG, SQLIPC_ERROR_NONE);
        CHECK_INT(l.n_farewell, 1);
        start();
        l.page_size = 5000;
        check_open_fails(-EBADMSG, SQLIPC_ERROR_NONE);
        start();
        l.page_size = 2048;
        check_open_fails(-EBADMSG, SQLIPC_ERROR_NONE);
        start_with(0);
        check_open_fails(-EBADMSG, SQLIPC_ERROR_NONE);
}

/* A load that begins too late is ended, and its result taken. */
static void test_late_open(void) {
        sqlipc_load *load;

        start();
        load = load_open(); /* the connection is made before the short time begins */
        CHECK_INT(sqlipc_load_finish(load, NULL), 0);
        sqlipc_load_close(load);
        l.load_late = true;
        CHECK_INT(sqlipc_set_timeout(f.connection, 20000), 0);
        CHECK_INT(sqlipc_load_open(f.connection, DB, SQL, &load), -ETIMEDOUT);
        l.load_late = false;
        CHECK_INT(sqlipc_set_timeout(f.connection, UINT64_MAX), 0);
        while (l.n_farewell == 0) {
                usleep(1000);
                CHECK(sqlipc_process(f.connection) >= 0);
        }
        CHECK_INT(l.n_wait, 2);
        finish();
}

/* The program gives Load up, and reads nothing from the bus: the service is told to end what it may have begun. But in a
 * transaction that would end, too. */
static void test_abandoned_open(void) {
        sqlipc_transaction *t;
        sqlipc_load *load;

        start();
        CHECK_INT(sqlipc_load_finish(load = load_open(), NULL), 0); /* the connection is made */
        sqlipc_load_close(load);
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        load = load_open();
        fake_wait_for(&l.n_load, 2);
        CHECK_INT(sqlipc_load_cancel(load), 0);
        fake_wait_for(&f.n_cancel_call, 1);
        CHECK_INT(f.cancelled, load_cookie);
        CHECK_INT(l.n_farewell, 0);
        sqlipc_load_close(load);

        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), 0); /* it reads the answer */
        fake_wait_for(&l.n_farewell, 1);
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        load = load_open();
        sqlipc_load_close(load);
        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        sqlipc_transaction_close(t);
        fake_barrier(&f);
        CHECK_INT(f.n_cancel_call, 1);
        finish();
}

static atomic_int n_signals;

static void on_signal(int number) {
        (void) number;
        n_signals++;
}

/* The service fails in the middle: the reason comes from Wait, without a signal. */
static void test_failed_row(void) {
        struct sigaction action = { .sa_handler = on_signal }, before;
        sqlipc_load *load;

        CHECK(sigaction(SIGPIPE, &action, &before) >= 0);
        start();
        l.wait = FAKE_WAIT_FAILS;
        l.error = "Sql";
        l.n_rows_max = 500;
        load = load_open();
        CHECK_INT(add_until_failure(load), -EINVAL);
        check_code(SQLIPC_ERROR_SQL);
        CHECK_INT(add(load, 1, 1), -EINVAL);
        check_code(SQLIPC_ERROR_SQL);
        CHECK_INT(sqlipc_load_finish(load, NULL), -EINVAL);
        check_code(SQLIPC_ERROR_SQL);
        CHECK_INT(n_signals, 0);
        sqlipc_load_close(load);
        finish();
        CHECK_INT(f.n_cancel, 0);
        CHECK(sigaction(SIGPIPE, &before, NULL) >= 0);
}

/* A SIGPIPE of the program that waits is not lost. */
static void test_pending_signal(void) {
        sigset_t mask, before, pending;
        sqlipc_load *load;

        CHECK(sigemptyset(&mask) >= 0 && sigaddset(&mask, SIGPIPE) >= 0);
        signal(SIGPIPE, SIG_DFL);
        CHECK_INT(pthread_sigmask(SIG_BLOCK, &mask, &before), 0);
        CHECK_INT(raise(SIGPIPE), 0);
        start();
        l.wait = FAKE_WAIT_FAILS;
        l.error = "WorkerLost";
        l.n_rows_max = 1;
        load = load_open();
        CHECK_INT(add_until_failure(load), -ECONNRESET);
        check_code(SQLIPC_ERROR_WORKER_LOST);
        CHECK(sigpending(&pending) >= 0);
        CHECK_INT(sigismember(&pending, SIGPIPE), 1);
        sqlipc_load_close(load);
        finish();
        signal(SIGPIPE, SIG_IGN);
        CHECK_INT(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

/* Before END nothing was written, whatever is lost. */
static void test_lost_before_end(void) {
        sqlipc_load *load;

        start();
        l.wait = FAKE_WAIT_DIES;
        l.n_rows_max = 300;
        load = load_open();
        CHECK_INT(add_until_failure(load), -ECONNRESET);
        check_code(SQLIPC_ERROR_DAEMON_LOST);
        CHECK_INT(sqlipc_load_finish(load, NULL), -ECONNRESET);
        sqlipc_load_close(load);
        finish();
}

/* END waits for room when the service fails. */
static void test_failed_at_end(void) {
        sqlipc_load *load;

        start();
        l.wait = FAKE_WAIT_FAILS;
        l.error = "NoSpace";
        l.n_rows_max = 1;
        l.paused = true;
        load = load_open();
        CHECK_INT(sqlipc_set_timeout(f.connection, 20000), 0);
        CHECK_INT(add(load, 1, sizeof blob), 0);
        CHECK_INT(sqlipc_load_finish(load, NULL), -ETIMEDOUT); /* and no outcome is unknown */
        check_code(SQLIPC_ERROR_NONE);
        CHECK_INT(add(load, 1, 1), -EINVAL);
        l.n_rows_max = 0;
        l.paused = false;
        CHECK_INT(sqlipc_set_timeout(f.connection, UINT64_MAX), 0);
        CHECK_INT(sqlipc_load_finish(load, NULL), -ENOSPC);
        check_code(SQLIPC_ERROR_NO_SPACE);
        sqlipc_load_close(load);
        finish();
}

static void check_finish(FakeWait wait, const char *error, int r, sqlipc_error code) {
        sqlipc_load *load;

        start();
        l.wait = wait;
        l.error = error;
        load = load_open();
        CHECK_INT(add(load, 1, 1), 0);
        CHECK_INT(sqlipc_load_finish(load, NULL), r);
        check_code(code);
        CHECK_INT(sqlipc_load_finish(load, NULL), r);
        check_code(code);
        sqlipc_load_close(load);
        finish();
        CHECK_INT(l.event, PAGE_END);
        CHECK_INT(f.n_cancel, 0);
}

/* After END only the service knows. */
static void test_finish_fails(void) {
        check_finish(FAKE_WAIT_DIES, NULL, -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
        check_finish(FAKE_WAIT_REFUSED, "UnknownRun", -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
        check_finish(FAKE_WAIT_REFUSED, "ShuttingDown", -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
        check_finish(FAKE_WAIT_REFUSED, "OutOfMemory", -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
        check_finish(FAKE_WAIT_REFUSED, "Busy", -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
        check_finish(FAKE_WAIT_FAILS, "OutOfMemory", -ENOMEM, SQLIPC_ERROR_OUT_OF_MEMORY);
        check_finish(FAKE_WAIT_FAILS, "OutcomeUnknown", -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
        check_finish(FAKE_WAIT_FAILS, "WorkerLost", -ECONNRESET, SQLIPC_ERROR_WORKER_LOST);
        check_finish(FAKE_WAIT_FAILS, "Sql", -EINVAL, SQLIPC_ERROR_SQL);
}

/* A result before END cannot be one. */
static void test_early_answer(void) {
        sqlipc_load *load;
        int r;

        start();
        l.n_rows_max = 0;
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        load = load_open();
        while ((r = add(load, 1, 1)) == 0 || r == -EAGAIN)
                turn();
        CHECK_INT(r, -EBADMSG);
        check_code(SQLIPC_ERROR_NONE);
        CHECK_INT(sqlipc_load_finish(load, NULL), -EBADMSG);
        sqlipc_load_close(load);
        finish();
}

/* ---- In a transaction --------------------------------------------------------------------------------------------- */

static void test_in_transaction(void) {
        sqlipc_transaction *t;
        sqlipc_load *load;

        start();
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), 0);
        load = load_open();
        CHECK_INT(l.transaction, TRANSACTION);
        CHECK_INT(add(load, 1, 1), 0);
        CHECK_INT(sqlipc_load_finish(load, NULL), 0);
        sqlipc_load_close(load);
        CHECK_INT(sqlipc_load_open(f.connection, "another", SQL, &load), 0);
        CHECK_INT(l.transaction, 0);
        sqlipc_load_close(load);
        fake_wait_for(&f.n_cancel, 1);
        load = load_open(); /* which is not cancelled: that would end the transaction */
        sqlipc_load_close(load);
        CHECK_INT(sqlipc_commit(t), 0);
        CHECK_INT(f.n_cancel, 1);
        load = load_open();
        CHECK_INT(l.transaction, 0);
        sqlipc_load_close(load);
        sqlipc_transaction_close(t);
        finish();
}

/* Begins a transaction with a load that has one row. */
static sqlipc_load *load_in_transaction(FakeWait wait, const char *error, sqlipc_transaction **ret) {
        sqlipc_load *load;

        start();
        l.wait = wait;
        l.error = error;
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, ret), 0);
        load = load_open();
        CHECK_INT(add(load, 1, 1), 0);
        return load;
}

/* The answer to Wait comes only after the program's time limit. Closes the load, of one row. */
static void check_late_end(sqlipc_load *load) {
        int64_t changes;

        CHECK_INT(sqlipc_set_timeout(f.connection, 1000), 0);
        CHECK_INT(sqlipc_load_finish(load, NULL), -ECONNABORTED);
        check_code(SQLIPC_ERROR_OUTCOME_UNKNOWN);
        l.late = false;
        CHECK_INT(sqlipc_set_timeout(f.connection, UINT64_MAX), 0);
        CHECK_INT(sqlipc_load_finish(load, &changes), 0);
        CHECK_INT(changes, 1);
        sqlipc_load_close(load);
}

/* A load that was sent goes on in the transaction, which may be committed: its outcome is unknown until the answer comes. */
static void test_no_answer_in_transaction(void) {
        FakeInterrupter interrupter;
        sqlipc_transaction *t;
        sqlipc_load *load;

        load = load_in_transaction(FAKE_WAIT_LATE, NULL, &t);
        l.late = true;
        check_late_end(load);
        CHECK_INT(sqlipc_commit(t), 0);
        sqlipc_transaction_close(t);
        finish();

        load = load_in_transaction(FAKE_WAIT_NEVER, NULL, &t);
        fake_interrupt_begin(&interrupter, &f, &l.n_unanswered, 1);
        CHECK_INT(sqlipc_load_finish(load, NULL), -ECONNABORTED);
        check_code(SQLIPC_ERROR_OUTCOME_UNKNOWN);
        fake_interrupt_end(&interrupter);
        sqlipc_load_close(load);
        CHECK_INT(sqlipc_transaction_is_open(t), 1);
        sqlipc_transaction_close(t);
        finish();
}

/* If the answer does not tell how the load ended, none will: the transaction ends, and the error is right. */
static void test_refused_in_transaction(void) {
        sqlipc_transaction *t;
        sqlipc_load *load = load_in_transaction(FAKE_WAIT_REFUSED, "OutOfMemory", &t);

        CHECK_INT(sqlipc_load_finish(load, NULL), -ENOMEM);
        check_code(SQLIPC_ERROR_OUT_OF_MEMORY);
        sqlipc_load_close(load);
        CHECK_INT(sqlipc_commit(t), -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        sqlipc_transaction_close(t);
        finish();

        load = load_in_transaction(FAKE_WAIT_FAILS, "Sql", &t);
        CHECK_INT(sqlipc_load_finish(load, NULL), -EINVAL);
        sqlipc_load_close(load);
        CHECK_INT(sqlipc_commit(t), 0);
        sqlipc_transaction_close(t);
        finish();
}

/* Nothing of a transaction is durable, so nothing is unknown. */
static void test_transaction_lost(void) {
        sqlipc_transaction *t;
        sqlipc_load *load;

        start();
        l.wait = FAKE_WAIT_DIES;
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), 0);
        load = load_open();
        CHECK_INT(add(load, 1, 1), 0);
        CHECK_INT(sqlipc_load_finish(load, NULL), -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        CHECK_INT(sqlipc_transaction_is_open(t), -ENOTCONN);
        sqlipc_load_close(load);
        CHECK_INT(sqlipc_load_open(f.connection, DB, SQL, &load), -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        CHECK_INT(l.n_load, 1);
        sqlipc_transaction_close(t);
        finish();
}

/* ---- Waiting ------------------------------------------------------------------------------------------------------ */

/* The row that met the timeout is not in the load, and may be given again. */
static void test_row_timeout(void) {
        int64_t n = 0, changes;
        sqlipc_load *load;
        int r;

        start();
        l.paused = true;
        load = load_open();
        CHECK_INT(sqlipc_set_timeout(f.connection, 1000), 0);
        while ((r = add(load, n, 1000)) == 0)
                n++;
        CHECK_INT(r, -ETIMEDOUT);
        check_code(SQLIPC_ERROR_NONE);
        CHECK_INT(sqlipc_set_timeout(f.connection, UINT64_MAX), 0);
        l.paused = false;
        CHECK_INT(add(load, n, 1000), 0);
        CHECK_INT(sqlipc_load_finish(load, &changes), 0);
        CHECK_INT(changes, n + 1);
        sqlipc_load_close(load);
        finish();
}

/* The outcome is unknown as long as the answer has not come; another call waits for it. */
static void test_finish_timeout(void) {
        sqlipc_load *load;

        start();
        l.wait = FAKE_WAIT_LATE;
        l.late = true;
        load = load_open();
        CHECK_INT(add(load, 1, 1), 0);
        check_late_end(load);
        finish();
}

static void test_interrupted(void) {
        FakeInterrupter interrupter;
        sqlipc_load *load;

        start();
        l.paused = true;
        load = load_open();
        fake_interrupt_begin(&interrupter, &f, NULL, 0);
        CHECK_INT(add_until_failure(load), -ECANCELED);
        check_code(SQLIPC_ERROR_CANCELLED);
        fake_interrupt_end(&interrupter);
        CHECK_INT(sqlipc_load_finish(load, NULL), -ECANCELED);
        l.paused = false;
        fake_wait_for(&f.n_cancel, 1);
        sqlipc_load_close(load);

        l.wait = FAKE_WAIT_NEVER;
        load = load_open();
        fake_interrupt_begin(&interrupter, &f, &l.n_unanswered, 1);
        CHECK_INT(sqlipc_load_finish(load, NULL), -ECONNABORTED);
        check_code(SQLIPC_ERROR_OUTCOME_UNKNOWN);
        fake_interrupt_end(&interrupter);
        sqlipc_load_close(load); /* while it goes on */
        CHECK_INT(f.n_cancel, 1);

        l.load_never = true;
        fake_interrupt_begin(&interrupter, &f, NULL, 0);
        CHECK_INT(sqlipc_load_open(f.connection, DB, SQL, &load), -ECANCELED);
        fake_interrupt_end(&interrupter);
        finish();
}

/* Without blocking, an interruption after all rows were sent is told once. */
static void test_interrupted_without_blocking(void) {
        sqlipc_load *load;
        int64_t changes;
        int r;

        start();
        l.wait = FAKE_WAIT_LATE;
        l.late = true;
        load = load_open();
        CHECK_INT(add(load, 1, 1), 0);
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        CHECK_INT(sqlipc_load_finish(load, NULL), -EAGAIN);
        CHECK_INT(sqlipc_interrupt(f.connection), 0);
        turn(); /* the program's loop is woken */
        CHECK_INT(sqlipc_load_finish(load, NULL), -ECONNABORTED);
        check_code(SQLIPC_ERROR_OUTCOME_UNKNOWN);
        CHECK_INT(sqlipc_load_finish(load, NULL), -EAGAIN); /* it goes on */
        l.late = false;
        while ((r = sqlipc_load_finish(load, &changes)) == -EAGAIN)
                turn();
        CHECK_INT(r, 0);
        CHECK_INT(changes, 1);
        sqlipc_load_close(load);
        finish();
}

/* Before all rows were sent the load is over at once; after that the service says how it ends. */
static void test_cancelled(void) {
        sqlipc_load *load;
        int64_t changes;

        start();
        l.paused = true;
        load = load_open();
        CHECK_INT(add(load, 1, 1), 0);
        CHECK_INT(sqlipc_load_cancel(load), 0);
        CHECK_INT(sqlipc_load_finish(load, NULL), -ECANCELED);
        check_code(SQLIPC_ERROR_CANCELLED);
        l.paused = false;
        fake_wait_for(&f.n_cancel, 1);
        sqlipc_load_close(load);

        l.wait = FAKE_WAIT_LATE;
        l.late = true;
        load = load_open();
        CHECK_INT(add(load, 1, 1), 0);
        CHECK_INT(sqlipc_set_timeout(f.connection, 1000), 0);
        CHECK_INT(sqlipc_load_finish(load, NULL), -ECONNABORTED);
        CHECK_INT(sqlipc_load_cancel(load), 0);
        l.late = false;
        CHECK_INT(sqlipc_set_timeout(f.connection, UINT64_MAX), 0);
        CHECK_INT(sqlipc_load_finish(load, &changes), 0); /* it was done before */
        CHECK_INT(changes, 1);
        fake_wait_for(&f.n_cancel, 2);
        CHECK_INT(sqlipc_load_cancel(load), 0);
        CHECK_INT(sqlipc_load_finish(load, NULL), 0);
        sqlipc_load_close(load);
        CHECK_INT(sqlipc_load_cancel(NULL), -EINVAL);
        finish();
}

static int n_called;

static void on_ready(sqlipc_load *load, void *userdata) {
        CHECK(load && userdata == &n_called);
        n_called++;
}

/* Of test_without_blocking(): how often the pipe was full, and if the library waits for the end. The service waits for
 * that, or it might read as fast as the rows come. */
static atomic_int n_full;
static atomic_bool waits_for_end;

static void check_size_slowly(const PageDecoder *d, uint64_t n) {
        check_size(d, n);
        while ((n == N_ELEMENTS(sizes) / 2 && n_full < 2) || (n == N_ELEMENTS(sizes) - 1 && !waits_for_end))
                usleep(1000);
}

static void test_without_blocking(void) {
        int64_t n = 0, changes;
        sqlipc_load *load;
        int r;

        start();
        n_called = 0;
        l.on_row = check_size_slowly;
        l.load_late = true;
        l.paused = true;
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        load = load_open();
        CHECK_INT(sqlipc_load_set_ready_callback(load, on_ready, &n_called), 0);
        CHECK_INT(sqlipc_load_finish(load, NULL), -EAGAIN); /* it has not begun */
        CHECK_INT(add(load, n, 1), -EAGAIN);
        l.load_late = false;
        while (n < (int64_t) N_ELEMENTS(sizes)) {
                sizes[n] = n % 10 == 0 ? 70000 : 3000;
                r = add(load, n, sizes[n]);
                CHECK(r == 0 || r == -EAGAIN);
                n += r == 0;
                if (r == 0)
                        continue;
                if (n > 0) {
                        n_full++;
                        l.paused = false;
                }
                turn();
        }
        CHECK(n_called > 2);
        n_called = 0;
        while ((r = sqlipc_load_finish(load, &changes)) == -EAGAIN) {
                waits_for_end = true;
                turn();
        }
        CHECK_INT(r, 0);
        CHECK_INT(changes, N_ELEMENTS(sizes));
        CHECK(n_called > 0);
        sqlipc_load_close(load);
        finish();
}

/* The errors of the beginning come with the rows, and a load waits for its transaction. */
static void test_without_blocking_fails(void) {
        sqlipc_transaction *t;
        sqlipc_load *load;
        int r;

        start();
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), 0);
        load = load_open();
        while ((r = add(load, 1, 1)) == -EAGAIN)
                turn();
        CHECK_INT(r, 0);
        CHECK_INT(l.transaction, TRANSACTION);
        while ((r = sqlipc_load_finish(load, NULL)) == -EAGAIN)
                turn();
        CHECK_INT(r, 0);
        sqlipc_load_close(load);
        l.load_error = "NotAllowed";
        load = load_open();
        while ((r = add(load, 1, 1)) == -EAGAIN)
                turn();
        CHECK_INT(r, -EPERM);
        check_code(SQLIPC_ERROR_NOT_ALLOWED);
        CHECK_INT(sqlipc_load_finish(load, NULL), -EPERM);
        sqlipc_load_close(load);
        sqlipc_transaction_close(t);

        l.load_error = NULL;
        l.wait = FAKE_WAIT_FAILS;
        l.error = "TransactionEnded";
        l.n_rows_max = 10;
        load = load_open();
        while ((r = add(load, 1, 1000)) == 0 || r == -EAGAIN)
                if (r < 0)
                        turn();
        CHECK_INT(r, -ENOTCONN);
        check_code(SQLIPC_ERROR_TRANSACTION_ENDED);
        sqlipc_load_close(load);
        finish();
}

/* ---- A hostile pipe ----------------------------------------------------------------------------------------------- */

/* The service makes the shared pipe blocking, and reads nothing: no call waits. */
static void check_never_waits(bool spliced) {
        sqlipc_load *load;
        int64_t n = 0;
        int r;

        start();
        l.keeps_write_fd = true;
        l.paused = true;
        l.spliced = spliced;
        load = load_open();
        while (l.n_wait == 0)
                usleep(1000);
        if (!spliced)
                CHECK(fcntl(l.write_fd, F_SETFL, O_WRONLY) >= 0);
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        while ((r = add(load, n, 1000)) == 0)
                n++;
        CHECK_INT(r, -EAGAIN);
        CHECK(n > 60);
        close(l.write_fd);
        l.write_fd = -1;
        l.paused = false;
        while ((r = sqlipc_load_finish(load, NULL)) == -EAGAIN)
                turn();
        CHECK_INT(r, 0);
        CHECK_INT(l.n_rows, n);
        sqlipc_load_close(load);
        finish();
}

static void test_never_waits(void) {
        check_never_waits(false);
        check_never_waits(true);
}

/* ---- Handlers and children ---------------------------------------------------------------------------------------- */

static int call_in_handler(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        sqlipc_load *load = userdata, *other;

        (void) m;
        (void) error;
        CHECK_INT(sqlipc_load_finish(load, NULL), -EBUSY);
        CHECK_INT(sqlipc_load_open(f.connection, DB, SQL, &other), -EBUSY);
        CHECK_INT(add(load, 1, 1), 0); /* there is room */
        CHECK_INT(add_until_failure(load), -EBUSY);
        n_called++;
        return 0;
}

static int signal_first(FakeService *service, sd_bus_message *m, const char *member) {
        if (strcmp(member, "Prepare") == 0)
                CHECK(fake_answered(sd_bus_emit_signal(service->bus, "/", "org.example", "News", "")));
        return on_call(service, m, member);
}

/* A handler of the bus cannot wait. */
static void test_in_handler(void) {
        sqlipc_statement *s;
        sqlipc_load *load;
        sd_bus_slot *slot;

        start();
        n_called = 0;
        l.n_rows_max = 0;
        l.wait = FAKE_WAIT_NEVER;
        load = load_open();
        CHECK(sd_bus_match_signal(f.client_bus, &slot, NULL, NULL, NULL, NULL, call_in_handler, load) >= 0);
        f.on_call = signal_first;
        CHECK_INT(sqlipc_prepare(f.connection, DB, "SELECT 1", &s), 0);
        sd_bus_slot_unref(slot);
        CHECK_INT(n_called, 1);
        CHECK_INT(l.n_load, 1);
        sqlipc_finalize(s);
        sqlipc_load_close(load);
        finish();
}

/* A child may only close what it has inherited, and this does not reach the service. */
static void test_fork(void) {
        sqlipc_load *load, *other;
        int64_t changes;
        int status;
        pid_t pid;

        start();
        load = load_open();
        CHECK_INT(add(load, 1, 1), 0);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                bool ok = add(load, 2, 2) == -ECHILD && sqlipc_load_finish(load, NULL) == -ECHILD &&
                          sqlipc_load_open(f.connection, DB, SQL, &other) == -ECHILD;

                sqlipc_load_close(load);
                sqlipc_close(f.connection);
                _exit(ok ? 0 : 1);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK_INT(status, 0);
        CHECK_INT(add(load, 2, 2), 0);
        CHECK_INT(sqlipc_load_finish(load, &changes), 0);
        CHECK_INT(changes, 2);
        CHECK_INT(f.n_cancel, 0);
        sqlipc_load_close(load);
        finish();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_types),
                TEST(test_sizes),
                TEST(test_many_columns),
                TEST(test_no_rows),
                TEST(test_bad_rows),
                TEST(test_arguments),
                TEST(test_close),
                TEST(test_connection_closed),
                TEST(test_freed_in_any_order),
                TEST(test_open_fails),
                TEST(test_open_is_invalid),
                TEST(test_late_open),
                TEST(test_abandoned_open),
                TEST(test_failed_row),
                TEST(test_pending_signal),
                TEST(test_lost_before_end),
                TEST(test_failed_at_end),
                TEST(test_finish_fails),
                TEST(test_early_answer),
                TEST(test_in_transaction),
                TEST(test_no_answer_in_transaction),
                TEST(test_refused_in_transaction),
                TEST(test_transaction_lost),
                TEST(test_row_timeout),
                TEST(test_finish_timeout),
                TEST(test_interrupted),
                TEST(test_interrupted_without_blocking),
                TEST(test_cancelled),
                TEST(test_without_blocking),
                TEST(test_without_blocking_fails),
                TEST(test_never_waits),
                TEST(test_in_handler),
                TEST(test_fork),
        };

        signal(SIGPIPE, SIG_IGN); /* of the service, whose client leaves */
        return test_main(tests, N_ELEMENTS(tests));
}
