/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/worker/core/channel-round.h: channels that share a read transaction. Everything is in this process: clients, a
 * foreign program that writes, and the worker's channels, whose engine is SQLite with counters. The test replaces the clock,
 * and acts whenever the worker reads a socket or writes to one, or to its memory if the program has the argument --memory.
 */
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/worker/core/channel-set.h"
#include "daemon/worker/core/channel-turn.h"
#include "daemon/worker/core/job-slice.h"
#include "daemon/worker/sqlite/pool.h"
#include "daemon/worker/sqlite/sqlite-engine.h"
#include "tests/rigs/channel-rig.h"

#define N 8
#define VALUE "SELECT max(n) FROM t WHERE i >= ?"
#define COUNT_TO "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c WHERE x < ?) SELECT count(*) FROM c"

ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __real_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __real_channel_ring_read(ChannelRing *ring, uint8_t *to, size_t size);
ssize_t __wrap_channel_ring_read(ChannelRing *ring, uint8_t *to, size_t size);
ssize_t __real_channel_ring_write(ChannelRing *ring, const uint8_t *from, size_t size);
ssize_t __wrap_channel_ring_write(ChannelRing *ring, const uint8_t *from, size_t size);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

static struct {
        Rig rig;
        sqlite3 *foreign;             /* another program */
        Client clients[N];
        uint64_t statements[N];
        Setup setup;
        Engine engine;
        JobContext context;
        TaskQueue tasks;
        ChannelSet channels;
        uint64_t clock_usec, step_usec; /* how long each call of the progress handler takes */
        unsigned n_transactions;      /* that the worker began */
        unsigned n_taken, n_given;    /* connections */
        unsigned n_writes;            /* to channels */
        void (*on_write)(Client *c);  /* what happens when the worker begins to write */
        void (*on_read)(Client *c);
        void (*on_step)(void);        /* inside a step */
} play;

/* ---- the world ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret) {
        *ret = (struct timespec) {
                .tv_sec = (time_t) (play.clock_usec / 1000000),
                .tv_nsec = (long) (play.clock_usec % 1000000) * 1000,
        };
        return 0;
}

static ServedChannel *channel_of(const Client *c) {
        for (ServedChannel *s = play.channels.first; s; s = s->next)
                if (s->setup.number == c->number)
                        return s;
        return NULL;
}

static Client *client_of(int fd) {
        for (Client *c = play.clients; c < play.clients + N; c++)
                if (c->number > 0 && channel_of(c) && channel_of(c)->fd == fd)
                        return c;
        return NULL;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size) {
        Client *c = rig_has_memory ? NULL : client_of(fd);

        play.n_writes += c != NULL;
        if (c && play.on_write)
                play.on_write(c);
        return __real_write(fd, bytes, size);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags) {
        Client *c = client_of(fd);

        if (c && play.on_read)
                play.on_read(c);
        return __real_recvmsg(fd, m, flags);
}

/* The client whose worker's ring this is. */
static Client *client_of_ring(const ChannelRing *ring) {
        for (Client *c = play.clients; c < play.clients + N; c++) {
                const ServedChannel *s = c->number > 0 ? channel_of(c) : NULL;

                if (s && (ring == &s->side.in || ring == &s->side.out))
                        return c;
        }
        return NULL;
}

ssize_t __wrap_channel_ring_read(ChannelRing *ring, uint8_t *to, size_t size) {
        Client *c = client_of_ring(ring);

        if (c && play.on_read)
                play.on_read(c);
        return __real_channel_ring_read(ring, to, size);
}

ssize_t __wrap_channel_ring_write(ChannelRing *ring, const uint8_t *from, size_t size) {
        Client *c = client_of_ring(ring);

        play.n_writes += c != NULL;
        if (c && play.on_write)
                play.on_write(c);
        return __real_channel_ring_write(ring, from, size);
}

/* A foreign commit, which no lock may be in the way of. */
static void commit(int n) {
        g_autofree char *sql = g_strdup_printf("UPDATE t SET n = %d", n);

        g_assert_cmpint(sqlite3_exec(play.foreign, sql, NULL, NULL, NULL), ==, SQLITE_OK);
}

static bool has_answer(const Client *c) {
        return client_can_read((Client *) c, 0);
}

/* ---- the engine ---- */

static bool take(EnginePool *pool, const char *sql, size_t sql_size, const EngineHint *hint, EngineConnection **ret,
                 SqlError *error) {
        play.n_taken++;
        return sqlite_engine.connect(pool, sql, sql_size, hint, ret, error);
}

static void give(EnginePool *pool, EngineConnection *connection) {
        play.n_given++;
        sqlite_engine.disconnect(pool, connection);
}

