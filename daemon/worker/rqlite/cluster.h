/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Sends a request to the node of the cluster that should answer it, and to another one if that is down.
 *
 * 1. A request that reads is sent again until a node answers. One that writes is sent again only if it surely was not
 *    carried out: no byte of it was sent, or the node says that there is no leader. Otherwise the error is OutcomeUnknown.
 * 2. A node that is not the leader is asked to redirect. The redirect is followed to a node that Connection= names, and to
 *    no other address: there the node is asked to pass the request on instead.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_CLUSTER_H
#define SQLIPC_DAEMON_WORKER_RQLITE_CLUSTER_H

#include "daemon/worker/rqlite/http.h"
#include "daemon/worker/rqlite/node-list.h"
#include "daemon/worker/rqlite/text-buffer.h"

#define CLUSTER_ANY_NODE (-1)

typedef struct Cluster {
        NodeList nodes;
        HttpClient http;
        const char *password; /* borrowed; NULL: none */
        unsigned turn;        /* the node that is asked next, if any will do */
} Cluster;

typedef struct ClusterRequest {
        const char *target;      /* borrowed: path and query, which has at least one parameter */
        const TextBuffer *body;  /* borrowed until the exchange ends; NULL: GET */
        bool writes;
        bool by_leader;          /* only the leader can answer; false: each node answers for itself */
        int node;                /* ask only this one; CLUSTER_ANY_NODE */
        uint64_t patience_usec;  /* how long a node may be silent */
} ClusterRequest;

/* Takes an answer. */
typedef struct ClusterReader {
        HttpSink sink;
        void (*restart)(void *userdata);  /* before each attempt: forget all that was taken */
        bool (*enough)(void *userdata);   /* NULL: the whole answer is needed */
        void *userdata;                   /* of both */
} ClusterReader;

typedef struct ClusterExchange {
        Cluster *cluster;     /* borrowed */
        HttpExchange http;
        ClusterReader reader; /* of the request under way */
        uint64_t patience_usec;
        int node;             /* that answers */
        bool is_direct;       /* it answers for itself; false: it passes the request on to the leader */
} ClusterExchange;

/* -ENOMEM */
int cluster_exchange_init(ClusterExchange *x, Cluster *cluster);
void cluster_exchange_done(ClusterExchange *x);

/* Sends the request, and waits until the reader has enough, the answer is whole, or the sink does not want it (the caller
 * knows that). ERROR_BUSY: no node answers now (ServerTrouble). LoginFailed, OutcomeUnknown, InputOutput, OutOfMemory; or
 * the progress function has set the error. */
bool cluster_begin(ClusterExchange *x, const ClusterRequest *request, const ClusterReader *reader, SqlError *error);

/* Goes on until the reader has enough, or the answer is whole. ServerUnreachable; or as the progress function says. */
bool cluster_go_on(ClusterExchange *x, SqlError *error);

/* True if the answer is whole, or its sink did not want it. */
static inline bool cluster_has_ended(const ClusterExchange *x) {
        return !x->http.is_active;
}

/* Ends the request under way, if there is one. */
void cluster_abort(ClusterExchange *x);

/* Reads how far a node has applied the cluster's log to its database. False: it does not say. No request may be under
 * way. */
bool cluster_applied_index(ClusterExchange *x, int node, uint64_t *ret);

#endif
