/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The nodes of a cluster, as Connection= names them: URLs with spaces between them. Does no I/O.
 */
#ifndef SQLIPC_DAEMON_WORKER_RQLITE_NODE_LIST_H
#define SQLIPC_DAEMON_WORKER_RQLITE_NODE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/worker/core/sql-error.h"

#define NODE_LIST_N_MAX 32

typedef struct Node {
        char *url;           /* owned: scheme, host, port, and the path before "/db"; no user */
        char *user;          /* owned; NULL: none */
        uint64_t down_usec;  /* until when it is asked after all others, because it did not answer; 0: it did */
} Node;

typedef struct NodeList {
        Node nodes[NODE_LIST_N_MAX];
        unsigned n;
        unsigned first;      /* the one to ask first: the leader, if it is known */
} NodeList;

/* Reads Connection=. CannotOpen: it is not valid; LoginFailed: it has a password, which the message does not repeat. */
bool node_list_parse(const char *connection, NodeList *ret, SqlError *error);

void node_list_done(NodeList *list);

/* Finds the node that a URL leads to, by scheme, host and port. -1: it is none of them. */
int node_list_find(const NodeList *list, const char *url);

/* Returns the nodes in the order in which they should be asked: the first one, then those after it; those that are down now
 * come last. */
void node_list_order(const NodeList *list, unsigned first, uint64_t now_usec, unsigned ret_order[static NODE_LIST_N_MAX]);

#endif
