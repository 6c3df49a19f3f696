/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sqlipc_exec() against a FakeService, over each transport: the changes that it reports, and that it never sends a statement
 * twice which may have taken effect. Library.
 */
#include "dbus-interfaces/sqlipc-errors.h"
#include "dbus-interfaces/wire/sqlipc-channel.h"
#include "tests/rigs/fake-service.h"

#define SQL "INSERT INTO t VALUES (?)"

/* How the service answers a statement. */
typedef enum Answer {
        ANSWER_CHANGES,       /* it wrote: three changes */
        ANSWER_ROWS,          /* it read: a hundred rows */
        ANSWER_SQL_ERROR,
        ANSWER_NONE,
        ANSWER_NEVER_OPEN,    /* as ANSWER_NONE, and no channel opens */
        ANSWER_DIE,           /* the service, or the channel, is gone */
        ANSWER_INTERRUPT,     /* the program is interrupted, and the statement cancelled */
        ANSWER_INTERRUPT_DIE, /* the program is interrupted, then as ANSWER_DIE */
        ANSWER_INTERRUPT_DONE, /* the program is interrupted too late: ANSWER_CHANGES */
        ANSWER_INTERRUPT_UNKNOWN, /* over the bus: the program is interrupted, and the service knows no such run */
        ANSWER_REFUSED,       /* it is refused once as never begun, then as ANSWER_CHANGES */
} Answer;

static Answer answer;
static int n_sent, n_opened, channel;
static sd_bus_message *pending; /* the call that the program will cancel */

static void reset(FakeService *f, sqlipc_transport transport, Answer how) {
        answer = how;
        n_sent = n_opened = 0;
        channel = -1;
        fake_start(f);
        CHECK_INT(sqlipc_set_transport(f->connection, transport), 0);
}

static void stop(FakeService *f) {
        fake_done(f);
        pending = sd_bus_message_unref(pending);
        if (channel >= 0)
                close(channel);
}

/* ---- The service -------------------------------------------------------------------------------------------------- */

static void add_answer(Stream *s, uint64_t run) {
        switch (answer) {
        case ANSWER_ROWS:
                stream_add_columns(s, run, 1, SQLIPC_PAGE_SIZE_MIN);
                fake_add_rows(s, run, 1, 100);
                stream_add_end(s, run, 100);
                return;
        case ANSWER_SQL_ERROR:
                stream_add_error(s, run, ERROR_SQL, "NOT NULL constraint failed: t.a");
                return;
        case ANSWER_INTERRUPT:
                stream_add_error(s, run, ERROR_CANCELLED, "The run was cancelled.");
                return;
        case ANSWER_REFUSED:
                if (n_sent == 1) {
                        stream_add_error(s, run, ERROR_SHUTTING_DOWN, "The service stops.");
                        return;
                }
                break;
        case ANSWER_CHANGES:
        case ANSWER_NONE:
        case ANSWER_NEVER_OPEN:
        case ANSWER_DIE:
        case ANSWER_INTERRUPT_DIE:
        case ANSWER_INTERRUPT_DONE:
        case ANSWER_INTERRUPT_UNKNOWN:
                break;
        }
        stream_add_columns(s, run, 0, SQLIPC_PAGE_SIZE_MIN);
        stream_add_end_wrote(s, run, 0, 3, 17, FRAME_END_WROTE_SIZE);
}

/* Waits for the next request on the channel; returns its kind, and its number if that is not NULL. */
static unsigned read_request(uint64_t *number) {
        struct pollfd readable = { .fd = channel, .events = POLLIN };
        uint8_t header[FRAME_HEADER_SIZE], payload[4096];
        size_t size;

        CHECK_INT(poll(&readable, 1, 120000), 1);
        CHECK_INT(recv(channel, header, sizeof header, MSG_WAITALL), sizeof header);
        size = frame_padded(load_le32(header));
        CHECK(size <= sizeof payload);
        if (size > 0)
                CHECK_INT(recv(channel, payload, size, MSG_WAITALL), size);
        *number = load_le64(header + 8);
        return header[4];
}

