/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The states of the library's objects. For each kind of object, the header of its life cycle lists all transitions. This
 * test reads the lists and checks that the code permits these transitions and no others, that all others abort, and that
 * each of them occurs in the library. The arguments are the headers.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "client-lib/channel-link-life.h"
#include "client-lib/cursor-life.h"
#include "client-lib/fetch-life.h"
#include "client-lib/prepared-life.h"
#include "dbus-interfaces/sqlipc-errors.h"
#include "tests/rigs/fake-service.h"

#define N_STATES_MAX 8u

/* ---- Life cycles ---- */

typedef struct Life {
        const char *name;
        const char *header; /* an argument of the test */
        unsigned n_states;
        const char *states[N_STATES_MAX];
        bool (*permits)(unsigned from, unsigned to);
        void (*move)(unsigned from, unsigned to);
        bool documented[N_STATES_MAX][N_STATES_MAX], walked[N_STATES_MAX][N_STATES_MAX];
} Life;

/* The functions of a life cycle, and the wrapper that notes each transition of the library. */
#define LIFE_FUNCTIONS(prefix, State)                                                                                 \
        static Life prefix;                                                                                           \
        void __wrap_##prefix##_move(State *state, State to);                                                          \
        void __real_##prefix##_move(State *state, State to);                                                          \
        void __wrap_##prefix##_move(State *state, State to) {                                                         \
                prefix.walked[*state][to] = true;                                                                     \
                __real_##prefix##_move(state, to);                                                                    \
        }                                                                                                             \
        static bool prefix##_permits_pair(unsigned from, unsigned to) {                                               \
                return prefix##_permits((State) from, (State) to);                                                    \
        }                                                                                                             \
        static void prefix##_move_pair(unsigned from, unsigned to) {                                                  \
                State state = (State) from;                                                                           \
                                                                                                                      \
                __real_##prefix##_move(&state, (State) to);                                                           \
        }

LIFE_FUNCTIONS(cursor_life, CursorState)
LIFE_FUNCTIONS(fetch_life, FetchState)
LIFE_FUNCTIONS(prepared_life, StatementState)
LIFE_FUNCTIONS(channel_link_life, ChannelLinkState)

static Life cursor_life = {
        .name = "cursor",
        .n_states = CURSOR_STATE_MAX,
        .states = { [CURSOR_WAITING] = "WAITING", [CURSOR_RUNNING] = "RUNNING", [CURSOR_ASKING] = "ASKING",
                    [CURSOR_DONE] = "DONE" },
        .permits = cursor_life_permits_pair,
        .move = cursor_life_move_pair,
};

static Life fetch_life = {
        .name = "fetch",
        .n_states = FETCH_STATE_MAX,
        .states = { [FETCH_IDLE] = "IDLE", [FETCH_RUNNING] = "RUNNING", [FETCH_CANCELLING] = "CANCELLING",
                    [FETCH_CANCELLED] = "CANCELLED" },
        .permits = fetch_life_permits_pair,
        .move = fetch_life_move_pair,
};

static Life prepared_life = {
        .name = "statement",
        .n_states = STATEMENT_STATE_MAX,
        .states = { [STATEMENT_PREPARING] = "PREPARING", [STATEMENT_READY] = "READY", [STATEMENT_FAILED] = "FAILED",
                    [STATEMENT_LOST] = "LOST" },
        .permits = prepared_life_permits_pair,
        .move = prepared_life_move_pair,
};

static Life channel_link_life = {
        .name = "channel link",
        .n_states = CHANNEL_LINK_STATE_MAX,
        .states = { [CHANNEL_LINK_CLOSED] = "CLOSED", [CHANNEL_LINK_OPENING] = "OPENING", [CHANNEL_LINK_OPEN] = "OPEN" },
        .permits = channel_link_life_permits_pair,
        .move = channel_link_life_move_pair,
};

/* In the order of the arguments. */
static Life *const lives[] = { &cursor_life, &fetch_life, &prepared_life, &channel_link_life };

/* ---- The lists in the headers ---- */

static unsigned find_state(const Life *l, const char *name) {
        for (unsigned i = 0; i < l->n_states; i++)
                if (strcmp(l->states[i], name) == 0)
                        return i;
        printf("# %s has no state %s\n", l->name, name);
        CHECK(false);
        return 0;
}

/* The list begins after its title and ends with the comment. */
static void read_header(Life *l) {
        FILE *file = fopen(l->header, "re");
        char line[256], from[32], to[32];
        bool listed = false;

        CHECK(file);
        while (fgets(line, sizeof line, file) && strcmp(line, " */\n") != 0) {
                if (sscanf(line, " * %31s %31s", from, to) != 2)
                        continue;
                if (listed)
                        l->documented[find_state(l, from)][find_state(l, to)] = true;
                else
                        listed = strcmp(from, "from") == 0 && strcmp(to, "to") == 0;
        }
        CHECK(listed);
        CHECK(fclose(file) == 0);
}

