/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The library's channel against a service that is scripted byte by byte. The bus is a FakeService. This test writes and
 * reads the other end of the channel itself, while the library does not block. Library.
 */
#include "dbus-interfaces/sqlipc-errors.h"
#include "dbus-interfaces/wire/sqlipc-channel.h"
#include "tests/rigs/fake-channel.h"
#include "tests/rigs/fake-service.h"

static FakeService f;
static int channels[2]; /* the second is our end */
static atomic_int n_open;
static bool refuse, refuse_memory, refuse_cached, read_only, has_memory; /* the last: by the argument --memory */

/* Counted if a test asks for it: malloc(), calloc() and realloc() of the library. */
static atomic_uint n_allocations;
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_malloc(size_t size) {
        n_allocations++;
        return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size) {
        n_allocations++;
        return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size) {
        n_allocations++;
        return __real_realloc(p, size);
}

static void reply_channel(sd_bus_message *m) {
        sd_bus_message *reply = NULL;
        int fds[2], memory_fd;

        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) >= 0);
        CHECK(sd_bus_message_new_method_return(m, &reply) >= 0);
        CHECK(sd_bus_message_append(reply, "h", fds[0]) >= 0);
        CHECK(sd_bus_message_open_container(reply, 'a', "{sv}") >= 0);
        CHECK(sd_bus_message_append(reply, "{sv}{sv}", "page-size", "u", (uint32_t) 65536, "readonly", "b", read_only) >= 0);
        if (has_memory) {
                memory_fd = fake_channel_give_memory(fds[1]);
                CHECK(sd_bus_message_append(reply, "{sv}", "memory", "h", memory_fd) >= 0);
                close(memory_fd);
        }
        channels[1] = fds[1]; /* before the library has its end */
        CHECK(sd_bus_message_close_container(reply) >= 0);
        CHECK(sd_bus_send(NULL, reply, NULL) >= 0);
        sd_bus_message_unref(reply);
        close(fds[0]);
}

static bool asked_memory, asked_cached; /* by the last OpenChannel */

static void read_options(sd_bus_message *m) {
        const char *key;

        asked_memory = asked_cached = false;
        CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") >= 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                CHECK(sd_bus_message_read(m, "s", &key) >= 0);
                asked_memory = asked_memory || strcmp(key, "memory") == 0;
                asked_cached = asked_cached || strcmp(key, "cached") == 0;
                CHECK(sd_bus_message_skip(m, "v") >= 0);
                CHECK(sd_bus_message_exit_container(m) >= 0);
        }
}

static int on_call(FakeService *service, sd_bus_message *m, const char *member) {
        (void) service;
        if (strcmp(member, "OpenChannel") != 0)
                return 0;
        n_open++;
        read_options(m);
        if (refuse_cached && asked_cached)
                CHECK(sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.UnknownOption", "No \"cached\" here.") >= 0);
        else if (refuse_memory && asked_memory)
                CHECK(sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.UnknownOption", "No \"memory\" here.") >= 0);
        else if (refuse)
                CHECK(sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.LimitsExceeded", "Enough.") >= 0);
        else
                reply_channel(m);
        return 1;
}

static int n_lost_queries;

static int lose_query(FakeService *service, sd_bus_message *m, const char *member) {
        if (strcmp(member, "Query") != 0 || n_lost_queries == 0)
                return on_call(service, m, member);
        n_lost_queries--;
        CHECK(sd_bus_reply_method_errorf(m, "org.freedesktop.DBus.Error.NoReply", "It was killed.") >= 0);
        return 1;
}

static void start(sqlipc_transport transport) {
        fake_start(&f);
        f.on_call = on_call;
        n_open = 0;
        refuse = refuse_memory = refuse_cached = false;
        read_only = true;
        channels[1] = -1;
        fake_set_result(&f, 1, 2); /* what comes down pipes */
        CHECK_INT(sqlipc_set_transport(f.connection, transport), 0);
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
}

/* Cursors that a test left open. */
static sqlipc_cursor *left[16];

static void close_cursor(sqlipc_cursor *c) {
        for (size_t i = 0; i < N_ELEMENTS(left); i++)
                if (left[i] == c)
                        left[i] = NULL;
        (void) sqlipc_cursor_close(c);
}

static void stop(void) {
        if (channels[1] >= 0)
                fake_channel_close(channels[1]);
        for (size_t i = 0; i < N_ELEMENTS(left); i++)
                close_cursor(left[i]);
        fake_done(&f);
}

/* One turn of a program's loop; at most five seconds. */
static void turn(void) {
        struct pollfd fd = { .fd = sqlipc_get_fd(f.connection), .events = (short) sqlipc_get_events(f.connection) };
        uint64_t until;

        CHECK_INT(sqlipc_get_timeout(f.connection, &until), 0);
        CHECK(poll(&fd, 1, until == UINT64_MAX ? 5000 : 1100) >= 0);
        CHECK(sqlipc_process(f.connection) >= 0);
}

/* The cursor's result, as soon as there is one. */
static int next(sqlipc_cursor *c) {
        int r;

        while ((r = sqlipc_cursor_next(c)) == -EAGAIN)
                turn();
        return r;
}

static sqlipc_cursor *query(void) {
        sqlipc_cursor *c;

        CHECK_INT(sqlipc_query(f.connection, "db", "SELECT 1", &c, NULL), 0);
        for (size_t i = 0; i < N_ELEMENTS(left); i++)
                if (!left[i]) {
                        left[i] = c;
                        return c;
                }
        abort();
}