static EngineResult step(EngineStatement *statement, RowSink *sink, SqlError *error) {
        const SqliteStatement *s = (const SqliteStatement *) (const void *) statement;

        play.n_transactions += sqlite3_txn_state(s->connection->file, NULL) == SQLITE_TXN_NONE || !s->connection->held;
        return sqlite_engine.step(statement, sink, error);
}

static void hold(EngineConnection *connection) {
        const PooledConnection *c = (const PooledConnection *) (const void *) connection;

        /* step() counts a transaction that is not held */
        if (!c->sqlite.held)
                play.n_transactions++;
        sqlite_engine.hold(connection);
        g_assert_true(c->sqlite.held);
}

static int on_progress(void *userdata) {
        Task *t = play.tasks.current;

        play.clock_usec += play.step_usec;
        if (!t)
                return 0;
        channel_round_on_progress(&play.channels.round, play.clock_usec);
        if (play.on_step)
                play.on_step();
        return job_on_progress(t->job, play.clock_usec, true);
}

/* ---- the worker ---- */

static void begin(const char *journal_mode) {
        g_autofree char *mode = g_strdup_printf("PRAGMA journal_mode = %s", journal_mode);
        int fds[2];

        memset(&play, 0, sizeof play);
        play.clock_usec = 1000000000;
        rig_init_folder(&play.rig);
        exec_sql(play.rig.database, "CREATE TABLE t(i INTEGER PRIMARY KEY, n); INSERT INTO t VALUES(1, 1)");
        g_assert_cmpint(sqlite3_open(play.rig.database, &play.foreign), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(play.foreign, mode, NULL, NULL, NULL), ==, SQLITE_OK);
        commit(1);
        play.setup = wide;
        play.setup.path = play.rig.database;
        play.engine = sqlite_engine;
        play.engine.connect = take;
        play.engine.disconnect = give;
        play.engine.step = step;
        play.engine.hold = hold;
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), ==, 0);
        play.rig.control_fd = fds[0];
        play.context = (JobContext) { .setup = &play.setup, .engine = &play.engine, .control_fd = fds[1] };
        play.channels = (ChannelSet) { .tasks = &play.tasks, .context = &play.context };
        g_assert_cmpint(task_queue_init(&play.tasks), ==, 0);
        g_assert_cmpint(sqlite_engine.start(&play.setup, on_progress, NULL, &play.context.pool), ==, 0);
}

static void end(void) {
        play.on_write = play.on_read = NULL;
        play.on_step = NULL;
        channel_set_free(&play.channels);
        g_assert_null(play.context.shared);
        g_assert_cmpuint(play.n_taken, ==, play.n_given);
        g_assert_cmpint(play.context.report_error, ==, 0);
        for (Client *c = play.clients; c < play.clients + N; c++)
                if (c->number > 0)
                        client_done(c);
        sqlite_engine.stop(play.context.pool);
        job_context_trim(&play.context);
        task_queue_done(&play.tasks);
        close(play.context.control_fd);
        close(play.rig.control_fd);
        g_assert_cmpint(sqlite3_close(play.foreign), ==, SQLITE_OK);
        rig_done_folder(&play.rig);
}

/* `path`: of a guest's database; NULL: the worker's own. */
static void open_channel_to(Client *c, const char *path) {
        ReceivedMessage received;

        client_init(&play.rig, c);
        c->setup.path = path;
        received = client_setup_message(c);
        g_assert_cmpint(channel_set_add(&play.channels, &received), ==, 0);
}

static void open_channel(Client *c) {
        open_channel_to(c, NULL);
}

static void look(void) {
        struct epoll_event events[N];
        int n = epoll_wait(play.tasks.epoll_fd, events, N, 0);

        (void) channel_set_look(&play.channels);
        for (int i = 0; i < n; i++) {
                Task *t = events[i].data.ptr;

                t->type->on_events(&play.tasks, t, events[i].events);
        }
}

/* One round. False: there is nothing to do. */
static bool serve_once(void) {
        Task *t;

        look();
        t = play.tasks.first;
        while (t && t->type->next_usec(t) > 0)
                t = t->next;
        if (!t)
                return channel_set_fall_asleep(&play.channels);
        g_assert_cmpint(channel_round(&play.channels.round, &play.tasks, served_channel_of_task(t)), ==, 0);
        g_assert_null(play.context.shared);
        g_assert_null(play.channels.round.ran.first);
        g_assert_null(play.channels.round.waiting.first);
        return true;
}

static void serve(void) {
        while (serve_once()) {
        }
}

/* The channel has a statement that is known to be quick. */
static void prepare(unsigned i, const char *sql) {
        static const int64_t one = 1;
        Client *c = &play.clients[i];

        play.statements[i] = client_add_prepare(c, sql);
        (void) client_add_fetch(c, play.statements[i], 1, &one);
        client_send(c);
        serve();
        (void) client_expect(c, play.statements[i], ERROR_NONE);
        (void) client_expect(c, c->request, ERROR_NONE);
}

