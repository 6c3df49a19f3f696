/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages between supervisor and worker: each kind in both directions, over a real socket and through a memfd, and possible
 * messages of a hostile or broken peer.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/protocol/protocol.h"
#include "daemon/protocol/statement-list.h"
#include "dbus-interfaces/sqlipc-errors.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

/* One row: INTEGER 7; "a" (TEXT) and NULL. As parameters: one positional value, one named. */
static const uint8_t row[] = {
        VALUE_INTEGER, VALUE_TEXT, VALUE_NULL, 8, 0, 0, 0, 10, 0, 0, 0, 10, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 'a', 0,
};

static Bytes columns[] = { { "one", 3 }, { "INTEGER", 7 }, { "t\0o", 3 }, { NULL, 0 } };
static Bytes parameters[] = { { ":a", 2 }, { NULL, 0 } };
static Bytes exposed[] = { { "Album", 5 }, { "a view", 6 } };
static Bytes tables[] = { { "Track", 5 }, { "Genre", 5 }, { "a", 1 } };

/* Two statements: "DELETE" without parameters, and "X" with the row. */
static const uint8_t two[] = {
        6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'D', 'E', 'L', 'E', 'T', 'E', 0,
        1, 0, 0, 0, 25, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 'X', 0,
        VALUE_INTEGER, VALUE_TEXT, VALUE_NULL, 8, 0, 0, 0, 10, 0, 0, 0, 10, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 'a', 0,
};

