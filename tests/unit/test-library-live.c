/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Live queries of the library against a FakeService: differences, keys, runs that fail, changes during a run, with and
 * without a loop, and a schema that changes. tests/unit/test-rows-difference.c has the differences themselves. Library.
 */
#include <time.h>

#include "tests/rigs/fake-watch.h"

#define DB "db"
#define SQL "SELECT id, text FROM t"
#define FOREVER UINT64_MAX

static FakeService f;
static FakeWatch w;
static const char *_Atomic query_error; /* answers Query with it, once */
static atomic_bool query_unfinished;    /* sends no END */
static atomic_int n_queries;            /* that were answered */
static atomic_int n_refused_prepares;   /* that are still to be refused */
static pthread_mutex_t rows_mutex = PTHREAD_MUTEX_INITIALIZER; /* of f.rows, which the service's thread sends */

/* Rows of an integer and a text: "1 a,2 b"; "-" is NULL, and a row without a text has one column. `sequence` 0: none. */
static void make_rows(const char *rows, unsigned n_columns, uint64_t sequence) {
        uint8_t page[SQLIPC_PAGE_SIZE_MIN];
        char copy[200], *rest = copy, *row;
        EndCounters end = { .sequence = sequence };
        PageEncoder e;

        (void) snprintf(copy, sizeof copy, "%s", rows);
        stream_done(&f.rows);
        stream_add_columns(&f.rows, FAKE_RUN, n_columns, SQLIPC_PAGE_SIZE_MIN);
        page_encoder_init(&e, page, sizeof page, FAKE_RUN);
        while (*rows && (row = strsep(&rest, ","))) {
                const char *key = strsep(&row, " ");

                CHECK_INT(page_encoder_begin_row(&e, n_columns), 1);
                if (strcmp(key, "-") == 0)
                        page_encoder_add_null(&e);
                else
                        page_encoder_add_int64(&e, atoi(key));
                if (n_columns > 1)
                        page_encoder_add_text(&e, row, strlen(row));
                CHECK_INT(page_encoder_end_row(&e), 1);
                end.n_rows++;
        }
        if (end.n_rows > 0)
                stream_take_page(&f.rows, &e);
        end.n_bytes = stream_run_size(&f.rows);
        if (query_unfinished)
                return;
        CHECK_INT(page_encoder_end(&e, &end), 1);
        stream_take_page(&f.rows, &e);
}

static void set_rows(const char *rows, unsigned n_columns, uint64_t sequence) {
        CHECK_INT(pthread_mutex_lock(&rows_mutex), 0);
        make_rows(rows, n_columns, sequence);
        CHECK_INT(pthread_mutex_unlock(&rows_mutex), 0);
}

static void set_result(const char *rows) {
        set_rows(rows, 2, 0);
}

static int answer_query(FakeService *service, sd_bus_message *m) {
        const char *error = atomic_exchange(&query_error, NULL);

        if (error) {
                n_queries++;
                CHECK(fake_answered(sd_bus_reply_method_errorf(m, error, "It failed.")));
                return 1;
        }
        CHECK_INT(pthread_mutex_lock(&rows_mutex), 0);
        fake_answer(service, m, "Query");
        n_queries++;
        CHECK_INT(pthread_mutex_unlock(&rows_mutex), 0);
        return 1;
}

static int on_call(FakeService *service, sd_bus_message *m, const char *member) {
        if (strcmp(member, "Prepare") == 0 && n_refused_prepares > 0) {
                n_refused_prepares--;
                CHECK(fake_answered(sd_bus_reply_method_errorf(m, "org.freedesktop.DBus.Error.NoReply", "It was killed.")));
                return 1;
        }
        return strcmp(member, "Query") == 0 ? answer_query(service, m) : fake_watch_on_call(&w, m, member);
}

static void start(void) {
        w = (FakeWatch) FAKE_WATCH_INIT;
        query_error = NULL;
        query_unfinished = false;
        n_queries = 0;
        fake_start(&f);
        f.on_call = on_call;
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_PIPE), 0);
}

