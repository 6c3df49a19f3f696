/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/supervisor/runs/placement.h: which worker a channel goes to, also as a guest of another group of its user, when it
 * goes there without a request, and which place it gets. The test's clock does not advance by itself.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/supervisor/base/quota.h"
#include "daemon/supervisor/runs/channel.h"
#include "daemon/supervisor/runs/placement.h"
#include "tests/rigs/script.h"

#define MIB (UINT64_C(1) << 20)

typedef struct Opened {
        Channel *channel;  /* valid until it is closed */
        uint64_t number;
        int fd;            /* of the client; borrowed from the rig */
} Opened;

static Limits limits_before;
static unsigned n_cpus_before;

static DatabaseConfig *config_of(const char *database) {
        return database_find(&rig.manager->context, database)->config;
}

/* Four databases with the same limits, which all may read. */
static void begin_readers(unsigned n_cpus) {
        static const char *const names[] = { "open", "second", "third", "fourth" };
        static const char *const paths[] = { "/open.db", "/second.db", "/third.db", "/fourth.db" };

        rig_begin_users();
        for (size_t i = 0; i < N_ELEMENTS(names); i++) {
                DatabaseConfig *c = config_of(names[i]);

                rig_set_mode(names[i], "read-only");
                g_free(c->path);
                c->path = g_strdup(paths[i]);
        }
        limits_before = rig.manager->context.config->limits;
        rig.manager->context.config->limits.channels_max = 100;
        rig.manager->context.config->limits.workers_max = 8;
        rig.manager->context.config->limits.workers_total_max = 100;
        n_cpus_before = rig.manager->context.n_cpus;
        rig.manager->context.n_cpus = n_cpus;
}

static void end_readers(void) {
        end();
        rig.manager->context.config->limits = limits_before;
        rig.manager->context.n_cpus = n_cpus_before;
}

static Opened open_channel(unsigned peer, const char *database) {
        g_autofree char *path = g_strconcat(SQLIPC_DATABASE_PATH, "/", database, NULL);
        sd_bus_message *m = rig_new_call(peer, path, SQLIPC_DATABASE_INTERFACE, "OpenChannel");
        GHashTableIter i;
        void *value;
        Opened o = {};

        CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
        check_error(send_call(peer, m), "");
        o.fd = rig.fds[rig.n_fds - 1];
        g_hash_table_iter_init(&i, rig.manager->context.channels);
        while (g_hash_table_iter_next(&i, NULL, &value)) {
                Channel *c = value;

                if (!o.channel || c->number > o.number)
                        o = (Opened) { .channel = c, .number = c->number, .fd = o.fd };
        }
        return o;
}

static void ask(const Opened *o) {
        CHECK_INT(send(o->fd, "x", 1, 0), 1);
        pump();
}

/* The channel, which has a request now. */
static Opened ask_on(unsigned peer, const char *database) {
        Opened o = open_channel(peer, database);

        ask(&o);
        return o;
}

static unsigned n_workers(void) {
        return rig.manager->context.workers.length;
}

/* The message with which worker `n` got the channel. The stub of a worker may be in the place of one that died. */
static const ChannelSetup *setup(unsigned n, const Opened *o) {
        const ChannelSetup *s = NULL;

        CHECK(o->channel->worker == worker(n));
        for (unsigned i = 0; i < stub_workers_alive() && !s; i++)
                s = stub_worker_channel(i, o->number);
        CHECK(s);
        return s;
}

static void check_guest(unsigned n, const Opened *o, const char *path) {
        CHECK(setup(n, o)->path);
        CHECK_STRING(setup(n, o)->path, path);
}

static void check_own(unsigned n, const Opened *o) {
        CHECK(!setup(n, o)->path);
        CHECK(!setup(n, o)->immutable);
}

static void give_back(unsigned n, const Opened *o, bool waiting) {
        stub_worker_say(n, &(Message) {
                .kind = MESSAGE_CHANNEL_RESTED,
                .channel_end = { .progress.number = o->number, .waiting = waiting, .state = { "state", 5 } },
        });
        pump();
}

/* A request of the channel lasts. */
static void say_running(unsigned n, const Opened *o) {
        stub_worker_say(n, &(Message) {
                .kind = MESSAGE_CHANNEL_PROGRESS,
                .channel_progress = { .number = o->number, .running = true, .sql = { "SELECT", 6 } },
        });
        pump();
}

/* ---- guests ---- */