/* Opens `n` channels, each with such a statement. */
static void open_channels(unsigned n, const char *sql) {
        for (unsigned i = 0; i < n; i++) {
                open_channel(&play.clients[i]);
                prepare(i, sql);
        }
        play.n_transactions = play.n_writes = 0;
}

static uint64_t fetch(unsigned i, int64_t value) {
        uint64_t number = client_add_fetch(&play.clients[i], play.statements[i], 1, &value);

        client_send(&play.clients[i]);
        return number;
}

static void expect(unsigned i, int64_t value) {
        g_assert_cmpint(client_expect(&play.clients[i], play.clients[i].request, ERROR_NONE).integer, ==, value);
}

/* ---- one transaction ---- */

static void test_one_transaction(void) {
        static const char *const modes[] = { "DELETE", "WAL" };

        for (unsigned m = 0; m < G_N_ELEMENTS(modes); m++) {
                begin(modes[m]);
                open_channels(N, VALUE);
                for (int round = 2; round < 10; round++) {
                        unsigned taken = play.n_taken;

                        commit(round);
                        for (unsigned i = 0; i < N; i++)
                                (void) fetch(i, 1);
                        play.n_transactions = play.n_writes = 0;
                        g_assert_true(serve_once());
                        g_assert_cmpuint(play.n_transactions, ==, 1);
                        g_assert_cmpuint(play.n_taken - taken, ==, 1);
                        g_assert_cmpuint(play.n_writes, ==, N);
                        for (unsigned i = 0; i < N; i++)
                                expect(i, round);
                        g_assert_false(serve_once());
                }
                end();
        }
}

/* The same text without a PREPARE. */
static void test_queries(void) {
        begin("DELETE");
        for (unsigned i = 0; i < N; i++)
                open_channel(&play.clients[i]);
        for (unsigned round = 0; round < 3; round++) {
                for (unsigned i = 0; i < N; i++) {
                        (void) client_add_query(&play.clients[i], "SELECT n FROM t", 0, NULL);
                        client_send(&play.clients[i]);
                }
                play.n_transactions = 0;
                serve();
                if (round > 0) /* nothing is known of the first */
                        g_assert_cmpuint(play.n_transactions, ==, 1);
                for (unsigned i = 0; i < N; i++)
                        expect(i, 1);
        }
        end();
}

/* Requests that a client sends without waiting have a transaction for each client, as if it were alone: a socket does not
 * tell how many of them had been sent. Memory does. */
static void test_pipelined(void) {
        begin("DELETE");
        open_channels(N, VALUE);
        for (unsigned i = 0; i < N; i++)
                for (unsigned k = 0; k < 10; k++)
                        (void) fetch(i, 1);
        serve();
        g_assert_cmpuint(play.n_transactions, ==, rig_has_memory ? 1 : N);
        for (unsigned i = 0; i < N; i++)
                for (unsigned k = 0; k < 10; k++)
                        g_assert_cmpint(client_expect(&play.clients[i], play.clients[i].request - 9 + k, ERROR_NONE).integer,
                                        ==, 1);
        end();
}

/* ---- freshness ---- */

static int value_now;

/* Another program commits, and then this client sends a request. */
static void commit_and_ask(Client *c) {
        if (c != &play.clients[2])
                return;
        play.on_read = NULL;
        commit(++value_now);
        (void) fetch(2, 1);
}

/* The worker reads the third socket when the transaction has begun. A request that its client has sent meanwhile sees the
 * commit: a second one, or the first one of a channel that has its turn for another reason. */
static void test_later_requests_are_fresh(void) {
        begin("WAL");
        value_now = 1;
        open_channels(4, VALUE);
        for (unsigned round = 0; round < 6; round++) {
                bool has_first = round % 2;
                int before = value_now;

                for (unsigned i = 0; i < 4; i++)
                        if (i != 2 || has_first)
                                (void) fetch(i, 1);
                if (!has_first) { /* its socket may be readable, as far as the worker knows */
                        ServedChannel *c = channel_of(&play.clients[2]);

                        c->readable = true;
                        (void) served_channel_set_state(c, CHANNEL_READY);
                        task_queue_prepend(&play.tasks, &c->task);
                        look();
                        for (unsigned i = 2; i < 4; i++) { /* in this order */
                                Task *t = &channel_of(&play.clients[i])->task;

                                task_queue_take_out(&play.tasks, t);
                                task_queue_append(&play.tasks, t);
                        }
                }
                play.n_transactions = 0;
                play.on_read = commit_and_ask;
                serve();
                g_assert_cmpint(value_now, ==, before + 1);
                g_assert_cmpuint(play.n_transactions, ==, 2);
                if (has_first)
                        g_assert_cmpint(client_expect(&play.clients[2], play.clients[2].request - 1, ERROR_NONE).integer, >=,
                                        before);
                expect(2, value_now);
                for (unsigned i = 0; i < 4; i++)
                        if (i != 2)
                                g_assert_cmpint(client_expect(&play.clients[i], play.clients[i].request, ERROR_NONE).integer,
                                                >=, before);
        }
        end();
}

