/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Clients that ask at the same time, see clients.h. They write their results into shared memory. */
#include "tools/bench/core/clients.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/bench/core/crowd.h"
#include "tools/bench/core/random.h"
#include "tools/bench/core/sampler.h"

enum { WARM_UP = 200 }; /* answers; the results of the sides are compared by these, too */

/* A client, in memory that the parent and the client share. */
typedef struct Client {
        double start_usec, end_usec; /* on the clock that all processes share */
        double cpu_usec, switches;
        uint64_t check;
        double usec[]; /* of each answer */
} Client;

typedef struct Clients {
        const ClientKind *kind;
        unsigned n, n_each;
        int64_t n_keys;
        Placement placement;
        uint8_t *shared;
        size_t client_size;
} Clients;

static Client *get_client(const Clients *clients, unsigned i) {
        return (Client *) (void *) (clients->shared + i * clients->client_size);
}

int clients_ask_each(int (*ask_one)(void *client, int64_t key, Copy *copy), void *client, const int64_t *keys, unsigned n,
                     double *ret_usec, Copy *copy) {
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < n; i++) {
                double start = sampler_now_usec();

                r = ask_one(client, keys[i], copy);
                ret_usec[i] = sampler_now_usec() - start;
        }
        return r;
}

/* ---- The client's process ----------------------------------------------------------------------------------------- */

/* Places this process with its children (a yardstick has some) and the server's processes. */
static int place(const Clients *clients) {
        int r = measure_place(clients->placement, getpid());

        for (size_t i = 0; r >= 0 && i < G_N_ELEMENTS(clients->kind->servers); i++)
                if (clients->kind->servers[i] != 0)
                        r = measure_place(clients->placement, clients->kind->servers[i]);
        return r;
}

/* Asks, and checks that each key got an answer. `client` comes from ClientKind.open(). */
static int ask(const Clients *clients, void *client, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy) {
        int r = clients->kind->ask(client, keys, n, ret_usec, copy);

        if (r >= 0 && copy->n_rows != (clients->kind->answers_rows ? n : 0)) {
                fprintf(stderr, "sqlipc-bench: %s: %llu rows for %u keys.\n", clients->kind->name,
                        (unsigned long long) copy->n_rows, n);
                return -EBADMSG;
        }
        return r;
}

/* The warm-up also starts the worker, which must exist before it can be placed with the client. */
static int warm_up(const Clients *clients, void *client, const int64_t *keys, Client *ret) {
        g_autofree double *usec = g_new(double, WARM_UP);
        Copy copy = {};
        int r;

        r = ask(clients, client, keys, WARM_UP, usec, &copy);
        if (r >= 0)
                r = place(clients);
        ret->check = copy_hash(&copy);
        copy_done(&copy);
        return r;
}

static int measure(const Clients *clients, void *client, const int64_t *keys, Client *ret) {
        Usage before, after;
        Copy copy = {};
        int r;

        sampler_read_own(&before);
        ret->start_usec = sampler_now_usec();
        r = ask(clients, client, keys, clients->n_each, ret->usec, &copy);
        ret->end_usec = sampler_now_usec();
        sampler_read_own(&after);
        ret->switches = after.switches - before.switches;
        ret->cpu_usec = after.cpu_usec - before.cpu_usec;
        copy_done(&copy);
        return r;
}

static int run_client(const Crowd *crowd, unsigned number, void *userdata) {
        const Clients *clients = userdata;
        unsigned n_keys = WARM_UP + clients->n_each;
        g_autofree int64_t *keys = g_new(int64_t, n_keys);
        Client *ret = get_client(clients, number);
        void *client = NULL;
        Random random;
        int r;

        random_init(&random, number);
        for (unsigned i = 0; i < n_keys; i++)
                keys[i] = 1 + (int64_t) (random_next(&random) % (uint64_t) clients->n_keys);

        r = clients->kind->open(clients->kind->userdata, &client);
        if (r >= 0)
                r = warm_up(clients, client, keys, ret);
        if (r >= 0)
                r = crowd_wait_at(crowd, CROWD_START);
        if (r >= 0)
                r = measure(clients, client, keys + WARM_UP, ret);
        if (r >= 0)
                r = crowd_wait_at(crowd, CROWD_END);
        if (client)
                clients->kind->close(client);
        return r;
}