static void finish(void) {
        fake_done(&f);
        fake_watch_done(&w);
}

static sqlipc_live *live_open_with(const sqlipc_live_options *options) {
        sqlipc_live *live;

        CHECK_INT(sqlipc_live_open(f.connection, DB, SQL, NULL, 0, options, &live), 0);
        return live;
}

static sqlipc_live *live_open(void) {
        return live_open_with(NULL);
}

/* ---- What is told ------------------------------------------------------------------------------------------------- */

static char *append_values(char *at, const sqlipc_value *values, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                switch (values[i].type) {
                case SQLIPC_INTEGER:
                        at += sprintf(at, "%d", (int) values[i].as.integer);
                        break;
                case SQLIPC_TEXT:
                        CHECK_INT(strlen(values[i].as.text), values[i].size);
                        at += sprintf(at, "%s", values[i].as.text);
                        break;
                case SQLIPC_NULL:
                        at += sprintf(at, "-");
                        break;
                default:
                        CHECK(false);
                }
                at += sprintf(at, " ");
        }
        return at;
}

/* A change as a text: "+0 1 a", "-0 1 a", "!0 1 a = 1 b", "0>2 1 a", ".". */
static char *append_change(char *at, sqlipc_live *live, const sqlipc_live_change *c) {
        unsigned n = sqlipc_live_column_count(live);

        switch (c->kind) {
        case SQLIPC_LIVE_ADDED:
                CHECK(!c->old_values && c->new_position == 0);
                return append_values(at + sprintf(at, "+%zu ", c->position), c->values, n);
        case SQLIPC_LIVE_REMOVED:
                CHECK(!c->values && c->new_position == 0);
                return append_values(at + sprintf(at, "-%zu ", c->position), c->old_values, n);
        case SQLIPC_LIVE_MOVED:
                CHECK(!c->old_values);
                return append_values(at + sprintf(at, "%zu>%zu ", c->position, c->new_position), c->values, n);
        case SQLIPC_LIVE_CHANGED:
                CHECK(c->new_position == 0);
                at = append_values(at + sprintf(at, "!%zu ", c->position), c->old_values, n);
                return append_values(at + sprintf(at, "= "), c->values, n);
        case SQLIPC_LIVE_SETTLED:
                CHECK(!c->values && !c->old_values && c->position == 0 && c->new_position == 0);
                return at + sprintf(at, ".");
        }
        CHECK(false);
        return at;
}

/* How the next thing is got: waits, or has a loop. */
typedef int (*Next)(sqlipc_live *live, const sqlipc_live_change **ret);

static int next_blocking(sqlipc_live *live, const sqlipc_live_change **ret) {
        return sqlipc_live_next(live, FOREVER, ret);
}

/* All that is told of the next run. */
static void check_with(Next next, sqlipc_live *live, const char *expected) {
        const sqlipc_live_change *change;
        char told[1000] = "", *at = told;

        do {
                CHECK_INT(next(live, &change), 1);
                at = append_change(at, live, change);
        } while (change->kind != SQLIPC_LIVE_SETTLED);
        CHECK_STRING(told, expected);
}

static void check(sqlipc_live *live, const char *expected) {
        const sqlipc_live_change *change;

        check_with(next_blocking, live, expected);
        CHECK_INT(sqlipc_live_next(live, 0, &change), 0);
}

/* Nothing is told until there were so many queries, or so many calls of Watch, and for a while after that. */
static void check_silence_until(sqlipc_live *live, atomic_int *counter, int n) {
        const sqlipc_live_change *change;

        do
                CHECK_INT(sqlipc_live_next(live, 20000, &change), 0);
        while (*counter < n);
        CHECK_INT(sqlipc_live_next(live, 20000, &change), 0);
        CHECK_INT(*counter, n);
}

static void change_to(const char *rows) {
        set_result(rows);
        fake_watch_signal(&w);
}

/* ---- Differences -------------------------------------------------------------------------------------------------- */

