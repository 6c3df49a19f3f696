/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * daemon/supervisor/runs/pipe: the cost of a new pipe, counted in system calls, and how the service notices that pipes were
 * resized or closed. The pipes are real; fcntl() and poll() are wrapped to count them.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include "daemon/supervisor/calls/bus-error.h"
#include "daemon/supervisor/runs/pipe.h"
#include "daemon/supervisor/service/manager.h"
#include "tests/unit/test.h"

#define N_PIPES_MAX 4200u
#define CALLS_PER_PIPE (PIPE_CHECKS_PER_CALL + 3) /* checks, F_SETFL, F_SETPIPE_SZ or F_GETPIPE_SZ */

static uint64_t n_calls;

int __real_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);

int __wrap_fcntl64(int fd, int command, ...) {
        va_list ap;

        va_start(ap, command);
        long argument = va_arg(ap, long);
        va_end(ap);
        n_calls++;
        return __real_fcntl64(fd, command, argument);
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout) {
        n_calls++;
        return __real_poll(fds, n, timeout);
}

typedef struct Rig {
        Manager *manager;
        User *user;
        Pipe *pipes[N_PIPES_MAX];
        int read_fds[N_PIPES_MAX];
        unsigned n;
} Rig;

/* The total is small, so that the test needs few descriptors. */
static void rig_init(Rig *rig, uint64_t pages) {
        static char *no_directories[] = { NULL };

        *rig = (Rig) {};
        CHECK_INT(manager_new(BUS_ADDRESS, no_directories, &rig->manager), 0);
        if (pages > 0)
                pipe_budget_init(&rig->manager->pipes.budget, pages, UINT64_MAX);
        rig->user = user_get(&rig->manager->context, 1000);
}

/* As a client has it: it holds the read end. -EDQUOT: refused. */
static int add_pipe(Rig *rig, User *u, bool for_run) {
        g_auto(Refusal) refusal = REFUSAL_INIT;
        int r = pipe_new(u, for_run, &rig->pipes[rig->n], &refusal);

        if (r < 0)
                return r;
        rig->read_fds[rig->n] = pipe_take_read_fd(rig->pipes[rig->n]);
        rig->n++;
        return 0;
}

static void retire_pipe(Rig *rig, unsigned i) {
        rig->pipes[i] = pipe_unref(rig->pipes[i]);
}

static void close_read_fd(Rig *rig, unsigned i) {
        CHECK_INT(close(rig->read_fds[i]), 0);
        rig->read_fds[i] = -1;
}

static void rig_done(Rig *rig) {
        while (rig->user->pipes.head)
                pipe_free(rig->user->pipes.head->data);
        for (unsigned i = 0; i < rig->n; i++)
                if (rig->read_fds[i] >= 0)
                        close(rig->read_fds[i]);
        (void) user_unref(rig->user);
        (void) manager_free(rig->manager);
}

/* Adds pipes, each of which is used, or retired at once, until one more is refused. The calls to the kernel of each are
 * bounded by a constant, of those that are refused, too. */
static void check_cost(bool retired) {
        static Rig rig;
        int r = 0;

        rig_init(&rig, 0);
        while (r == 0 && rig.n < N_PIPES_MAX) {
                uint64_t before = n_calls;
                r = add_pipe(&rig, rig.user, false);
                CHECK(r == 0 || r == -EDQUOT);
                CHECK(r < 0 || n_calls - before <= CALLS_PER_PIPE);
                if (r == 0 && retired)
                        retire_pipe(&rig, rig.n - 1);
        }
        CHECK(rig.n > 100);
        for (unsigned i = 0; r < 0 && i < 10; i++) {
                uint64_t before = n_calls;
                CHECK_INT(add_pipe(&rig, rig.user, false), -EDQUOT);
                CHECK(n_calls - before <= 2 * PIPE_CHECKS_PER_CALL);
        }
        rig_done(&rig);
}

static void test_cost_with_pipes_in_use(void) {
        check_cost(false);
}

static void test_cost_with_retired_pipes(void) {
        check_cost(true);
}