/* The first bytes that epoll reported are no request, and the request after them is sent later. */
static void test_finalize_before_later_request(void) {
        begin("WAL");
        value_now = 1;
        open_channels(4, VALUE);
        for (unsigned i = 0; i < 4; i++)
                if (i != 2)
                        (void) fetch(i, 1);
        client_add_finalize(&play.clients[2], 1000000);
        client_send(&play.clients[2]);
        play.n_transactions = 0;
        play.on_read = commit_and_ask;
        serve();
        g_assert_cmpint(value_now, ==, 2);
        g_assert_cmpuint(play.n_transactions, ==, 2);
        expect(2, 2);
        end();
}

/* The first bytes that epoll reported are the end of a request that was refused for its size, and the request after them is
 * sent later. */
static void test_rest_before_later_request(void) {
        static const uint8_t rest[4096];
        Client *c = &play.clients[2];
        uint64_t refused;

        begin("WAL");
        value_now = 1;
        play.rig.row_size_max = play.setup.sql_size_max = 1000;
        open_channels(4, VALUE);
        refused = ++c->request;
        client_add_frame(c, REQUEST_QUERY, 0, refused, rest, sizeof rest);
        g_byte_array_set_size(c->output, c->output->len - 1024);
        client_send(c);
        serve();
        (void) client_expect(c, refused, ERROR_LIMITS_EXCEEDED);
        for (unsigned i = 0; i < 4; i++)
                if (i != 2)
                        (void) fetch(i, 1);
        g_byte_array_append(c->output, rest, 1024);
        client_send(c);
        play.n_transactions = 0;
        play.on_read = commit_and_ask;
        serve();
        g_assert_cmpint(value_now, ==, 2);
        g_assert_cmpuint(play.n_transactions, ==, 2);
        expect(2, 2);
        end();
}

/* A client reads its answer, another program commits, and the client asks again: while the first round sends its answers. */
static void ask_again(Client *c) {
        if (c != &play.clients[1] || value_now > 1)
                return;
        commit(++value_now);
        (void) fetch(0, 1);
}

static void test_second_request_sees_commit(void) {
        begin("DELETE");
        value_now = 1;
        open_channels(3, VALUE);
        for (unsigned i = 0; i < 3; i++)
                (void) fetch(i, 1);
        play.on_write = ask_again;
        serve();
        g_assert_cmpint(client_expect(&play.clients[0], play.clients[0].request - 1, ERROR_NONE).integer, ==, 1);
        expect(0, 2);
        expect(1, 1);
        expect(2, 1);
        g_assert_cmpuint(play.n_transactions, ==, 2);
        end();
}

/* ---- locks ---- */

static void write_at_once(Client *c) {
        commit(++value_now);
}

/* In rollback mode a reader keeps writers out. Whenever an answer is about to be sent, another program can write: after
 * requests that succeed, fail, are refused or are cancelled, and those of which nothing is known. */
static void test_unlocked_before_answers(void) {
        static const struct {
                const char *sql;
                ErrorNumber error;
        } others[] = {
                { "SELECT abs(-9223372036854775808) FROM t", ERROR_SQL }, { "SELECT nonsense FROM t", ERROR_SQL },
                { "SELECT n + 1 FROM t", ERROR_NONE }, { "SELECT ?", ERROR_PARAMETER_COUNT }, { "", ERROR_EMPTY_STATEMENT },
        };

        begin("DELETE");
        value_now = 1;
        open_channels(N, VALUE);
        play.on_write = write_at_once;
        for (unsigned round = 0; round < 3 * G_N_ELEMENTS(others); round++) {
                size_t i_other = round % G_N_ELEMENTS(others);
                bool cancels = round / G_N_ELEMENTS(others) == 1;
                uint64_t number, cancelled = 0;

                for (unsigned i = 0; i < N; i++)
                        if (i != 3)
                                (void) fetch(i, 1);
                number = client_add_query(&play.clients[3], others[i_other].sql, 0, NULL);
                if (cancels) {
                        cancelled = client_add_query(&play.clients[3], "SELECT 1", 0, NULL);
                        client_add_cancel(&play.clients[3], cancelled);
                }
                client_send(&play.clients[3]);
                play.n_writes = 0;
                serve();
                g_assert_cmpuint(play.n_writes, ==, N);
                for (unsigned i = 0; i < N; i++)
                        if (i != 3)
                                (void) client_expect(&play.clients[i], play.clients[i].request, ERROR_NONE);
                (void) client_expect(&play.clients[3], number, others[i_other].error);
                if (cancels)
                        (void) client_expect(&play.clients[3], cancelled, ERROR_CANCELLED);
        }
        end();
}