static const Message messages[] = {
        { .kind = MESSAGE_SETUP,
          .setup = { "/a/b", ENGINE_KIND_SQLITE, NULL, NULL, NULL, 0, 0, true, 44, true, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                     11 } },
        { .kind = MESSAGE_PREPARE,
          .job = { .number = 1, .counts = { COUNTS_N_SLOTS - 1, 2 }, .sql = "SELECT\0 1", .sql_size = 9 } },
        { .kind = MESSAGE_RUN,
          .job = { .number = UINT64_MAX,
                   .sql = "",
                   .describe = true,
                   .page_size = 4096,
                   .deadline_usec = 6,
                   .row_size_max = 7,
                   .result_rows_max = 9,
                   .result_size_max = 8,
                   .n_positional = 1,
                   .n_named = 1,
                   .parameters = row,
                   .parameters_size = sizeof row } },
        { .kind = MESSAGE_CANCEL, .cancel = { 1, ERROR_TIMED_OUT, "late" } },
        { .kind = MESSAGE_EXIT },
        { .kind = MESSAGE_TAKEN, .number = 1 },
        { .kind = MESSAGE_STARTED,
          .started = { .number = 2, .described = true, .read_only = true, .n_columns = 2, .columns = columns,
                       .n_parameters = 2, .parameters = parameters } },
        { .kind = MESSAGE_PARKED, .parked = { 3, true } },
        { .kind = MESSAGE_FILLING, .number = 4 },
        { .kind = MESSAGE_ENDED, .ended = { 5, { ERROR_SQL, 267, -1, "wrong" }, 1, 2, 3, true } },
        { .kind = MESSAGE_DRAINED, .drained = { 6, { "rest", 4 } } },
        { .kind = MESSAGE_SETUP, .setup = { .path = "/a", .security_barrier = true, .n_exposed = 2,
                                              .exposed = exposed } },
        { .kind = MESSAGE_PROGRESS, .progress = { 7, 8, 9 } },
        { .kind = MESSAGE_CHANNEL, .channel = { 10, 9, 4096, 11, 12, 13, 14, 15, 16, true, "/b", true, 45, { 46, 47 },
                                                { "s\0t", 3 } } },
        { .kind = MESSAGE_CHANNEL, .channel = { .number = 17, .page_size = 262144 } },
        { .kind = MESSAGE_CHANNEL_CLOSE, .channel_close = { .number = 18, .drain = true } },
        { .kind = MESSAGE_CHANNEL_PROGRESS,
          .channel_progress = { 19, 20, 21, 22, true, false, true, 23, 24, { "SELECT", 6 } } },
        { .kind = MESSAGE_CHANNEL_RESTED, .channel_end = { { .number = 25 }, true, true, { "state", 5 }, { "unread", 6 } } },
        { .kind = MESSAGE_CHANNEL_CLOSED, .channel_end = { { .number = 26, .parked = true }, false, false, {}, {} } },
        { .kind = MESSAGE_PING, .number = 27 },
        { .kind = MESSAGE_PONG, .number = 28 },
        { .kind = MESSAGE_RETIRE },
        { .kind = MESSAGE_GIVE_WAY },
        { .kind = MESSAGE_STAY },
        { .kind = MESSAGE_SETUP,
          .setup = { .path = "/a", .n_exposed = 2, .exposed = exposed, .writes = true, .write_schema = true,
                     .sync_full = true, .foreign_keys = true, .database_size_max = 29, .wal_size_max = 30,
                     .n_write_tables = 3, .write_tables = tables } },
        { .kind = MESSAGE_SETUP,
          .setup = { .path = "", .engine = ENGINE_KIND_POSTGRESQL, .connection = "host=a", .replica_connection = "host=b",
                     .password = "c", .connections_max = 3, .consistency = CONSISTENCY_STRONG } },
        { .kind = MESSAGE_EXECUTE,
          .job = { .number = 31, .sql = "DELETE", .sql_size = 6, .transaction = 39,
                   .foreign_keys = FOREIGN_KEYS_ON, .time_zone = "Europe/Berlin", .lock_wait_usec = 58, .deadline_usec = 32,
                   .n_positional = 1, .n_named = 1,
                   .parameters = row, .parameters_size = sizeof row } },
        { .kind = MESSAGE_ENDED,
          .ended = { .number = 33, .drained = true, .wrote = true, .n_changes = 34, .last_rowid = INT64_MIN } },
        { .kind = MESSAGE_LEASE_WANTED },
        { .kind = MESSAGE_LEASE },
        { .kind = MESSAGE_LEASE_ASKED },
        { .kind = MESSAGE_LEASE_RETURNED },
        { .kind = MESSAGE_LEASE_KEPT },
        { .kind = MESSAGE_LEASE_TAKEN },
        { .kind = MESSAGE_TRY_COMMIT, .number = 38 },
        { .kind = MESSAGE_ATTACH_WANTED, .attach = { .number = 8, .name = "music" } },
        { .kind = MESSAGE_ATTACH, .attach = { .number = 8, .name = "music", .path = "/srv/music", .immutable = true } },
        { .kind = MESSAGE_ATTACH,
          .attach = { .number = 8, .name = "music", .error = ERROR_NOT_ALLOWED, .message = "It is on a server." } },
        { .kind = MESSAGE_COMMIT_REFUSED,
          .ended = { .number = 38, .failure = { ERROR_COMMIT_REFUSED, 787, -1, "no" } } },
        { .kind = MESSAGE_COMMITTING, .committing = { { "12345678abcdefgh", 16 } } },
        { .kind = MESSAGE_BEGIN, .begin = { 35, true, true, 36, 37, 38, FOREIGN_KEYS_OFF } },
        { .kind = MESSAGE_COMMIT, .number = 38 },
        { .kind = MESSAGE_LOAD,
          .job = { .number = 40, .sql = "INSERT", .sql_size = 6, .deadline_usec = 41, .idle_usec = 42, .page_size = 4096,
                   .row_size_max = 43 } },
        { .kind = MESSAGE_EXECUTE_BATCH,
          .job = { .number = 40, .transaction = 41, .foreign_keys = FOREIGN_KEYS_OFF, .time_zone = "UTC",
                   .deadline_usec = 42, .n_statements = 2, .statements = two, .statements_size = sizeof two } },
        { .kind = MESSAGE_ENDED, .ended = { .number = 43, .wrote = true, .n_changes = 34, .last_rowid = INT64_MIN,
                                               .changes = { "12345678abcdefgh", 16 } } },
        { .kind = MESSAGE_LEASE, .number = 1 },
        { .kind = MESSAGE_WATCH, .number = 1 },
        { .kind = MESSAGE_TABLES, .job = { .number = 46, .sql = "a\0b", .sql_size = 4, .names = true } },
        { .kind = MESSAGE_ENDED,
          .ended = { .number = 47, .drained = true, .sequence = 48, .foreign_keys = FOREIGN_KEYS_ON,
                     .tables = { "a\0b", 4 }, .names = { "v", 2 } } },
        { .kind = MESSAGE_COMMITTED,
          .committed = { 49, true, true, true, { FILE_STATE_WAL, 50, 51, 52, 53 }, { FILE_STATE_ROLLBACK, 54, 55, 56, 57 },
                         { "a\0b", 4 } } },
        { .kind = MESSAGE_OBSERVE },
        { .kind = MESSAGE_OBSERVED, .observed = { { FILE_STATE_WAL, 58, 59, 60, 61 }, true, true, 62, 63, 64, "file" } },
        { .kind = MESSAGE_NOTIFIER },
        { .kind = MESSAGE_CONNECTION_WANTED },
        { .kind = MESSAGE_CONNECTION },
        { .kind = MESSAGE_CONNECTION_ASKED },
        { .kind = MESSAGE_CONNECTION_RETURNED },
};