static void test_code_agrees_with_headers(void) {
        for (size_t i = 0; i < N_ELEMENTS(lives); i++) {
                Life *l = lives[i];

                read_header(l);
                for (unsigned from = 0; from < l->n_states; from++)
                        for (unsigned to = 0; to < l->n_states; to++) {
                                if (l->permits(from, to) == l->documented[from][to])
                                        continue;
                                printf("# %s: %s to %s\n", l->name, l->states[from], l->states[to]);
                                CHECK_INT(l->permits(from, to), l->documented[from][to]);
                        }
        }
}

/* True if a process that makes the transition aborts. */
static bool aborts(const Life *l, unsigned from, unsigned to) {
        siginfo_t info = { .si_code = 0 };
        pid_t pid = fork();

        CHECK(pid >= 0);
        if (pid == 0) {
                (void) setrlimit(RLIMIT_CORE, &(struct rlimit) { .rlim_cur = 0 });
                (void) signal(SIGABRT, SIG_DFL);
                (void) close(STDERR_FILENO);
                l->move(from, to);
                _exit(EXIT_SUCCESS);
        }
        CHECK_INT(waitid(P_PID, (id_t) pid, &info, WEXITED), 0);
        return info.si_code != CLD_EXITED || info.si_status != EXIT_SUCCESS;
}

static void test_others_are_rejected(void) {
        unsigned n = 0;

        for (size_t i = 0; i < N_ELEMENTS(lives); i++)
                for (unsigned from = 0; from < lives[i]->n_states; from++)
                        for (unsigned to = 0; to < lives[i]->n_states; to++) {
#ifndef NDEBUG
                                CHECK_INT(aborts(lives[i], from, to), !lives[i]->documented[from][to]);
#endif
                                n++;
                        }
        printf("# %u pairs of states\n", n);
}

/* ---- The library ---- */

static FakeService f;

/* The member whose next calls fail, and how often. */
static const char *failing;
static atomic_int n_failing;
static atomic_bool answers_channels;

static int on_call(FakeService *service, sd_bus_message *m, const char *member) {
        int sockets[2];

        (void) service;
        if (failing && strcmp(member, failing) == 0 && n_failing > 0) {
                n_failing--;
                CHECK(sd_bus_reply_method_errorf(m, "org.sqlipc1.Error.UnknownStatement", "No such statement.") >= 0);
                return 1;
        }
        if (strcmp(member, "OpenChannel") != 0 || !answers_channels)
                return 0;
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) >= 0);
        CHECK(sd_bus_reply_method_return(m, "ha{sv}", sockets[0], 1, "page-size", "u", (uint32_t) 65536) >= 0);
        close(sockets[0]);
        close(sockets[1]); /* at once: the library finds a closed channel */
        return 1;
}

static void begin(void) {
        fake_start(&f);
        f.on_call = on_call;
        failing = NULL;
        answers_channels = false;
        fake_set_result(&f, 1, 2);
}

static void fail_next(const char *member) {
        failing = member;
        n_failing = 1;
}

static sqlipc_statement *prepare(void) {
        sqlipc_statement *s;

        CHECK_INT(sqlipc_prepare(f.connection, "db", "SELECT c FROM t", &s), 0);
        return s;
}

static sqlipc_cursor *execute(sqlipc_statement *s) {
        sqlipc_cursor *c;

        CHECK_INT(sqlipc_execute(s, &c), 0);
        return c;
}

/* Reads to the end, or to a failure, which it returns. */
static int read_all(sqlipc_cursor *c) {
        int r;

        while ((r = sqlipc_cursor_next(c)) > 0)
                ;
        (void) sqlipc_cursor_close(c);
        return r;
}

static void turn(void) {
        struct pollfd fd = { .fd = sqlipc_get_fd(f.connection), .events = POLLIN };

        CHECK(poll(&fd, 1, 5000) > 0);
        CHECK(sqlipc_process(f.connection) >= 0);
}

/* Cancel has no answer that wakes the client: after it is sent, only the service's thread knows. */
static void turn_until_cancelled(void) {
        while (f.n_cancel == 0) {
                struct pollfd fd = { .fd = sqlipc_get_fd(f.connection), .events = POLLIN };

                CHECK(poll(&fd, 1, 10) >= 0);
                CHECK(sqlipc_process(f.connection) >= 0);
        }
}