/* The transaction of requests before and after one that fails. */
static void test_failure(void) {
        static const int64_t values[] = { 1, INT64_MIN };

        begin("DELETE");
        open_channels(5, "SELECT abs(?) + 0 * n FROM t");
        for (unsigned i = 0; i < 5; i++)
                (void) fetch(i, values[i == 2]);
        g_assert_true(serve_once());
        g_assert_cmpuint(play.n_transactions, ==, 2);
        for (unsigned i = 0; i < 5; i++)
                (void) client_expect(&play.clients[i], play.clients[i].request, i == 2 ? ERROR_SQL : ERROR_NONE);
        end();
}

/* ---- requests that last ---- */

static unsigned n_steps;

/* Until a millisecond has passed, the first client has no answer. */
static void check_answer(void) {
        bool over = play.clock_usec - 1000000000 >= 1000;

        n_steps++;
        g_assert_cmpint(has_answer(&play.clients[0]), ==, over);
        g_assert_false(has_answer(&play.clients[1]));
}

/* The second request lasts, against expectation: the answer to the first is sent from inside its step, and the third has
 * its turn later, in its place. */
static void test_request_that_lasts(void) {
        begin("DELETE");
        open_channels(3, COUNT_TO);
        play.step_usec = 100;
        play.clock_usec = 1000000000;
        play.on_step = check_answer;
        (void) fetch(0, 1);
        (void) fetch(1, 100000);
        (void) fetch(2, 1);
        n_steps = 0;
        g_assert_true(serve_once());
        g_assert_cmpuint(n_steps, >, 20);
        play.on_step = NULL;
        g_assert_true(has_answer(&play.clients[1]));
        g_assert_false(has_answer(&play.clients[2]));
        serve();
        expect(0, 1);
        expect(1, 100000);
        expect(2, 1);

        /* now its statement is known to last: its own turn, after the answers of the others */
        (void) fetch(0, 1);
        (void) fetch(1, 100000);
        serve();
        expect(0, 1);
        expect(1, 100000);
        end();
}

/* The channel that has its answer, and the one that waits, go to another worker while the step lasts. */
static void give_away(void) {
        if (play.clock_usec - 1000000000 < 2000)
                return;
        play.on_step = NULL;
        expect(0, 1);
        (void) fetch(0, 1);
        look();
        channel_set_give_away(&play.channels);
        g_assert_null(channel_of(&play.clients[0]));
        g_assert_nonnull(channel_of(&play.clients[1]));
        g_assert_null(channel_of(&play.clients[2]));
}

static void test_give_away(void) {
        ReceivedMessage m;

        begin("DELETE");
        open_channels(4, COUNT_TO);
        play.step_usec = 100;
        play.clock_usec = 1000000000;
        play.on_step = give_away;
        (void) fetch(0, 1);
        (void) fetch(1, 100000);
        (void) fetch(2, 1);
        serve();
        g_assert_null(play.on_step);
        expect(1, 100000);
        for (unsigned i = 0; i < 2; i++) { /* the last opened is the first in the set */
                m = client_expect_end(&play.rig, &play.clients[2 - 2 * i], MESSAGE_CHANNEL_RESTED, NULL);
                g_assert_true(m.message.channel_end.waiting);
                received_message_done(&m);
        }
        (void) fetch(3, 1);
        serve();
        expect(3, 1);
        end();
}

static void check_first_answer(Client *c) {
        if (c == &play.clients[1])
                g_assert_true(has_answer(&play.clients[0]) || play.n_writes > 1);
}

static uint64_t novel_number;

static void check_in_novel(void) {
        if (play.tasks.current != &channel_of(&play.clients[1])->task)
                return;
        n_steps++;
        g_assert_true(has_answer(&play.clients[0]));
}

/* Nothing is known of the second request: the answer to the first does not wait for it, at any time of the clock. */
static void test_unknown_request(void) {
        static const int64_t limit = 100000;

        begin("DELETE");
        open_channels(3, VALUE);
        (void) fetch(0, 1);
        novel_number = client_add_query(&play.clients[1], COUNT_TO, 1, &limit);
        client_send(&play.clients[1]);
        (void) fetch(2, 1);
        n_steps = 0;
        play.on_step = check_in_novel;
        play.on_write = check_first_answer;
        serve();
        g_assert_cmpuint(n_steps, >, 20);
        expect(0, 1);
        g_assert_cmpint(client_expect(&play.clients[1], novel_number, ERROR_NONE).integer, ==, limit);
        expect(2, 1);
        end();
}

