/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * waiting: ways to wait for the other side. To wake a sleeping process on another CPU costs more than a point query.
 * Therefore ways to avoid sleeping, and to avoid another CPU, are compared with each other, with one
 * server process for all clients, which does what a worker does: epoll, a request of a channel's size, a point query by
 * SQLite, an answer of a channel's size.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/bench/core/child.h"
#include "tools/bench/core/passing.h"
#include "tools/bench/core/sampler.h"
#include "tools/bench/workloads/point.h"
#include "tools/bench/workloads/workload.h"

#define LOOK_USEC 30 /* how long to poll before sleeping */
#define N_CLIENTS_MAX 8

typedef struct Policy {
        const char *name;
        bool client_looks, client_yields; /* for the answer; gives the CPU away between two looks */
        bool server_looks, server_yields; /* for the next request */
        bool server_follows;              /* to the CPU where the client asked */
} Policy;

static const Policy policies[] = {
        { .name = "sleep" },
        { .name = "client looks", .client_looks = true },
        { .name = "client yields", .client_looks = true, .client_yields = true },
        { .name = "both look", .client_looks = true, .server_looks = true },
        { .name = "both yield", .client_looks = true, .client_yields = true, .server_looks = true,
          .server_yields = true },
        { .name = "follow", .server_follows = true },
        { .name = "follow, yield", .client_looks = true, .client_yields = true,
          .server_follows = true },
};
#define N_POLICIES G_N_ELEMENTS(policies)

static const struct Setting {
        const char *id, *title;
        unsigned n_clients;
        Placement placement;
} settings[] = {
        { "waiting-one", "One client, placed by the kernel", 1, PLACEMENT_FREE },
        { "waiting-one-cpu", "One client, it and the server on one CPU", 1, PLACEMENT_ONE_CPU },
        { "waiting-eight", "Eight clients at once", N_CLIENTS_MAX, PLACEMENT_FREE },
};
#define N_SETTINGS G_N_ELEMENTS(settings)

typedef struct Request {
        int64_t key;
        int32_t cpu;
        uint32_t policy;
        uint8_t rest[POINT_REQUEST_SIZE - 16];
} Request;

G_STATIC_ASSERT(sizeof(Request) == POINT_REQUEST_SIZE);

typedef struct Waiting {
        const BenchOptions *options;
        Point point;
        Child server;
        int client_fds[N_CLIENTS_MAX], server_fds[N_CLIENTS_MAX];
        unsigned *n_opened;  /* shared by all clients: which socket is the next one's */
        uint32_t policy;     /* the clients' next */
        GArray *per_second[N_SETTINGS][N_POLICIES], *p50[N_SETTINGS][N_POLICIES], *p99[N_SETTINGS][N_POLICIES];
        GArray *client_cpu[N_SETTINGS][N_POLICIES], *server_cpu[N_SETTINGS][N_POLICIES];
} Waiting;

/* ---- The server --------------------------------------------------------------------------------------------------- */

typedef struct Server {
        ClientKind kind;      /* who asks SQLite */
        void *client;
        Copy copy;            /* of the row, small enough for one chunk */
        int epoll_fd;
        const Policy *policy; /* of the last request */
        int cpu;              /* where it stays, -1: anywhere */
} Server;

static void follow(Server *server, int cpu) {
        cpu_set_t set;

        if (server->cpu == cpu)
                return;
        CPU_ZERO(&set);
        CPU_SET((size_t) cpu, &set);
        if (sched_setaffinity(0, sizeof set, &set) == 0)
                server->cpu = cpu;
}

static int answer(Server *server, int fd) {
        uint8_t bytes[POINT_ANSWER_SIZE] = {};
        Copy *copy = &server->copy;
        Request request;
        double usec;
        int r;

        r = passing_read_all(fd, &request, sizeof request);
        if (r < 0)
                return r;
        if (request.policy >= N_POLICIES)
                return -EBADMSG;
        server->policy = &policies[request.policy];
        if (server->policy->server_follows)
                follow(server, request.cpu);
        if (copy->last)
                copy->last->used = sizeof *copy->last; /* the memory is used again */
        r = server->kind.ask(server->client, &request.key, 1, &usec, copy);
        if (r < 0)
                return r;
        memcpy(bytes, copy->last + 1, MIN(sizeof bytes, copy->last->used - sizeof *copy->last));
        return passing_write_all(fd, bytes, sizeof bytes);
}

