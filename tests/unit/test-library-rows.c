/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows in replies, against a scripted service: when the library asks for them, every invalid reply, all ways in which a run
 * ends, and buses that pass no descriptors.
 */
#include "tests/unit/cursor-checks.h"

#define RUN 11

/* The next reply of NextRows, and the arguments of the call. */
static struct {
        const char *script;       /* a letter a reply, see answer_next_rows() */
        atomic_int n_open, n_next, n_under_way;
        int n_at_once_max;
        uint32_t sizes[8];        /* max-bytes of each */
        sd_bus_message *held;     /* 'h': the reply is kept back */
        int next_row;
} script;

static int events_error; /* of sd_bus_get_events() in the library; 0: it works */

int __real_sd_bus_get_events(sd_bus *bus);
int __wrap_sd_bus_get_events(sd_bus *bus);

int __wrap_sd_bus_get_events(sd_bus *bus) {
        return events_error ?: __real_sd_bus_get_events(bus);
}

static void close_all(sd_bus_message *m, int n) {
        for (int i = 0; i < n; i++)
                CHECK(sd_bus_message_close_container(m) >= 0);
}

/* An entry of info: the columns "c" TEXT and "d", or none. */
static void append_columns(sd_bus_message *m, char kind) {
        CHECK(sd_bus_message_open_container(m, 'e', "sv") >= 0);
        CHECK(sd_bus_message_append(m, "s", "columns") >= 0);
        if (kind == 'z' || kind == 'i')
                CHECK(sd_bus_message_append(m, "v", "a(ssa{sv})", 0) >= 0);
        else
                CHECK(sd_bus_message_append(m, "v", "a(ssa{sv})", 2, "c", "TEXT", 0, "d", "", 0) >= 0);
        close_all(m, 1);
}

static void append_tail(sd_bus_message *m, char kind) {
        bool more = !strchr("ewzi", kind);

        CHECK(sd_bus_message_append(m, "b", more) >= 0);
        CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        if (script.n_next == 1 && kind != 'c')
                append_columns(m, kind);
        CHECK(sd_bus_message_append(m, "{sv}", "x-future", "as", 1, "whatever") >= 0);
        if (!more) {
                CHECK(sd_bus_message_append(m, "{sv}", "rows", "t", (uint64_t) script.next_row + (kind == 'w')) >= 0);
                CHECK(sd_bus_message_append(m, "{sv}", "bytes", "t", (uint64_t) 88) >= 0);
                CHECK(sd_bus_message_append(m, "{sv}", "usec", "t", (uint64_t) 99) >= 0);
        }
        if (kind == 'i')
                CHECK(sd_bus_message_append(m, "{sv}{sv}", "changes", "x", INT64_C(4), "last-rowid", "x", INT64_MIN) >= 0);
        close_all(m, 1);
}

static void append_good_rows(sd_bus_message *m, int n) {
        for (int i = 0; i < n; i++)
                CHECK(sd_bus_message_append(m, "av", 2, "x", (int64_t) ++script.next_row, "s", "text") >= 0);
}

/* One row that cannot be. */
static void append_bad_row(sd_bus_message *m, char kind) {
        const uint8_t bytes[] = { 1, 2 };

        switch (kind) {
        case '1': /* fewer values than columns */
                CHECK(sd_bus_message_append(m, "av", 1, "x", (int64_t) 1) >= 0);
                break;
        case '3': /* more */
                CHECK(sd_bus_message_append(m, "av", 3, "x", (int64_t) 1, "x", (int64_t) 2, "x", (int64_t) 3) >= 0);
                break;
        case 'u': /* a type that no value has */
                CHECK(sd_bus_message_append(m, "av", 2, "x", (int64_t) 1, "u", 2) >= 0);
                break;
        case 'k': /* a key that stands for nothing */
                CHECK(sd_bus_message_append(m, "av", 2, "x", (int64_t) 1, "a{sv}", 1, "null", "b", 1) >= 0);
                break;
        case 't': /* text as a string, which has its own type */
                CHECK(sd_bus_message_append(m, "av", 2, "x", (int64_t) 1, "a{sv}", 1, "text", "s", "x") >= 0);
                break;
        case 'T': /* text twice */
                CHECK(sd_bus_message_append(m, "av", 2, "x", (int64_t) 1, "a{sv}", 2, "text", "ay", 2, bytes[0], bytes[1],
                                            "text", "ay", 2, bytes[0], bytes[1]) >= 0);
                break;
        default:
                CHECK(!"a letter of the script");
        }
}

