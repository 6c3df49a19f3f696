/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/worker/core/job: when a worker with channels gives up its place to another database. The loop runs in this process,
 * and time advances only while the loop waits: the test replaces the clock and epoll_wait().
 */
#include <sqlite3.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/worker/core/worker-loop.h"
#include "daemon/worker/sqlite/sqlite-engine.h"
#include "tests/rigs/channel-rig.h"

#define NEVER_USEC UINT64_MAX
#define PAUSE_USEC UINT64_C(2000)  /* that of leaving.c */
#define ROUNDED_USEC UINT64_C(2000) /* epoll_wait() counts milliseconds, and looks for requests before it waits */
#define LOOK_USEC UINT64_C(10)
#define TURN_USEC UINT64_C(200000) /* less than the supervisor gives */

int __real_epoll_wait(int fd, struct epoll_event *events, int n, int msec);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int msec);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_sched_yield(void);

static struct {
        Rig rig;
        Client client;
        uint64_t clock_usec;
        uint64_t age_usec;  /* of the worker when it gets its channel and the first request */
        uint64_t gap_usec;  /* between an answer and the next request; NEVER_USEC: there is none */
        uint64_t turn_usec; /* of GIVE_WAY, which comes after the first answer */
        bool at_once;       /* no: with the first request */
        bool asked, waits, told;
        uint64_t answered_usec, told_usec;
        unsigned n_answers;
} play;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret) {
        *ret = (struct timespec) {
                .tv_sec = (time_t) (play.clock_usec / 1000000),
                .tv_nsec = (long) (play.clock_usec % 1000000) * 1000,
        };
        return 0;
}

/* On a busy machine a thousand of them would take seconds. */
int __wrap_sched_yield(void) {
        return 0;
}

static void ask(void) {
        (void) client_add_query(&play.client, "SELECT 1", 0, NULL);
        client_send(&play.client);
        play.asked = play.waits = true;
}

static void tell_to_give_way(void) {
        Message m = { .kind = MESSAGE_GIVE_WAY, .number = play.turn_usec };

        g_assert_cmpint(message_send(play.rig.control_fd, &m, -1), ==, 0);
        play.told = true;
        play.told_usec = play.clock_usec;
}

/* The worker waits for `msec`, or for ever: what its client and the supervisor do then, and when. */
static void pass(int msec) {
        if (!play.asked) {
                play.clock_usec += play.age_usec;
                client_start(&play.rig, &play.client);
                ask();
                if (play.at_once)
                        tell_to_give_way();
                return;
        }
        if (play.waits) {
                (void) client_expect(&play.client, play.client.request, ERROR_NONE);
                play.waits = false;
                play.n_answers++;
                play.answered_usec = play.clock_usec;
        }
        if (!play.told) {
                tell_to_give_way();
                return;
        }
        g_assert_cmpint(msec, >, 0); /* the worker wakes up by itself */
        if (play.gap_usec <= (uint64_t) msec * 1000) {
                play.clock_usec += play.gap_usec;
                ask();
        } else
                play.clock_usec += (uint64_t) msec * 1000;
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int msec) {
        int r = __real_epoll_wait(fd, events, n, 0);

        if (r != 0)
                return r;
        if (msec == 0) {
                play.clock_usec += LOOK_USEC;
                return 0;
        }
        pass(msec);
        return __real_epoll_wait(fd, events, n, 0);
}

