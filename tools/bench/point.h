/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who asks point queries: clients (clients.h) that want rows of the `point` dataset by their INTEGER PRIMARY KEY and copy
 * all columns, in each way that is compared; and bare round trips, which are what any of them has to pay.
 */
#ifndef BENCH_POINT_H
#define BENCH_POINT_H

#include "clients.h"
#include "database-server.h"
#include "options.h"

#define POINT_TABLE "point"
#define POINT_SQL "SELECT * FROM point WHERE id = ?1"

enum {
        POINT_IN_FLIGHT = 32,     /* of a client that does not wait for each answer */
        POINT_REQUEST_SIZE = 56,  /* of a FETCH on a channel: header, head of the payload, a row of one INTEGER, padding */
        POINT_ANSWER_SIZE = 272,  /* of its answer: COLUMNS, ROWS with the one row, END */
};

/* What a client needs to know; outlives it. */
typedef struct Point {
        const BenchOptions *options;
        DatabaseServerChoice server; /* of point_server() */
} Point;

/* Each fills name, functions and userdata; the rest is the caller's. */
ClientKind point_in_process(const Point *point);
ClientKind point_bus_fetch(const Point *point);     /* prepared once, Fetch, a pipe */
ClientKind point_bus_query(const Point *point);     /* Query: all in one call */
ClientKind point_channel(const Point *point);       /* prepared once, on a channel */
ClientKind point_pipelined(const Point *point);     /* the same, without waiting for each */
ClientKind point_messages(const Point *point);      /* QueryRows: values in D-Bus messages */
ClientKind point_server(const Point *point);        /* prepared once, on a database server */

/* Bare round trips, without rows. */
ClientKind yardstick_socket_pair(const Point *point); /* of the sizes that a channel's have */
ClientKind yardstick_wake_up(const Point *point);     /* half of a round trip of a byte: from one process to another */
ClientKind yardstick_fd_call(const Point *point);     /* a method call over the bus whose reply passes a descriptor */

/** The largest key in the dataset's file, and that all from 1 are there is known of it. Says on stderr what fails. */
int point_count_keys(const char *file, int64_t *ret);

#endif