/* The next result, which has no room for all of it at once: reads and serves in turn. */
static Answer read_in_parts(Client *c) {
        PageDecoder *d = &c->decoder;
        Answer a = {};
        int r;

        while ((r = page_decoder_next(d)) != PAGE_END) {
                g_assert_cmpint(r, >=, 0);
                g_assert_cmpint(r, !=, PAGE_ERROR);
                if (r == PAGE_COLUMNS)
                        a.n_columns = d->n_columns;
                if (r == PAGE_ROW) {
                        PageValue v = page_decoder_value(d, 0);

                        a.n_rows++;
                        a.integer = v.type == VALUE_INTEGER ? (int64_t) load_le64(v.bytes) : 0;
                }
                if (r == PAGE_MORE) {
                        (void) serve_once();
                        if (has_answer(c))
                                g_assert_true(client_read(c));
                }
        }
        a.number = d->run;
        return a;
}

/* A result larger than the page, in the middle of a round: its channel goes on alone, the others have their answers. The
 * next request of the channel has another transaction. */
static void test_large_answer(void) {
        uint64_t number;

        begin("WAL");
        open_channels(3, "SELECT zeroblob(?) FROM t");
        (void) client_add_query(&play.clients[0], "SELECT n FROM t", 0, NULL); /* a compile would end the transaction */
        client_send(&play.clients[0]);
        serve();
        expect(0, 1);
        play.n_transactions = 0;
        (void) fetch(0, 1);
        (void) fetch(1, 3000000);
        (void) fetch(2, 1);
        g_assert_true(serve_once());
        g_assert_cmpuint(play.n_transactions, ==, 2); /* that of the large one is its own from then on */
        g_assert_cmpuint(client_expect(&play.clients[0], play.clients[0].request, ERROR_NONE).n_rows, ==, 1);
        g_assert_cmpuint(client_expect(&play.clients[2], play.clients[2].request, ERROR_NONE).n_rows, ==, 1);
        commit(2);
        number = client_add_query(&play.clients[1], "SELECT n FROM t", 0, NULL);
        client_send(&play.clients[1]);
        g_assert_cmpuint(read_in_parts(&play.clients[1]).n_rows, ==, 1);
        serve();
        g_assert_cmpint(client_expect(&play.clients[1], number, ERROR_NONE).integer, ==, 2);
        end();
}

/* ---- requests that write ---- */

static bool add_to_writer(JobWriter *w, Job *job) {
        g_assert_null(play.context.shared); /* what is read next must see what is written */
        n_steps++;
        return true;
}

static void forget_in_writer(JobWriter *w, Job *job) {
}

/* A request that writes goes to the writer, in the middle of a round. Those before and after it have two transactions, and
 * none is left when the writer has its turn. */
static void test_request_that_writes(void) {
        JobWriter writer = { .add = add_to_writer, .forget = forget_in_writer };

        begin("DELETE");
        play.setup.writes = true;
        play.context.writer = &writer;
        open_channels(5, VALUE);
        n_steps = 0;
        for (unsigned round = 0; round < 2; round++) {
                for (unsigned i = 0; i < 5; i++)
                        if (i != 2 + round)
                                (void) fetch(i, 1);
                (void) client_add_query(&play.clients[2 + round], "INSERT OR ROLLBACK INTO t VALUES(1, 1)", 0, NULL);
                client_send(&play.clients[2 + round]);
                serve();
                g_assert_cmpuint(n_steps, ==, round + 1);
                for (unsigned i = 0; i < 5; i++)
                        if (i != 2 + round && (round == 0 || i != 2))
                                expect(i, 1);
                if (round == 0) {
                        channel_turn_cancel(channel_of(&play.clients[2]), ERROR_CANCELLED, "cancelled");
                        commit(1);
                        serve();
                        (void) client_expect(&play.clients[2], play.clients[2].request, ERROR_CANCELLED);
                        play.on_write = write_at_once;
                }
        }
        end();
}

static void spend(Client *c) {
        if (!rig_has_memory || channel_ring_fill(&channel_of(c)->side.in) > 0)
                play.clock_usec += 300;
}

static uint64_t now(const Task *t) {
        return 0;
}

/* A round takes a millisecond. Channels without a turn by then keep their place, after another task that waits. */
static void test_order(void) {
        static const TaskType type = { .next_usec = now };
        Task other = { .type = &type };

        begin("DELETE");
        open_channels(N, VALUE);
        for (unsigned i = 0; i < N; i++) {
                (void) fetch(i, 1);
                look(); /* so they are in this order */
                if (i == 2)
                        task_queue_append(&play.tasks, &other);
        }
        play.on_read = spend;
        g_assert_true(serve_once());
        for (unsigned i = 0; i < N; i++)
                g_assert_cmpint(has_answer(&play.clients[i]), ==, i < 5);
        g_assert_true(play.tasks.first == &other);
        for (unsigned i = 5; i < N; i++) {
                const Task *t = &other;

                for (unsigned k = 5; k <= i; k++)
                        t = t->next;
                g_assert_true(t == &channel_of(&play.clients[i])->task);
        }
        task_queue_take_out(&play.tasks, &other);
        serve();
        for (unsigned i = 0; i < N; i++)
                expect(i, 1);
        end();
}

