/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cached statements and channels, in the supervisor: the one that has been idle for the longest time is released if its user
 * asks for another one past StatementsMax= or ChannelsMax=. One without the option `cached` never is.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/statement.h"
#include "tests/rigs/script.h"

#define N_MAX 3u /* StatementsMax= */

static void finish_all(void) {
        pump();
        while (stub_workers_be_honest())
                pump();
}

static bool is_kept(uint64_t number) {
        return g_hash_table_contains(rig.manager->context.statements, &number);
}

static const char *path = OPEN; /* of Prepare */

static const RigCall *prepare(unsigned peer, bool cached) {
        sd_bus_message *m = rig_new_call(peer, path, SQLIPC_DATABASE_INTERFACE, "Prepare");

        CHECK(sd_bus_message_append(m, "sa{sv}", "SELECT 1", 1, "cached", "b", cached) >= 0);
        rig_send_call(peer, m, true);
        finish_all();
        return &rig.calls[rig.n_calls - 1];
}

/* The number of the new statement. */
static uint64_t must_prepare(unsigned peer, bool cached) {
        GHashTableIter i;
        uint64_t newest = 0;
        void *key;

        check_error(prepare(peer, cached), "");
        g_hash_table_iter_init(&i, rig.manager->context.statements);
        while (g_hash_table_iter_next(&i, &key, NULL))
                newest = MAX(newest, *(uint64_t *) key);
        return newest;
}

static const RigCall *fetch(unsigned peer, uint64_t number) {
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, "Fetch");

        CHECK(sd_bus_message_append(m, "tava{sv}a{sv}", number, 0, 0, 0) >= 0);
        return send_call(peer, m);
}

/* The clients read their pipes empty. */
static void read_all(void) {
        char bytes[4096];

        for (size_t i = 0; i < rig.n_fds; i++) {
                CHECK(fcntl(rig.fds[i], F_SETFL, O_NONBLOCK) >= 0);
                while (read(rig.fds[i], bytes, sizeof bytes) > 0)
                        ;
        }
}

static void run(unsigned peer, uint64_t number) {
        const RigCall *c = fetch(peer, number);

        finish_all();
        check_error(c, "");
        read_all();
}

static void begin_limited(void) {
        begin();
        rig.manager->context.config->limits.statements_max = N_MAX;
}

/* All statements that the user may have, cached, and each has run. */
static void fill(uint64_t *ret) {
        for (unsigned i = 0; i < N_MAX; i++) {
                ret[i] = must_prepare(A, true);
                run(A, ret[i]);
        }
}

/* Also if the call that needs the room is for a statement that is not cached, from another connection of the user. */
static void test_least_recently_used(void) {
        uint64_t s[N_MAX], named;

        begin_limited();
        rig.peers[B].uid = rig.peers[A].uid;
        fill(s);
        run(A, s[0]);
        named = must_prepare(B, false);
        CHECK(is_kept(s[0]) && !is_kept(s[1]) && is_kept(s[2]));
        check_error(fetch(A, s[1]), ERROR("UnknownStatement"));
        run(B, named);
        (void) must_prepare(A, true);
        CHECK(is_kept(named) && is_kept(s[0]) && !is_kept(s[2]));
        CHECK_INT(g_hash_table_size(rig.manager->context.statements), N_MAX);
        end();
}

static void test_asked_for_by_name(void) {
        uint64_t s[N_MAX];

        begin_limited();
        for (unsigned i = 0; i < N_MAX; i++) {
                s[i] = must_prepare(A, false);
                run(A, s[i]);
        }
        check_error(prepare(A, true), ERROR("LimitsExceeded"));
        CHECK(strstr(rig.calls[rig.n_calls - 1].sentence, "StatementsMax="));
        for (unsigned i = 0; i < N_MAX; i++)
                CHECK(is_kept(s[i]));
        check_error(prepare(C, true), ""); /* another user */
        end();
}

static void test_in_use(void) {
        uint64_t s[N_MAX];
        const RigCall *c;

        begin_limited();
        fill(s);
        c = fetch(A, s[0]); /* no worker has answered */
        (void) must_prepare(A, true);
        CHECK(is_kept(s[0]) && !is_kept(s[1]));
        finish_all();
        check_error(c, "");
        end();
}

