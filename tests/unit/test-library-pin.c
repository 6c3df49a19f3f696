/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pins of the library against a FakeService that has at most one: the calls that name it, and those that tell its loss.
 * Library.
 */
#include <dirent.h>

#include "tests/rigs/fake-service.h"

#define DB "db"
#define NUMBER UINT64_C(41) /* of transactions */
#define CREATE "CREATE TEMP TABLE t(a)"
#define READ "SELECT a FROM t"

typedef struct Places {
        uint64_t pin, transaction; /* 0: not named */
} Places;

static FakeService f;
static atomic_ulong pin;          /* the one that the service has; 0: none */
static atomic_int n_pins, n_begins; /* calls: Begin of a pin, and of a transaction */
static Places of_run, of_begin, of_pin; /* of the last calls */
static const char *pin_error;     /* of Begin of a pin; NULL: none */
static const char *lost_error;    /* of a call that names a pin which is gone */
static const char *held_method;   /* its next call is held, */
static atomic_bool held;          /* until this is false */
static atomic_int n_held;         /* those that have come */
static const char *interrupted;   /* this method interrupts the connection before its answer; NULL: none */

/* ---- The service -------------------------------------------------------------------------------------------------- */

static int fail(sd_bus_message *m, const char *name) {
        sd_bus_error error = SD_BUS_ERROR_MAKE_CONST(name, "It failed.");

        CHECK(fake_answered(sd_bus_reply_method_error(m, &error)));
        return 1;
}

/* Reads the options behind the values of `before`. */
static Places read_places(sd_bus_message *m, const char *before) {
        Places places = { 0, 0 };
        const char *key;

        CHECK(sd_bus_message_rewind(m, true) >= 0);
        CHECK(!*before || sd_bus_message_skip(m, before) > 0);
        CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                CHECK(sd_bus_message_read(m, "s", &key) > 0);
                if (strcmp(key, "pin") == 0)
                        CHECK(sd_bus_message_read(m, "v", "t", &places.pin) > 0);
                else if (strcmp(key, "transaction") == 0)
                        CHECK(sd_bus_message_read(m, "v", "t", &places.transaction) > 0);
                else
                        CHECK(sd_bus_message_skip(m, "v") > 0);
                CHECK(sd_bus_message_exit_container(m) >= 0);
        }
        return places;
}

static int on_begin_call(sd_bus_message *m, bool is_pin) {
        const Places places = read_places(m, "");

        if (is_pin) {
                of_pin = places;
                n_pins++;
        } else {
                of_begin = places;
                n_begins++;
        }
        if (is_pin && pin_error)
                return fail(m, pin_error);
        if (places.pin && places.pin != pin)
                return fail(m, lost_error);
        if (is_pin)
                pin = 100 + (unsigned long) n_pins;
        CHECK(fake_answered(sd_bus_reply_method_return(m, "ta{sv}", is_pin ? (uint64_t) pin : NUMBER, 0)));
        return 1;
}

/* Of a statement: NeedsPin, or PinLost, or the usual answer. */
static int on_statement(sd_bus_message *m, const char *sql, const char *before) {
        const bool needs_pin = strncmp(sql, CREATE, strlen(CREATE)) == 0;

        of_run = read_places(m, before);
        if (of_run.pin && of_run.pin != pin)
                return fail(m, lost_error);
        return needs_pin && (!pin || !(of_run.pin || of_run.transaction)) ? fail(m, "org.sqlipc1.Error.NeedsPin") : 0;
}

static bool is_begin_of_pin(sd_bus_message *m) {
        const char *key, *value;

        CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        CHECK(sd_bus_message_read(m, "{sv}", &key, "s", &value) > 0);
        return strcmp(value, "pin") == 0;
}

static int on_call(FakeService *service, sd_bus_message *m, const char *member) {
        bool begins = strcmp(member, "Begin") == 0, is_pin = begins && is_begin_of_pin(m);
        const char *method = is_pin ? "Pin" : member, *sql = NULL;

        (void) service;
        if (interrupted && strcmp(method, interrupted) == 0)
                CHECK_INT(sqlipc_interrupt(f.connection), 0);
        n_held += held_method && strcmp(method, held_method) == 0;
        while (held && held_method && strcmp(method, held_method) == 0)
                usleep(1000);
        if (begins)
                return on_begin_call(m, is_pin);
        if (strcmp(member, "OpenChannel") == 0)
                return fail(m, "org.sqlipc1.Error.LimitsExceeded");
        if (strcmp(member, "ExecuteBatch") == 0) {
                of_run = read_places(m, "a(sava{sv})");
                if (!of_run.pin && !of_run.transaction)
                        return fail(m, "org.sqlipc1.Error.NeedsPin");
                CHECK(sd_bus_reply_method_return(m, "axa{sv}", 1, INT64_C(0), 0) >= 0);
                return 1;
        }
        if (strcmp(member, "Fetch") == 0)
                return on_statement(m, "", "tava{sv}");
        if (strcmp(member, "Prepare") != 0 && strcmp(member, "Query") != 0)
                return 0;
        CHECK(sd_bus_message_rewind(m, true) >= 0);
        CHECK(sd_bus_message_read(m, "s", &sql) > 0);
        return on_statement(m, sql, strcmp(member, "Query") == 0 ? "sava{sv}" : "s");
}