static void serve_channel(FakeService *f) {
        Stream s = STREAM_INIT;
        uint64_t number, cancelled;
        char byte;

        if (recv(channel, &byte, 1, MSG_PEEK) <= 0) /* the library's time was up before it asked */
                return;
        CHECK_INT(read_request(&number), REQUEST_QUERY);
        n_sent++;
        if (answer == ANSWER_NONE)
                return;
        if (answer >= ANSWER_INTERRUPT && answer <= ANSWER_INTERRUPT_UNKNOWN) {
                CHECK_INT(sqlipc_interrupt(f->connection), 0);
                CHECK_INT(read_request(&cancelled), REQUEST_CANCEL);
                CHECK_INT(cancelled, number);
        }
        if (answer == ANSWER_DIE || answer == ANSWER_INTERRUPT_DIE) {
                close(channel);
                channel = -1;
                return;
        }
        add_answer(&s, number);
        CHECK_INT(send(channel, s.bytes, s.size, MSG_NOSIGNAL), s.size);
        stream_done(&s);
        if (answer == ANSWER_REFUSED && n_sent == 1)
                serve_channel(f);
}

static int on_open_channel(FakeService *f, sd_bus_message *m) {
        int fds[2];

        n_opened++;
        if (answer == ANSWER_NEVER_OPEN)
                return 1;
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) >= 0);
        /* These fail if the library has left because its time was up. */
        (void) sd_bus_reply_method_return(m, "ha{sv}", fds[0], 2, "page-size", "u", (uint32_t) 65536, "readonly", "b",
                                          answer == ANSWER_ROWS);
        (void) sd_bus_flush(f->bus);
        close(fds[0]);
        channel = fds[1];
        serve_channel(f);
        return 1;
}

/* The answer to Query or OpenRows, if it is not a result. */
static int on_start(FakeService *f, sd_bus_message *m) {
        n_sent++;
        switch (answer) {
        case ANSWER_NONE:
        case ANSWER_NEVER_OPEN:
                return 1;
        case ANSWER_SQL_ERROR:
                return sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.Sql", "NOT NULL constraint failed: t.a");
        case ANSWER_INTERRUPT:
        case ANSWER_INTERRUPT_DIE:
        case ANSWER_INTERRUPT_DONE:
        case ANSWER_INTERRUPT_UNKNOWN:
                pending = sd_bus_message_ref(m);
                CHECK_INT(sqlipc_interrupt(f->connection), 0);
                return 1;
        case ANSWER_DIE:
                f->stop = true;
                return 1;
        case ANSWER_REFUSED:
                return n_sent > 1 ? 0 : sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.ShuttingDown", "It stops.");
        case ANSWER_CHANGES:
        case ANSWER_ROWS:
                break;
        }
        return 0;
}

static int on_next_rows(sd_bus_message *m) {
        if (answer != ANSWER_ROWS)
                return sd_bus_reply_method_return(m, "aavba{sv}", 0, 0, 4, "columns", "a(ssa{sv})", 0, "rows", "t",
                                                  UINT64_C(0), "changes", "x", INT64_C(3), "last-rowid", "x", INT64_C(17));
        return sd_bus_reply_method_return(m, "aavba{sv}", 1, 1, "x", INT64_C(5), 0, 2, "columns", "a(ssa{sv})", 1, "c", "",
                                          0, "rows", "t", UINT64_C(1));
}

static bool is_run(const char *member) {
        return strcmp(member, "Query") == 0 || strcmp(member, "Fetch") == 0 || strcmp(member, "OpenRows") == 0;
}

/* Answers a call that begins a run. 0: as usual. */
static int start_run(FakeService *f, sd_bus_message *m, const char *member) {
        if (strcmp(member, "OpenRows") == 0)
                return sd_bus_reply_method_return(m, "ta(ssa{sv})a{sv}", (uint64_t) FAKE_RUN, 0, 1, "readonly", "b",
                                                  answer == ANSWER_ROWS);
        stream_done(&f->rows);
        add_answer(&f->rows, FAKE_RUN);
        return 0;
}