/* ---- The parent's ------------------------------------------------------------------------------------------------- */

static double server_cpu_usec(const ClientKind *kind) {
        double sum = 0;
        Usage usage;

        for (size_t i = 0; i < G_N_ELEMENTS(kind->servers); i++)
                if (kind->servers[i] != 0) {
                        sampler_read_tree(kind->servers[i], &usage);
                        sum += usage.cpu_usec;
                }
        return sum;
}

static void gather(const Clients *clients, ClientsFindings *ret) {
        double start_usec = get_client(clients, 0)->start_usec, end_usec = 0;

        for (unsigned i = 0; i < clients->n; i++) {
                const Client *client = get_client(clients, i);

                start_usec = MIN(start_usec, client->start_usec);
                end_usec = MAX(end_usec, client->end_usec);
                ret->client_cpu_usec += client->cpu_usec;
                ret->client_switches += client->switches;
                ret->check = ret->check * 31 + client->check;
                g_array_append_vals(ret->usec, client->usec, clients->n_each);
        }
        ret->per_second = (double) clients->n * clients->n_each / (end_usec - start_usec) * 1e6;
}

static int supervise(Clients *clients, Crowd *crowd, ClientsFindings *ret) {
        double cpu_usec;
        int r;

        r = crowd_start(crowd, run_client, clients);
        if (r >= 0)
                r = crowd_wait_for_all(crowd);
        if (r < 0)
                return r;
        cpu_usec = server_cpu_usec(clients->kind);
        crowd_pass(crowd, CROWD_START);
        r = crowd_wait_for_all(crowd);
        ret->server_cpu_usec = server_cpu_usec(clients->kind) - cpu_usec;
        if (r >= 0)
                gather(clients, ret);
        return r;
}

/* Lets the server run on any CPU again. */
static void free_servers(const Clients *clients) {
        for (size_t i = 0; clients->placement != PLACEMENT_FREE && i < G_N_ELEMENTS(clients->kind->servers); i++)
                if (clients->kind->servers[i] != 0)
                        (void) measure_place(PLACEMENT_FREE, clients->kind->servers[i]);
}

int clients_run(const ClientKind *kind, unsigned n_clients, unsigned n_each, int64_t n_keys, Placement placement,
                ClientsFindings *ret) {
        Clients clients = {
                .kind = kind, .n = n_clients, .n_each = n_each, .n_keys = n_keys, .placement = placement,
                .client_size = sizeof(Client) + n_each * sizeof(double),
        };
        ClientsFindings findings = { .usec = NULL };
        Crowd *crowd = NULL;
        int r = measure_interrupted(), ended;

        if (r < 0)
                return r;
        findings.usec = g_array_new(FALSE, FALSE, sizeof(double));
        clients.shared = mmap(NULL, n_clients * clients.client_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                              0);
        if (clients.shared == MAP_FAILED)
                g_error("out of memory for %zu bytes", n_clients * clients.client_size);
        r = crowd_new(n_clients, &crowd);
        if (r >= 0)
                r = supervise(&clients, crowd, &findings);
        ended = crowd_end(crowd);
        free_servers(&clients);
        r = r < 0 ? r : ended;

        (void) munmap(clients.shared, n_clients * clients.client_size);
        if (r < 0) {
                fprintf(stderr, "sqlipc-bench: %s: a client of %u failed: %s\n", kind->name, n_clients, g_strerror(-r));
                clients_findings_done(&findings);
                return r;
        }
        *ret = findings;
        return 0;
}

void clients_findings_done(ClientsFindings *findings) {
        g_clear_pointer(&findings->usec, g_array_unref);
}