/* Payload of the last request. */
static uint8_t requested[4096];

/* The next request: its kind and number. */
static unsigned request(uint64_t *number) {
        uint8_t header[FRAME_HEADER_SIZE];
        size_t size;

        while (channels[1] < 0 || fake_channel_peek(channels[1], header, sizeof header) < 0)
                turn();
        CHECK_INT(fake_channel_receive(channels[1], header, sizeof header), sizeof header);
        size = frame_padded(load_le32(header));
        CHECK(size <= sizeof requested);
        if (size > 0)
                CHECK_INT(fake_channel_receive(channels[1], requested, size), size);
        *number = load_le64(header + 8);
        return header[4];
}

/* The same, of a statement that waits for the channel to open. */
static unsigned request_of(sqlipc_statement *s, uint64_t *number) {
        char byte;

        while (channels[1] < 0 || fake_channel_peek(channels[1], &byte, 1) < 0) {
                CHECK_INT(sqlipc_statement_is_ready(s), 0);
                turn();
        }
        return request(number);
}

static void answer(Stream *s) {
        size_t sent = 0;

        while (sent < s->size) {
                ssize_t n = fake_channel_send(channels[1], s->bytes + sent, s->size - sent);

                if (n < 0)
                        break; /* full: the rest is the caller's to send */
                sent += (size_t) n;
        }
        memmove(s->bytes, s->bytes + sent, s->size - sent);
        s->size -= sent;
        if (s->size == 0)
                stream_done(s);
}

static void add_result(Stream *s, uint64_t number, int first, int last) {
        stream_add_columns(s, number, 1, SQLIPC_PAGE_SIZE_MIN);
        if (last >= first)
                fake_add_rows(s, number, first, last);
        stream_add_end(s, number, (uint64_t) (last - first + 1));
}

/* A statement without columns' types and with one nameless parameter. */
static void add_statement_with(Stream *s, uint64_t number, uint32_t flags) {
        Stream payload = STREAM_INIT;

        stream_add_le32(&payload, 1);
        stream_add_le32(&payload, 1);
        stream_add_le32(&payload, flags);
        stream_add_le32(&payload, 0);
        for (int i = 0; i < 3; i++)
                stream_add_le32(&payload, 2);
        stream_add(&payload, "c", 2);
        stream_take_frame(s, FRAME_STATEMENT, 0, number, &payload);
}

static void add_statement(Stream *s, uint64_t number) {
        add_statement_with(s, number, STATEMENT_READ_ONLY);
}

static void check_end_of_result(sqlipc_cursor *c, int first, int last) {
        for (int i = first; i <= last; i++) {
                CHECK_INT(next(c), 1);
                CHECK_INT(sqlipc_column_int64(c, 0), i);
        }
        CHECK_INT(next(c), 0);
}

/* Requests that were made before the program waits leave together; answers are found by their request, in any order. */
static void test_pipelined(void) {
        sqlipc_cursor *c[3];
        Stream s = STREAM_INIT;
        uint64_t number[4];
        char byte;

        start(SQLIPC_TRANSPORT_CHANNEL);
        c[0] = query();
        CHECK_INT(sqlipc_cursor_get_transport(c[0]), SQLIPC_TRANSPORT_AUTO);
        CHECK_INT(request(&number[0]), REQUEST_QUERY);
        c[1] = query();
        c[2] = query();
        CHECK_INT(fake_channel_peek(channels[1], &byte, 1), -1);
        turn(); /* woken by bytes that wait to be sent */
        for (int i = 1; i < 3; i++) {
                CHECK_INT(request(&number[i]), REQUEST_QUERY);
                CHECK_INT(sqlipc_cursor_get_transport(c[i]), SQLIPC_TRANSPORT_CHANNEL);
                CHECK(number[i] > number[i - 1]);
        }
        for (int i = 0; i < 3; i++)
                add_result(&s, number[i], 10 * i, 10 * i + 2);
        answer(&s);
        for (int i = 2; i >= 0; i--)
                check_end_of_result(c[i], 10 * i, 10 * i + 2);
        for (int i = 0; i < 3; i++)
                close_cursor(c[i]);
        CHECK_INT(n_open, 1);
        CHECK_INT(f.n_query, 0);
        stop();
}

/* A request that writes has no columns, and tells at its end what it changed. */
static void test_changes(void) {
        sqlipc_cursor *c;
        Stream s = STREAM_INIT;
        uint64_t number;

        start(SQLIPC_TRANSPORT_CHANNEL);
        read_only = false;
        c = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        stream_add_columns(&s, number, 0, SQLIPC_PAGE_SIZE_MIN);
        stream_add_end_wrote(&s, number, 0, 1, INT64_MAX, FRAME_END_WROTE_SIZE);
        answer(&s);
        CHECK_INT(next(c), 0);
        CHECK_INT(sqlipc_column_count(c), 0);
        CHECK_INT(sqlipc_cursor_changes(c), 1);
        CHECK_INT(sqlipc_cursor_last_rowid(c), INT64_MAX);
        stop();
}