static void test_differences(void) {
        sqlipc_live *live;

        start();
        set_result("1 a,2 b,3 c");
        live = live_open();
        CHECK_STRING(w.sql, SQL);
        CHECK_INT(sqlipc_live_column_count(live), 0);
        check(live, "+0 1 a +1 2 b +2 3 c .");
        CHECK_INT(sqlipc_live_column_count(live), 2);
        CHECK_STRING(sqlipc_live_column_name(live, 1), "c");
        CHECK(!sqlipc_live_column_name(live, 2));
        change_to("1 a,2 x,3 c");
        check(live, "!1 2 b = 2 x .");
        change_to("3 c,1 a,2 x");
        check(live, "2>0 3 c .");
        change_to("3 c,4 d");
        check(live, "-2 2 x -1 1 a +1 4 d .");
        change_to("");
        check(live, "-1 4 d -0 3 c .");
        change_to("");
        check_silence_until(live, &n_queries, 6);
        change_to("5 e");
        check(live, "+0 5 e .");
        CHECK(!sqlipc_live_close(live));
        finish();
        CHECK_INT(w.n_watch, 1);
        CHECK_INT(w.n_unwatch, 1);
}

static void test_empty_at_first(void) {
        sqlipc_live *live;

        start();
        set_result("");
        live = live_open();
        check(live, ".");
        CHECK_INT(sqlipc_live_column_count(live), 2);
        sqlipc_live_close(live);
        finish();
}

static void test_keys(void) {
        const unsigned both[] = { 0, 1 }, second = 1;
        const sqlipc_live_options all = { .struct_size = sizeof all, .key_columns = both, .n_key_columns = 2 };
        const sqlipc_live_options other = { .struct_size = sizeof other, .key_columns = &second, .n_key_columns = 1 };
        sqlipc_live *live;

        start();
        set_result("1 a,-  b");
        live = live_open();
        check(live, "+0 1 a +1 -  b .");
        change_to("2 x,1 a,- c");
        check(live, "+0 2 x !2 -  b = - c .");
        sqlipc_live_close(live);

        set_result("1 a,1 b,1 c"); /* rows of one key, in their order */
        live = live_open();
        check(live, "+0 1 a +1 1 b +2 1 c .");
        change_to("1 a,1 c");
        check(live, "-2 1 c !1 1 b = 1 c .");
        sqlipc_live_close(live);

        set_result("1 a,1 b,2 b");
        live = live_open_with(&all); /* nothing can change */
        check(live, "+0 1 a +1 1 b +2 2 b .");
        change_to("1 a,2 c");
        check(live, "-2 2 b -1 1 b +1 2 c .");
        sqlipc_live_close(live);

        set_result("1 a,2 b");
        live = live_open_with(&other);
        check(live, "+0 1 a +1 2 b .");
        change_to("3 b,4 a");
        check(live, "1>0 2 b !0 2 b = 3 b !1 1 a = 4 a .");
        sqlipc_live_close(live);
        finish();
}

static void test_other_columns(void) {
        const unsigned second = 1;
        const sqlipc_live_options options = { .struct_size = sizeof options, .key_columns = &second, .n_key_columns = 1 };
        const sqlipc_live_change *change;
        sqlipc_live *live;

        start();
        set_result("1 a");
        live = live_open();
        check(live, "+0 1 a .");
        set_rows("1", 1, 0);
        fake_watch_signal(&w);
        CHECK_INT(sqlipc_live_next(live, FOREVER, &change), 1);
        CHECK_INT(change->kind, SQLIPC_LIVE_REMOVED);
        CHECK_INT(sqlipc_live_column_count(live), 1);
        check(live, "+0 1 .");
        sqlipc_live_close(live);

        live = live_open_with(&options);
        CHECK_INT(sqlipc_live_next(live, FOREVER, &change), -EINVAL); /* there is no column 1 */
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_NONE);
        change_to("1 a");
        check(live, "+0 1 a .");
        sqlipc_live_close(live);
        finish();
}