static void test_guests(void) {
        begin_readers(1);
        const Opened first = ask_on(A, "open"), second = ask_on(A, "second");
        config_of("third")->immutable = true;
        const Opened third = ask_on(A, "third");
        config_of("third")->immutable = false;
        CHECK_INT(n_workers(), 1);
        check_own(0, &first);
        check_guest(0, &second, "/second.db");
        check_guest(0, &third, "/third.db");
        CHECK(!setup(0, &second)->immutable);
        CHECK(setup(0, &third)->immutable);
        CHECK(setup(0, &first)->client == first.number);
        CHECK(setup(0, &third)->client == first.number);
        end_readers();
}

/* No worker serves two users. */
static void test_other_user(void) {
        begin_readers(1);
        const Opened first = ask_on(A, "open"), of_other = ask_on(B, "second");
        CHECK_INT(n_workers(), 2);
        check_own(0, &first);
        check_own(1, &of_other);
        CHECK(setup(1, &of_other)->client == of_other.number);
        end_readers();
}

/* A user has a worker for each CPU before there are guests, unless a bound forbids that. */
static void test_cpus(void) {
        for (unsigned bound = 0; bound < 2; bound++) {
                begin_readers(2);
                if (bound)
                        rig.manager->context.config->limits.workers_max = 1;
                const Opened first = ask_on(A, "open"), second = ask_on(A, "second"), third = ask_on(A, "third");
                CHECK_INT(n_workers(), bound ? 1 : 2);
                check_own(0, &first);
                if (bound)
                        check_guest(0, &second, "/second.db");
                else
                        check_own(1, &second);
                check_guest(third.channel->worker == worker(0) ? 0 : 1, &third, "/third.db");
                end_readers();
        }
}

/* Channels in use get workers up to the number of CPUs, and share them beyond that. */
static void test_channels_of_a_group(void) {
        begin_readers(3);
        for (unsigned i = 0; i < 6; i++) {
                (void) ask_on(A, "open");
                CHECK_INT(n_workers(), MIN(i + 1, 3));
        }
        for (unsigned n = 0; n < 3; n++)
                CHECK_INT(worker(n)->channels.length, 2);
        end_readers();
}

/* At a bound, a worker whose channel is not in use is asked for its place at once, by a channel and by a call. */
static void test_place_of_an_idle_worker(void) {
        for (unsigned by_call = 0; by_call < 2; by_call++) {
                begin_readers(2);
                rig.manager->context.config->limits.workers_total_max = 1;
                const Opened first = ask_on(A, "open");
                if (by_call) {
                        rig_query(B, "open");
                        pump();
                } else
                        (void) ask_on(B, "open");
                CHECK_INT(n_workers(), 1);
                CHECK_INT(worker(0)->state, WORKER_ASKED);
                give_back(0, &first, false);
                CHECK(stub_workers_be_honest());
                pump();
                CHECK_INT(n_workers(), 1);
                CHECK(worker(0)->group->user->uid != first.channel->user->uid);
                end_readers();
        }
}

/* The guests of a client gather in one worker. */
static void test_one_worker_for_a_client(void) {
        begin_readers(2);
        (void) ask_on(A, "open");
        const Opened second = ask_on(A, "second");
        (void) ask_on(A, "second");
        const Opened third = ask_on(A, "third"), fourth = ask_on(A, "fourth");
        CHECK(second.channel->worker != worker(0));
        CHECK(third.channel->worker == fourth.channel->worker);
        end_readers();
}

/* A database that may be written, or has exposed tables, or other limits, shares no worker, as host or as guest. */
static void test_kept_apart(void) {
        char *exposed[] = { (char *) "t", NULL };

        for (unsigned what = 0; what < 3; what++)
                for (unsigned is_host = 0; is_host < 2; is_host++) {
                        begin_readers(1);
                        DatabaseConfig *c = config_of("second");
                        const DatabaseLimits before = c->limits;
                        char **not_exposed = c->expose;

                        switch (what) {
                        case 0: rig_set_mode("second", "read-write"); break;
                        case 1: c->expose = exposed; break;
                        default:
                                c->limits.given = UINT64_MAX;
                                c->limits.values = rig.manager->context.config->limits;
                                c->limits.values.variables_max--;
                        }
                        const Opened first = ask_on(A, is_host ? "second" : "open"),
                                     other = ask_on(A, is_host ? "open" : "second");
                        CHECK_INT(n_workers(), 2);
                        check_own(0, &first);
                        check_own(1, &other);
                        CHECK_INT(placement_allows_guests((is_host ? first : other).channel->group), what == 2);
                        c->expose = not_exposed;
                        end_readers();
                        c->limits = before;
                }
}