/* Answers `m` as the script's next letter says:  r: three rows, and more  e: the end  x: an error of the run
 * c: columns are missing  q: another signature  h: nothing yet  w: the end, of one row more than came
 * z: the end of a result without columns  i: the same of a run that wrote  else: a row that cannot be. */
static int answer_next_rows(FakeService *f, sd_bus_message *m) {
        char kind = *script.script ? *script.script++ : 'r';
        sd_bus_message *reply = NULL;

        if (kind == 'h') {
                script.held = sd_bus_message_ref(m);
                return 1;
        }
        script.n_under_way--;
        if (kind == 'x')
                return sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.Corrupt", "malformed");
        if (kind == 'q')
                return sd_bus_reply_method_return(m, "s", "what?");
        CHECK(sd_bus_message_new_method_return(m, &reply) >= 0);
        CHECK(sd_bus_message_open_container(reply, 'a', "av") >= 0);
        if (kind == 'r' || kind == 'c')
                append_good_rows(reply, 3);
        else if (!strchr("ewzi", kind))
                append_bad_row(reply, kind);
        close_all(reply, 1);
        append_tail(reply, kind);
        CHECK(sd_bus_send(f->bus, reply, NULL) >= 0);
        sd_bus_message_unref(reply);
        return 1;
}

static int on_call(FakeService *f, sd_bus_message *m, const char *member) {
        const char *key;
        uint64_t number;
        uint32_t size;

        if (strcmp(member, "OpenRows") == 0) {
                script.n_open++;
                CHECK(sd_bus_reply_method_return(m, "ta(ssa{sv})a{sv}", (uint64_t) RUN, 1, "compiled", "", 0, 1,
                                                 "readonly", "b", !f->writes) >= 0);
                return 1;
        }
        if (strcmp(member, "NextRows") != 0)
                return 0;
        CHECK(sd_bus_message_read(m, "ta{sv}", &number, 1, &key, "u", &size) > 0);
        CHECK_INT(number, RUN);
        CHECK_STRING(key, "max-bytes");
        if ((size_t) script.n_next < N_ELEMENTS(script.sizes))
                script.sizes[script.n_next] = size;
        script.n_next++;
        script.n_under_way++;
        if (script.n_under_way > script.n_at_once_max)
                script.n_at_once_max = script.n_under_way;
        return answer_next_rows(f, m);
}

static void start(FakeService *f, const char *replies) {
        memset(&script, 0, sizeof script);
        script.script = replies;
        fake_start(f);
        f->on_call = on_call;
        CHECK_INT(sqlipc_set_transport(f->connection, SQLIPC_TRANSPORT_DBUS), 0);
}

static void stop(FakeService *f) {
        fake_done(f);
        sd_bus_message_unref(script.held);
        CHECK(script.n_at_once_max <= 1);
        CHECK_INT(f->n_query + f->n_fetch, 0);
}

static void test_blocks(void) {
        FakeService f;
        sqlipc_cursor *c;
        uint64_t rows, bytes, usec;

        start(&f, "rrrrrrre");
        c = query(&f);
        CHECK_INT(sqlipc_cursor_get_transport(c), SQLIPC_TRANSPORT_DBUS);
        CHECK_INT(sqlipc_column_count(c), 0);
        check_rows(c, 1, 1);
        CHECK_INT(sqlipc_column_count(c), 2);
        CHECK_STRING(sqlipc_column_name(c, 0), "c");
        CHECK_STRING(sqlipc_column_decltype(c, 0), "TEXT");
        CHECK(!sqlipc_column_decltype(c, 1));
        CHECK_STRING(sqlipc_column_text(c, 1, NULL), "text");
        check_rows(c, 2, 21);
        check_end(c);
        sqlipc_cursor_get_totals(c, &rows, &bytes, &usec);
        CHECK(rows == (uint64_t) script.next_row && bytes == 88 && usec == 99);
        sqlipc_cursor_close(c);
        CHECK_INT(f.n_cancel, 0); /* the service has forgotten it */
        for (size_t i = 0; i < N_ELEMENTS(script.sizes); i++)
                CHECK_INT(script.sizes[i], i < 4 ? 65536 << i : 1048576);
        stop(&f);
}

