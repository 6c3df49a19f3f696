/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Clients that ask at the same time. Each client is a process of a crowd (crowd.h), which connects before the clock starts,
 * and sends a fixed number of requests.
 */
#ifndef SQLIPC_TOOLS_BENCH_CORE_CLIENTS_H
#define SQLIPC_TOOLS_BENCH_CORE_CLIENTS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "tools/bench/core/copy.h"
#include "tools/bench/core/measure.h"

/* How a kind of client works. On error, all functions except `close` report on stderr and return a negative value. */
typedef struct ClientKind {
        const char *name;
        /** Connects and prepares, in the client's process. */
        int (*open)(void *userdata, void **ret_client);
        /** Asks for the `n` keys, adds the answers to `copy` in the order of the keys, and stores the time of each. */
        int (*ask)(void *client, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy);
        void (*close)(void *client);
        void *userdata;
        /* Processes that count, with their children, as the server; they are placed with the client. 0: none. */
        pid_t servers[2];
        bool answers_rows; /* each answer is one row */
} ClientKind;

/** An `ask` for clients that wait for each answer before the next request: calls and times ask_one() for each key. */
int clients_ask_each(int (*ask_one)(void *client, int64_t key, Copy *copy), void *client, const int64_t *keys, unsigned n,
                     double *ret_usec, Copy *copy);

typedef struct ClientsFindings {
        double per_second;    /* answers of all clients, between the first start and the last end */
        GArray *usec;         /* of double: the time of each answer */
        double client_cpu_usec, server_cpu_usec; /* user and system time of all processes, while the clock ran */
        double client_switches;
        uint64_t check;       /* of the answers during warm-up; equal if those answers are equal */
} ClientsFindings;

/** Runs `n_clients` clients of the kind: after a warm-up, each asks `n_each` times for keys from 1 to `n_keys`. The caller
 * frees the findings with clients_findings_done(). Returns a negative value if a client failed, and reports it on stderr;
 * -EINTR after a signal (measure_catch_signals()). */
int clients_run(const ClientKind *kind, unsigned n_clients, unsigned n_each, int64_t n_keys, Placement placement,
                ClientsFindings *ret);
void clients_findings_done(ClientsFindings *findings);

#endif