/* Two messages say the same: their encodings do. */
static void assert_equal(const Message *a, const Message *b) {
        g_autofree uint8_t *x = NULL, *y = NULL;
        size_t x_size, y_size;

        g_assert_cmpint(message_encode(a, &x, &x_size), ==, 0);
        g_assert_cmpint(message_encode(b, &y, &y_size), ==, 0);
        g_assert_cmpmem(x, x_size, y, y_size);
}

static void test_round_trip(void) {
        int s[2], p[2];

        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), ==, 0);
        g_assert_cmpint(pipe2(p, O_CLOEXEC), ==, 0);
        for (size_t i = 0; i < G_N_ELEMENTS(messages); i++) {
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;

                g_assert_cmpint(message_send(s[0], &messages[i], message_has_fd(messages[i].kind) ? p[1] : -1), ==, 0);
                g_assert_cmpint(message_receive(s[1], &m), ==, 1);
                assert_equal(&m.message, &messages[i]);
                g_assert_cmpint(m.pipe_fd >= 0, ==, message_has_fd(messages[i].kind));
                if (m.pipe_fd >= 0)
                        g_assert_true(fcntl(m.pipe_fd, F_GETFD) & FD_CLOEXEC);
                received_message_done(&m);
        }
        g_assert_cmpint(message_receive(s[1], &(ReceivedMessage) { .pipe_fd = -1, .memory_fd = -1 }), ==, -EAGAIN);
        close(s[0]);
        g_assert_cmpint(message_receive(s[1], &(ReceivedMessage) { .pipe_fd = -1, .memory_fd = -1 }), ==, 0);
        close(s[1]);
        close(p[0]);
        close(p[1]);
}

/* Fields that a struct compare of encodings could not see missing. */
static void test_fields(void) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        uint8_t *bytes;
        size_t size;

        g_assert_cmpint(message_encode(&messages[6], &bytes, &size), ==, 0);
        g_assert_cmpint(message_decode(bytes, size, &m), ==, 0);
        g_assert_cmpmem(m.message.started.columns[2].data, m.message.started.columns[2].size, "t\0o", 3);
        g_assert_null(m.message.started.columns[3].data);
        g_assert_cmpstr(m.message.started.parameters[0].data, ==, ":a");
        received_message_done(&m);
        g_assert_cmpint(message_encode(&messages[9], &bytes, &size), ==, 0);
        g_assert_cmpint(message_decode(bytes, size, &m), ==, 0);
        g_assert_cmpint(m.message.ended.failure.extended_code, ==, 267);
        g_assert_cmpint(m.message.ended.failure.sql_offset, ==, -1);
        g_assert_true(m.message.ended.drained);
        received_message_done(&m);
        for (size_t i = 0; i < G_N_ELEMENTS(messages); i++) {
                if (messages[i].kind != MESSAGE_ENDED || !messages[i].ended.wrote)
                        continue;
                g_assert_cmpint(message_encode(&messages[i], &bytes, &size), ==, 0);
                g_assert_cmpint(message_decode(bytes, size, &m), ==, 0);
                g_assert_true(m.message.ended.wrote);
                g_assert_cmpint(m.message.ended.n_changes, ==, 34);
                g_assert_cmpint(m.message.ended.last_rowid, ==, INT64_MIN);
                received_message_done(&m);
        }
}

