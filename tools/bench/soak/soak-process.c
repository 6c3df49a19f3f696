/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A process with several clients, see soak.h. It gives them turns at random, and lets them rest when all processes do. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tools/bench/core/sampler.h"
#include "tools/bench/soak/soak.h"

enum { REST_POLL_USEC = 5000 };

typedef struct Clients {
        const Soak *soak;
        SoakProcess *process;
        SoakClient *clients;
        unsigned n;
        Random random;
} Clients;

/* Half of the clients read pipes. Those that let the library choose also use a channel in the end. */
static sqlipc_transport transport_of(unsigned number) {
        static const sqlipc_transport transports[] = {
                SQLIPC_TRANSPORT_PIPE, SQLIPC_TRANSPORT_AUTO, SQLIPC_TRANSPORT_PIPE, SQLIPC_TRANSPORT_DBUS,
                SQLIPC_TRANSPORT_PIPE, SQLIPC_TRANSPORT_CHANNEL, SQLIPC_TRANSPORT_PIPE, SQLIPC_TRANSPORT_DBUS,
        };

        return transports[number % G_N_ELEMENTS(transports)];
}

static SoakTurn turn_of(Clients *clients, unsigned number) {
        return (SoakTurn) {
                .soak = clients->soak, .process = clients->process, .client = &clients->clients[number],
                .random = &clients->random,
        };
}

static SoakKind choose(Random *random) {
        unsigned all = 0, chosen;

        for (unsigned i = 0; i < SOAK_KINDS; i++)
                all += soak_operations[i].weight;
        chosen = (unsigned) (random_next(random) % all);
        for (unsigned i = 0;; i++) {
                if (chosen < soak_operations[i].weight)
                        return (SoakKind) i;
                chosen -= soak_operations[i].weight;
        }
}

/* Begins an operation. After a failure it closes the connection, because the client's state may then be wrong. */
static void begin(SoakTurn *turn) {
        SoakTally *tally = &turn->process->tallies[turn->kind];
        double since = sampler_now_usec();
        int r;

        tally->begun++;
        r = soak_connect(turn);
        if (r >= 0)
                r = soak_operations[turn->kind].act(turn);
        if (r < 0) {
                tally->failed++;
                soak_disconnect(turn);
        } else if (turn->kind != SOAK_SLOW) /* a slow reader gets its answer in later turns */
                soak_tally_answer(tally, sampler_now_usec() - since, turn->spent);
}

static void take_turn(Clients *clients) {
        SoakTurn turn = turn_of(clients, (unsigned) (random_next(&clients->random) % clients->n));

        turn.kind = choose(&clients->random);
        if (turn.kind == SOAK_POINT)
                turn.kind += turn.client->transport;
        if (turn.client->slow && (turn.kind == SOAK_SLOW || random_next(&clients->random) % 2 == 0)) {
                if (soak_go_on(&turn, false) < 0)
                        soak_disconnect(&turn);
        } else
                begin(&turn);
}

/* Reads all remaining rows and finalizes all statements, but stays connected. Waits until the rest is over. */
static void rest(Clients *clients, unsigned number) {
        for (unsigned i = 0; i < clients->n; i++) {
                SoakTurn turn = turn_of(clients, i);

                if (turn.client->slow && soak_go_on(&turn, true) < 0)
                        soak_disconnect(&turn);
                turn.client->left = sqlipc_finalize(turn.client->left);
                /* the library reads the end of a dropped cursor with the next answer, so ask for one */
                turn.kind = SOAK_POINT;
                if (turn.client->connection && soak_ask_point(&turn) < 0) {
                        clients->process->tallies[SOAK_POINT].begun++;
                        clients->process->tallies[SOAK_POINT].failed++;
                        soak_disconnect(&turn);
                }
        }
        atomic_store(&clients->process->at_rest, number);
        while (atomic_load(&clients->soak->state->rest) == number && !atomic_load(&clients->soak->state->stop))
                (void) usleep(REST_POLL_USEC);
}

static void take_turns(Clients *clients) {
        const SoakState *state = clients->soak->state;
        unsigned number;

        while (!atomic_load(&state->stop))
                if ((number = atomic_load(&state->rest)) > 0)
                        rest(clients, number);
                else
                        take_turn(clients);
        for (unsigned i = 0; i < clients->n; i++) {
                SoakTurn turn = turn_of(clients, i);

                soak_disconnect(&turn);
        }
}

static int become(uid_t uid) {
        if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0) {
                fprintf(stderr, "sqlipc-bench: cannot become user %u: %s\n", (unsigned) uid, g_strerror(errno));
                return -EPERM;
        }
        return 0;
}

int soak_process_run(const Soak *soak, unsigned number, uint64_t seed) {
        unsigned first = number * soak->n_clients / soak->n_processes;
        Clients clients = {
                .soak = soak, .process = &soak->state->processes[number],
                .n = (number + 1) * soak->n_clients / soak->n_processes - first,
        };

        if (soak->uids->len > 0 && become(g_array_index(soak->uids, uid_t, number % soak->uids->len)) < 0)
                return -EPERM;
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* again, because a change of user resets it */
        random_init(&clients.random, seed);
        clients.clients = g_new0(SoakClient, clients.n);
        for (unsigned i = 0; i < clients.n; i++)
                clients.clients[i].transport = transport_of(first + i);
        take_turns(&clients);
        g_free(clients.clients);
        return 0;
}