static void test_parameters(void) {
        char text[] = "abc";
        sqlipc_parameter parameters[] = {
                { .struct_size = sizeof(sqlipc_parameter), .name = ":name", .type = SQLIPC_INTEGER, .integer = 7 },
                { .struct_size = sizeof(sqlipc_parameter), .type = SQLIPC_TEXT, .bytes = text, .size = 3 },
        };
        const char *got, *name;
        int64_t number;
        sqlipc_live *live;

        start();
        set_result("1 a");
        CHECK_INT(sqlipc_live_open(f.connection, DB, SQL, parameters, 2, NULL, &live), 0);
        memset(text, 'x', 3); /* copied */
        for (int i = 0; i < 2; i++) {
                if (i > 0)
                        change_to("2 b");
                check(live, i == 0 ? "+0 1 a ." : "-0 1 a +0 2 b .");
                CHECK(sd_bus_message_rewind(f.last, true) >= 0);
                CHECK(sd_bus_message_read(f.last, "sava{sv}", NULL, 1, "s", &got, 1, &name, "x", &number) >= 0);
                CHECK_STRING(got, "abc");
                CHECK_STRING(name, ":name");
                CHECK_INT(number, 7);
        }
        sqlipc_live_close(live);
        finish();
}

/* ---- When it runs ------------------------------------------------------------------------------------------------- */

/* Many changes are one run; those during a run are one more. */
static void test_changes_during_a_run(void) {
        sqlipc_live *live;
        Stream rest = STREAM_INIT;

        start();
        query_unfinished = true;
        set_rows("1 a", 2, 0);
        live = live_open();
        check_silence_until(live, &n_queries, 1); /* nothing is told before the end */
        for (int i = 0; i < 5; i++)
                fake_watch_signal(&w);
        check_silence_until(live, &n_queries, 1);
        stream_add_end_behind(&rest, FAKE_RUN, 1, stream_run_size(&f.rows));
        query_unfinished = false;
        set_result("1 b");
        fake_write(&f, &rest);
        stream_done(&rest);
        check_with(next_blocking, live, "+0 1 a .");
        check(live, "!0 1 a = 1 b .");
        fake_wait_for(&n_queries, 2);
        sqlipc_live_close(live);
        finish();
}

/* A change that the result has, by its number, leads to no run. */
static void test_known_changes(void) {
        const sqlipc_live_change *change;
        sqlipc_live *live;

        start();
        set_rows("1 a", 2, 1003);
        live = live_open();
        check(live, "+0 1 a .");
        CHECK_INT(sqlipc_live_sequence(live), 1003);
        for (int i = 1001; i <= 1003; i++)
                fake_watch_signal(&w);
        CHECK_INT(sqlipc_live_next(live, 50000, &change), 0);
        fake_wait_for(&n_queries, 1);
        set_rows("1 b", 2, 1004);
        fake_watch_signal(&w);
        check(live, "!0 1 a = 1 b .");
        w.sequence = 5; /* another instance, whose numbers are smaller */
        set_rows("1 c", 2, 6);
        fake_watch_close(&w);
        check(live, "!0 1 b = 1 c .");
        fake_wait_for(&n_queries, 3);
        sqlipc_live_close(live);
        finish();
}

static void test_debounce(void) {
        const sqlipc_live_options options = { .struct_size = sizeof options, .debounce_usec = 100000 };
        const sqlipc_live_change *change;
        sqlipc_live *live;

        start();
        set_result("1 a");
        live = live_open_with(&options);
        check(live, "+0 1 a ."); /* the first run is at once */
        change_to("1 b");
        CHECK_INT(sqlipc_live_next(live, 1000, &change), 0);
        fake_wait_for(&n_queries, 1);
        for (int i = 0; i < 10; i++)
                fake_watch_signal(&w);
        check(live, "!0 1 a = 1 b .");
        CHECK_INT(sqlipc_live_next(live, 300000, &change), 0);
        CHECK(n_queries <= 3);
        sqlipc_live_close(live);
        finish();
}