/* At the size of a datagram, and one byte over: then by memfd, with and without a pipe beside it. */
static void test_memfd(void) {
        int s[2], p[2];

        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), ==, 0);
        g_assert_cmpint(pipe2(p, O_CLOEXEC), ==, 0);
        for (size_t over = 0; over < 3; over++) {
                Message m = messages[2];
                size_t fixed;
                g_autofree uint8_t *empty = NULL;
                g_autofree char *sql = NULL;

                g_assert_cmpint(message_encode(&m, &empty, &fixed), ==, 0);
                m.job.sql_size = MESSAGE_SIZE_MAX - fixed + over;
                m.job.sql = sql = g_strnfill(m.job.sql_size, 'x');
                for (int kind = MESSAGE_PREPARE; kind <= MESSAGE_RUN; kind++) {
                        ReceivedMessage got = RECEIVED_MESSAGE_INIT;

                        m.kind = kind;
                        g_assert_cmpint(message_send(s[0], &m, kind == MESSAGE_RUN ? p[1] : -1), ==, 0);
                        g_assert_cmpint(message_receive(s[1], &got), ==, 1);
                        assert_equal(&got.message, &m);
                        received_message_done(&got);
                }
        }
        {
                Message m = messages[1];
                g_autofree char *sql = g_strnfill(MESSAGE_JOB_SIZE_MAX, 'x');

                m.job.sql = sql;
                m.job.sql_size = MESSAGE_JOB_SIZE_MAX;
                g_assert_cmpint(message_send(s[0], &m, -1), ==, -E2BIG);
        }
        for (int i = 0; i < 2; i++) {
                close(s[i]);
                close(p[i]);
        }
}

/* A job that is in a file comes with its descriptor, which is the second one if there is a pipe. */
static void test_in_file(void) {
        static const MessageKind kinds[] = { MESSAGE_RUN, MESSAGE_EXECUTE, MESSAGE_EXECUTE_BATCH, MESSAGE_LOAD };
        int s[2], p[2], file = open("/dev/null", O_RDONLY | O_CLOEXEC);
        struct stat wanted, st;

        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), ==, 0);
        g_assert_cmpint(pipe2(p, O_CLOEXEC), ==, 0);
        g_assert_cmpint(fstat(file, &wanted), ==, 0);
        for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
                Message m = { .kind = kinds[i], .job = { .number = 1, .sql = "", .page_size = 4096, .in_file = true,
                                                         .parameters_size_max = 5 } };
                bool has_fd = message_has_fd(kinds[i]);
                ReceivedMessage got = RECEIVED_MESSAGE_INIT;

                g_assert_cmpint(message_send_with(s[0], &m, has_fd ? p[1] : -1, file), ==, 0);
                g_assert_cmpint(message_receive(s[1], &got), ==, 1);
                assert_equal(&got.message, &m);
                g_assert_cmpint(got.pipe_fd >= 0, ==, has_fd);
                g_assert_cmpint(fstat(got.memory_fd, &st), ==, 0);
                g_assert_cmpuint(st.st_ino, ==, wanted.st_ino);
                received_message_done(&got);
                g_assert_cmpint(message_send_with(s[0], &m, has_fd ? p[1] : -1, -1), ==, 0);
                g_assert_cmpint(message_receive(s[1], &got), ==, -EBADMSG);
                m.job.in_file = false;
                m.job.n_statements = 0;
                g_assert_cmpint(message_send_with(s[0], &m, has_fd ? p[1] : -1, file), ==, 0);
                g_assert_cmpint(message_receive(s[1], &got), ==, -EBADMSG);
        }
        for (int i = 0; i < 2; i++) {
                close(s[i]);
                close(p[i]);
        }
        close(file);
}