/* A row stays in its memory while another cursor is read. */
static void test_row_stays(void) {
        sqlipc_cursor *a, *b;
        Stream s = STREAM_INIT;
        uint64_t number, n_bytes;
        const char *text;

        start(SQLIPC_TRANSPORT_CHANNEL);
        a = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        stream_add_columns(&s, number, 1, SQLIPC_PAGE_SIZE_MIN);
        fake_add_rows(&s, number, 1, 1);
        n_bytes = s.size;
        answer(&s);
        CHECK_INT(next(a), 1);
        text = sqlipc_column_name(a, 0);
        fake_add_rows(&s, number, 2, 300);
        stream_add_end_behind(&s, number, 300, n_bytes);
        b = query();
        CHECK_INT(sqlipc_process(f.connection), 1);
        add_result(&s, number + 1, 7, 7);
        answer(&s);
        check_end_of_result(b, 7, 7);
        CHECK_INT(sqlipc_column_int64(a, 0), 1);
        CHECK_STRING(text, "c");
        check_end_of_result(a, 2, 300);
        stop();
}

/* An unread result does not delay the one after it: it moves to a pipe, or the other one does if rows of the first were
 * read. */
static void check_crowded(bool delivered) {
        sqlipc_cursor *a, *b;
        Stream s = STREAM_INIT;
        uint64_t number, n_bytes = 0;
        int r;

        start(SQLIPC_TRANSPORT_CHANNEL);
        a = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        stream_add_columns(&s, number, 1, SQLIPC_PAGE_SIZE_MIN);
        fake_add_rows(&s, number, 1, 100);
        if (delivered) {
                n_bytes = s.size;
                answer(&s);
                CHECK_INT(next(a), 1);
        }
        for (int i = 0; i < 1500; i++)
                fake_add_rows(&s, number, 1, 100);
        stream_add_end_behind(&s, number, 150100, n_bytes);
        b = query();
        add_result(&s, number + 1, 7, 8);
        do { /* what fits the socket, then b reads on */
                answer(&s);
                r = sqlipc_cursor_next(b);
        } while (s.size > 0 && r == -EAGAIN && sqlipc_cursor_get_transport(b) == SQLIPC_TRANSPORT_CHANNEL);
        if (delivered) {
                CHECK_INT(sqlipc_cursor_get_transport(b), SQLIPC_TRANSPORT_PIPE);
                check_end_of_result(b, 1, 2);
                stream_done(&s);
        } else {
                if (r == -EAGAIN)
                        r = next(b);
                CHECK_INT(r, 1);
                CHECK_INT(sqlipc_column_int64(b, 0), 7);
                check_end_of_result(b, 8, 8);
                CHECK_INT(sqlipc_cursor_get_transport(b), SQLIPC_TRANSPORT_CHANNEL);
                check_end_of_result(a, 1, 2);
                CHECK_INT(sqlipc_cursor_get_transport(a), SQLIPC_TRANSPORT_PIPE);
        }
        CHECK_INT(f.n_query, 1);
        stop();
}

static void test_crowded(void) {
        check_crowded(false);
        check_crowded(true);
}

/* On a channel that may write, neither of the two may be sent again: more of the unread result is kept. */
static void test_crowded_writer(void) {
        sqlipc_cursor *a, *b;
        Stream s = STREAM_INIT;
        uint64_t number;
        int r;

        start(SQLIPC_TRANSPORT_CHANNEL);
        read_only = false;
        a = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        stream_add_columns(&s, number, 1, SQLIPC_PAGE_SIZE_MIN);
        for (int i = 0; i < 1500; i++)
                fake_add_rows(&s, number, 1, 100);
        CHECK(s.size > 1024 * 1024);
        stream_add_end(&s, number, 150000);
        b = query();
        add_result(&s, number + 1, 7, 8);
        do {
                answer(&s);
                r = sqlipc_cursor_next(b);
        } while (s.size > 0 && r == -EAGAIN);
        CHECK_INT(r == -EAGAIN ? next(b) : r, 1);
        CHECK_INT(sqlipc_column_int64(b, 0), 7);
        check_end_of_result(b, 8, 8);
        for (int i = 0; i < 150000; i++)
                CHECK_INT(next(a), 1);
        CHECK_INT(next(a), 0);
        CHECK(sqlipc_cursor_get_transport(a) == SQLIPC_TRANSPORT_CHANNEL && f.n_query == 0);
        stop();
}

/* A query without a row is sent again; one with rows has lost its worker. */
static void test_end_of_file(void) {
        sqlipc_cursor *a, *b;
        Stream s = STREAM_INIT;
        uint64_t number;

        start(SQLIPC_TRANSPORT_CHANNEL);
        a = query();
        b = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        CHECK_INT(request(&number), REQUEST_QUERY);
        stream_add_columns(&s, number - 1, 1, SQLIPC_PAGE_SIZE_MIN);
        fake_add_rows(&s, number - 1, 5, 5);
        answer(&s);
        CHECK_INT(next(a), 1);
        fake_channel_close(channels[1]);
        channels[1] = -1;
        CHECK_INT(next(a), -ECONNRESET);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_WORKER_LOST);
        CHECK_INT(sqlipc_cursor_next(b), -EAGAIN);
        CHECK_INT(request(&number), REQUEST_QUERY); /* on another channel */
        CHECK_INT(n_open, 2);
        add_result(&s, number, 3, 4);
        answer(&s);
        check_end_of_result(b, 3, 4);
        stop();
}