/* ---- The program -------------------------------------------------------------------------------------------------- */

static void start(void) {
        pin = 0;
        n_pins = n_begins = n_held = 0;
        of_run = of_begin = of_pin = (Places) { 0, 0 };
        pin_error = held_method = interrupted = NULL;
        lost_error = "org.sqlipc1.Error.PinLost";
        held = true;
        fake_start(&f);
        f.on_call = on_call;
        fake_set_result(&f, 1, 1);
}

static int exec(const char *sql) {
        return sqlipc_exec(f.connection, DB, sql, NULL);
}

/* The connection has a pin, which is lost unseen. */
static void lose_pin(void) {
        CHECK_INT(exec(CREATE), 0);
        CHECK_INT(exec(READ), 0);
        CHECK_INT(of_run.pin, pin);
        pin = 99;
}

/* Waits for news, as the loop of a program. */
static void turn(void) {
        struct pollfd fd = { .fd = sqlipc_get_fd(f.connection), .events = POLLIN };

        CHECK(poll(&fd, 1, 120000) > 0);
        CHECK(sqlipc_process(f.connection) >= 0);
}

/* Without a call that waits for any of them. */
static void take_answers(void) {
        fake_barrier(&f);
        for (int i = 0; i < 3; i++)
                CHECK(sqlipc_process(f.connection) >= 0);
}

/* The library has sent the call that is held. */
static void wait_held(void) {
        while (n_held == 0) {
                CHECK(sqlipc_process(f.connection) >= 0);
                usleep(1000);
        }
}

static int next(sqlipc_cursor *c) {
        int r;

        while ((r = sqlipc_cursor_next(c)) == -EAGAIN)
                turn();
        return r;
}

static int run_to_end(sqlipc_cursor *c) {
        int r;

        while ((r = next(c)) > 0)
                ;
        return r;
}

static void wait_open(sqlipc_transaction *t) {
        int r;

        while ((r = sqlipc_transaction_is_open(t)) == 0)
                turn();
        CHECK_INT(r, 1);
}

static sqlipc_cursor *query(const char *sql) {
        sqlipc_cursor *c;

        CHECK_INT(sqlipc_query(f.connection, DB, sql, &c, NULL), 0);
        return c;
}

static void check_lost(int r) {
        CHECK_INT(r, -ESTALE);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_PIN_LOST);
        CHECK(sqlipc_error_message(f.connection)[0]);
}

/* The program knows. */
static void check_without_pin(void) {
        sqlipc_cursor *c = query(READ);

        CHECK_INT(run_to_end(c), 0);
        CHECK_INT(of_run.pin, 0);
        sqlipc_cursor_close(c);
}

static void test_named(void) {
        sqlipc_transaction *t;

        start();
        CHECK_INT(exec(READ), 0);
        CHECK_INT(of_run.pin, 0);
        CHECK_INT(exec(CREATE), 0);
        CHECK_INT(of_run.pin, pin);
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_DEFERRED, &t), 0);
        CHECK_INT(of_begin.pin, pin);
        sqlipc_transaction_close(t);
        pin = 99;
        check_lost(exec(READ));
        check_without_pin();
        fake_done(&f);
        CHECK_INT(n_pins, 1);
}

/* Without blocking, the program need not ask if a statement is compiled. Its execution is what fails. */
static void test_lost_before_prepare(void) {
        sqlipc_statement *s;
        sqlipc_cursor *c;
        int r;

        for (int asks = 0; asks < 2; asks++) {
                start();
                lose_pin();
                CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
                CHECK_INT(sqlipc_prepare(f.connection, DB, READ, &s), 0);
                while (asks && (r = sqlipc_statement_is_ready(s)) == 0)
                        turn();
                if (asks)
                        check_lost(r);
                else /* the answer is there */
                        take_answers();
                CHECK_INT(sqlipc_execute(s, &c), 0);
                if (!asks) {
                        check_lost(next(c));
                        sqlipc_cursor_close(c);
                        CHECK_INT(sqlipc_execute(s, &c), 0);
                }
                CHECK_INT(run_to_end(c), 0);
                CHECK_INT(of_run.pin, 0);
                sqlipc_cursor_close(c);
                sqlipc_finalize(s);
                fake_done(&f);
        }
}