/* Cut at every byte, and every byte changed: refused or decoded, never more than that (the sanitizers watch). */
static void test_hostile_bytes(void) {
        for (size_t i = 0; i < G_N_ELEMENTS(messages); i++) {
                g_autofree uint8_t *whole = NULL;
                size_t size;

                g_assert_cmpint(message_encode(&messages[i], &whole, &size), ==, 0);
                for (size_t cut = 0; cut < size; cut++) {
                        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
                        uint8_t *bytes = g_memdup2(whole, MAX(cut, 1));

                        g_assert_cmpint(message_decode(bytes, cut, &m), ==, -EBADMSG);
                        g_free(bytes);
                }
                for (size_t at = 0; at < size * 8; at++) {
                        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
                        uint8_t *bytes = g_memdup2(whole, size);
                        int r;

                        bytes[at / 8] ^= (uint8_t) (1 << at % 8);
                        r = message_decode(bytes, size, &m);
                        if (r == 0)
                                received_message_done(&m);
                        else {
                                g_assert_cmpint(r, ==, -EBADMSG);
                                g_free(bytes);
                        }
                }
        }
}

static int decode_size(const Message *m) {
        ReceivedMessage got = RECEIVED_MESSAGE_INIT;
        uint8_t *bytes;
        size_t size;

        g_assert_cmpint(message_encode(m, &bytes, &size), ==, 0);
        int r = message_decode(bytes, size, &got);
        if (r < 0)
                g_free(bytes);
        received_message_done(&got);
        return r;
}

/* A statement at the limits of its columns, and one past each: the longest names, the most columns, the most parameters. */
static void test_started_limits(void) {
        g_autofree char *name = g_strnfill(SQLIPC_COLUMNS_SIZE_MAX, 'x');
        g_autofree Bytes *list = g_new0(Bytes, 2 * (SQLIPC_N_COLUMNS_MAX + 1));
        Message m = { .kind = MESSAGE_STARTED, .started = { .described = true, .columns = list, .parameters = list } };

        list[0] = (Bytes) { name, SQLIPC_COLUMNS_SIZE_MAX - 10 };
        m.started.n_columns = 1;
        g_assert_cmpint(decode_size(&m), ==, 0);
        list[0].size++;
        g_assert_cmpint(decode_size(&m), ==, -EBADMSG);
        list[0] = (Bytes) { NULL, 0 };
        m.started.n_columns = 0;
        m.started.n_parameters = PARAMETERS_MAX;
        g_assert_cmpint(decode_size(&m), ==, 0);
        m.started.n_parameters++;
        g_assert_cmpint(decode_size(&m), ==, -EBADMSG);
        m.started.n_parameters = 0;
        for (size_t i = 0; i <= SQLIPC_N_COLUMNS_MAX; i++)
                list[2 * i].data = name;
        m.started.n_columns = SQLIPC_N_COLUMNS_MAX;
        g_assert_cmpint(decode_size(&m), ==, 0);
        m.started.n_columns++;
        g_assert_cmpint(decode_size(&m), ==, -EBADMSG);
        m.started.n_columns = SQLIPC_N_COLUMNS_MAX; /* both strings of each column: together one past it */
        for (size_t i = 0; i < 2 * SQLIPC_N_COLUMNS_MAX; i++)
                list[i] = (Bytes) { name, SQLIPC_COLUMNS_SIZE_MAX / (2 * SQLIPC_N_COLUMNS_MAX) - 4 };
        g_assert_cmpint(decode_size(&m), ==, -EBADMSG);
}