/* The next block is asked for before the program has read the last, and the one behind it is not. */
static void test_reads_ahead(void) {
        FakeService f;
        sqlipc_cursor *c;

        start(&f, "rrrr");
        c = query(&f);
        check_rows(c, 1, 1);
        fake_wait_for(&script.n_next, 2);
        CHECK_INT(sqlipc_process(f.connection) >= 0, 1);
        usleep(50000);
        CHECK_INT(script.n_next, 2);
        check_rows(c, 2, 4);
        fake_wait_for(&script.n_next, 3);
        sqlipc_cursor_close(c);
        fake_wait_for(&f.n_cancel, 1);
        stop(&f);
}

static void check_refused_reply(const char *replies, int n_rows) {
        FakeService f;
        sqlipc_cursor *c;

        start(&f, replies);
        c = query(&f);
        check_rows(c, 1, n_rows);
        CHECK_INT(sqlipc_cursor_next(c), -EBADMSG);
        CHECK_INT(sqlipc_cursor_next(c), -EBADMSG);
        CHECK_INT(sqlipc_column_is_null(c, 0), 1);
        sqlipc_cursor_close(c);
        fake_wait_for(&f.n_cancel, 1);
        stop(&f);
}

static void test_replies_that_cannot_be(void) {
        static const char kinds[] = "13uktTq";

        for (const char *kind = kinds; *kind; kind++) {
                char replies[] = { 'r', *kind, 0 }, first[] = { *kind, 0 };

                check_refused_reply(replies, 3); /* behind the rows that came */
                check_refused_reply(first, 0);
        }
        check_refused_reply("c", 0);
}

/* The service says at the end that there were more rows than came. */
static void test_wrong_total(void) {
        FakeService f;
        sqlipc_cursor *c;

        start(&f, "rw");
        c = query(&f);
        check_rows(c, 1, 3);
        CHECK_INT(sqlipc_cursor_next(c), -EBADMSG);
        sqlipc_cursor_close(c);
        stop(&f);
}

static void test_no_columns(void) {
        FakeService f;
        sqlipc_cursor *c;

        start(&f, "z");
        c = query(&f);
        check_end(c);
        CHECK_INT(sqlipc_column_count(c), 0);
        sqlipc_cursor_close(c);
        CHECK_INT(f.n_cancel, 0);
        stop(&f);
}

static void test_changes(void) {
        FakeService f;
        sqlipc_cursor *c;

        start(&f, "iz");
        c = query(&f);
        check_end(c);
        CHECK_INT(sqlipc_column_count(c), 0);
        CHECK_INT(sqlipc_cursor_changes(c), 4);
        CHECK_INT(sqlipc_cursor_last_rowid(c), INT64_MIN);
        sqlipc_cursor_close(c);
        script.n_next = 0; /* the next reply describes the columns, too */
        c = query(&f);
        check_end(c);
        CHECK(sqlipc_cursor_changes(c) == 0 && sqlipc_cursor_last_rowid(c) == 0);
        sqlipc_cursor_close(c);
        stop(&f);
}

static void test_error_behind_rows(void) {
        FakeService f;
        sqlipc_cursor *c;

        start(&f, "rx");
        c = query(&f);
        check_rows(c, 1, 1);
        fake_wait_for(&script.n_next, 2);
        CHECK(sqlipc_process(f.connection) >= 0); /* the error is here, rows come first */
        check_rows(c, 2, 3);
        check_failure(&f, c, -EUCLEAN, SQLIPC_ERROR_CORRUPT);
        sqlipc_cursor_close(c);
        CHECK_INT(f.n_cancel, 0);
        stop(&f);
}

static void test_cancel(void) {
        FakeService f;
        sqlipc_cursor *c;

        start(&f, "rh");
        c = query(&f);
        check_rows(c, 1, 3);
        fake_wait_for(&script.n_next, 2);
        CHECK_INT(sqlipc_set_timeout(f.connection, 50000), 0);
        CHECK_INT(sqlipc_cursor_next(c), -ETIMEDOUT); /* and may be repeated */
        CHECK_INT(sqlipc_cursor_cancel(c), 0);
        CHECK_INT(sqlipc_cursor_next(c), -ETIMEDOUT); /* it is the service that says so */
        fake_wait_for(&f.n_cancel, 1);
        CHECK(sd_bus_reply_method_errorf(script.held, "org.sqlipc1.Error.Cancelled", "The query was cancelled.") >= 0);
        CHECK_INT(sqlipc_set_timeout(f.connection, 120000000), 0);
        check_failure(&f, c, -ECANCELED, SQLIPC_ERROR_CANCELLED);
        sqlipc_cursor_close(c);
        stop(&f);
}