/* HeapMax= has a MiB for each channel. */
static void test_heap(void) {
        begin_readers(1);
        rig.manager->context.config->limits.heap_max = 3 * MIB;
        const Opened first = ask_on(A, "open"), second = ask_on(A, "second"), third = ask_on(A, "third"),
                     fourth = ask_on(A, "fourth");
        CHECK_INT(n_workers(), 2);
        check_own(0, &first);
        check_guest(0, &second, "/second.db");
        check_guest(0, &third, "/third.db");
        check_own(1, &fourth);
        end_readers();
}

/* A worker with a run is no host: its channels would wait for each step. */
static void test_busy_host(void) {
        begin_readers(1);
        const Opened first = ask_on(A, "open"), second = ask_on(A, "second");
        check_guest(0, &second, "/second.db");
        say_running(0, &first);
        const Opened third = ask_on(A, "third");
        CHECK_INT(n_workers(), 2);
        check_own(1, &third);
        /* the guest has a request that cannot run, so it goes elsewhere */
        give_back(0, &second, true);
        check_guest(1, &second, "/second.db");
        end_readers();
}

/* A guest gets a worker of its own group if there is one. */
static void test_own_worker_first(void) {
        begin_readers(1);
        const Opened first = ask_on(A, "open"), second = ask_on(A, "second");
        sd_bus_message *m = rig_new_call(A, SQLIPC_DATABASE_PATH "/second", SQLIPC_DATABASE_INTERFACE, "Query");

        check_guest(0, &second, "/second.db");
        CHECK(sd_bus_message_append(m, "sava{sv}a{sv}", "SELECT 1", 0, 0, 0) >= 0);
        (void) send_call(A, m); /* the bus's jobs are for workers of their own group */
        CHECK_INT(n_workers(), 2);
        CHECK(stub_worker_take(1));
        pump();
        stub_worker_say(1, &(Message) { .kind = MESSAGE_STARTED,
                                        .started = { .number = only_run()->number, .described = true } });
        stub_worker_say(1, &(Message) { .kind = MESSAGE_ENDED,
                                        .ended = { .number = only_run()->number, .failure.sql_offset = -1,
                                                   .drained = true } });
        pump();
        give_back(0, &second, false); /* its request is still unread */
        check_own(1, &second);
        check_own(0, &first);
        end_readers();
}

/* The worker of a host dies: the channels end with it, and nothing else. The databases of its user are apart then, for some
 * seconds, since one of them may have killed it. */
static void test_host_dies(void) {
        begin_readers(1);
        (void) ask_on(A, "open");
        (void) ask_on(A, "second");
        const Opened of_other = ask_on(B, "open");
        die();
        CHECK_INT(g_hash_table_size(rig.manager->context.channels), 1);
        CHECK_INT(n_workers(), 1);
        const Opened guest = ask_on(B, "second");
        check_own(0, &of_other);
        check_guest(0, &guest, "/second.db");
        const Opened first = ask_on(A, "open"), second = ask_on(A, "second");
        CHECK_INT(n_workers(), 3);
        check_own(1, &first);
        check_own(2, &second);
        rig_pass_time(4 * SECOND);
        const Opened third = ask_on(A, "third");
        CHECK_INT(n_workers(), 4);
        check_own(3, &third);
        rig_pass_time(3 * SECOND / 2);
        for (unsigned i = 0; i < stub_workers_alive(); i++) /* they answer PING */
                stub_worker_hear(i);
        pump();
        const Opened fourth = ask_on(A, "fourth");
        CHECK_INT(n_workers(), 4);
        CHECK(fourth.channel->worker && fourth.channel->worker->group != fourth.channel->group);
        end_readers();
}

/* A worker that was told to end says nothing about its databases. */
static void test_host_ends(void) {
        begin_readers(1);
        (void) ask_on(A, "open");
        (void) worker_end(worker(0), WORKER_END_STOPPING);
        CHECK(stub_workers_be_honest());
        pump();
        CHECK_INT(n_workers(), 0);
        (void) ask_on(A, "open");
        const Opened second = ask_on(A, "second");
        check_guest(0, &second, "/second.db");
        end_readers();
}

/* A busy worker, which cannot end at once, loses the database that it was started for: a guest stays until the run is over,
 * unless its own limits are others now. */
static void test_withdrawn_host(void) {
        begin_readers(1);
        const Opened first = ask_on(A, "open"), second = ask_on(A, "second");
        Worker *w = worker(0);
        check_guest(0, &second, "/second.db");
        say_running(0, &first);
        first.channel->database->published = false;
        CHECK(!worker_end(w, WORKER_END_OUTDATED));
        worker_retire(w);
        CHECK_INT(first.channel->state, CHANNEL_LEAVING);
        CHECK_INT(second.channel->state, CHANNEL_AT_WORKER);
        const Opened third = ask_on(A, "third"); /* is no guest of it */
        check_own(1, &third);
        rig.manager->context.config->limits.variables_max--;
        worker_retire(w);
        CHECK_INT(second.channel->state, CHANNEL_LEAVING);
        first.channel->database->published = true;
        end_readers();
}