/* Cancel of the call, whose number the program cannot know. */
static int on_cancel(FakeService *f, sd_bus_message *m) {
        const char *member = sd_bus_message_get_member(pending);
        uint64_t number, cookie;
        const char *key;
        uint32_t serial;

        CHECK(sd_bus_message_read(m, "t", &number) > 0);
        if (number == FAKE_RUN) /* the call has been answered */
                return 0;
        CHECK(sd_bus_message_read(m, "a{sv}", 1, &key, "u", &serial) > 0);
        CHECK_STRING(key, "call");
        CHECK(sd_bus_message_get_cookie(pending, &cookie) >= 0);
        CHECK_INT(serial, cookie);
        switch (answer) {
        case ANSWER_INTERRUPT:
                CHECK(sd_bus_reply_method_errorf(pending, "org.sqlipc1.Error.Cancelled", "The run was cancelled.") >= 0);
                return 0;
        case ANSWER_INTERRUPT_DONE:
                if (start_run(f, pending, member) == 0)
                        fake_answer(f, pending, member);
                return 0;
        case ANSWER_INTERRUPT_UNKNOWN:
                return sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.UnknownRun", "There is no such run.");
        case ANSWER_INTERRUPT_DIE:
                f->stop = true;
                return 1;
        default:
                return 0;
        }
}

static int on_call(FakeService *f, sd_bus_message *m, const char *member) {
        if (strcmp(member, "OpenChannel") == 0)
                return on_open_channel(f, m);
        if (strcmp(member, "Cancel") == 0 && pending)
                return on_cancel(f, m);
        if (is_run(member) && on_start(f, m) == 0)
                return start_run(f, m, member);
        if (strcmp(member, "NextRows") == 0)
                return on_next_rows(m);
        return is_run(member);
}

/* ---- Tests -------------------------------------------------------------------------------------------------------- */

static const sqlipc_transport transports[] = { SQLIPC_TRANSPORT_PIPE, SQLIPC_TRANSPORT_CHANNEL, SQLIPC_TRANSPORT_DBUS };

/* Runs the statement once over `transport`. */
static void check_one(sqlipc_transport transport, Answer how, uint64_t timeout_usec, int r, sqlipc_error code) {
        int64_t changes = -5;
        FakeService f;

        reset(&f, transport, how);
        f.writes = how != ANSWER_ROWS;
        f.on_call = on_call;
        CHECK_INT(sqlipc_set_timeout(f.connection, timeout_usec), 0);
        CHECK_INT(sqlipc_exec(f.connection, "db", SQL, &changes), r);
        if (r < 0) {
                CHECK_INT(sqlipc_error_code(f.connection), code);
                CHECK(sqlipc_error_message(f.connection)[0]);
        }
        CHECK_INT(changes, r < 0 ? -5 : how == ANSWER_ROWS ? 0 : 3);
        stop(&f);
}

/* Runs the statement once over each transport; it is sent once. */
static void check(Answer how, uint64_t timeout_usec, int r, sqlipc_error code) {
        for (size_t i = 0; i < N_ELEMENTS(transports); i++) {
                check_one(transports[i], how, timeout_usec, r, code);
                CHECK_INT(n_sent, 1);
        }
}

static void test_changes(void) {
        check(ANSWER_CHANGES, UINT64_MAX, 0, SQLIPC_ERROR_NONE);
}

static void test_rows_are_dropped(void) {
        check(ANSWER_ROWS, UINT64_MAX, 0, SQLIPC_ERROR_NONE);
}

static void test_errors(void) {
        check(ANSWER_SQL_ERROR, UINT64_MAX, -EINVAL, SQLIPC_ERROR_SQL);
}

