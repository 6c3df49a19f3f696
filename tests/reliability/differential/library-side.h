/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs the query through libsqlipc, by one transport. It does not block, so many queries run at once, on all transports.
 * Tests only.
 */
#ifndef SQLIPC_TESTS_RELIABILITY_DIFFERENTIAL_LIBRARY_SIDE_H
#define SQLIPC_TESTS_RELIABILITY_DIFFERENTIAL_LIBRARY_SIDE_H

#include "tests/reliability/differential/query.h"

typedef struct LibrarySide {
        const char *name;
        sqlipc_transport transport;     /* what is asked for */
        sqlipc_transport way;           /* what must carry each run, or a pipe in place of a channel */
        bool by_relay;                  /* a bus that passes no descriptors */
        sqlipc_connection *connection;
        uint64_t n_by_pipe;             /* runs that left the channel after a large answer that was not read */
} LibrarySide;

/* The state of one query. All zeros at first. */
typedef struct LibraryRun {
        sqlipc_statement *statement;
        sqlipc_cursor *cursor;
        int r;                          /* of the start */
        int code;                       /* if that failed */
} LibraryRun;

/* Connects. A negative errno. */
int library_side_open(LibrarySide *side, const char *address);
void library_side_close(LibrarySide *side);

/* Sends it off. */
void library_side_start(LibrarySide *side, const char *database, const Query *q, LibraryRun *run);

/* Waits for its end, and takes it. The run is over then. */
void library_side_finish(LibrarySide *side, LibraryRun *run, Result *result);

/* Ends it unread. */
void library_side_drop(LibraryRun *run);

#endif