/* A request on one channel does not wait for all requests on another. */
static void test_turns(void) {
        enum { N_REQUESTS = 50 };
        Client *busy = &play.clients[0], *other = &play.clients[1];

        begin("DELETE");
        open_channels(2, COUNT_TO);
        play.step_usec = 1000;
        for (unsigned i = 0; i < N_REQUESTS; i++)
                (void) fetch(0, 1000);
        (void) fetch(1, 1);
        for (unsigned i = 0; i < 2; i++)
                g_assert_true(serve_once());
        expect(1, 1);
        g_assert_true(served_channel_has_input(channel_of(busy)));
        client_leave(other);
        serve();
        g_assert_null(channel_of(other));
        for (unsigned i = 0; i < N_REQUESTS; i++)
                g_assert_cmpint(client_expect(busy, busy->request - (N_REQUESTS - 1) + i, ERROR_NONE).integer, ==, 1000);
        end();
}

/* ---- guests ---- */

/* Channels of three databases take turns in the queue. Each database has a round of its own, and each channel reads its own
 * database, also after another file has replaced that of a guest. */
static void test_guests(void) {
        static const char *const names[] = { NULL, "second.sqlite", "third.sqlite" };
        char *paths[3] = { NULL };
        g_autofree char *other = NULL;

        begin("WAL");
        for (unsigned i = 1; i < 3; i++) {
                g_autofree char *sql = g_strdup_printf("CREATE TABLE t(i, n); INSERT INTO t VALUES(1, %u)", 100 * i);

                paths[i] = g_build_filename(play.rig.folder, names[i], NULL);
                exec_sql(paths[i], sql);
        }
        for (unsigned i = 0; i < 6; i++) {
                open_channel_to(&play.clients[i], paths[i % 3]);
                prepare(i, VALUE);
        }
        for (unsigned again = 0; again < 2; again++) {
                for (unsigned i = 0; i < 6; i++)
                        (void) fetch(i, 1);
                play.n_transactions = 0;
                for (unsigned n = 0; n < 3; n++)
                        g_assert_true(serve_once());
                g_assert_cmpuint(play.n_transactions, ==, 3);
                for (unsigned i = 0; i < 6; i++)
                        expect(i, i % 3 == 0 ? 1 : i % 3 * 100);
                g_assert_false(serve_once());
        }

        other = g_build_filename(play.rig.folder, "other.sqlite", NULL);
        exec_sql(other, "CREATE TABLE t(i, n); INSERT INTO t VALUES(1, 7)");
        g_assert_cmpint(rename(other, paths[1]), ==, 0);
        play.clock_usec += 10000; /* more than the time between two checks */
        for (unsigned i = 0; i < 6; i++)
                (void) fetch(i, 1);
        serve();
        for (unsigned i = 0; i < 6; i++)
                expect(i, (const int64_t[]) { 1, 7, 200 }[i % 3]);
        for (unsigned i = 1; i < 3; i++) {
                g_assert_cmpint(unlink(paths[i]), ==, 0);
                g_free(paths[i]);
        }
        end();
}

/* ---- clients that do not read, or leave ---- */

/* From now on the channel takes about so many bytes of answers. */
static void narrow(Client *c, uint32_t room) {
        int half = (int) room / 2; /* the kernel doubles it */

        g_assert_cmpint(setsockopt(c->kept_fd, SOL_SOCKET, SO_SNDBUF, &half, sizeof half), ==, 0);
        client_narrow(c, room);
}

/* An answer waits for room. The next round sends it before its transaction begins. */
static void test_full_socket(void) {
        unsigned n = 0;

        begin("DELETE");
        open_channels(3, "SELECT hex(zeroblob(3000)) FROM t WHERE i = ?");
        narrow(&play.clients[1], 8192);
        while (channel_of(&play.clients[1])->state != CHANNEL_DRAINING) {
                (void) fetch(1, 1);
                (void) fetch(0, 1);
                serve();
                g_assert_cmpuint(client_expect(&play.clients[0], play.clients[0].request, ERROR_NONE).n_rows, ==, 1);
                n++;
        }
        value_now = 1;
        play.on_write = write_at_once;
        (void) fetch(1, 1);
        n++;
        for (unsigned i = n; i > 0; i--) {
                (void) fetch(0, 1);
                (void) fetch(2, 1);
                serve();
                g_assert_cmpuint(client_expect(&play.clients[0], play.clients[0].request, ERROR_NONE).n_rows, ==, 1);
                g_assert_cmpuint(client_expect(&play.clients[2], play.clients[2].request, ERROR_NONE).n_rows, ==, 1);
                g_assert_cmpuint(client_expect(&play.clients[1], play.clients[1].request - i + 1, ERROR_NONE).n_rows, ==, 1);
        }
        end();
}

