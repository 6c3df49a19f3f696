/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Clients (clients.h) that send point queries: they fetch rows of the `point` dataset by INTEGER PRIMARY KEY and copy all
 * columns. There is a kind of client for each way that is compared, and for bare round trips, which are the least cost of
 * any of these ways.
 */
#ifndef SQLIPC_TOOLS_BENCH_WORKLOADS_POINT_H
#define SQLIPC_TOOLS_BENCH_WORKLOADS_POINT_H

#include "tools/bench/core/bench-options.h"
#include "tools/bench/core/clients.h"
#include "tools/bench/core/database-server.h"

#define POINT_TABLE "point"
#define POINT_SQL "SELECT * FROM point WHERE id = ?1"

enum {
        POINT_IN_FLIGHT = 32,     /* requests, of a client that does not wait for each answer */
        POINT_REQUEST_SIZE = 56,  /* FETCH on a channel: header, head of the payload, a row of one INTEGER, padding */
        POINT_ANSWER_SIZE = 272,  /* its answer: COLUMNS, ROWS with one row, END */
};

/* What a client needs to know. It must outlive the client. */
typedef struct Point {
        const BenchOptions *options;
        DatabaseServerChoice server; /* for point_server() */
} Point;

/* Each function fills name, functions and userdata; the caller fills the other fields. */
ClientKind point_in_process(const Point *point);
ClientKind point_bus_fetch(const Point *point);     /* Prepare once, then Fetch; rows come through a pipe */
ClientKind point_bus_query(const Point *point);     /* Query: everything in one call */
ClientKind point_channel(const Point *point);       /* prepared once, on a channel */
ClientKind point_pipelined(const Point *point);     /* as point_channel(), with POINT_IN_FLIGHT requests at a time */
ClientKind point_messages(const Point *point);      /* QueryRows: values in D-Bus messages */
ClientKind point_server(const Point *point);        /* prepared once, on a database server */

/* Bare round trips, without rows. */
ClientKind yardstick_socket_pair(const Point *point); /* with messages of the sizes that a channel has */
ClientKind yardstick_wake_up(const Point *point);     /* half the round trip of one byte */
ClientKind yardstick_fd_call(const Point *point);     /* a method call over the bus whose reply passes a descriptor */

/** Stores the largest key in the dataset's file, which contains all keys from 1 up to it. Reports errors on stderr. */
int point_count_keys(const char *file, int64_t *ret);

#endif