/* Sentences, states of channels and all other messages: at their limit, and one past it. */
static void test_size_limits(void) {
        g_autofree char *text = g_strnfill(CHANNEL_STATE_SIZE_MAX + 1, 'x');
        char *end = text + SQLIPC_MESSAGE_SIZE_MAX;
        Message ended = { .kind = MESSAGE_ENDED, .ended.failure = { .error = ERROR_SQL, .message = text } };
        Message rested = { .kind = MESSAGE_CHANNEL_RESTED, .channel_end.state = { text, CHANNEL_STATE_SIZE_MAX } };
        Message progress = { .kind = MESSAGE_CHANNEL_PROGRESS, .channel_progress.sql = { text, MESSAGE_SIZE_MAX } };

        g_assert_cmpint(decode_size(&rested), ==, 0);
        rested.channel_end.state.size++;
        g_assert_cmpint(decode_size(&rested), ==, -EBADMSG);
        g_assert_cmpint(decode_size(&progress), ==, -EBADMSG);
        progress.channel_progress.sql.size -= 100;
        g_assert_cmpint(decode_size(&progress), ==, 0);
        end[1] = 0;
        g_assert_cmpint(decode_size(&ended), ==, -EBADMSG);
        end[0] = 0;
        g_assert_cmpint(decode_size(&ended), ==, 0);
}

/* COMMITTING names at least one run, and whole numbers. */
static void test_committing_limits(void) {
        g_autofree char *numbers = g_strnfill(COMMITTING_SIZE_MAX + sizeof(uint64_t), 'x');
        Message m = { .kind = MESSAGE_COMMITTING, .committing.numbers = { numbers, COMMITTING_SIZE_MAX } };

        g_assert_cmpint(decode_size(&m), ==, 0);
        m.committing.numbers.size += sizeof(uint64_t);
        g_assert_cmpint(decode_size(&m), ==, -EBADMSG);
        m.committing.numbers.size = sizeof(uint64_t) + 1;
        g_assert_cmpint(decode_size(&m), ==, -EBADMSG);
        m.committing.numbers.size = 0;
        g_assert_cmpint(decode_size(&m), ==, -EBADMSG);
}

/* The names of tables in SETUP are C strings. */
static void test_write_tables(void) {
        Bytes names[] = { { "Track", 5 }, { "a\0b", 3 } };
        Message m = { .kind = MESSAGE_SETUP, .setup = { .path = "/a", .n_write_tables = 1, .write_tables = names } };

        g_assert_cmpint(decode_size(&m), ==, 0);
        m.setup.n_write_tables = 2;
        g_assert_cmpint(decode_size(&m), ==, -EBADMSG);
        names[1] = (Bytes) { NULL, 0 };
        g_assert_cmpint(decode_size(&m), ==, -EBADMSG);
}

static bool list_is_valid(const uint8_t *bytes, size_t size, uint32_t n) {
        return job_statements_are_valid(&(JobSpec) { .n_statements = n, .statements = bytes, .statements_size = size });
}