static int wait_for_request(Server *server, struct epoll_event *ret) {
        double until;
        int n;

        if (server->policy && server->policy->server_looks) {
                until = sampler_now_usec() + LOOK_USEC;
                do {
                        if (server->policy->server_yields)
                                (void) sched_yield();
                        n = epoll_wait(server->epoll_fd, ret, 1, 0);
                        if (n != 0)
                                return n;
                } while (sampler_now_usec() < until);
        }
        return epoll_wait(server->epoll_fd, ret, 1, -1);
}

static int serve_all(Server *server, int quit_fd) {
        struct epoll_event event;
        int r = 0;

        while (r >= 0 && wait_for_request(server, &event) > 0) {
                if (event.data.fd == quit_fd)
                        return 0;
                r = answer(server, event.data.fd);
                if (r == -ENODATA) /* all clients have closed */
                        return 0;
        }
        return r < 0 ? r : -errno;
}

static int serve(int fd, void *userdata) {
        Waiting *waiting = userdata;
        Server server = { .kind = point_in_process(&waiting->point), .epoll_fd = epoll_create1(EPOLL_CLOEXEC), .cpu = -1 };
        int r;

        r = server.epoll_fd < 0 ? -errno : server.kind.open(server.kind.userdata, &server.client);
        for (unsigned i = 0; r >= 0 && i <= N_CLIENTS_MAX; i++) {
                int watched = i < N_CLIENTS_MAX ? waiting->server_fds[i] : fd;
                struct epoll_event event = { .events = EPOLLIN, .data.fd = watched };

                if (i < N_CLIENTS_MAX)
                        close(waiting->client_fds[i]);
                r = epoll_ctl(server.epoll_fd, EPOLL_CTL_ADD, watched, &event) < 0 ? -errno : 0;
        }
        return r < 0 ? r : serve_all(&server, fd); /* what is open goes with the process */
}

/* ---- The clients -------------------------------------------------------------------------------------------------- */

typedef struct WaitingClient {
        const Waiting *waiting;
        int fd;
} WaitingClient;

static int client_open(void *userdata, void **ret_client) {
        Waiting *waiting = userdata;
        WaitingClient *client = g_new(WaitingClient, 1);
        unsigned i = __atomic_fetch_add(waiting->n_opened, 1, __ATOMIC_RELAXED);

        *client = (WaitingClient) { .waiting = waiting, .fd = waiting->client_fds[i % N_CLIENTS_MAX] };
        *ret_client = client;
        return 0;
}

static void client_close(void *client) {
        g_free(client);
}

/* 0: it came, in one piece. -EAGAIN: it is to be slept for. */
static int look(int fd, const Policy *policy, uint8_t *bytes) {
        double until = sampler_now_usec() + LOOK_USEC;

        do {
                if (policy->client_yields)
                        (void) sched_yield();
                if (recv(fd, bytes, POINT_ANSWER_SIZE, MSG_DONTWAIT) == POINT_ANSWER_SIZE)
                        return 0;
        } while (sampler_now_usec() < until);
        return -EAGAIN;
}

static int ask_one(void *userdata, int64_t key, Copy *copy) {
        const WaitingClient *client = userdata;
        const Policy *policy = &policies[client->waiting->policy];
        Request request = { .key = key, .cpu = sched_getcpu(), .policy = client->waiting->policy };
        uint8_t bytes[POINT_ANSWER_SIZE];
        int r;

        r = passing_write_all(client->fd, &request, sizeof request);
        if (r >= 0 && (!policy->client_looks || look(client->fd, policy, bytes) < 0))
                r = passing_read_all(client->fd, bytes, sizeof bytes);
        if (r >= 0)
                copy_bytes(copy, SQLIPC_BLOB, bytes, sizeof bytes);
        return r;
}

static int client_ask(void *client, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy) {
        return clients_ask_each(ask_one, client, keys, n, ret_usec, copy);
}

/* ---- Measuring ---------------------------------------------------------------------------------------------------- */

