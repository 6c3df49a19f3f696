/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Clients that ask at the same time, see clients.h. There are two barriers, each of which is a pipe. A client writes a byte
 * when it reaches a barrier, and passes when the parent closes its own end. Clients write their results into shared memory.
 */
#include "tools/bench/core/clients.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/core/random.h"
#include "tools/bench/core/sampler.h"

enum {
        WARM_UP = 200, /* answers; the results of the sides are compared by these, too */
        BARRIERS = 2,  /* the start, the end */
};

/* A client, in memory that the parent and the client share. */
typedef struct Client {
        pid_t pid;                   /* 0: not started */
        int pidfd;                   /* of the parent */
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
        int arrived[2];              /* each client writes a byte at each barrier */
        int barriers[BARRIERS][2];   /* nothing is ever written */
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

static int wait_at(const Clients *clients, unsigned barrier) {
        char byte = 0;

        if (write(clients->arrived[1], &byte, 1) != 1)
                return -EIO;
        while (read(clients->barriers[barrier][0], &byte, 1) < 0)
                if (errno != EINTR)
                        return -errno;
        return 0;
}

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

static int run_client(const Clients *clients, unsigned number) {
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
                r = wait_at(clients, 0);
        if (r >= 0)
                r = measure(clients, client, keys + WARM_UP, ret);
        if (r >= 0)
                r = wait_at(clients, 1);
        if (client)
                clients->kind->close(client);
        return r;
}

static void begin_client(const Clients *clients, unsigned number) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(clients->arrived[0]);
        for (unsigned i = 0; i < BARRIERS; i++)
                close(clients->barriers[i][1]);
        _exit(run_client(clients, number) < 0 ? 1 : 0);
}

/* ---- The parent's ------------------------------------------------------------------------------------------------- */

static int start(Clients *clients) {
        for (unsigned i = 0; i < clients->n; i++) {
                pid_t pid = fork();

                if (pid < 0)
                        return -errno;
                if (pid == 0)
                        begin_client(clients, i);
                get_client(clients, i)->pid = pid;
                get_client(clients, i)->pidfd = pidfd_open(pid, 0);
                if (get_client(clients, i)->pidfd < 0)
                        return -errno;
        }
        return 0;
}

/* Waits until all clients have reached a barrier, or one has ended. That client has reported the reason. */
static int wait_for_all(const Clients *clients) {
        g_autofree struct pollfd *fds = g_new0(struct pollfd, clients->n + 1);
        char byte;

        for (unsigned i = 0; i < clients->n; i++)
                fds[i] = (struct pollfd) { .fd = get_client(clients, i)->pidfd, .events = POLLIN };
        fds[clients->n] = (struct pollfd) { .fd = clients->arrived[0], .events = POLLIN };

        for (unsigned n = 0; n < clients->n;) {
                if (poll(fds, clients->n + 1, -1) < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                if (fds[clients->n].revents == 0)
                        return -ECHILD;
                if (read(clients->arrived[0], &byte, 1) == 1)
                        n++;
        }
        return 0;
}

static void pass(Clients *clients, unsigned barrier) {
        close(clients->barriers[barrier][1]);
        clients->barriers[barrier][1] = -1;
}

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

static int supervise(Clients *clients, ClientsFindings *ret) {
        double cpu_usec;
        int r;

        r = start(clients);
        if (r >= 0)
                r = wait_for_all(clients);
        if (r < 0)
                return r;
        cpu_usec = server_cpu_usec(clients->kind);
        pass(clients, 0);
        r = wait_for_all(clients);
        ret->server_cpu_usec = server_cpu_usec(clients->kind) - cpu_usec;
        if (r >= 0)
                gather(clients, ret);
        return r;
}

/* Ends all clients, and lets the server run on any CPU again. */
static int stop(Clients *clients) {
        int r = 0;

        for (unsigned i = 0; i < BARRIERS; i++)
                if (clients->barriers[i][1] >= 0)
                        pass(clients, i);
        for (unsigned i = 0; i < clients->n; i++) {
                pid_t pid = get_client(clients, i)->pid;
                int status;

                if (pid <= 0)
                        continue;
                while (waitpid(pid, &status, 0) < 0)
                        if (errno != EINTR)
                                return -errno;
                close(get_client(clients, i)->pidfd);
                if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                        r = -ECHILD;
        }
        for (size_t i = 0; clients->placement != PLACEMENT_FREE && i < G_N_ELEMENTS(clients->kind->servers); i++)
                if (clients->kind->servers[i] != 0)
                        (void) measure_place(PLACEMENT_FREE, clients->kind->servers[i]);
        return r;
}

static void close_pipe(int fds[2]) {
        for (int i = 0; i < 2; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
}

int clients_run(const ClientKind *kind, unsigned n_clients, unsigned n_each, int64_t n_keys, Placement placement,
                ClientsFindings *ret) {
        Clients clients = {
                .kind = kind, .n = n_clients, .n_each = n_each, .n_keys = n_keys, .placement = placement,
                .client_size = sizeof(Client) + n_each * sizeof(double),
                .arrived = { -1, -1 }, .barriers = { { -1, -1 }, { -1, -1 } },
        };
        ClientsFindings findings = { .usec = g_array_new(FALSE, FALSE, sizeof(double)) };
        int r = 0, ended;

        clients.shared = mmap(NULL, n_clients * clients.client_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                              0);
        if (clients.shared == MAP_FAILED)
                g_error("out of memory for %zu bytes", n_clients * clients.client_size);
        if (pipe2(clients.arrived, O_CLOEXEC) < 0 || pipe2(clients.barriers[0], O_CLOEXEC) < 0 ||
            pipe2(clients.barriers[1], O_CLOEXEC) < 0)
                r = -errno;
        if (r >= 0)
                r = supervise(&clients, &findings);
        ended = stop(&clients);
        if (r >= 0)
                r = ended;

        close_pipe(clients.arrived);
        for (unsigned i = 0; i < BARRIERS; i++)
                close_pipe(clients.barriers[i]);
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