/* A list has as many statements as it says, at most so many and so large, and each of them is valid. */
static void test_statement_list(void) {
        g_autofree char *sql = g_strnfill(STATEMENT_LIST_SIZE_MAX, 'x');
        g_autofree uint8_t *bytes = g_memdup2(two, sizeof two);
        JobSpec one = { .sql = "DELETE", .sql_size = 6 };
        StatementList l = STATEMENT_LIST_INIT;

        g_assert_cmpint(statement_list_add(&l, &one), ==, 0);
        one = (JobSpec) { .sql = "X", .sql_size = 1, .n_positional = 1, .n_named = 1, .parameters = row,
                          .parameters_size = sizeof row };
        g_assert_cmpint(statement_list_add(&l, &one), ==, 0);
        g_assert_cmpmem(l.bytes, l.size, two, sizeof two);
        g_assert_true(list_is_valid(two, sizeof two, 2));
        for (uint32_t n = 0; n <= STATEMENT_LIST_N_MAX + 1; n++)
                g_assert_true(list_is_valid(two, sizeof two, n) == (n == 2));
        for (size_t size = 0; size < sizeof two; size++)
                g_assert_false(list_is_valid(two, size, 2));
        bytes[22] = 'x'; /* the NUL after the SQL */
        g_assert_false(list_is_valid(bytes, sizeof two, 2));
        statement_list_done(&l);

        one = (JobSpec) { .sql = sql, .sql_size = STATEMENT_LIST_SIZE_MAX - 17 };
        g_assert_cmpint(statement_list_add(&l, &one), ==, 0);
        g_assert_true(list_is_valid(l.bytes, l.size, 1));
        one.sql_size = 0;
        g_assert_cmpint(statement_list_add(&l, &one), ==, -E2BIG);
        statement_list_done(&l);
        one.sql_size = STATEMENT_LIST_SIZE_MAX - 16;
        g_assert_cmpint(statement_list_add(&l, &one), ==, -E2BIG);
        one.sql_size = 0;
        one.parameters_size = STATEMENT_LIST_SIZE_MAX;
        g_assert_cmpint(statement_list_add(&l, &one), ==, -E2BIG);
        one.parameters_size = 0;
        for (uint32_t i = 0; i < STATEMENT_LIST_N_MAX; i++)
                g_assert_cmpint(statement_list_add(&l, &one), ==, 0);
        g_assert_cmpint(statement_list_add(&l, &one), ==, -E2BIG);
        g_assert_true(list_is_valid(l.bytes, l.size, l.n));
        statement_list_done(&l);
}

static void send_raw(int fd, const void *bytes, size_t size, const int *fds, size_t n_fds) {
        union {
                struct cmsghdr header;
                uint8_t space[CMSG_SPACE(sizeof(int) * 3)];
        } control = {};
        struct iovec part = { .iov_base = (void *) bytes, .iov_len = size };
        struct msghdr h = { .msg_iov = &part, .msg_iovlen = 1 };

        if (n_fds > 0) {
                h.msg_control = &control;
                h.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
                control.header = (struct cmsghdr) {
                        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int) * n_fds),
                };
                memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * n_fds);
        }
        g_assert_cmpint(sendmsg(fd, &h, 0), ==, (ssize_t) size);
}

static unsigned n_open_fds(void) {
        unsigned n = 0;

        for (int fd = 0; fd < 256; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

/* Fds that do not belong: none stays open, the message is refused. */
static void test_hostile_fds(void) {
        g_autofree uint8_t *taken = NULL, *run = NULL;
        size_t taken_size, run_size;
        uint8_t stub[20] = {};
        unsigned before;
        int s[2], three[3], memfd;

        g_assert_cmpint(message_encode(&messages[5], &taken, &taken_size), ==, 0);
        g_assert_cmpint(message_encode(&messages[2], &run, &run_size), ==, 0);
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), ==, 0);
        memfd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        g_assert_cmpint(write(memfd, taken, taken_size), ==, (ssize_t) taken_size);
        three[0] = three[1] = three[2] = memfd;
        before = n_open_fds();

        send_raw(s[0], taken, taken_size, three, 1); /* a kind that has none */
        g_assert_cmpint(message_receive(s[1], &(ReceivedMessage) { .pipe_fd = -1, .memory_fd = -1 }), ==, -EBADMSG);
        send_raw(s[0], run, run_size, three, 0); /* a kind that needs one */
        g_assert_cmpint(message_receive(s[1], &(ReceivedMessage) { .pipe_fd = -1, .memory_fd = -1 }), ==, -EBADMSG);
        for (size_t n = 2; n <= 3; n++) { /* too many */
                send_raw(s[0], run, run_size, three, n);
                g_assert_cmpint(message_receive(s[1], &(ReceivedMessage) { .pipe_fd = -1, .memory_fd = -1 }), ==, -EBADMSG);
        }
        /* a memfd that could still change, that lies about its size, and at last one in order */
        store_le32(stub, UINT32_MAX);
        store_le64(stub + 4, taken_size);
        send_raw(s[0], stub, sizeof stub, three, 1);
        g_assert_cmpint(message_receive(s[1], &(ReceivedMessage) { .pipe_fd = -1, .memory_fd = -1 }), ==, -EBADMSG);
        g_assert_cmpint(fcntl(memfd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), ==, 0);
        store_le64(stub + 4, taken_size + 1);
        send_raw(s[0], stub, sizeof stub, three, 1);
        g_assert_cmpint(message_receive(s[1], &(ReceivedMessage) { .pipe_fd = -1, .memory_fd = -1 }), ==, -EBADMSG);
        store_le64(stub + 4, taken_size);
        send_raw(s[0], stub, sizeof stub, three, 1);
        {
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;

                g_assert_cmpint(message_receive(s[1], &m), ==, 1);
                g_assert_cmpuint(m.message.number, ==, 1);
                received_message_done(&m);
        }
        send_raw(s[0], "", 0, three, 1); /* an empty message is the end, and may bring one */
        g_assert_cmpint(message_receive(s[1], &(ReceivedMessage) { .pipe_fd = -1, .memory_fd = -1 }), ==, 0);
        g_assert_cmpuint(n_open_fds(), ==, before);
        close(memfd);
        close(s[0]);
        close(s[1]);
}