/* Its client has not read all rows of its last run. */
static void test_unread(void) {
        uint64_t s[N_MAX];
        Statement *st;

        begin_limited();
        fill(s);
        st = g_hash_table_lookup(rig.manager->context.statements, &s[0]);
        CHECK_INT(write(st->pipe->write_fd, "x", 1), 1);
        (void) must_prepare(A, true);
        CHECK(is_kept(s[0]) && !is_kept(s[1]));
        end();
}

/* A client that has just prepared a statement runs it next. If it does not, the statement is released after ten seconds. */
static void test_never_run(void) {
        uint64_t s[N_MAX];

        begin_limited();
        for (unsigned i = 0; i < N_MAX; i++)
                s[i] = must_prepare(A, true);
        rig_pass_time(10 * SECOND - 1);
        check_error(prepare(A, true), ERROR("LimitsExceeded"));
        rig_pass_time(1);
        (void) must_prepare(A, true);
        CHECK(!is_kept(s[0]) && is_kept(s[1]) && is_kept(s[2]));
        end();
}

/* StatementsMax= of the database, which is not the only one. */
static void test_of_database(void) {
        Database *d;
        uint64_t s[2], before;

        begin();
        d = database_find(&rig.manager->context, "open");
        d->config->limits.statements_max = 2;
        for (unsigned i = 0; i < 2; i++) {
                s[i] = must_prepare(A, true);
                run(A, s[i]);
        }
        check_error(prepare(C, true), ERROR("LimitsExceeded")); /* of another user none is released */
        (void) must_prepare(A, true);
        CHECK(!is_kept(s[0]) && is_kept(s[1]));

        /* if the user has all that it may have, too, and another database has the first to release */
        d->config->limits.statements_max = UINT64_MAX;
        before = rig.manager->context.config->limits.statements_max;
        rig.manager->context.config->limits.statements_max = 3;
        d = database_find(&rig.manager->context, "second");
        path = SQLIPC_DATABASE_PATH "/second";
        s[0] = must_prepare(A, true);
        d->config->limits.statements_max = 1;
        rig_pass_time(10 * SECOND);
        (void) must_prepare(A, true);
        CHECK(!is_kept(s[0]) && is_kept(s[1]));
        path = OPEN;
        rig.manager->context.config->limits.statements_max = before;
        d->config->limits.statements_max = UINT64_MAX;
        end();
}

/* Clients keep the pipes of released statements, and these are limited. Clients that allow no release get as many statements
 * as before, all the same. */
static void test_pipes_of_released(void) {
        const uint64_t before = rig.manager->context.config->limits.pipe_pages_max;
        unsigned n = 0;

        begin_limited();
        rig.peers[B].uid = rig.peers[A].uid;
        rig.manager->context.config->limits.pipe_pages_max = 64;
        while (prepare(A, true)->error[0] == 0) {
                CHECK(++n < 64);
                rig_pass_time(10 * SECOND);
        }
        CHECK_INT(g_hash_table_size(rig.manager->context.statements), N_MAX);
        for (unsigned i = 0; i < N_MAX; i++)
                (void) must_prepare(B, false);
        check_error(prepare(B, false), ERROR("LimitsExceeded"));
        for (unsigned i = 0; i < 10; i++) {
                GHashTableIter k;
                void *key;

                g_hash_table_iter_init(&k, rig.manager->context.statements);
                CHECK(g_hash_table_iter_next(&k, &key, NULL));
                check_error(call_with_number(B, "Finalize", *(uint64_t *) key), "");
                close(rig.fds[--rig.n_fds]);
                check_error(prepare(A, true), ERROR("LimitsExceeded"));
                (void) must_prepare(B, false);
        }
        rig.manager->context.config->limits.pipe_pages_max = before;
        end();
}

/* ---- Channels ---- */

typedef struct Opened {
        Channel *channel;  /* valid until it is closed */
        uint64_t number;
        int fd;            /* of the client; borrowed from the rig */
} Opened;

static const RigCall *call_open(unsigned peer, bool cached) {
        sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, "OpenChannel");

        CHECK(sd_bus_message_append(m, "a{sv}", 1, "cached", "b", cached) >= 0);
        return send_call(peer, m);
}

static Opened must_open(unsigned peer, bool cached) {
        GHashTableIter i;
        Opened o = {};
        void *value;

        check_error(call_open(peer, cached), "");
        o.fd = rig.fds[rig.n_fds - 1];
        g_hash_table_iter_init(&i, rig.manager->context.channels);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                Channel *c = value;

                if (c->number > o.number)
                        o = (Opened) { .channel = c, .number = c->number, .fd = o.fd };
        }
        return o;
}