/* The instance that had the pin is gone, and so is its name. */
static void test_service_lost_before_prepare(void) {
        sqlipc_statement *s;

        start();
        lose_pin();
        lost_error = "org.freedesktop.DBus.Error.NameHasNoOwner";
        check_lost(sqlipc_prepare(f.connection, DB, READ, &s));
        CHECK_INT(sqlipc_prepare(f.connection, DB, READ, &s), 0);
        CHECK_INT(of_run.pin, 0);
        sqlipc_finalize(s);
        check_without_pin();
        fake_done(&f);
}

/* Each call that returns the loss tells it. */
static void test_told(void) {
        sqlipc_transaction *t;
        sqlipc_statement *s;
        sqlipc_batch *b;

        for (int how = 0; how < 4; how++) {
                start();
                lose_pin();
                switch (how) {
                case 0:
                        check_lost(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_READ, &t));
                        break;
                case 1:
                        check_lost(sqlipc_prepare(f.connection, DB, READ, &s));
                        break;
                case 2:
                        CHECK_INT(sqlipc_batch_new(f.connection, DB, &b), 0);
                        CHECK_INT(sqlipc_batch_add(b, READ, NULL), 0);
                        CHECK_INT(sqlipc_batch_run(b, NULL), 0); /* this service does not look */
                        sqlipc_batch_close(b);
                        check_lost(exec(READ));
                        break;
                default:
                        check_lost(exec(READ));
                }
                check_without_pin();
                fake_done(&f);
        }
}

/* The program has not read the error of the run that has found the loss. */
static void test_unread_loss(void) {
        sqlipc_cursor *c;

        start();
        lose_pin();
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        c = query(READ);
        take_answers();
        sqlipc_cursor_close(c);
        CHECK_INT(sqlipc_query(f.connection, DB, READ, &c, NULL), 0);
        check_lost(next(c));
        sqlipc_cursor_close(c);
        check_without_pin();
        fake_done(&f);
}

static void test_prepare_takes_pin(void) {
        sqlipc_statement *s;
        sqlipc_cursor *c;
        int r;

        for (int how = 0; how < 3; how++) {
                start();
                CHECK_INT(sqlipc_set_blocking(f.connection, how == 0), 0);
                CHECK_INT(sqlipc_prepare(f.connection, DB, CREATE, &s), 0);
                while ((r = how == 1 ? sqlipc_statement_is_ready(s) : 1) == 0)
                        turn();
                CHECK_INT(r, 1);
                CHECK_INT(sqlipc_execute(s, &c), 0);
                CHECK_INT(run_to_end(c), 0);
                CHECK_INT(of_run.pin, pin);
                CHECK_INT(n_pins, 1);
                sqlipc_cursor_close(c);
                sqlipc_finalize(s);
                fake_done(&f);
        }
}

/* The program has given up the statement that needed the pin. */
static void test_begin_waits(void) {
        sqlipc_transaction *t;
        sqlipc_cursor *c;
        int r = 0;

        start();
        held_method = "Pin";
        for (uint64_t usec = 50000; n_held == 0; usec *= 2) { /* a busy machine needs longer until the pin is asked for */
                CHECK_INT(sqlipc_set_timeout(f.connection, usec), 0);
                r = exec(CREATE);
        }
        CHECK_INT(r, -ETIMEDOUT);
        CHECK_INT(sqlipc_set_timeout(f.connection, UINT64_MAX), 0);
        held = false;
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), 0);
        CHECK_INT(of_begin.pin, pin);
        sqlipc_transaction_close(t);
        fake_done(&f);

        for (int fails = 0; fails < 2; fails++) {
                start();
                held_method = "Pin";
                pin_error = fails ? "org.sqlipc1.Error.LimitsExceeded" : NULL;
                CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
                c = query(CREATE);
                wait_held();
                CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), 0);
                CHECK_INT(sqlipc_transaction_is_open(t), 0);
                held = false;
                wait_open(t);
                CHECK_INT(of_begin.pin, pin);
                CHECK_INT(pin == 0, fails);
                CHECK_INT(run_to_end(c), fails ? -EDQUOT : 0);
                sqlipc_cursor_close(c);
                sqlipc_transaction_close(t);
                fake_done(&f);
        }
}