/* A request that may change the database is not sent twice, unless the service never began it, or never had it whole. */
static void test_outcome_unknown(void) {
        sqlipc_cursor *c;
        uint64_t number;

        start(SQLIPC_TRANSPORT_CHANNEL);
        read_only = false;
        f.writes = true; /* so the service says when it is asked */
        c = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        fake_channel_close(channels[1]); /* the service took it, and died */
        channels[1] = -1;
        CHECK_INT(next(c), -ECONNABORTED);
        CHECK_INT(sqlipc_cursor_error_code(c), SQLIPC_ERROR_OUTCOME_UNKNOWN);
        CHECK_STRING(sqlipc_cursor_error_name(c), "org.sqlipc1.Error.OutcomeUnknown");
        CHECK_INT(sqlipc_cursor_next(c), -ECONNABORTED);
        CHECK_INT(n_open, 1);
        CHECK_INT(f.n_query, 0);
        stop();
}

/* The channel may write, but the service says that the query changes nothing: it is sent again. */
static void test_read_is_repeated(void) {
        sqlipc_cursor *c;
        Stream s = STREAM_INIT;
        uint64_t number;

        start(SQLIPC_TRANSPORT_CHANNEL);
        read_only = false;
        c = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        fake_channel_close(channels[1]);
        channels[1] = -1;
        while (n_open < 2) {
                CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
                turn();
        }
        CHECK_INT(f.n_prepare, 1);
        CHECK_INT(request(&number), REQUEST_QUERY);
        add_result(&s, number, 3, 4);
        answer(&s);
        check_end_of_result(c, 3, 4);
        CHECK_INT(f.n_query, 0);
        stop();
        CHECK_INT(f.n_finalize, 1);
}

/* It is lost again and again. The service has said that it changes nothing, so the outcome is never unknown, over the bus
 * (`bus`) and on other channels. */
static void check_read_is_lost(bool bus) {
        sqlipc_cursor *c;
        uint64_t number;
        char byte;
        int r;

        start(SQLIPC_TRANSPORT_CHANNEL);
        read_only = false;
        c = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        if (bus) {
                refuse = true;
                n_lost_queries = 2;
                f.on_call = lose_query;
                CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_AUTO), 0);
        }
        fake_channel_close(channels[1]);
        channels[1] = -1;
        while ((r = sqlipc_cursor_next(c)) == -EAGAIN) {
                turn();
                if (channels[1] >= 0 && fake_channel_peek(channels[1], &byte, 1) >= 0) {
                        CHECK_INT(request(&number), REQUEST_QUERY);
                        fake_channel_close(channels[1]);
                        channels[1] = -1;
                }
        }
        CHECK_INT(r, -ECONNRESET);
        CHECK_INT(sqlipc_cursor_error_code(c), bus ? SQLIPC_ERROR_DAEMON_LOST : SQLIPC_ERROR_WORKER_LOST);
        CHECK_INT(f.n_prepare, 1);
        CHECK_INT(f.n_query, bus ? 1 : 0);
        stop();
}

static void test_read_is_lost(void) {
        check_read_is_lost(false);
        check_read_is_lost(true);
}

/* It is refused by a service that stops, and lost when it is sent again: over the bus (`bus`), or on the same channel. A run
 * that was refused never began, so it cannot have ended the service, and this loss is its first. */
static void check_refused_then_lost(bool bus) {
        sqlipc_cursor *c;
        Stream s = STREAM_INIT;
        uint64_t number;

        start(SQLIPC_TRANSPORT_CHANNEL);
        read_only = false;
        c = query(); /* opens the channel */
        CHECK_INT(request(&number), REQUEST_QUERY);
        add_result(&s, number, 1, 2);
        answer(&s);
        check_end_of_result(c, 1, 2);
        if (bus) {
                CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_AUTO), 0);
                n_lost_queries = 1;
                f.on_call = lose_query;
        }
        c = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        stream_add_error(&s, number, ERROR_SHUTTING_DOWN, "The service stops.");
        answer(&s);
        CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
        if (!bus) {
                CHECK_INT(request(&number), REQUEST_QUERY);
                fake_channel_close(channels[1]);
                channels[1] = -1;
                while (n_open < 2 && sqlipc_cursor_next(c) == -EAGAIN)
                        turn();
                CHECK_INT(n_open, 2);
                CHECK_INT(request(&number), REQUEST_QUERY);
                add_result(&s, number, 1, 2);
                answer(&s);
        }
        check_end_of_result(c, 1, 2);
        CHECK_INT(f.n_prepare, 1);
        CHECK_INT(f.n_query, bus ? 2 : 0);
        stop();
}

static void test_refused_then_lost(void) {
        check_refused_then_lost(false);
        check_refused_then_lost(true);
}

/* A service that refuses a run each time does not hold the program up without end. */
static void test_refused_again_and_again(void) {
        sqlipc_cursor *c;
        Stream s = STREAM_INIT;
        uint64_t number, n = 0;
        char byte;
        int r;

        start(SQLIPC_TRANSPORT_CHANNEL);
        c = query();
        while ((r = sqlipc_cursor_next(c)) == -EAGAIN) {
                turn();
                if (channels[1] < 0 || fake_channel_peek(channels[1], &byte, 1) < 0)
                        continue;
                CHECK_INT(request(&number), REQUEST_QUERY);
                CHECK(++n < 10);
                stream_add_error(&s, number, ERROR_SHUTTING_DOWN, "The service stops.");
                answer(&s);
        }
        CHECK_INT(r, -ESHUTDOWN);
        CHECK_INT(n, 3);
        stop();
}