/* A worker from its start until it has given way. */
static void run_worker(uint64_t age_usec, uint64_t gap_usec, uint64_t turn_usec, bool at_once) {
        ReceivedMessage setup = { .message = { .kind = MESSAGE_SETUP, .setup = wide }, .pipe_fd = -1, .memory_fd = -1 };
        ReceivedMessage rested;
        int job[2], control[2];
        WorkerLoop queue;

        play.age_usec = age_usec;
        play.gap_usec = gap_usec;
        play.turn_usec = turn_usec;
        play.at_once = at_once;
        play.asked = play.waits = play.told = false;
        play.n_answers = 0;
        setup.message.setup.path = play.rig.database;
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, job), ==, 0);
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), ==, 0);
        play.rig.control_fd = control[0];
        g_assert_cmpint(worker_loop_init(&queue, &sqlite_engine, job[1], control[1], &setup), ==, 0);
        g_assert_cmpint(worker_loop_run(&queue), ==, 0);
        worker_loop_done(&queue);
        rested = client_expect_end(&play.rig, &play.client, MESSAGE_CHANNEL_RESTED, NULL);
        received_message_done(&rested);
        client_done(&play.client);
        for (unsigned i = 0; i < 2; i++) {
                close(job[i]);
                close(control[i]);
        }
}

/* A worker without requests waits for the pause, and not for the end of its turn. */
static void test_idle(void) {
        run_worker(0, NEVER_USEC, LATER, false);
        g_assert_cmpuint(play.n_answers, ==, 1);
        g_assert_cmpuint(play.clock_usec - play.answered_usec, >=, PAUSE_USEC);
        g_assert_cmpuint(play.clock_usec - play.answered_usec, <=, PAUSE_USEC + ROUNDED_USEC);
}

/* The same holds if its client asks again after a longer pause. */
static void test_seldom_asked(void) {
        run_worker(0, 3 * PAUSE_USEC, LATER, false);
        g_assert_cmpuint(play.n_answers, ==, 1);
        g_assert_cmpuint(play.clock_usec - play.answered_usec, <=, PAUSE_USEC + ROUNDED_USEC);
}

/* A worker with requests in shorter intervals has its turn, which began when the worker did, and no more. */
static void test_asked_all_the_time(void) {
        uint64_t started_usec = play.clock_usec;

        run_worker(0, PAUSE_USEC / 2, TURN_USEC, false);
        g_assert_cmpuint(play.n_answers, >=, TURN_USEC / PAUSE_USEC);
        g_assert_cmpuint(play.clock_usec - started_usec, >=, TURN_USEC);
        g_assert_cmpuint(play.clock_usec - started_usec, <=, TURN_USEC + PAUSE_USEC + ROUNDED_USEC);
}

/* After the end of the turn a request that came together with its channel is answered, and no other. */
static void test_request_with_channel(void) {
        run_worker(10 * TURN_USEC, PAUSE_USEC / 2, TURN_USEC, true);
        g_assert_cmpuint(play.n_answers, >=, 1);
        g_assert_cmpuint(play.clock_usec - play.told_usec, <=, PAUSE_USEC + ROUNDED_USEC);
}

/* An outdated worker has no turn. */
static void test_no_turn(void) {
        run_worker(0, PAUSE_USEC / 2, 0, false);
        g_assert_cmpuint(play.n_answers, ==, 1);
        g_assert_cmpuint(play.clock_usec, ==, play.told_usec);
}

int main(int argc, char **argv) {
        int r;

        g_test_init(&argc, &argv, NULL);
        play.clock_usec = (uint64_t) g_get_monotonic_time() + LATER; /* the kernel's timers of the loop never fire */
        rig_init_folder(&play.rig);
        exec_sql(play.rig.database, "CREATE TABLE t(x)");
        g_assert_cmpint(sqlite3_shutdown(), ==, SQLITE_OK);
        g_assert_cmpint(sqlite_engine.init(&wide), ==, 0);
        g_test_add_func("/give-way/idle", test_idle);
        g_test_add_func("/give-way/seldom-asked", test_seldom_asked);
        g_test_add_func("/give-way/asked-all-the-time", test_asked_all_the_time);
        g_test_add_func("/give-way/request-with-channel", test_request_with_channel);
        g_test_add_func("/give-way/no-turn", test_no_turn);
        r = g_test_run();
        rig_done_folder(&play.rig);
        return r;
}