/* A run of a live query is no part of a transaction, of which others see nothing. */
static int on_begin(FakeService *service, sd_bus_message *m, const char *member) {
        if (strcmp(member, "Begin") == 0)
                return sd_bus_reply_method_return(m, "ta{sv}", UINT64_C(41), 0);
        return on_call(service, m, member);
}

static void test_not_in_transaction(void) {
        sqlipc_transaction *transaction;
        sqlipc_live *live;
        const char *key;

        start();
        f.on_call = on_begin;
        set_result("1 a");
        CHECK_INT(sqlipc_begin(f.connection, DB, SQLIPC_TRANSACTION_READ, &transaction), 0);
        live = live_open();
        check(live, "+0 1 a .");
        CHECK(sd_bus_message_rewind(f.last, true) >= 0);
        CHECK(sd_bus_message_skip(f.last, "sava{sv}") >= 0);
        CHECK(sd_bus_message_enter_container(f.last, 'a', "{sv}") > 0);
        while (sd_bus_message_enter_container(f.last, 'e', "sv") > 0) {
                CHECK(sd_bus_message_read(f.last, "s", &key) > 0);
                CHECK(strcmp(key, "transaction") != 0);
                CHECK(sd_bus_message_skip(f.last, "v") >= 0);
                CHECK(sd_bus_message_exit_container(f.last) >= 0);
        }
        sqlipc_live_close(live);
        sqlipc_transaction_close(transaction);
        finish();
}

/* ---- Failures ----------------------------------------------------------------------------------------------------- */

static void test_run_fails(void) {
        const sqlipc_live_change *change;
        sqlipc_live *live;

        start();
        set_result("1 a");
        live = live_open();
        check(live, "+0 1 a .");
        query_error = "org.sqlipc1.Error.Sql";
        change_to("1 b");
        CHECK_INT(sqlipc_live_next(live, FOREVER, &change), -EINVAL);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_SQL);
        CHECK_INT(sqlipc_live_next(live, 50000, &change), 0); /* told once, and not tried again */
        fake_wait_for(&n_queries, 2);
        change_to("1 c");
        check(live, "!0 1 a = 1 c .");

        query_error = "org.sqlipc1.Error.Busy"; /* which passes */
        change_to("1 d");
        CHECK_INT(sqlipc_live_next(live, FOREVER, &change), -EBUSY);
        check(live, "!0 1 c = 1 d .");

        f.close_pipe = true; /* the stream breaks off: the service is asked if it lives, and says so */
        query_unfinished = true;
        change_to("1 e");
        CHECK_INT(sqlipc_live_next(live, FOREVER, &change), -ECONNRESET);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_WORKER_LOST);
        query_unfinished = false;
        f.close_pipe = false;
        set_result("1 f");
        check(live, "!0 1 d = 1 f .");
        sqlipc_live_close(live);
        finish();
}

/* The service is killed in a run before it has said that the statement only reads, and then each time that it is asked.
 * The statement of a live query only reads, so its outcome is not unknown. */
static void test_killed(void) {
        sqlipc_live *live;

        start();
        set_result("1 a");
        live = live_open();
        check(live, "+0 1 a .");
        query_error = "org.freedesktop.DBus.Error.NoReply";
        n_refused_prepares = 100;
        change_to("1 b");
        check(live, "!0 1 a = 1 b ."); /* no error */
        CHECK(n_refused_prepares < 100);
        n_refused_prepares = 0;
        sqlipc_live_close(live);
        finish();
}

static void test_restart(void) {
        sqlipc_live *live;

        start();
        set_result("1 a");
        live = live_open();
        check(live, "+0 1 a .");
        query_error = "org.sqlipc1.Error.ShuttingDown";
        set_result("1 b");
        fake_watch_close(&w);
        check(live, "!0 1 a = 1 b ."); /* no error */
        sqlipc_live_close(live);
        finish();
        CHECK_INT(w.n_watch, 2);
}