/* Calls until one is admitted. */
static unsigned n_calls_until_admitted(Rig *rig) {
        for (unsigned n = 1; n <= N_PIPES_MAX; n++)
                if (add_pipe(rig, rig->user, false) == 0)
                        return n;
        return UINT_MAX;
}

/* At the limit, a pipe that its reader closes is found at once if the calls before left checks, else in turn. */
static void test_closed_pipe_makes_room(void) {
        static Rig rig;

        rig_init(&rig, 256);
        while (add_pipe(&rig, rig.user, false) == 0)
                ;
        unsigned n = rig.n;
        for (unsigned i = 0; i < n; i += n / 4) {
                retire_pipe(&rig, i);
                CHECK_INT(add_pipe(&rig, rig.user, false), -EDQUOT); /* it is open, and comes last from now on */
                close_read_fd(&rig, i);
                CHECK(n_calls_until_admitted(&rig) <= n / PIPE_CHECKS_PER_CALL + 1);
        }
        retire_pipe(&rig, 1);
        close_read_fd(&rig, 1);
        CHECK_INT(n_calls_until_admitted(&rig), 1);
        rig_done(&rig);
}

static void test_grown_pipe_is_found_in_turn(void) {
        static Rig rig;
        int pages = 64, size = pages * (int) sysconf(_SC_PAGESIZE);

        rig_init(&rig, 4096);
        for (unsigned i = 0; i < 40; i++)
                CHECK_INT(add_pipe(&rig, rig.user, false), 0);
        for (unsigned i = 0; i < 40; i += 13)
                CHECK_INT(fcntl(rig.read_fds[i], F_SETPIPE_SZ, size), size);
        for (unsigned i = 0; i < 2 * 40 / PIPE_CHECKS_PER_CALL + 5; i++)
                CHECK_INT(add_pipe(&rig, rig.user, false), 0);
        for (unsigned i = 0; i < 40; i += 13) {
                CHECK_INT(rig.pipes[i]->share.pages, pages);
                CHECK_INT(rig.pipes[i]->share.granted, 1);
        }
        CHECK_INT(rig.manager->pipes.budget.granted, rig.user->pipe_account.used - 4 * (uint64_t) (pages - 1));
        rig_done(&rig);
}

/* Each query's pipe is closed by the time of the next one: a user that goes on for ever holds only the last. */
static void test_retired_pipes_are_freed_in_time(void) {
        static Rig rig;

        rig_init(&rig, 4096);
        for (unsigned i = 0; i < 100; i++) {
                CHECK_INT(add_pipe(&rig, rig.user, true), 0);
                retire_pipe(&rig, i);
                close_read_fd(&rig, i);
                CHECK_INT(rig.user->pipes.length, 1);
        }
        rig_done(&rig);
}

/* Read ends that a user keeps cost it a page each, although the pipes were larger when they were used. */
static void test_kept_pipes_are_shrunk(void) {
        static Rig rig;

        rig_init(&rig, 4096);
        for (unsigned i = 0; i < 400; i++) {
                CHECK_INT(add_pipe(&rig, rig.user, true), 0);
                retire_pipe(&rig, i);
        }
        CHECK(rig.user->pipe_account.retired <= 400 + PIPE_PAGES_FIRST_RUN);
        rig_done(&rig);
}

/* The pipe of a load that has ended; returns the client's write end. */
static int add_ended_load(Rig *rig) {
        g_auto(Refusal) refusal = REFUSAL_INIT;
        Pipe *p;

        CHECK_INT(pipe_new_inward(rig->user, &p, &refusal), 0);
        int fd = pipe_take_read_fd(p);
        CHECK_INT(write(fd, "rows", 4), 4);
        (void) pipe_unref(p);
        return fd;
}

static void wait_for_rest(Rig *rig) {
        while (rig->manager->pipes.resting.length > 0)
                CHECK(sd_event_run(rig->manager->context.event, 1000000) >= 0);
}