static void append(GArray *values, double value) {
        g_array_append_val(values, value);
}

static int measure_policy(Waiting *waiting, unsigned setting, uint32_t policy, int64_t n_keys, uint64_t *expected) {
        const unsigned n_clients = settings[setting].n_clients;
        const ClientKind kind = {
                .name = policies[policy].name, .open = client_open, .ask = client_ask, .close = client_close,
                .userdata = waiting, .servers = { waiting->server.pid },
        };
        unsigned n_each = (unsigned) bench_amount(waiting->options, 200, 8000, 80000) / n_clients;
        ClientsFindings findings;
        int r;

        waiting->policy = policy;
        *waiting->n_opened = 0;
        r = clients_run(&kind, n_clients, n_each, n_keys, settings[setting].placement, &findings);
        if (r < 0)
                return r;
        append(waiting->per_second[setting][policy], findings.per_second);
        append(waiting->p50[setting][policy], report_quantile(findings.usec, 0.5));
        append(waiting->p99[setting][policy], report_quantile(findings.usec, 0.99));
        append(waiting->client_cpu[setting][policy], findings.client_cpu_usec / findings.usec->len);
        append(waiting->server_cpu[setting][policy], findings.server_cpu_usec / findings.usec->len);
        if (*expected == 0)
                *expected = findings.check;
        if (findings.check != *expected) {
                fprintf(stderr, "sqlipc-bench: %s: other answers than before.\n", kind.name);
                r = -EBADMSG;
        }
        clients_findings_done(&findings);
        return r;
}

/* All policies in turn, every other round backwards. */
static int measure_setting(Waiting *waiting, unsigned setting, int64_t n_keys) {
        unsigned n_rounds = (unsigned) bench_rounds(waiting->options);
        uint64_t expected = 0;
        int r = 0;

        for (unsigned round = 0; r >= 0 && round < n_rounds; round++)
                for (uint32_t i = 0; r >= 0 && i < N_POLICIES; i++) {
                        measure_progress(settings[setting].id, round * (unsigned) N_POLICIES + i,
                                         n_rounds * (unsigned) N_POLICIES);
                        r = measure_policy(waiting, setting, round % 2 == 0 ? i : (uint32_t) N_POLICIES - 1 - i, n_keys,
                                           &expected);
                }
        measure_progress(settings[setting].id, 1, 1);
        return r;
}

/* ---- Report ------------------------------------------------------------------------------------------------------- */

enum { COLUMN_RATE, COLUMN_P50, COLUMN_P99, COLUMN_CLIENT_CPU, COLUMN_SERVER_CPU, COLUMN_WINS };

/* Returns in how many rounds no policy had more answers. */
static unsigned count_wins(const Waiting *waiting, unsigned setting, unsigned policy) {
        GArray *const *rates = waiting->per_second[setting];
        unsigned n = 0;

        for (unsigned round = 0; round < rates[policy]->len; round++) {
                bool best = true;

                for (unsigned i = 0; i < N_POLICIES; i++)
                        best = best && g_array_index(rates[policy], double, round) >= g_array_index(rates[i], double, round);
                n += best;
        }
        return n;
}

static void report_setting(const Waiting *waiting, unsigned setting, Report *report) {
        ReportTable *table = report_table(report, settings[setting].id, settings[setting].title, "while it waits");

        report_table_column(table, "queries/s", "");
        report_table_column(table, "p50", "us");
        report_table_column(table, "p99", "us");
        report_table_column(table, "client CPU", "us/query");
        report_table_column(table, "server CPU", "us/query");
        report_table_column(table, "best of a round", "times");
        for (unsigned i = 0; i < N_POLICIES; i++) {
                report_table_row(table, policies[i].name, false);
                report_table_values(table, COLUMN_RATE, waiting->per_second[setting][i]);
                report_table_values(table, COLUMN_P50, waiting->p50[setting][i]);
                report_table_values(table, COLUMN_P99, waiting->p99[setting][i]);
                report_table_values(table, COLUMN_CLIENT_CPU, waiting->client_cpu[setting][i]);
                report_table_values(table, COLUMN_SERVER_CPU, waiting->server_cpu[setting][i]);
                report_table_value(table, COLUMN_WINS, count_wins(waiting, setting, i));
        }
}