static void test_interrupt(void) {
        const sqlipc_live_change *change;
        FakeInterrupter interrupter;
        sqlipc_live *live;

        start();
        set_result("1 a");
        live = live_open();
        check(live, "+0 1 a .");
        fake_interrupt_begin(&interrupter, &f, NULL, 0);
        CHECK_INT(sqlipc_live_next(live, FOREVER, &change), -ECANCELED);
        fake_interrupt_end(&interrupter);
        change_to("1 b");
        check(live, "!0 1 a = 1 b .");

        query_error = "org.sqlipc1.Error.Cancelled"; /* as a run that was interrupted */
        change_to("1 c");
        CHECK_INT(sqlipc_live_next(live, FOREVER, &change), -ECANCELED);
        check(live, "!0 1 b = 1 c .");
        sqlipc_live_close(live);
        finish();
}

/* The table is dropped, and made again later: meanwhile all tables are watched. */
static void test_schema_changes(void) {
        const sqlipc_live_change *change;
        sqlipc_live *live;

        start();
        set_result("1 a");
        live = live_open();
        check(live, "+0 1 a .");
        w.error = "org.sqlipc1.Error.Sql";
        w.refuses_sql = true;
        fake_watch_close(&w);
        CHECK_INT(sqlipc_live_next(live, FOREVER, &change), -EINVAL);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_SQL);
        for (int i = 4; i <= 6; i++) {
                check_silence_until(live, &w.n_watch, i); /* of the statement, all tables, the statement after each change */
                fake_wait_for(&n_queries, 1);
                if (i < 6)
                        fake_watch_signal(&w);
        }
        w.refuses_sql = false;
        change_to("1 b");
        check(live, "!0 1 a = 1 b .");
        change_to("1 c");
        check(live, "!0 1 b = 1 c .");
        CHECK_INT(w.n_watch, 7);
        sqlipc_live_close(live);
        finish();
}

static void test_ended(void) {
        const sqlipc_live_change *change;
        sqlipc_live *live;

        start();
        set_result("1 a");
        live = live_open();
        check(live, "+0 1 a .");
        w.error = "org.freedesktop.DBus.Error.UnknownObject";
        w.n_errors = 1;
        fake_watch_close(&w);
        for (int i = 0; i < 2; i++)
                CHECK_INT(sqlipc_live_next(live, FOREVER, &change), -ENOENT);
        CHECK_INT(sqlipc_live_column_count(live), 2);
        sqlipc_live_close(live);
        finish();
}

/* The watch fails while the program still waits for it to begin. */
static void test_ends_at_once(void) {
        sqlipc_live *live = NULL;

        start();
        w.writes_part = true;
        CHECK_INT(sqlipc_live_open(f.connection, DB, SQL, NULL, 0, NULL, &live), -EBADMSG);
        CHECK(!live);
        finish();
}

static void test_refusals(void) {
        const unsigned key = 0;
        const sqlipc_live_options no_size = { .struct_size = 1 };
        const sqlipc_live_options no_key = { .struct_size = sizeof no_key, .key_columns = &key };
        struct {
                sqlipc_live_options options;
                uint64_t more;
        } newer = { .options.struct_size = sizeof newer, .more = 1 };
        const sqlipc_live_change *change;
        sqlipc_live *live = NULL;

        start();
        w.error = "org.sqlipc1.Error.Sql";
        w.n_errors = 1;
        CHECK_INT(sqlipc_live_open(f.connection, DB, SQL, NULL, 0, NULL, &live), -EINVAL);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_SQL);
        CHECK_INT(sqlipc_live_open(NULL, DB, SQL, NULL, 0, NULL, &live), -EINVAL);
        CHECK_INT(sqlipc_live_open(f.connection, NULL, SQL, NULL, 0, NULL, &live), -EINVAL);
        CHECK_INT(sqlipc_live_open(f.connection, DB, NULL, NULL, 0, NULL, &live), -EINVAL);
        CHECK_INT(sqlipc_live_open(f.connection, DB, SQL, NULL, 1, NULL, &live), -EINVAL);
        CHECK_INT(sqlipc_live_open(f.connection, DB, SQL, NULL, 0, NULL, NULL), -EINVAL);
        CHECK_INT(sqlipc_live_open(f.connection, DB, SQL, NULL, 0, &no_size, &live), -EINVAL);
        CHECK_INT(sqlipc_live_open(f.connection, DB, SQL, NULL, 0, &no_key, &live), -EINVAL);
        CHECK_INT(sqlipc_live_open(f.connection, DB, SQL, NULL, 0, &newer.options, &live), -EOPNOTSUPP);
        CHECK(!live);
        newer.more = 0;
        set_result("1 a");
        live = live_open_with(&newer.options);
        check(live, "+0 1 a .");
        CHECK_INT(sqlipc_live_next(live, 0, NULL), -EINVAL);
        sqlipc_live_close(live);
        CHECK_INT(sqlipc_live_next(NULL, 0, &change), -EINVAL);
        CHECK_INT(sqlipc_live_get_fd(NULL), -EINVAL);
        CHECK_INT(sqlipc_live_set_ready_callback(NULL, NULL, NULL), -EINVAL);
        CHECK_INT(sqlipc_live_column_count(NULL), 0);
        CHECK(!sqlipc_live_column_name(NULL, 0));
        CHECK_INT(sqlipc_live_sequence(NULL), 0);
        CHECK(!sqlipc_live_close(NULL));
        finish();
}