/* The first answer is half sent, from inside the second step, when that has its first row: COLUMNS goes out after it. */
static void test_columns_behind_answer(void) {
        static const int64_t count = 10000;
        Client *c = &play.clients[0];
        const Job *job;
        Answer a;

        begin("DELETE");
        open_channel(c);
        narrow(c, 4096);
        (void) client_add_query(c, "SELECT zeroblob(12000)", 0, NULL);
        (void) client_add_query(c, COUNT_TO, 1, &count);
        client_send(c);
        play.step_usec = 1000;
        serve();
        job = &channel_of(c)->job;
        g_assert_cmpint(job->state, ==, JOB_PARKED);
        g_assert_cmpuint(job->spec->number, ==, 2);
        g_assert_cmpint(job->payload.kind, ==, FRAME_COLUMNS);
        g_assert_cmpuint(job->payload.size, >, 0);
        g_assert_cmpuint(job->payload.done, ==, 0);
        a = read_in_parts(c);
        g_assert_cmpuint(a.number, ==, 1);
        g_assert_cmpuint(a.n_rows, ==, 1);
        a = read_in_parts(c);
        g_assert_cmpuint(a.number, ==, 2);
        g_assert_cmpuint(a.n_columns, ==, 1);
        g_assert_cmpint(a.integer, ==, count);
        end();
}

static void expect_closed(Client *c) {
        ReceivedMessage m = client_expect_end(&play.rig, c, MESSAGE_CHANNEL_CLOSED, NULL);

        received_message_done(&m);
        g_assert_null(channel_of(c));
}

/* A client leaves while its answer waits for room: the channel ends at once. The worker may sleep when that happens, or not
 * yet. */
static void test_unread_client_leaves(void) {
        for (unsigned asleep = 0; asleep < 2; asleep++) {
                Client *c = &play.clients[0];

                begin("DELETE");
                open_channel(c);
                narrow(c, 4096);
                (void) client_add_query(c, "SELECT zeroblob(12000)", 0, NULL);
                client_send(c);
                g_assert_true(serve_once());
                g_assert_cmpint(channel_of(c)->state, ==, CHANNEL_DRAINING);
                if (asleep)
                        serve();
                client_leave(c);
                for (unsigned i = 0; i < 10 && channel_of(c); i++)
                        (void) serve_once();
                g_assert_null(channel_of(c));
                expect_closed(c);
                end();
        }
}

static void leave(Client *c) {
        if (c == &play.clients[0])
                client_leave(&play.clients[1]);
}

/* A client leaves in the round, before its turn or before its answer is sent. */
static void test_client_that_left(void) {
        for (unsigned answered = 0; answered < 2; answered++) {
                begin("DELETE");
                open_channels(3, VALUE);
                for (unsigned i = 0; i < 3; i++)
                        (void) fetch(i, 1);
                play.on_read = answered ? NULL : leave;
                play.on_write = answered ? leave : NULL;
                serve();
                expect(0, 1);
                expect(2, 1);
                expect_closed(&play.clients[1]);
                g_assert_cmpuint(play.n_transactions, ==, 1);
                end();
        }
}

int main(int argc, char **argv) {
        rig_main_init(&argc, &argv);
        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || sqlite_engine.init(&wide) < 0)
                return EXIT_FAILURE;
        g_test_add_func("/round/one-transaction", test_one_transaction);
        g_test_add_func("/round/queries", test_queries);
        g_test_add_func("/round/pipelined", test_pipelined);
        g_test_add_func("/round/later-requests-are-fresh", test_later_requests_are_fresh);
        g_test_add_func("/round/finalize-before-later-request", test_finalize_before_later_request);
        g_test_add_func("/round/rest-before-later-request", test_rest_before_later_request);
        g_test_add_func("/round/second-request-sees-commit", test_second_request_sees_commit);
        g_test_add_func("/round/unlocked-before-answers", test_unlocked_before_answers);
        g_test_add_func("/round/failure", test_failure);
        g_test_add_func("/round/request-that-lasts", test_request_that_lasts);
        g_test_add_func("/round/give-away", test_give_away);
        g_test_add_func("/round/unknown-request", test_unknown_request);
        g_test_add_func("/round/large-answer", test_large_answer);
        g_test_add_func("/round/request-that-writes", test_request_that_writes);
        g_test_add_func("/round/order", test_order);
        g_test_add_func("/round/turns", test_turns);
        g_test_add_func("/round/guests", test_guests);
        g_test_add_func("/round/full-socket", test_full_socket);
        g_test_add_func("/round/columns-behind-answer", test_columns_behind_answer);
        g_test_add_func("/round/unread-client-leaves", test_unread_client_leaves);
        g_test_add_func("/round/client-that-left", test_client_that_left);
        return g_test_run();
}
