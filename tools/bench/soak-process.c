/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A process of some clients, see soak.h: it gives turns to them, at random, and has them rest when all do. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "sampler.h"
#include "soak.h"

enum { REST_POLL_USEC = 5000 };

typedef struct Clients {
        const Soak *soak;
        SoakProcess *process;
        SoakClient *clients;
        unsigned n;
        Random random;
} Clients;

/* Half of them read pipes; those that choose themselves come to a channel, too. */
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

/* Something new. One that failed leaves the client without a connection: what it thinks is open need not be. */
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
        } else if (turn->kind != SOAK_SLOW) /* that one is answered by and by */
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

/* Reads what is still to come and gives back what was left, but stays connected, until all have rested. */
static void rest(Clients *clients, unsigned number) {
        for (unsigned i = 0; i < clients->n; i++) {
                SoakTurn turn = turn_of(clients, i);

                if (turn.client->slow && soak_go_on(&turn, true) < 0)
                        soak_disconnect(&turn);
                turn.client->left = sqlipc_finalize(turn.client->left);
                /* of a cursor that was dropped, the end is read with the next answer */
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
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* which a change of user undoes */
        random_init(&clients.random, seed);
        clients.clients = g_new0(SoakClient, clients.n);
        for (unsigned i = 0; i < clients.n; i++)
                clients.clients[i].transport = transport_of(first + i);
        take_turns(&clients);
        g_free(clients.clients);
        return 0;
}