static void test_connection_closed(void) {
        const sqlipc_live_change *change;
        sqlipc_live *live;

        start();
        set_result("1 a");
        live = live_open();
        check(live, "+0 1 a .");
        sqlipc_close(f.connection);
        f.connection = NULL;
        CHECK_INT(sqlipc_live_next(live, FOREVER, &change), -ENOTCONN);
        sqlipc_live_close(live);
        finish();
}

/* ---- Loops -------------------------------------------------------------------------------------------------------- */

static uint64_t now_usec(void) {
        struct timespec now;

        CHECK(clock_gettime(CLOCK_MONOTONIC, &now) >= 0);
        return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

static bool is_readable(int fd, int msec) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int n = poll(&p, 1, msec);

        CHECK(n >= 0 && (n == 0 || p.revents == POLLIN));
        return n > 0;
}

/* A turn of the loop that polls the connection's descriptor. False: nothing came. */
static bool turn(int msec) {
        uint64_t until, now = now_usec();
        bool ready;

        CHECK_INT(sqlipc_get_timeout(f.connection, &until), 0);
        if (until != UINT64_MAX && until < now + (uint64_t) msec * 1000)
                msec = until > now ? (int) ((until - now + 999) / 1000) : 0;
        ready = is_readable(sqlipc_get_fd(f.connection), msec);
        CHECK(sqlipc_process(f.connection) >= 0);
        return ready || until != UINT64_MAX;
}

/* Until nothing is to come. */
static void settle(void) {
        do
                fake_barrier(&f);
        while (turn(0));
}

static int next_in_loop(sqlipc_live *live, const sqlipc_live_change **ret) {
        int r;

        while ((r = sqlipc_live_next(live, FOREVER, ret)) == -EAGAIN)
                CHECK(turn(120000)); /* a turn for nothing is a missed wake-up */
        return r;
}

static void test_loop(void) {
        const sqlipc_live_options options = { .struct_size = sizeof options, .debounce_usec = 20000 };
        const sqlipc_live_change *change;
        sqlipc_live *live;

        start();
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        set_result("1 a");
        live = live_open_with(&options);
        check_with(next_in_loop, live, "+0 1 a .");
        CHECK_INT(sqlipc_live_next(live, FOREVER, &change), -EAGAIN);
        settle();
        CHECK_INT(sqlipc_live_next(live, FOREVER, &change), -EAGAIN);
        CHECK(!turn(20));
        change_to("1 b");
        check_with(next_in_loop, live, "!0 1 a = 1 b .");
        w.sequence = 77;
        set_result("1 c");
        fake_watch_close(&w);
        check_with(next_in_loop, live, "!0 1 b = 1 c .");
        query_error = "org.sqlipc1.Error.Busy";
        change_to("1 d");
        CHECK_INT(next_in_loop(live, &change), -EBUSY);
        check_with(next_in_loop, live, "!0 1 c = 1 d .");
        sqlipc_live_close(live);
        finish();
}

