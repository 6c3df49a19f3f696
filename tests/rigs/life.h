/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Life cycles: the header of each lists all transitions. The list is compared with the code, every other transition must
 * abort, and every listed one must occur while the test runs. Tests only.
 *
 *      LIFE_FUNCTIONS(run_life, RunState)
 *      static Life run_life = LIFE(run_life, "run", RUN_STATE_MAX, [RUN_NEW] = "NEW", ...);
 *
 * The test is linked with --wrap=run_life_move.
 */
#ifndef SQLIPC_TESTS_RIGS_LIFE_H
#define SQLIPC_TESTS_RIGS_LIFE_H

#include <ctype.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"

#define LIFE_STATES_MAX 16u

/* Without assertions nothing aborts. */
#ifdef NDEBUG
#define LIFE_ASSERTS false
#else
#define LIFE_ASSERTS true
#endif

typedef struct Life {
        const char *name;
        const char *header; /* an argument of the test */
        unsigned n_states;
        const char *states[LIFE_STATES_MAX];
        bool (*permits)(unsigned from, unsigned to);
        void (*move)(unsigned from, unsigned to);
        bool documented[LIFE_STATES_MAX][LIFE_STATES_MAX], walked[LIFE_STATES_MAX][LIFE_STATES_MAX];
} Life;

/* The functions of a life cycle, and the wrapper that notes each transition of the tested code. */
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

/* The names of the states follow. */
#define LIFE(prefix, its_name, n, ...)                                                                                \
        {                                                                                                             \
                .name = its_name, .n_states = n, .states = { __VA_ARGS__ }, .permits = prefix##_permits_pair,         \
                .move = prefix##_move_pair,                                                                           \
        }

static inline unsigned life_find_state(const Life *l, const char *name) {
        for (unsigned i = 0; i < l->n_states; i++)
                if (strcmp(l->states[i], name) == 0)
                        return i;
        printf("# %s has no state %s\n", l->name, name);
        CHECK(false);
        return 0;
}

/* The list begins after its title and ends with the comment. A line of it that begins with a small letter continues a
 * description. */
static inline void life_read_header(Life *l) {
        FILE *file = fopen(l->header, "re");
        char line[256], from[32], to[32];
        bool listed = false;

        CHECK(file);
        while (fgets(line, sizeof line, file) && strcmp(line, " */\n") != 0) {
                if (sscanf(line, " * %31s %31s", from, to) != 2)
                        continue;
                if (listed && islower((unsigned char) from[0]))
                        continue;
                if (listed)
                        l->documented[life_find_state(l, from)][life_find_state(l, to)] = true;
                else
                        listed = strcmp(from, "from") == 0 && strcmp(to, "to") == 0;
        }
        CHECK(listed);
        CHECK(fclose(file) == 0);
}

/* The code permits the documented transitions of all `n` life cycles, and no others. */
static inline void life_check_documented(Life *const *lives, size_t n) {
        for (size_t i = 0; i < n; i++) {
                Life *l = lives[i];

                life_read_header(l);
                for (unsigned from = 0; from < l->n_states; from++)
                        for (unsigned to = 0; to < l->n_states; to++) {
                                if (l->permits(from, to) == l->documented[from][to])
                                        continue;
                                printf("# %s: %s to %s\n", l->name, l->states[from], l->states[to]);
                                CHECK_INT(l->permits(from, to), l->documented[from][to]);
                        }
        }
}

/* True if an assertion ends a process that makes the transition. */
static inline bool life_is_rejected(void (*move)(unsigned from, unsigned to), unsigned from, unsigned to) {
        siginfo_t info = { .si_code = 0 };
        pid_t pid = fork();

        CHECK(pid >= 0);
        if (pid == 0) {
                (void) setrlimit(RLIMIT_CORE, &(struct rlimit) { .rlim_cur = 0 });
                (void) signal(SIGABRT, SIG_DFL);
                (void) close(STDERR_FILENO);
                move(from, to);
                _exit(EXIT_SUCCESS);
        }
        CHECK_INT(waitid(P_PID, (id_t) pid, &info, WEXITED), 0); /* waitpid() may be a rig's */
        return info.si_code != CLD_EXITED && info.si_status == SIGABRT;
}

static inline void life_check_others_are_rejected(Life *const *lives, size_t n) {
        unsigned n_pairs = 0;

        for (size_t i = 0; i < n; i++)
                for (unsigned from = 0; from < lives[i]->n_states; from++)
                        for (unsigned to = 0; to < lives[i]->n_states; to++) {
                                if (LIFE_ASSERTS)
                                        CHECK_INT(life_is_rejected(lives[i]->move, from, to),
                                                  !lives[i]->documented[from][to]);
                                n_pairs++;
                        }
        printf("# %u pairs of states\n", n_pairs);
}

/* For the last test: all documented transitions have occurred, and no others. */
static inline void life_check_walked(Life *const *lives, size_t n) {
        for (size_t i = 0; i < n; i++)
                for (unsigned from = 0; from < lives[i]->n_states; from++)
                        for (unsigned to = 0; to < lives[i]->n_states; to++) {
                                const Life *l = lives[i];

                                if (l->walked[from][to])
                                        printf("# %s: %s to %s\n", l->name, l->states[from], l->states[to]);
                                else if (l->documented[from][to])
                                        printf("# %s: never from %s to %s\n", l->name, l->states[from], l->states[to]);
                        }
        for (size_t i = 0; i < n; i++)
                CHECK(memcmp(lives[i]->walked, lives[i]->documented, sizeof lives[i]->walked) == 0);
}

/* The arguments are the headers, in the order of the life cycles. */
static inline void life_take_headers(Life *const *lives, size_t n, int argc, char **argv) {
        CHECK_INT(argc - 1, n);
        for (size_t i = 0; i < n; i++)
                lives[i]->header = argv[i + 1];
}

#endif