/* It is closed, or its connection, before it could be sent: the pin is not concerned. */
static void test_begin_that_waits_is_closed(void) {
        sqlipc_transaction *t, *next;
        sqlipc_cursor *c;

        for (int all = 0; all < 2; all++) {
                start();
                held_method = "Pin";
                CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
                c = query(CREATE);
                wait_held();
                CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), 0);
                CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &next), -EBUSY);
                if (all) {
                        sqlipc_connection_ref(f.connection);
                        sqlipc_close(f.connection);
                        CHECK_INT(sqlipc_transaction_is_open(t), -ENOTCONN);
                        CHECK_INT(sqlipc_cursor_next(c), -ENOTCONN);
                }
                sqlipc_transaction_close(t);
                held = false;
                if (!all) {
                        CHECK_INT(run_to_end(c), 0);
                        CHECK_INT(of_run.pin, pin);
                        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), 0);
                        wait_open(t);
                        CHECK_INT(of_begin.pin, pin);
                        sqlipc_transaction_close(t);
                }
                sqlipc_cursor_close(c);
                fake_done(&f);
                CHECK_INT(n_begins, !all);
        }
}

/* The transaction began after the statement, and before the library knew that this needs a pin. */
static void test_begin_before(void) {
        sqlipc_transaction *t;
        sqlipc_cursor *c;

        start();
        held_method = "Query";
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        c = query(CREATE);
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_DEFERRED, &t), 0);
        held = false;
        wait_open(t);
        CHECK_INT(of_begin.pin, 0);
        CHECK_INT(run_to_end(c), 0);
        CHECK_INT(of_pin.transaction, NUMBER);
        CHECK_INT(of_run.pin, pin);
        sqlipc_cursor_close(c);
        sqlipc_transaction_close(t);
        fake_done(&f);
}

/* A statement of which the pin was none of its business. */
static void test_pin_that_fails(void) {
        sqlipc_cursor *c, *other;

        start(); /* interrupted */
        held_method = interrupted = "Pin";
        CHECK_INT(exec(CREATE), -ECANCELED);
        held = false;
        CHECK_INT(exec(READ), 0);
        fake_done(&f);

        start(); /* the cursor is closed */
        held_method = "Pin";
        pin_error = "org.sqlipc1.Error.LimitsExceeded";
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        c = query(CREATE);
        wait_held();
        sqlipc_cursor_close(c);
        other = query(READ);
        held = false;
        CHECK_INT(run_to_end(other), 0);
        sqlipc_cursor_close(other);
        CHECK_INT(n_pins, 1);
        c = query(CREATE); /* which is told why */
        CHECK_INT(run_to_end(c), -EDQUOT);
        sqlipc_cursor_close(c);
        check_without_pin();
        fake_done(&f);
}

/* The interrupt came before NeedsPin. */
static void test_interrupted_before(void) {
        sqlipc_batch *b;

        start();
        interrupted = "Query";
        CHECK_INT(exec(CREATE), -ECANCELED);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_CANCELLED);
        interrupted = "ExecuteBatch";
        CHECK_INT(sqlipc_batch_new(f.connection, DB, &b), 0);
        CHECK_INT(sqlipc_batch_add(b, CREATE, NULL), 0);
        CHECK_INT(sqlipc_batch_run(b, NULL), -ECANCELED);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_CANCELLED);
        interrupted = NULL;
        CHECK_INT(n_pins, 0);
        CHECK_INT(sqlipc_batch_run(b, NULL), 0);
        CHECK_INT(of_run.pin, pin);
        sqlipc_batch_close(b);
        fake_done(&f);
}

static int count_descriptors(void) {
        DIR *d = opendir("/proc/self/fd");
        int n = 0;

        CHECK(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

/* A pin that begins for a transaction keeps neither that nor the connection. */
static void test_freed(void) {
        int n = count_descriptors();
        sqlipc_transaction *t;
        sqlipc_cursor *c;

        start();
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_WRITE, &t), 0);
        wait_open(t);
        held_method = "Pin";
        c = query(CREATE);
        wait_held();
        sqlipc_cursor_close(c);
        sqlipc_transaction_close(t);
        sqlipc_close(f.connection);
        f.connection = NULL;
        held = false;
        fake_done(&f);
        CHECK_INT(count_descriptors(), n);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_named),
                TEST(test_lost_before_prepare),
                TEST(test_service_lost_before_prepare),
                TEST(test_told),
                TEST(test_unread_loss),
                TEST(test_prepare_takes_pin),
                TEST(test_begin_waits),
                TEST(test_begin_that_waits_is_closed),
                TEST(test_begin_before),
                TEST(test_pin_that_fails),
                TEST(test_interrupted_before),
                TEST(test_freed),
        };

        signal(SIGPIPE, SIG_IGN); /* of the service, whose client leaves */
        return test_main(tests, N_ELEMENTS(tests));
}