/* PREPARE changes nothing, so its refusal is no failure of the statement. */
static void test_refused_statement(void) {
        sqlipc_statement *statement;
        Stream s = STREAM_INIT;
        uint64_t number;

        start(SQLIPC_TRANSPORT_CHANNEL);
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT ?", &statement), 0);
        CHECK_INT(request_of(statement, &number), REQUEST_PREPARE);
        stream_add_error(&s, number, ERROR_SHUTTING_DOWN, "The service stops.");
        answer(&s);
        CHECK_INT(request_of(statement, &number), REQUEST_PREPARE);
        add_statement(&s, number);
        answer(&s);
        while (sqlipc_statement_is_ready(statement) == 0)
                turn();
        CHECK_INT(sqlipc_statement_is_ready(statement), 1);
        (void) sqlipc_finalize(statement);
        stop();
}

/* Prepares a statement on a channel that may write. */
static sqlipc_statement *prepare(bool writes) {
        sqlipc_statement *statement;
        Stream s = STREAM_INIT;
        uint64_t number;

        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT ?", &statement), 0);
        CHECK_INT(sqlipc_statement_is_ready(statement), 0);
        CHECK_INT(request_of(statement, &number), REQUEST_PREPARE);
        add_statement_with(&s, number, writes ? 0 : STATEMENT_READ_ONLY);
        answer(&s);
        while (sqlipc_statement_is_ready(statement) == 0)
                turn();
        CHECK_INT(sqlipc_statement_is_readonly(statement), !writes);
        return statement;
}

/* The description of a statement decides, if the channel may write. */
static void check_lost_statement(bool writes) {
        sqlipc_statement *statement;
        sqlipc_cursor *c;
        Stream s = STREAM_INIT;
        uint64_t number, prepared;

        start(SQLIPC_TRANSPORT_CHANNEL);
        read_only = false;
        statement = prepare(writes);
        CHECK_INT(sqlipc_execute(statement, &c), 0);
        CHECK_INT(request(&number), REQUEST_FETCH);
        stream_add_error(&s, number, ERROR_UNKNOWN_STATEMENT, "It was dropped."); /* so it never began */
        answer(&s);
        CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
        CHECK_INT(request(&prepared), REQUEST_PREPARE);
        CHECK_INT(request(&number), REQUEST_FETCH);
        fake_channel_close(channels[1]);
        channels[1] = -1;
        if (writes) {
                CHECK_INT(next(c), -ECONNABORTED);
                CHECK_INT(sqlipc_cursor_error_code(c), SQLIPC_ERROR_OUTCOME_UNKNOWN);
        } else {
                CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
                CHECK_INT(request(&prepared), REQUEST_PREPARE);
                CHECK_INT(request(&number), REQUEST_FETCH);
                add_statement(&s, prepared);
                add_result(&s, number, 3, 4);
                answer(&s);
                check_end_of_result(c, 3, 4);
        }
        CHECK_INT(n_open, writes ? 1 : 2);
        CHECK_INT(f.n_prepare + f.n_fetch + f.n_query, 0);
        close_cursor(c);
        sqlipc_finalize(statement);
        stop();
}

static void test_lost_statement(void) {
        check_lost_statement(true);
        check_lost_statement(false);
}

/* A cancelled request that may write is not given up before its answer, or the loss of the channel. */
static void check_cancelled_write(char ending) {
        sqlipc_cursor *c;
        Stream s = STREAM_INIT;
        uint64_t number, cancelled;

        start(SQLIPC_TRANSPORT_CHANNEL);
        read_only = false;
        c = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        CHECK_INT(sqlipc_cursor_cancel(c), 0);
        CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
        CHECK_INT(request(&cancelled), REQUEST_CANCEL);
        CHECK_INT(cancelled, number);
        switch (ending) {
        case 'c':
                stream_add_error(&s, number, ERROR_CANCELLED, "The run was cancelled.");
                answer(&s);
                CHECK_INT(next(c), -ECANCELED);
                break;
        case 'w': /* it was too late */
                stream_add_columns(&s, number, 0, SQLIPC_PAGE_SIZE_MIN);
                stream_add_end_wrote(&s, number, 0, 2, 5, FRAME_END_WROTE_SIZE);
                answer(&s);
                CHECK_INT(next(c), 0);
                CHECK_INT(sqlipc_cursor_changes(c), 2);
                break;
        default:
                fake_channel_close(channels[1]);
                channels[1] = -1;
                CHECK_INT(next(c), -ECONNABORTED);
                CHECK_INT(sqlipc_cursor_error_code(c), SQLIPC_ERROR_OUTCOME_UNKNOWN);
        }
        CHECK_INT(n_open, 1);
        stop();
}

static void test_cancelled_write(void) {
        check_cancelled_write('c');
        check_cancelled_write('w');
        check_cancelled_write('l');
}