static void test_service_lost(void) {
        FakeService f;
        sqlipc_cursor *c;

        start(&f, "rh");
        c = query(&f);
        check_rows(c, 1, 3);
        fake_wait_for(&script.n_next, 2);
        fake_stop_service(&f);
        check_failure(&f, c, -ECONNRESET, SQLIPC_ERROR_DAEMON_LOST);
        sqlipc_cursor_close(c);
        stop(&f);
}

static void test_statement(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        start(&f, "re");
        f.parameters[0] = ":id";
        s = prepare(&f);
        CHECK_INT(sqlipc_bind_int64_by_name(s, "id", 5), 0);
        c = execute(s);
        check_rows(c, 1, 3);
        check_end(c);
        CHECK_INT(sqlipc_cursor_get_transport(c), SQLIPC_TRANSPORT_DBUS);
        fake_wait_for(&f.n_finalize, 1); /* nothing is held for it between its runs */
        sqlipc_cursor_close(c);
        script.next_row = 0;
        script.n_next = 0;
        script.script = "rr";
        c = execute(s);
        check_rows(c, 1, 2);
        sqlipc_finalize(s);
        CHECK_INT(sqlipc_cursor_next(c), -ESTALE);
        sqlipc_cursor_close(c);
        fake_wait_for(&f.n_cancel, 1);
        CHECK_INT(script.n_open, 2);
        CHECK_INT(f.n_prepare, 1);
        stop(&f);
}

/* One that is executed again, over a pipe, while its rows come in replies, and back. */
static void test_statement_changes_sides(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        start(&f, "r");
        fake_set_result(&f, 1, 5);
        s = prepare(&f);
        for (int i = 0; i < 3; i++) {
                script.next_row = 0;
                script.n_next = 0;
                CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_DBUS), 0);
                c = execute(s);
                check_rows(c, 1, 2);
                sqlipc_cursor_close(c);
                CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_PIPE), 0);
                c = execute(s);
                check_rows(c, 1, 5);
                check_end(c);
                sqlipc_cursor_close(c);
        }
        sqlipc_finalize(s);
        fake_wait_for(&f.n_cancel, 3);
        fake_done(&f);
        CHECK(script.n_at_once_max <= 1);
}

/* A bus of the program's that is not ready when it is handed over, and turns out to pass no descriptors. */
static atomic_int n_refused;

static int refuse_prepare(FakeService *f, sd_bus_message *m, const char *member) {
        if (strcmp(member, "Prepare") != 0)
                return on_call(f, m, member);
        n_refused++;
        CHECK(sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.LimitsExceeded", "You have 256 statements open.") >= 0);
        return 1;
}

/* The cursor's next row, its end or its failure, in a loop. */
static int next(FakeService *f, sqlipc_cursor *c) {
        struct pollfd fd = { .fd = sqlipc_get_fd(f->connection), .events = POLLIN };
        int r;

        while ((r = sqlipc_cursor_next(c)) == -EAGAIN) {
                CHECK_INT(poll(&fd, 1, 120000), 1);
                CHECK(sqlipc_process(f->connection) >= 0);
        }
        return r;
}

static void check_not_kept(FakeService *f, sqlipc_statement *s) {
        sqlipc_cursor *c;

        script.n_next = script.next_row = 0;
        CHECK_INT(sqlipc_execute(s, &c), 0);
        for (int i = 1; i <= 3; i++) {
                CHECK_INT(next(f, c), 1);
                CHECK_INT(sqlipc_column_int64(c, 0), i);
        }
        CHECK_INT(next(f, c), 0);
        CHECK_INT(sqlipc_cursor_get_transport(c), SQLIPC_TRANSPORT_DBUS);
        sqlipc_cursor_close(c);
}

/* The service keeps no more statements of this user: a program that did not wait for sqlipc_prepare() gets its rows
 * nevertheless, also if the statement was compiled before. */
static void test_not_kept(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        start(&f, "rere");
        f.on_call = refuse_prepare;
        n_refused = 0;
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_AUTO), 0);
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT ?, :b", &s), -EDQUOT); /* asked for by name */
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT ?, :b", &s), 0);
        CHECK_INT(sqlipc_bind_int64(s, 1, 5), 0);
        CHECK_INT(sqlipc_bind_int64_by_name(s, ":b", 6), 0);
        check_not_kept(&f, s);
        CHECK_INT(n_refused, 2);
        CHECK_INT(sqlipc_bind_int64(s, 1, 7), 0); /* it was never compiled, so its parameters are not known */
        CHECK_INT(sqlipc_bind_int64_by_name(s, ":b", 8), 0);
        check_not_kept(&f, s);
        CHECK_INT(n_refused, 3);
        CHECK_INT(script.n_open, 2);
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_PIPE), 0); /* also asked for by name */
        CHECK_INT(sqlipc_execute(s, &c), 0);
        CHECK_INT(next(&f, c), -EDQUOT);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        stop(&f);
}