/* A client that keeps its end of a load's pipe gets EPIPE, and the pipe counts, at its real size, until it is closed. */
static void test_kept_write_ends(void) {
        int pages = 64, size = pages * (int) sysconf(_SC_PAGESIZE), fd;
        static Rig rig;

        rig_init(&rig, 4096);
        for (unsigned turn = 0; turn < 2; turn++) {
                fd = add_ended_load(&rig);
                CHECK_INT(write(fd, "more", 4), -1);
                CHECK_INT(errno, EPIPE);
                CHECK_INT(rig.user->pipe_account.retired, 1);
                CHECK_INT(fcntl(fd, F_SETPIPE_SZ, size), size);
                wait_for_rest(&rig);
                CHECK_INT(rig.user->pipe_account.retired, pages);
                CHECK_INT(rig.manager->pipes.kept.length, 1);
                CHECK_INT(write(fd, "more", 4), -1);
                CHECK_INT(close(fd), 0);
                CHECK_INT(add_pipe(&rig, rig.user, false), 0);
                CHECK_INT(rig.user->pipe_account.retired, 0);
                CHECK_INT(rig.manager->pipes.kept.length, 0);
        }
        rig_done(&rig);
}

static void test_kept_write_ends_of_others(void) {
        static Rig rig;
        int fd, other;

        rig_init(&rig, 4096);
        fd = add_ended_load(&rig);
        wait_for_rest(&rig);
        CHECK_INT(rig.user->pipe_account.retired, 1);
        CHECK_INT(close(fd), 0);
        User *u = rig.user;
        rig.user = user_get(&rig.manager->context, 1001);
        other = add_ended_load(&rig); /* of another user */
        wait_for_rest(&rig);
        CHECK_INT(u->pipe_account.retired, 0);
        CHECK_INT(close(other), 0);
        (void) user_unref(u);
        rig_done(&rig);
}

/* Most clients have closed their end by then. */
static void test_closed_write_ends(void) {
        g_auto(Refusal) refusal = REFUSAL_INIT;
        static Rig rig;
        Pipe *p;

        rig_init(&rig, 4096);
        CHECK_INT(pipe_new_inward(rig.user, &p, &refusal), 0);
        CHECK_INT(close(pipe_take_read_fd(p)), 0);
        (void) pipe_unref(p);
        CHECK_INT(rig.user->pipes.length, 0);
        CHECK_INT(rig.user->pipe_account.used, 0);
        rig_done(&rig);
}

/* Two users that only keep the read ends of finalized statements leave a third one, and root, their pipes. */
static void test_two_users_that_keep_read_ends(void) {
        static Rig rig;

        rig_init(&rig, 1024);
        Context *context = &rig.manager->context;
        User *users[] = { rig.user, user_get(context, 1001), user_get(context, 1002), user_get(context, 0) };
        for (unsigned i = 0; i < 2; i++)
                while (add_pipe(&rig, users[i], false) == 0)
                        retire_pipe(&rig, rig.n - 1);
        for (unsigned i = 2; i < N_ELEMENTS(users); i++)
                for (unsigned k = 0; k < 50; k++)
                        CHECK_INT(add_pipe(&rig, users[i], false), 0);
        for (unsigned i = 0; i < 2; i++)
                CHECK_INT(add_pipe(&rig, users[i], false), -EDQUOT);
        for (unsigned i = 1; i < N_ELEMENTS(users); i++) {
                while (users[i]->pipes.head)
                        pipe_free(users[i]->pipes.head->data);
                (void) user_unref(users[i]);
        }
        rig_done(&rig);
}

int main(void) {
        static const Test tests[] = {
                TEST(test_cost_with_pipes_in_use), TEST(test_cost_with_retired_pipes), TEST(test_closed_pipe_makes_room),
                TEST(test_grown_pipe_is_found_in_turn), TEST(test_retired_pipes_are_freed_in_time),
                TEST(test_kept_pipes_are_shrunk), TEST(test_kept_write_ends), TEST(test_kept_write_ends_of_others),
                TEST(test_closed_write_ends), TEST(test_two_users_that_keep_read_ends),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return test_main(tests, N_ELEMENTS(tests));
}