static void test_never_began(void) {
        sqlipc_cursor *c;
        Stream s = STREAM_INIT;
        uint64_t number;

        start(SQLIPC_TRANSPORT_CHANNEL);
        read_only = false;
        c = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        stream_add_error(&s, number, ERROR_SHUTTING_DOWN, "The service stops.");
        answer(&s);
        CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
        CHECK_INT(request(&number), REQUEST_QUERY);
        add_result(&s, number, 3, 4);
        answer(&s);
        check_end_of_result(c, 3, 4);
        close_cursor(c);

        c = query(); /* in the library's buffer yet, when the service closes the channel */
        fake_channel_close(channels[1]);
        channels[1] = -1;
        CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
        CHECK_INT(request(&number), REQUEST_QUERY);
        CHECK_INT(n_open, 2);
        add_result(&s, number, 5, 6);
        answer(&s);
        check_end_of_result(c, 5, 6);
        stop();
}

/* Unless channels are required it is sent again over the bus, where no channel can break. */
static void test_back_to_the_bus(void) {
        sqlipc_cursor *c;
        uint64_t number;

        start(SQLIPC_TRANSPORT_CHANNEL);
        c = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        close_cursor(c);
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_AUTO), 0);
        CHECK_INT(request(&number), REQUEST_CANCEL);
        fake_channel_close(channels[1]);
        channels[1] = -1;
        c = query();
        check_end_of_result(c, 1, 2);
        CHECK_INT(sqlipc_cursor_get_transport(c), SQLIPC_TRANSPORT_PIPE);
        CHECK_INT(f.n_query, 1);
        stop();
}

/* The library closed its end. The service's thread may hold a copy for a moment, in the message that passed it. */
static void check_closed(int fd) {
        struct pollfd readable = { .fd = fd, .events = POLLIN };
        char bytes[256];
        ssize_t n;

        do {
                CHECK_INT(poll(&readable, 1, 120000), 1);
                n = recv(fd, bytes, sizeof bytes, 0);
        } while (n > 0);
        CHECK(n == 0 || errno == ECONNRESET); /* it did not read the byte that woke it */
}

/* A frame that cannot answer a query ends the run and the channel. */
static void check_nonsense(uint64_t offset, unsigned kind, size_t size) {
        uint8_t payload[4096] = {};
        sqlipc_cursor *c;
        Stream s = STREAM_INIT;
        uint64_t number;
        char byte;

        start(SQLIPC_TRANSPORT_CHANNEL);
        c = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        stream_add_frame(&s, kind, 0, number + offset, payload, size);
        answer(&s);
        CHECK_INT(next(c), -EBADMSG);
        while (fake_channel_receive(channels[1], &byte, 1) > 0)
                ;
        close_cursor(c);
        stop();
}

static void test_nonsense(void) {
        check_nonsense(1, FRAME_COLUMNS, 18);   /* nobody's number */
        check_nonsense(0, FRAME_ROWS, 18);      /* rows without columns */
        check_nonsense(0, FRAME_END, 8);        /* an end that is too short */
        check_nonsense(0, 77, 8);               /* no kind */
        check_nonsense(0, FRAME_STATEMENT, 15); /* no statement was asked for */
        check_nonsense(0, FRAME_STATEMENT, 16); /* nor is one that would be valid */
}

/* A frame that may come on a channel, but not as the answer to this request. */
static void check_wrong_answer(RequestKind kind, void (*add)(Stream *s, uint64_t number)) {
        sqlipc_statement *statement;
        sqlipc_cursor *c = NULL;
        Stream s = STREAM_INIT;
        uint64_t number;

        start(SQLIPC_TRANSPORT_CHANNEL);
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT 1", &statement), 0);
        CHECK_INT(request_of(statement, &number), REQUEST_PREPARE);
        if (kind == REQUEST_PREPARE) {
                add(&s, number);
                answer(&s);
                while (turn(), sqlipc_statement_is_ready(statement) == 0)
                        ;
                CHECK_INT(sqlipc_statement_is_ready(statement), -EBADMSG);
        } else {
                add_statement(&s, number);
                answer(&s);
                while (sqlipc_statement_is_ready(statement) == 0)
                        turn();
                CHECK_INT(sqlipc_execute(statement, &c), 0);
                CHECK_INT(request(&number), REQUEST_FETCH);
                add(&s, number);
                answer(&s);
                CHECK_INT(next(c), -EBADMSG);
        }
        check_closed(channels[1]);
        (void) sqlipc_cursor_close(c);
        (void) sqlipc_finalize(statement);
        stop();
}

static void add_two_rows(Stream *s, uint64_t number) {
        add_result(s, number, 1, 2);
}

static void add_end(Stream *s, uint64_t number) {
        stream_add_end(s, number, 0);
}

static void test_wrong_answer(void) {
        check_wrong_answer(REQUEST_PREPARE, add_two_rows);
        check_wrong_answer(REQUEST_PREPARE, add_end);
        check_wrong_answer(REQUEST_FETCH, add_statement);
        check_wrong_answer(REQUEST_FETCH, add_end);
}

/* CANCEL names the run; one that does not end within a second is left, and the channel with it. */
static void check_cancel(bool obeys) {
        sqlipc_cursor *c;
        Stream s = STREAM_INIT;
        uint64_t number, cancelled;

        start(SQLIPC_TRANSPORT_CHANNEL);
        c = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        stream_add_columns(&s, number, 1, SQLIPC_PAGE_SIZE_MIN);
        fake_add_rows(&s, number, 1, 1);
        answer(&s);
        CHECK_INT(next(c), 1);
        CHECK_INT(sqlipc_cursor_cancel(c), 0);
        CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
        CHECK_INT(request(&cancelled), REQUEST_CANCEL);
        CHECK_INT(cancelled, number);
        if (obeys) {
                stream_add_error(&s, number, ERROR_CANCELLED, "cancelled");
                answer(&s);
        }
        CHECK_INT(next(c), -ECANCELED);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_CANCELLED);
        if (!obeys)
                check_closed(channels[1]);
        stop();
}