static void report_all(const Waiting *waiting, Report *report) {
        ReportChart *chart = report_chart(report, "waiting-rates", "Ways of waiting", "", "queries/s", REPORT_BARS);

        report_fact(report, "server", "one process for all clients: epoll, a point query in SQLite, %d bytes there and %d"
                                      " back", POINT_REQUEST_SIZE, POINT_ANSWER_SIZE);
        report_fact(report, "method", "who looks does so for %d us, then sleeps; %d rounds of all ways, every other"
                                      " backwards", LOOK_USEC, bench_rounds(waiting->options));
        report_note(report, "Who looks keeps the CPU meanwhile; who yields gives it away between two looks; a server that"
                            " follows goes to the CPU where the client asked. The library yields on a channel, its worker"
                            " as long as one client alone asks.");
        for (unsigned setting = 0; setting < N_SETTINGS; setting++) {
                unsigned series = report_chart_series(chart, settings[setting].title, false);

                report_setting(waiting, setting, report);
                for (unsigned i = 0; i < N_POLICIES; i++)
                        report_chart_bar(chart, series, policies[i].name, report_median(waiting->per_second[setting][i]));
        }
}

/* ---- Life --------------------------------------------------------------------------------------------------------- */

static void close_fds(int *fds) {
        for (unsigned i = 0; i < N_CLIENTS_MAX; i++)
                if (fds[i] >= 0) {
                        close(fds[i]);
                        fds[i] = -1;
                }
}

static int start(Waiting *waiting) {
        int r;

        for (unsigned i = 0; i < N_CLIENTS_MAX; i++) {
                int fds[2];

                if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                        return -errno;
                waiting->client_fds[i] = fds[0];
                waiting->server_fds[i] = fds[1];
        }
        r = child_start(SOCK_STREAM, serve, waiting, &waiting->server);
        close_fds(waiting->server_fds);
        return r;
}

static void arrays_each(Waiting *waiting, void (*with)(GArray **array)) {
        for (unsigned setting = 0; setting < N_SETTINGS; setting++)
                for (unsigned i = 0; i < N_POLICIES; i++) {
                        with(&waiting->per_second[setting][i]);
                        with(&waiting->p50[setting][i]);
                        with(&waiting->p99[setting][i]);
                        with(&waiting->client_cpu[setting][i]);
                        with(&waiting->server_cpu[setting][i]);
                }
}

static void array_init(GArray **array) {
        *array = g_array_new(FALSE, FALSE, sizeof(double));
}

static void array_done(GArray **array) {
        g_array_unref(*array);
}

static int measure(const BenchOptions *options, Report *report) {
        g_autofree Waiting *waiting = g_new(Waiting, 1);
        int64_t n_keys;
        int r;

        r = point_count_keys(options->file, &n_keys);
        if (r < 0)
                return r;
        *waiting = (Waiting) { .options = options, .point = { .options = options }, .server = CHILD_INIT };
        for (unsigned i = 0; i < N_CLIENTS_MAX; i++)
                waiting->client_fds[i] = waiting->server_fds[i] = -1;
        waiting->n_opened = mmap(NULL, sizeof *waiting->n_opened, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (waiting->n_opened == MAP_FAILED)
                return -errno;
        arrays_each(waiting, array_init);
        r = start(waiting);
        for (unsigned setting = 0; r >= 0 && setting < N_SETTINGS; setting++)
                r = measure_setting(waiting, setting, n_keys);
        if (r >= 0)
                report_all(waiting, report);
        (void) child_stop(&waiting->server);
        close_fds(waiting->client_fds);
        arrays_each(waiting, array_done);
        (void) munmap(waiting->n_opened, sizeof *waiting->n_opened);
        return r;
}

const Workload workload_waiting = {
        .verb = "waiting",
        .help = "what to do while the other side has the word: sleep, look, yield, follow",
        .summary = "Point queries from a server process that is no daemon of ours, by ways of waiting: asleep, looking for\n"
                   "a moment, giving the CPU away meanwhile, the server on the client's CPU; one client and eight.",
        .database = POINT_TABLE,
        .measure = measure,
        .in_report = true,
};