static atomic_int n_cached, n_not_cached;

/* A service that is older than the option `cached` of Prepare. */
static int refuse_cached(FakeService *f, sd_bus_message *m, const char *member) {
        const char *key;

        if (strcmp(member, "Prepare") != 0)
                return on_call(f, m, member);
        CHECK(sd_bus_message_skip(m, "s") >= 0);
        CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") >= 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                CHECK(sd_bus_message_read(m, "s", &key) >= 0);
                if (strcmp(key, "cached") == 0) {
                        n_cached++;
                        CHECK(sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.UnknownOption", "It is not known.") >= 0);
                        return 1;
                }
                CHECK(sd_bus_message_skip(m, "v") >= 0);
                CHECK(sd_bus_message_exit_container(m) >= 0);
        }
        n_not_cached++;
        CHECK(sd_bus_message_rewind(m, true) >= 0);
        return on_call(f, m, member);
}

/* Of two statements that are prepared at once, each is prepared again without the option, and the next one without it. */
static void test_without_cached(void) {
        FakeService f;
        sqlipc_statement *s[3];

        start(&f, "");
        f.on_call = refuse_cached;
        n_cached = n_not_cached = 0;
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_PIPE), 0);
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        for (unsigned i = 0; i < 2; i++)
                CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT 1", &s[i]), 0);
        for (unsigned i = 0; i < 2; i++)
                while (sqlipc_statement_is_ready(s[i]) == 0) {
                        struct pollfd fd = { .fd = sqlipc_get_fd(f.connection), .events = POLLIN };

                        CHECK_INT(poll(&fd, 1, 120000), 1);
                        CHECK(sqlipc_process(f.connection) >= 0);
                }
        CHECK_INT(n_cached, 2);
        CHECK_INT(n_not_cached, 2);
        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT 1", &s[2]), 0);
        CHECK_INT(n_cached, 2);
        CHECK_INT(n_not_cached, 3);
        for (unsigned i = 0; i < 3; i++) {
                CHECK_INT(sqlipc_statement_is_ready(s[i]), 1);
                sqlipc_finalize(s[i]);
        }
        stop(&f);
}

static void test_no_descriptors(void) {
        FakeService f;
        sqlipc_statement *s;
        sqlipc_cursor *c;

        memset(&script, 0, sizeof script);
        script.script = "re";
        fake_start_with(&f, false);
        f.on_call = on_call;
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT c FROM t", &s), -EOPNOTSUPP);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_NO_DESCRIPTORS);
        CHECK_STRING(sqlipc_error_name(f.connection), "org.sqlipc1.Error.NoDescriptors");
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_PIPE), -EOPNOTSUPP);
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_CHANNEL), -EOPNOTSUPP);
        c = query(&f);
        check_rows(c, 1, 3);
        check_end(c);
        sqlipc_cursor_close(c);
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT c FROM t", &s), 0);
        CHECK_INT(sqlipc_statement_is_ready(s), -EOPNOTSUPP);
        CHECK_INT(sqlipc_execute(s, &c), 0);
        CHECK_INT(sqlipc_cursor_next(c), -EOPNOTSUPP);
        sqlipc_finalize(s);
        sqlipc_cursor_close(c);
        CHECK_INT(f.n_prepare, 0);
        stop(&f);
}

/* Transports that need descriptors, chosen before it is known that there are none. */
static void test_no_descriptors_for_transport(void) {
        static const sqlipc_transport transports[] = { SQLIPC_TRANSPORT_PIPE, SQLIPC_TRANSPORT_CHANNEL };

        for (size_t i = 0; i < N_ELEMENTS(transports); i++) {
                FakeService f;
                sqlipc_cursor *c;

                memset(&script, 0, sizeof script);
                fake_start_with(&f, false);
                f.on_call = on_call;
                CHECK_INT(sqlipc_set_transport(f.connection, transports[i]), 0);
                CHECK_INT(sqlipc_query(f.connection, "db", "SELECT c FROM t", &c, NULL), -EOPNOTSUPP);
                CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_NO_DESCRIPTORS);
                CHECK_INT(script.n_open, 0);
                stop(&f);
        }
}