static void test_cancel(void) {
        check_cancel(true);
        check_cancel(false);
}

/* PREPARE once, FETCH any number of times, without an allocation; PREPARE again if the service forgot it. */
static void test_statement(void) {
        sqlipc_statement *statement;
        sqlipc_cursor *c;
        Stream s = STREAM_INIT;
        uint64_t number, prepared;
        unsigned before;

        start(SQLIPC_TRANSPORT_CHANNEL);
        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT ?", &statement), 0);
        CHECK_INT(sqlipc_statement_is_ready(statement), 0);
        CHECK_INT(request_of(statement, &prepared), REQUEST_PREPARE);
        add_statement(&s, prepared);
        answer(&s);
        while (sqlipc_statement_is_ready(statement) == 0)
                turn();
        CHECK_INT(sqlipc_statement_column_count(statement), 1);
        CHECK_STRING(sqlipc_statement_column_name(statement, 0), "c");
        CHECK_INT(sqlipc_statement_parameter_count(statement), 1);
        for (int i = 0; i < 10; i++) {
                before = n_allocations;
                CHECK_INT(sqlipc_bind_int64(statement, 1, i), 0);
                CHECK_INT(sqlipc_execute(statement, &c), 0);
                CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
                CHECK(i == 0 || n_allocations == before);
                CHECK_INT(request(&number), REQUEST_FETCH);
                add_result(&s, number, i, i);
                answer(&s);
                before = n_allocations;
                CHECK_INT(sqlipc_cursor_next(c), 1);
                CHECK_INT(sqlipc_column_int64(c, 0), i);
                CHECK_INT(sqlipc_cursor_next(c), 0);
                close_cursor(c);
                CHECK(i == 0 || n_allocations == before);
        }
        CHECK_INT(sqlipc_execute(statement, &c), 0);
        CHECK_INT(request(&number), REQUEST_FETCH);
        stream_add_error(&s, number, ERROR_UNKNOWN_STATEMENT, "no such statement");
        answer(&s);
        CHECK_INT(sqlipc_cursor_next(c), -EAGAIN);
        CHECK_INT(request(&prepared), REQUEST_PREPARE);
        CHECK_INT(request(&number), REQUEST_FETCH);
        add_statement(&s, prepared);
        add_result(&s, number, 5, 5);
        answer(&s);
        check_end_of_result(c, 5, 5);
        close_cursor(c);
        sqlipc_finalize(statement);
        CHECK_INT(request(&number), REQUEST_FINALIZE);
        CHECK_INT(number, prepared);
        stop();
}

/* The time limit of a run goes with its request, as it was when the program asked. */
static void test_run_timeout(void) {
        uint64_t number;

        start(SQLIPC_TRANSPORT_CHANNEL);
        (void) query();
        CHECK_INT(sqlipc_set_run_timeout(f.connection, 5000), 0);
        CHECK_INT(request(&number), REQUEST_QUERY);
        CHECK_INT(load_le64(requested), 0);
        (void) query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        CHECK_INT(load_le64(requested), 5000);
        stop();
}

/* The answer to a closed cursor is dropped. */
static void test_closed_cursor(void) {
        sqlipc_cursor *a, *b;
        Stream s = STREAM_INIT;
        uint64_t first, number;

        start(SQLIPC_TRANSPORT_CHANNEL);
        a = query();
        CHECK_INT(request(&first), REQUEST_QUERY);
        close_cursor(a);
        CHECK_INT(request(&number), REQUEST_CANCEL);
        CHECK_INT(number, first);
        b = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        add_result(&s, first, 1, 300);
        add_result(&s, number, 8, 9);
        answer(&s);
        check_end_of_result(b, 8, 9);
        stop();
}

/* Bytes that are read for one cursor wake the loop for the others that wait. */
static void test_wakes(void) {
        sqlipc_cursor *a, *b;
        Stream s = STREAM_INIT;
        struct pollfd fd;
        uint64_t number;

        start(SQLIPC_TRANSPORT_CHANNEL);
        a = query();
        b = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        CHECK_INT(request(&number), REQUEST_QUERY);
        (void) sqlipc_process(f.connection);
        CHECK_INT(sqlipc_cursor_next(a), -EAGAIN);
        add_result(&s, number - 1, 1, 1);
        add_result(&s, number, 2, 2);
        answer(&s);
        check_end_of_result(b, 2, 2); /* takes all that is in the socket */
        fd = (struct pollfd) { .fd = sqlipc_get_fd(f.connection), .events = POLLIN };
        CHECK_INT(poll(&fd, 1, 0), 1);
        check_end_of_result(a, 1, 1);
        stop();
}