/* Messages that were sent before the socket was closed arrive, even if the other side left something unread. */
static void test_last_message(void) {
        const Message last = { .kind = MESSAGE_ENDED, .number = 7 };

        for (int withdraw = 0; withdraw < 2; withdraw++) {
                ReceivedMessage m = RECEIVED_MESSAGE_INIT;
                uint64_t number = 0;
                int pair[2];

                g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
                g_assert_cmpint(message_send(pair[0], &(Message) { .kind = MESSAGE_PING }, -1), ==, 0);
                g_assert_cmpint(message_send(pair[1], withdraw ? &messages[1] : &last, -1), ==, 0);
                close(pair[1]);
                if (withdraw) {
                        g_assert_cmpint(message_withdraw_job(pair[0], &number), ==, 1);
                        g_assert_cmpuint(number, ==, messages[1].number);
                        g_assert_cmpint(message_withdraw_job(pair[0], &number), ==, 0);
                } else {
                        g_assert_cmpint(message_receive(pair[0], &m), ==, 1);
                        g_assert_cmpint(m.message.kind, ==, MESSAGE_ENDED);
                        received_message_done(&m);
                }
                g_assert_cmpint(message_receive(pair[0], &m), ==, 0);
                close(pair[0]);
        }
}

/* A full socket is reported, and no accepted message is lost. */
static void test_full_socket(void) {
        ReceivedMessage m = RECEIVED_MESSAGE_INIT;
        unsigned n = 0, got = 0;
        int s[2];

        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), ==, 0);
        while (message_send(s[0], &messages[3], -1) == 0)
                n++;
        g_assert_cmpint(message_send(s[0], &messages[3], -1), ==, -EAGAIN);
        while (message_receive(s[1], &m) == 1) {
                received_message_done(&m);
                got++;
        }
        g_assert_cmpuint(n, >, 0);
        g_assert_cmpuint(got, ==, n);
        close(s[1]);
        g_assert_cmpint(message_send(s[0], &messages[3], -1), ==, -EPIPE);
        close(s[0]);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/protocol/round-trip", test_round_trip);
        g_test_add_func("/protocol/fields", test_fields);
        g_test_add_func("/protocol/memfd", test_memfd);
        g_test_add_func("/protocol/in-file", test_in_file);
        g_test_add_func("/protocol/hostile-bytes", test_hostile_bytes);
        g_test_add_func("/protocol/started-limits", test_started_limits);
        g_test_add_func("/protocol/size-limits", test_size_limits);
        g_test_add_func("/protocol/committing-limits", test_committing_limits);
        g_test_add_func("/protocol/write-tables", test_write_tables);
        g_test_add_func("/protocol/statement-list", test_statement_list);
        g_test_add_func("/protocol/hostile-fds", test_hostile_fds);
        g_test_add_func("/protocol/last-message", test_last_message);
        g_test_add_func("/protocol/full-socket", test_full_socket);
        return g_test_run();
}