/* A statement that may write: its outcome is unknown. */
static void test_outcome_unknown(void) {
        FakeService f;
        sqlipc_cursor *c;

        start(&f, "rh");
        f.writes = true;
        c = query(&f);
        check_rows(c, 1, 3);
        fake_wait_for(&script.n_next, 2);
        fake_stop_service(&f);
        check_failure(&f, c, -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
        sqlipc_cursor_close(c);
        stop(&f);
}

/* The bus turns out to be lost while the library waits for rows, and then while it waits for the answer to OpenRows, which
 * says if the statement writes. */
static void check_lost_wait(bool writes, int r, sqlipc_error code) {
        FakeService f;
        sqlipc_cursor *c;

        start(&f, "rh");
        f.writes = writes;
        c = query(&f);
        check_rows(c, 1, 3);
        fake_wait_for(&script.n_next, 2);
        events_error = -ENOTCONN;
        CHECK_INT(sqlipc_cursor_next(c), r);
        CHECK_INT(sqlipc_cursor_error_code(c), code);
        sqlipc_cursor_close(c);
        CHECK_INT(sqlipc_query(f.connection, "db", "INSERT", &c, NULL), -ECONNABORTED);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_OUTCOME_UNKNOWN);
        events_error = 0;
        sqlipc_finalize(prepare(&f)); /* so the service has answered the call before it */
        fake_wait_for(&f.n_finalize, 1);
        stop(&f);
}

static void test_lost_wait(void) {
        check_lost_wait(false, -ECONNRESET, SQLIPC_ERROR_DAEMON_LOST);
        check_lost_wait(true, -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
}

/* A run that was cancelled, and that the service has forgotten, may have written before. */
static void check_forgotten(bool writes, int r, sqlipc_error code) {
        FakeService f;
        sqlipc_cursor *c;

        start(&f, "rh");
        f.writes = writes;
        c = query(&f);
        check_rows(c, 1, 3);
        fake_wait_for(&script.n_next, 2);
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        CHECK_INT(sqlipc_cursor_cancel(c), 0);
        CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
        fake_wait_for(&f.n_cancel, 1);
        CHECK(sd_bus_reply_method_errorf(script.held, "org.sqlipc1.Error.UnknownRun", "There is no such run.") >= 0);
        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        CHECK_INT(sqlipc_cursor_next(c), r);
        CHECK_INT(sqlipc_cursor_error_code(c), code);
        sqlipc_cursor_close(c);
        stop(&f);
}

static void test_forgotten(void) {
        check_forgotten(false, -ECANCELED, SQLIPC_ERROR_CANCELLED);
        check_forgotten(true, -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
}

static void test_bus_lent(void) {
        FakeService f;

        start(&f, "");
        CHECK(sqlipc_get_bus(f.connection) == f.client_bus);
        CHECK(!sqlipc_get_bus(NULL));
        sd_bus_close(f.client_bus); /* the caller's: nothing is opened in its place */
        CHECK(!sqlipc_get_bus(f.connection));
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_DAEMON_LOST);
        stop(&f);
}

static void test_loop(void) {
        FakeService f;
        sqlipc_cursor *c;
        int n = 0, r;

        start(&f, "rrrre");
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        c = query(&f);
        while ((r = sqlipc_cursor_next(c)) != 0) {
                struct pollfd fd = { .fd = sqlipc_get_fd(f.connection), .events = POLLIN };

                if (r == -EAGAIN) {
                        CHECK_INT(poll(&fd, 1, 120000), 1); /* a turn for nothing is a missed wake-up */
                        CHECK(sqlipc_process(f.connection) >= 0);
                } else {
                        CHECK_INT(r, 1);
                        CHECK_INT(sqlipc_column_int64(c, 0), ++n);
                }
        }
        CHECK_INT(n, 12);
        sqlipc_cursor_close(c);
        stop(&f);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_blocks),
                TEST(test_reads_ahead),
                TEST(test_replies_that_cannot_be),
                TEST(test_wrong_total),
                TEST(test_no_columns),
                TEST(test_changes),
                TEST(test_error_behind_rows),
                TEST(test_cancel),
                TEST(test_service_lost),
                TEST(test_statement),
                TEST(test_statement_changes_sides),
                TEST(test_not_kept),
                TEST(test_without_cached),
                TEST(test_no_descriptors),
                TEST(test_no_descriptors_for_transport),
                TEST(test_outcome_unknown),
                TEST(test_lost_wait),
                TEST(test_forgotten),
                TEST(test_bus_lent),
                TEST(test_loop),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