/* No channel can be opened: its error, and with AUTO no error. */
static void test_refused(void) {
        sqlipc_cursor *c;

        start(SQLIPC_TRANSPORT_CHANNEL);
        refuse = true;
        c = query();
        CHECK_INT(next(c), -EDQUOT);
        CHECK_INT(sqlipc_error_code(f.connection), SQLIPC_ERROR_LIMITS_EXCEEDED);
        CHECK_STRING(sqlipc_error_message(f.connection), "Enough.");
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_AUTO), 0);
        for (int i = 0; i < 20; i++) {
                c = query();
                check_end_of_result(c, 1, 2);
                CHECK_INT(sqlipc_cursor_get_transport(c), SQLIPC_TRANSPORT_PIPE);
                close_cursor(c);
        }
        CHECK_INT(sqlipc_set_transport(f.connection, (sqlipc_transport) 4), -EINVAL);
        CHECK_INT(sqlipc_set_transport(NULL, SQLIPC_TRANSPORT_AUTO), -EINVAL);
        CHECK_INT(sqlipc_cursor_get_transport(NULL), SQLIPC_TRANSPORT_AUTO);
        stop();
}

/* A service that does not know memory is asked once. */
static void test_without_memory(void) {
        bool had_memory = has_memory;

        start(SQLIPC_TRANSPORT_CHANNEL);
        refuse_memory = true;
        has_memory = false;
        for (int i = 0; i < 2; i++) {
                sqlipc_cursor *c;
                Stream s = STREAM_INIT;
                uint64_t number;

                channels[1] = -1;
                CHECK_INT(sqlipc_query(f.connection, i == 0 ? "one" : "two", "SELECT 1", &c, NULL), 0);
                CHECK_INT(request(&number), REQUEST_QUERY);
                add_result(&s, number, 1, 2);
                answer(&s);
                check_end_of_result(c, 1, 2);
                sqlipc_cursor_close(c);
                CHECK_INT(n_open, 2 + i);
                if (i == 0)
                        fake_channel_close(channels[1]);
        }
        stop();
        has_memory = had_memory;
}

/* The service may release a channel that the program did not ask for. Older services know no such channels. */
static void check_cached(sqlipc_transport transport, bool cached, bool older) {
        bool had_memory = has_memory;
        sqlipc_cursor *c;
        Stream s = STREAM_INIT;
        uint64_t number;

        start(transport);
        refuse_cached = refuse_memory = older;
        has_memory = has_memory && !older;
        if (transport == SQLIPC_TRANSPORT_AUTO) { /* a small result */
                c = query();
                check_end_of_result(c, 1, 2);
                close_cursor(c);
                CHECK_INT(n_open, 0);
        }
        c = query();
        CHECK_INT(request(&number), REQUEST_QUERY);
        add_result(&s, number, 1, 2);
        answer(&s);
        check_end_of_result(c, 1, 2);
        CHECK_INT(n_open, older ? 3 : 1);
        CHECK_INT(asked_cached, cached && !older);
        CHECK_INT(asked_memory, !older);
        stop();
        has_memory = had_memory;
}

static void test_cached(void) {
        check_cached(SQLIPC_TRANSPORT_AUTO, true, false);
        check_cached(SQLIPC_TRANSPORT_AUTO, true, true);
        check_cached(SQLIPC_TRANSPORT_CHANNEL, false, false);
}

/* Any number of databases: a bounded number of channels is open, and the one that was idle for the longest time closes. */
static void test_many_databases(void) {
        int ends[100], n_open_ends = 0;
        sqlipc_cursor *c;
        char name[16], byte;

        start(SQLIPC_TRANSPORT_CHANNEL);
        for (size_t i = 0; i < N_ELEMENTS(ends); i++) {
                Stream s = STREAM_INIT;
                uint64_t number;

                channels[1] = -1;
                snprintf(name, sizeof name, "db%zu", i);
                CHECK_INT(sqlipc_query(f.connection, name, "SELECT 1", &c, NULL), 0);
                CHECK_INT(request(&number), REQUEST_QUERY);
                add_result(&s, number, 1, 2);
                answer(&s);
                check_end_of_result(c, 1, 2);
                sqlipc_cursor_close(c);
                ends[i] = channels[1];
        }
        CHECK_INT(n_open, N_ELEMENTS(ends));
        for (size_t i = 0; i < N_ELEMENTS(ends); i++) {
                if (i + 10 < N_ELEMENTS(ends))
                        check_closed(ends[i]);
                n_open_ends += fake_channel_receive(ends[i], &byte, 1) < 0;
                fake_channel_close(ends[i]);
        }
        CHECK(n_open_ends > 0 && n_open_ends <= 8);
        channels[1] = -1;
        stop();
}

int main(int argc, char **argv) {
        static const Test tests[] = {
                TEST(test_pipelined),
                TEST(test_changes),
                TEST(test_row_stays),
                TEST(test_crowded),
                TEST(test_crowded_writer),
                TEST(test_end_of_file),
                TEST(test_outcome_unknown),
                TEST(test_read_is_repeated),
                TEST(test_read_is_lost),
                TEST(test_refused_then_lost),
                TEST(test_refused_again_and_again),
                TEST(test_refused_statement),
                TEST(test_lost_statement),
                TEST(test_cancelled_write),
                TEST(test_never_began),
                TEST(test_back_to_the_bus),
                TEST(test_nonsense),
                TEST(test_wrong_answer),
                TEST(test_cancel),
                TEST(test_statement),
                TEST(test_run_timeout),
                TEST(test_closed_cursor),
                TEST(test_wakes),
                TEST(test_refused),
                TEST(test_without_memory), TEST(test_cached),
                TEST(test_many_databases),
        };

        has_memory = argc > 1 && strcmp(argv[1], "--memory") == 0;
        signal(SIGPIPE, SIG_IGN);
        return test_main(tests, N_ELEMENTS(tests));
}