typedef struct Ready {
        int n_calls, n_settled;
        bool close;
} Ready;

static void on_ready(sqlipc_live *live, void *userdata) {
        Ready *ready = userdata;
        const sqlipc_live_change *change;

        ready->n_calls++;
        while (sqlipc_live_next(live, FOREVER, &change) == 1)
                ready->n_settled += change->kind == SQLIPC_LIVE_SETTLED;
        if (ready->close)
                sqlipc_live_close(live);
}

/* The statement runs without being asked for; the program is called back when there is something to tell, and once. */
static void test_callbacks(void) {
        Ready ready = { .n_calls = 0 };
        const sqlipc_live_change *change;
        sqlipc_live *live;

        start();
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        set_result("1 a");
        live = live_open();
        CHECK_INT(sqlipc_live_set_ready_callback(live, on_ready, &ready), 0);
        CHECK_INT(sqlipc_live_next(live, 0, &change), -EAGAIN);
        for (int i = 1; i <= 3; i++) {
                while (ready.n_settled < i)
                        CHECK(turn(120000));
                CHECK_INT(ready.n_calls, i);
                if (i < 3)
                        change_to(i == 1 ? "2 a" : "3 a");
        }
        w.error = "org.freedesktop.DBus.Error.ServiceUnknown";
        w.n_errors = 2;
        set_result("4 a");
        fake_watch_close(&w);
        while (ready.n_settled < 4)
                CHECK(turn(120000));
        ready.close = true;
        change_to("5 a");
        while (ready.n_settled < 5)
                CHECK(turn(120000));
        finish();
}

static int own_fd;

static int next_by_own_descriptor(sqlipc_live *live, const sqlipc_live_change **ret) {
        int r, n = 0;

        while ((r = sqlipc_live_next(live, 0, ret)) == 0 || r == -EAGAIN) {
                CHECK(++n < 100); /* no busy loop */
                CHECK(is_readable(own_fd, 120000));
        }
        return r;
}

static void check_own_descriptor(bool blocking) {
        const sqlipc_live_change *change;
        sqlipc_live *live;
        int r;

        start();
        CHECK_INT(sqlipc_set_blocking(f.connection, blocking), 0);
        set_result("1 a");
        live = live_open();
        own_fd = sqlipc_live_get_fd(live);
        CHECK(own_fd >= 0);
        check_with(next_by_own_descriptor, live, "+0 1 a .");
        do
                r = sqlipc_live_next(live, 0, &change);
        while (is_readable(own_fd, 20));
        CHECK(r == 0 || r == -EAGAIN);
        change_to("1 b");
        CHECK(is_readable(own_fd, 120000));
        check_with(next_by_own_descriptor, live, "!0 1 a = 1 b .");
        set_result("1 c");
        w.error = "org.freedesktop.DBus.Error.ServiceUnknown";
        w.n_errors = 2;
        fake_watch_close(&w);
        check_with(next_by_own_descriptor, live, "!0 1 b = 1 c .");
        CHECK_INT(sqlipc_live_get_fd(live), own_fd);
        sqlipc_live_close(live);
        finish();
}

static void test_own_descriptor(void) {
        check_own_descriptor(true);
        check_own_descriptor(false);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_differences),
                TEST(test_empty_at_first),
                TEST(test_keys),
                TEST(test_other_columns),
                TEST(test_parameters),
                TEST(test_changes_during_a_run),
                TEST(test_known_changes),
                TEST(test_debounce),
                TEST(test_not_in_transaction),
                TEST(test_run_fails),
                TEST(test_killed),
                TEST(test_restart),
                TEST(test_interrupt),
                TEST(test_schema_changes),
                TEST(test_ended),
                TEST(test_ends_at_once),
                TEST(test_refusals),
                TEST(test_connection_closed),
                TEST(test_loop),
                TEST(test_callbacks),
                TEST(test_own_descriptor),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
