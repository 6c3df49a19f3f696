/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Clients that ask at the same time: each a process of its own, forked and connected before the clock starts. All begin
 * together, each asks a fixed number of times, and none closes its connection before the last is done, so that what the
 * server's processes used can be read while they are there.
 */
#ifndef BENCH_CLIENTS_H
#define BENCH_CLIENTS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "copy.h"
#include "measure.h"

/* What a client is, and does. All but `close` say on stderr what fails, and are negative then. */
typedef struct ClientKind {
        const char *name;
        /** In the client's process: connects, and prepares. */
        int (*open)(void *userdata, void **ret_client);
        /** Asks for each of the `n` keys, adds each answer to `copy`, in their order, and says how long each took. */
        int (*ask)(void *client, const int64_t *keys, unsigned n, double *ret_usec, Copy *copy);
        void (*close)(void *client);
        void *userdata;
        /* Whose time counts as the server's, with their children, and who are placed with the client; 0: none. */
        pid_t servers[2];
        bool answers_rows; /* one for each key */
} ClientKind;

/** An `ask` for clients that wait for each answer before they ask again: ask_one() for each key, timed. */
int clients_ask_each(int (*ask_one)(void *client, int64_t key, Copy *copy), void *client, const int64_t *keys, unsigned n,
                     double *ret_usec, Copy *copy);

typedef struct ClientsFindings {
        double per_second;    /* answers of all clients together, from the first start to the last end */
        GArray *usec;         /* of double: how long each answer took */
        double client_cpu_usec, server_cpu_usec; /* user and system, of all, while the clock ran */
        double client_switches;
        uint64_t check;       /* the same where the answers to the keys of the warm-up are */
} ClientsFindings;

/** Has `n_clients` of the kind ask `n_each` times for keys from 1 to `n_keys`, after a warm-up. The caller frees the
 * findings by clients_findings_done(). Negative: a client failed, which is said on stderr. */
int clients_run(const ClientKind *kind, unsigned n_clients, unsigned n_each, int64_t n_keys, Placement placement,
                ClientsFindings *ret);
void clients_findings_done(ClientsFindings *findings);

#endif