/* ---- without a request ---- */

static void test_no_worker_is_started(void) {
        begin_readers(1);
        const Opened o = open_channel(A, "open");
        CHECK_INT(n_workers(), 0);
        CHECK_INT(o.channel->state, CHANNEL_RESTING);
        end_readers();
}

/* Its own worker, or a host, has time for it. */
static void test_hurry(void) {
        begin_readers(1);
        (void) ask_on(A, "open");
        const Opened own = open_channel(A, "open"), guest = open_channel(A, "second"), of_other = open_channel(B, "open");
        check_own(0, &own);
        check_guest(0, &guest, "/second.db");
        CHECK_INT(of_other.channel->state, CHANNEL_RESTING);
        end_readers();
}

/* Another worker would be better, or the choice depends on the request. */
static void test_no_hurry(void) {
        begin_readers(2);
        const Opened first = ask_on(A, "open"), second = open_channel(A, "open");
        CHECK_INT(second.channel->state, CHANNEL_RESTING);
        say_running(0, &first);
        rig.manager->context.n_cpus = 1;
        const Opened third = open_channel(A, "open"), guest = open_channel(A, "second");
        CHECK_INT(third.channel->state, CHANNEL_RESTING);
        CHECK_INT(guest.channel->state, CHANNEL_RESTING);
        rig_set_mode("fourth", "read-write");
        (void) ask_on(A, "fourth");
        const Opened writing = open_channel(A, "fourth");
        CHECK_INT(writing.channel->state, CHANNEL_RESTING);
        CHECK_INT(n_workers(), 2);
        end_readers();
}

/* QueueTimeoutSec= is the time that a request waits: not that since its channel was opened. */
static void test_queue_timeout(void) {
        begin_readers(1);
        rig.manager->context.config->limits.workers_max = 1;
        rig.manager->context.config->limits.queue_timeout_usec = 2 * SECOND;
        const Opened first = ask_on(A, "open"), early = open_channel(A, "open");
        check_own(0, &early);
        rig_pass_time(3 * SECOND);
        say_running(0, &first);
        give_back(0, &early, true);
        rig_pass_time(SECOND);
        CHECK_INT(g_hash_table_size(rig.manager->context.channels), 2);
        rig_pass_time(3 * SECOND / 2);
        CHECK_INT(g_hash_table_size(rig.manager->context.channels), 1);
        end_readers();
}

/* The worker does not read its socket: a channel without a request rests, and does not wait. */
static void test_hurry_to_full_socket(void) {
        begin_readers(1);
        (void) ask_on(A, "open");
        (void) stub_worker_channel(0, 0);
        fill_socket();
        const Opened o = open_channel(A, "open");
        CHECK_INT(o.channel->state, CHANNEL_RESTING);
        CHECK_INT(n_workers(), 1);
        end_readers();
}

/* ---- how many ---- */

/* A user gets half of the channels that others leave, and is told how many are left. */
static void test_share_of_channels(void) {
        static const unsigned shares[] = { 4, 2, 1, 1 };
        const uint64_t before = rig.manager->context.channels_max;

        begin_readers(1);
        rig.manager->context.channels_max = 8;
        for (unsigned peer = 0; peer < N_ELEMENTS(shares); peer++) {
                for (unsigned n = shares[peer]; n > 0; n--) {
                        const Opened o = open_channel(peer, "open");

                        CHECK_INT(quota_channels_left(o.channel->user, o.channel->database), n - 1);
                }
                sd_bus_message *m = rig_new_call(peer, OPEN, SQLIPC_DATABASE_INTERFACE, "OpenChannel");

                CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
                check_error(send_call(peer, m), ERROR("LimitsExceeded"));
        }
        rig.manager->context.channels_max = before;
        end_readers();
}

int main(void) {
        static const Test tests[] = {
                TEST(test_guests), TEST(test_other_user), TEST(test_cpus), TEST(test_channels_of_a_group),
                TEST(test_place_of_an_idle_worker), TEST(test_one_worker_for_a_client),
                TEST(test_kept_apart), TEST(test_heap), TEST(test_busy_host), TEST(test_own_worker_first),
                TEST(test_host_dies), TEST(test_host_ends), TEST(test_withdrawn_host), TEST(test_no_worker_is_started),
                TEST(test_hurry), TEST(test_no_hurry), TEST(test_queue_timeout), TEST(test_hurry_to_full_socket),
                TEST(test_share_of_channels),
        };

        return test_main(tests, N_ELEMENTS(tests));
}