/* A statement that runs, and is lost with its worker. */
static void test_statement(void) {
        sqlipc_statement *s;

        begin();
        s = prepare();
        CHECK_INT(read_all(execute(s)), 0);
        fail_next("Fetch"); /* the service does not know the statement any more */
        CHECK_INT(read_all(execute(s)), 0);
        fake_set_unfinished(&f, 1, 2);
        f.close_pipe = true;
        CHECK_INT(read_all(execute(s)), -ECONNRESET);
        sqlipc_finalize(s);
        fake_done(&f);
}

static void test_failing_statement(void) {
        sqlipc_statement *failed, *ready, *lost;

        begin();
        ready = prepare();
        lost = prepare();
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        fail_next("Prepare");
        failed = prepare();
        while (sqlipc_statement_is_ready(failed) == 0)
                turn();
        sqlipc_cursor_close(execute(failed)); /* prepares it again */
        while (sqlipc_statement_is_ready(failed) == 0)
                turn();
        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        fake_set_unfinished(&f, 1, 2);
        f.close_pipe = true;
        CHECK_INT(read_all(execute(lost)), -ECONNRESET);
        sqlipc_connection_ref(f.connection);
        fake_done(&f); /* closes the connection: they fail */
        sqlipc_finalize(failed);
        sqlipc_finalize(ready);
        sqlipc_finalize(lost);
        sqlipc_connection_unref(f.connection);
}

/* A statement that was lost runs by OpenRows, which needs no pipe. */
static void test_statement_without_pipe(void) {
        sqlipc_statement *s;

        begin();
        s = prepare();
        fake_set_unfinished(&f, 1, 2);
        f.close_pipe = true;
        CHECK_INT(read_all(execute(s)), -ECONNRESET);
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_DBUS), 0);
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        sqlipc_cursor_close(execute(s));
        sqlipc_finalize(s);
        fake_done(&f);
}

/* Cursors that are closed at each stage of a run. */
static void test_closed_cursors(void) {
        sqlipc_statement *s;
        sqlipc_cursor *c;

        begin();
        s = prepare();
        fake_set_unfinished(&f, 1, 2);
        CHECK_INT(sqlipc_set_blocking(f.connection, 0), 0);
        sqlipc_cursor_close(execute(s)); /* before the number of the run is known */
        fake_wait_for(&f.n_fetch, 1);
        c = execute(s); /* reads the rest of that run, when its number has come */
        turn_until_cancelled();
        CHECK_INT(sqlipc_cursor_cancel(c), 0);
        CHECK_INT(sqlipc_cursor_next(c), -ECANCELED); /* before it is sent */
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);

        s = prepare();
        while (sqlipc_statement_is_ready(s) == 0)
                turn();
        sqlipc_cursor_close(execute(s));
        sqlipc_finalize(s); /* before the number is known */

        CHECK_INT(sqlipc_set_blocking(f.connection, 1), 0);
        s = prepare();
        c = execute(s);
        CHECK_INT(sqlipc_cursor_next(c), 1);
        sqlipc_cursor_close(c);
        sqlipc_finalize(s);
        fake_done(&f);
}

/* A channel that closes at once, and one that does not open. */
static void test_channels(void) {
        sqlipc_statement *s;

        begin();
        answers_channels = true;
        CHECK_INT(sqlipc_set_transport(f.connection, SQLIPC_TRANSPORT_CHANNEL), 0);
        s = prepare(); /* over the bus, after some channels */
        sqlipc_finalize(s);
        fail_next("OpenChannel");
        CHECK(sqlipc_prepare(f.connection, "another", "SELECT 1", &s) < 0);
        fake_done(&f);
}

static void test_each_transition_occurred(void) {
        for (size_t i = 0; i < N_ELEMENTS(lives); i++) {
                const Life *l = lives[i];

                for (unsigned from = 0; from < l->n_states; from++)
                        for (unsigned to = 0; to < l->n_states; to++)
                                if (l->documented[from][to] != l->walked[from][to])
                                        printf("# %s: %s from %s to %s\n", l->name,
                                               l->walked[from][to] ? "moved" : "never", l->states[from], l->states[to]);
        }
        for (size_t i = 0; i < N_ELEMENTS(lives); i++)
                CHECK(memcmp(lives[i]->walked, lives[i]->documented, sizeof lives[i]->walked) == 0);
}

int main(int argc, char **argv) {
        static const Test tests[] = {
                TEST(test_code_agrees_with_headers),
                TEST(test_others_are_rejected),
                TEST(test_statement),
                TEST(test_failing_statement),
                TEST(test_statement_without_pipe),
                TEST(test_closed_cursors),
                TEST(test_channels),
                TEST(test_each_transition_occurred),
        };

        signal(SIGPIPE, SIG_IGN);
        CHECK_INT(argc - 1, N_ELEMENTS(lives));
        for (size_t i = 0; i < N_ELEMENTS(lives); i++)
                lives[i]->header = argv[i + 1];
        return test_main(tests, N_ELEMENTS(tests));
}