/* The service took the statement, and was lost. */
static void test_lost(void) {
        check(ANSWER_DIE, UINT64_MAX, -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
}

/* Calls `run` with ever larger limits of time until its statement was sent: a busy machine needs more time for that. */
static void check_timeout(sqlipc_transport transport, int (*run)(sqlipc_connection *connection)) {
        for (uint64_t timeout_usec = 50000, is_sent = false; !is_sent; timeout_usec *= 2) {
                FakeService f;
                int r;

                reset(&f, transport, ANSWER_NONE);
                f.writes = true;
                f.on_call = on_call;
                CHECK_INT(sqlipc_set_timeout(f.connection, timeout_usec), 0);
                r = run(f.connection);
                is_sent = r == -ECONNABORTED;
                CHECK(is_sent || r == -ETIMEDOUT);
                CHECK_INT(sqlipc_error_code(f.connection), is_sent ? SQLIPC_ERROR_OUTCOME_UNKNOWN : SQLIPC_ERROR_NONE);
                stop(&f);
                CHECK(n_sent <= 1);
        }
}

static int exec(sqlipc_connection *connection) {
        return sqlipc_exec(connection, "db", SQL, NULL);
}

/* No answer comes: if the statement was sent, it may take effect. */
static void test_timeout(void) {
        for (size_t i = 0; i < N_ELEMENTS(transports); i++)
                check_timeout(transports[i], exec);
        check_one(SQLIPC_TRANSPORT_CHANNEL, ANSWER_NEVER_OPEN, 50000, -ETIMEDOUT, SQLIPC_ERROR_NONE);
        CHECK_INT(n_sent, 0);
}

/* Reads the cursor to its end without blocking. */
static int finish(FakeService *f, sqlipc_cursor *c) {
        int r;

        CHECK_INT(sqlipc_set_blocking(f->connection, 0), 0);
        while ((r = sqlipc_cursor_next(c)) == -EAGAIN) {
                struct pollfd p = { .fd = sqlipc_get_fd(f->connection), .events = (short) sqlipc_get_events(f->connection) };

                CHECK(poll(&p, 1, 120000) > 0);
                CHECK(sqlipc_process(f->connection) >= 0);
        }
        return r;
}

/* The same by a query, or (`prepared`) by a statement, whose program does not block. */
static void check_cursor(sqlipc_transport transport, bool prepared, Answer how, int r, sqlipc_error code) {
        sqlipc_statement *s = NULL;
        sqlipc_cursor *c;
        FakeService f;

        reset(&f, transport, how);
        f.writes = true;
        if (prepared)
                CHECK_INT(sqlipc_prepare(f.connection, "db", SQL, &s), 0);
        f.on_call = on_call;
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        CHECK_INT(prepared ? sqlipc_execute(s, &c) : sqlipc_query(f.connection, "db", SQL, &c, NULL), 0);
        CHECK_INT(finish(&f, c), r);
        if (r < 0)
                CHECK_INT(sqlipc_error_code(f.connection), code);
        else
                CHECK_INT(sqlipc_cursor_changes(c), 3);
        CHECK_INT(n_sent, 1);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        stop(&f);
}

static void check_interrupted(Answer how, bool on_channel, int r, sqlipc_error code) {
        for (size_t i = 0; i < N_ELEMENTS(transports); i++) {
                if (!on_channel && transports[i] == SQLIPC_TRANSPORT_CHANNEL)
                        continue;
                check_one(transports[i], how, UINT64_MAX, r, code);
                CHECK_INT(n_sent, 1);
                check_cursor(transports[i], false, how, r, code);
        }
        check_cursor(SQLIPC_TRANSPORT_PIPE, true, how, r, code);
}

/* The error is Cancelled only if the service says that it has cancelled the statement. */
static void test_interrupted(void) {
        check_interrupted(ANSWER_INTERRUPT, true, -ECANCELED, SQLIPC_ERROR_CANCELLED);
        check_interrupted(ANSWER_INTERRUPT_DONE, true, 0, SQLIPC_ERROR_NONE);
        check_interrupted(ANSWER_INTERRUPT_DIE, true, -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
        check_interrupted(ANSWER_INTERRUPT_UNKNOWN, false, -ECONNABORTED, SQLIPC_ERROR_OUTCOME_UNKNOWN);
}

static sd_bus_message *crossing;

/* The reply to OpenRows is under way when Cancel is sent for it, which is not answered. */
static int cross(FakeService *f, sd_bus_message *m, const char *member) {
        if (strcmp(member, "OpenRows") == 0) {
                crossing = sd_bus_message_ref(m);
                CHECK_INT(sqlipc_interrupt(f->connection), 0);
                return 1;
        }
        if (strcmp(member, "Cancel") == 0 && crossing) {
                (void) start_run(f, crossing, "OpenRows");
                crossing = sd_bus_message_unref(crossing);
        }
        return 1;
}

/* The cursor is closed before the service has answered Cancel for the call. Cancel is then sent for the run. */
static void test_cancel_crosses_reply(void) {
        sqlipc_cursor *c;
        FakeService f;

        reset(&f, SQLIPC_TRANSPORT_DBUS, ANSWER_ROWS);
        f.on_call = cross;
        CHECK_INT(sqlipc_query(f.connection, "db", SQL, &c, NULL), 0);
        CHECK_INT(f.n_cancel, 0);
        sqlipc_cursor_close(c);
        fake_wait_for(&f.n_cancel, 1);
        stop(&f);
}

static int query(sqlipc_connection *connection) {
        sqlipc_cursor *c;

        return sqlipc_query(connection, "db", SQL, &c, NULL);
}

/* A program that waits no longer for the start of its query, which may have written. On a channel it has a cursor, whose run
 * goes on. */
static void test_timeout_of_start(void) {
        for (size_t i = 0; i < N_ELEMENTS(transports); i++)
                if (transports[i] != SQLIPC_TRANSPORT_CHANNEL)
                        check_timeout(transports[i], query);
}

/* A refused statement is sent again, because it never began. */
static void test_refused(void) {
        for (size_t i = 0; i < N_ELEMENTS(transports); i++) {
                check_one(transports[i], ANSWER_REFUSED, UINT64_MAX, 0, SQLIPC_ERROR_NONE);
                CHECK_INT(n_sent, 2);
        }
}

/* It waits even if other functions do not. */
static void test_without_blocking(void) {
        int64_t changes = 0;
        FakeService f;

        for (size_t i = 0; i < N_ELEMENTS(transports); i++) {
                reset(&f, transports[i], ANSWER_CHANGES);
                f.writes = true;
                f.on_call = on_call;
                CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
                CHECK_INT(sqlipc_exec(f.connection, "db", SQL, &changes), 0);
                CHECK_INT(changes, 3);
                stop(&f);
        }
}

static void test_parameters(void) {
        const sqlipc_parameter parameter = { .struct_size = sizeof parameter, .type = SQLIPC_INTEGER, .integer = 42 };
        const char *sql;
        int64_t value;
        FakeService f;

        reset(&f, SQLIPC_TRANSPORT_PIPE, ANSWER_CHANGES);
        f.on_call = on_call;
        CHECK_INT(sqlipc_exec_with(f.connection, "db", SQL, &parameter, 1, NULL), 0);
        CHECK(sd_bus_message_rewind(f.last, true) >= 0);
        CHECK(sd_bus_message_read(f.last, "sav", &sql, 1, "x", &value) > 0);
        CHECK_STRING(sql, SQL);
        CHECK_INT(value, 42);

        CHECK_INT(sqlipc_exec_with(f.connection, "db", SQL, NULL, 1, NULL), -EINVAL);
        CHECK_INT(sqlipc_exec(f.connection, NULL, SQL, NULL), -EINVAL);
        CHECK_INT(sqlipc_exec(f.connection, "db", NULL, NULL), -EINVAL);
        CHECK_INT(sqlipc_exec(NULL, "db", SQL, NULL), -EINVAL);
        CHECK_INT(sqlipc_exec(f.connection, "db", "\xff", NULL), -EINVAL);
        CHECK_INT(n_sent, 1);
        stop(&f);
}

static int exec_in_handler(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        FakeService *f = userdata;

        (void) m;
        (void) error;
        CHECK_INT(sqlipc_exec(f->connection, "db", SQL, NULL), -EBUSY);
        n_opened++;
        return 0;
}

static int signal_first(FakeService *f, sd_bus_message *m, const char *member) {
        CHECK(sd_bus_emit_signal(f->bus, "/", "org.example", "News", "") >= 0);
        return on_call(f, m, member);
}

/* A handler of the bus cannot wait, so nothing is sent from there. */
static void test_in_handler(void) {
        sd_bus_slot *slot;
        FakeService f;

        reset(&f, SQLIPC_TRANSPORT_PIPE, ANSWER_CHANGES);
        f.on_call = signal_first;
        CHECK(sd_bus_add_filter(f.client_bus, &slot, exec_in_handler, &f) >= 0);
        CHECK_INT(sqlipc_exec(f.connection, "db", SQL, NULL), 0);
        sd_bus_slot_unref(slot);
        CHECK(n_opened > 0);
        CHECK_INT(n_sent, 1);
        stop(&f);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_changes),
                TEST(test_rows_are_dropped),
                TEST(test_errors),
                TEST(test_lost),
                TEST(test_timeout),
                TEST(test_interrupted),
                TEST(test_cancel_crosses_reply),
                TEST(test_timeout_of_start),
                TEST(test_refused),
                TEST(test_without_blocking),
                TEST(test_parameters),
                TEST(test_in_handler),
        };
        return test_main(tests, N_ELEMENTS(tests));
}