static bool is_open(const Opened *o) {
        return g_hash_table_contains(rig.manager->context.channels, &o->number);
}

static bool is_at_end(const Opened *o) {
        char byte;

        return recv(o->fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* A request, which brings it to a worker. */
static void ask(const Opened *o) {
        char byte;

        CHECK_INT(send(o->fd, "x", 1, 0), 1);
        pump();
        CHECK_INT(o->channel->state, CHANNEL_AT_WORKER);
        CHECK_INT(recv(o->channel->fd, &byte, 1, 0), 1); /* the worker reads it */
}

static void give_back(const Opened *o) {
        stub_worker_say(0, &(Message) { .kind = MESSAGE_CHANNEL_RESTED, .channel_end.progress.number = o->number });
        pump();
        CHECK_INT(o->channel->state, CHANNEL_RESTING);
}

static Limits limits_before;

static void begin_channels(unsigned n_max) {
        begin();
        rig_set_mode("open", "read-only");
        rig.peers[B].uid = rig.peers[A].uid;
        limits_before = rig.manager->context.config->limits;
        rig.manager->context.config->limits.channels_max = n_max;
        rig.manager->context.config->limits.workers_max = 1;
}

static void end_channels(void) {
        rig.manager->context.config->limits = limits_before;
        finish_all();
        end();
}

static void open_all(Opened *ret, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                ret[i] = must_open(A, true);
}

static void test_resting_channel(void) {
        Opened o[N_MAX], named;

        begin_channels(N_MAX);
        open_all(o, N_MAX);
        ask(&o[0]);
        give_back(&o[0]);
        named = must_open(B, false);
        CHECK(is_open(&o[0]) && !is_open(&o[1]) && is_open(&o[2]));
        CHECK(is_at_end(&o[1]) && !is_at_end(&o[0]));
        (void) must_open(B, false);
        CHECK(is_open(&o[0]) && !is_open(&o[2]));
        (void) must_open(B, false);
        CHECK(!is_open(&o[0]));
        check_error(call_open(B, false), ERROR("LimitsExceeded"));
        CHECK(strstr(rig.calls[rig.n_calls - 1].sentence, "3 channels"));
        CHECK(is_open(&named));
        end_channels();
}

/* The user has more than it may have now. */
static void test_lower_channels_max(void) {
        Opened o[N_MAX];

        begin_channels(N_MAX);
        open_all(o, N_MAX);
        rig.manager->context.config->limits.channels_max = 1;
        (void) must_open(B, false);
        for (unsigned i = 0; i < N_MAX; i++)
                CHECK(!is_open(&o[i]));
        end_channels();
}

/* Its worker closes it; the channel that replaces it is open by then. */
static void test_channel_at_worker(void) {
        Opened o[N_MAX];

        begin_channels(N_MAX);
        open_all(o, N_MAX);
        for (unsigned i = 0; i < N_MAX; i++)
                ask(&o[i]);
        ask(&o[0]);
        stub_worker_say(0, &(Message) { .kind = MESSAGE_CHANNEL_PROGRESS,
                                        .channel_progress = { .number = o[0].number, .n_runs = 1 } });
        pump();
        (void) must_open(B, false);
        CHECK_INT(o[1].channel->state, CHANNEL_LEAVING);
        finish_all();
        CHECK(is_open(&o[0]) && !is_open(&o[1]) && is_open(&o[2]));
        CHECK(is_at_end(&o[1]));
        end_channels();
}

/* A worker that does not close them cannot let its user have any number. */
static void test_channels_that_do_not_close(void) {
        enum { N = 20, N_RELEASED = 16 };
        Opened o[N];

        begin_channels(N);
        open_all(o, N);
        for (unsigned i = 0; i < N; i++)
                ask(&o[i]);
        for (unsigned i = 0; i < N_RELEASED; i++)
                (void) must_open(B, false);
        check_error(call_open(B, false), ERROR("LimitsExceeded"));
        CHECK_INT(g_hash_table_size(rig.manager->context.channels), N + N_RELEASED);
        finish_all();
        CHECK_INT(g_hash_table_size(rig.manager->context.channels), N);
        (void) must_open(B, false);
        end_channels();
}

static void test_channel_in_use(void) {
        Opened o[N_MAX];

        begin_channels(N_MAX);
        open_all(o, N_MAX);
        for (unsigned i = 0; i < N_MAX; i++)
                ask(&o[i]);
        stub_worker_say(0, &(Message) {
                .kind = MESSAGE_CHANNEL_PROGRESS,
                .channel_progress = { .number = o[0].number, .running = true, .sql = { "SELECT", 6 } },
        });
        CHECK_INT(send(o[1].fd, "x", 1, 0), 1); /* the worker has not read it */
        pump();
        for (unsigned i = 0; i < N_MAX; i++) /* they are used equally long ago */
                o[i].channel->used_usec = 0;
        (void) must_open(B, false);
        CHECK(o[2].channel->released && !o[0].channel->released && !o[1].channel->released);
        check_error(call_open(B, false), ERROR("LimitsExceeded"));
        end_channels();
}

static void test_channel_asked_for_by_name(void) {
        Opened o[N_MAX];

        begin_channels(N_MAX);
        for (unsigned i = 0; i < N_MAX; i++)
                o[i] = must_open(A, false);
        rig_pass_time(10 * SECOND);
        check_error(call_open(A, false), ERROR("LimitsExceeded"));
        check_error(call_open(B, true), ERROR("LimitsExceeded"));
        (void) must_open(C, false); /* another user */
        for (unsigned i = 0; i < N_MAX; i++)
                CHECK(is_open(&o[i]));
        end_channels();
}

/* A request that writes, and is sent at that moment through the socket, would be lost. */
static void test_channel_that_writes(void) {
        Opened o[N_MAX];

        begin_channels(N_MAX);
        rig_set_mode("open", "read-write");
        open_all(o, N_MAX);
        rig_pass_time(SECOND - 1);
        check_error(call_open(B, false), ERROR("LimitsExceeded"));
        rig_pass_time(1);
        (void) must_open(B, false);
        CHECK(!is_open(&o[0]) && is_open(&o[1]) && is_open(&o[2]));
        end_channels();
}

/* Clients that take turns do not take each other's channels. */
static void test_channel_for_a_cached_one(void) {
        Opened o[N_MAX];

        begin_channels(N_MAX);
        open_all(o, N_MAX);
        rig_pass_time(SECOND - 1);
        check_error(call_open(B, true), ERROR("LimitsExceeded"));
        rig_pass_time(1);
        (void) must_open(B, true);
        CHECK(!is_open(&o[0]) && is_open(&o[1]) && is_open(&o[2]));
        end_channels();
}

/* ChannelsMax= of the database, and the service's descriptors: of another user none is released. */
static void test_channels_of_all_users(void) {
        uint64_t max_before;
        Database *d;
        Opened o[2], of_other;

        begin_channels(100);
        d = database_find(&rig.manager->context, "open");
        d->config->limits.channels_max = 3;
        of_other = must_open(C, true);
        open_all(o, 2);
        (void) must_open(B, false);
        CHECK(is_open(&of_other) && !is_open(&o[0]) && is_open(&o[1]));
        (void) must_open(B, false);
        check_error(call_open(B, false), ERROR("LimitsExceeded"));
        CHECK(is_open(&of_other));
        d->config->limits.channels_max = UINT64_MAX;

        max_before = rig.manager->context.channels_max;
        rig.manager->context.channels_max = 8; /* one is a reserve, one is of the other: three are A's and B's */
        o[0] = must_open(A, true);
        o[1] = must_open(B, false);
        CHECK(is_open(&of_other) && !is_open(&o[0]));
        check_error(call_open(A, false), ERROR("LimitsExceeded"));
        CHECK(is_open(&of_other) && is_open(&o[1]));
        rig.manager->context.channels_max = max_before;
        end_channels();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_least_recently_used), TEST(test_asked_for_by_name), TEST(test_in_use), TEST(test_unread),
                TEST(test_never_run), TEST(test_of_database), TEST(test_pipes_of_released),
                TEST(test_resting_channel), TEST(test_channel_at_worker),
                TEST(test_channels_that_do_not_close), TEST(test_channel_in_use), TEST(test_channel_asked_for_by_name),
                TEST(test_lower_channels_max), TEST(test_channel_that_writes),
                TEST(test_channel_for_a_cached_one), TEST(test_channels_of_all_users),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
