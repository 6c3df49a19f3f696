/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A run whose rows come as D-Bus values, by OpenRows and NextRows: for buses that pass no descriptors. Library.
 *
 *      OpenRows --its number--> NextRows --rows, more--> NextRows ... --rows, no more, or an error--> over
 *
 * One NextRows is in progress at a time. It is sent as soon as the decoder has taken the previous block, so that the next
 * block is on its way while the program reads; at most one block waits in `backlog`. Blocks grow with the result.
 */
#ifndef SQLIPC_CLIENT_LIB_SOURCE_ROWS_H
#define SQLIPC_CLIENT_LIB_SOURCE_ROWS_H

#include "client-lib/call.h"
#include "client-lib/parameter.h"

typedef struct Fetch Fetch;

typedef struct SourceRows {
        bool more;                /* the number is known, and no reply was the last one */
        Call *next;               /* NextRows */
        unsigned n_columns;       /* 0: the first reply is still to come */
        uint32_t block_size;      /* bytes of rows that the next reply may have */
        uint64_t bus_generation;  /* of the bus connection on which the run was opened */
        sd_bus_message *failure;  /* error reply that ended the run, after the bytes in `backlog`; owned */
        int error;                /* the same for an invalid reply: negative errno */
} SourceRows;

/* Requests a run of `sql`, whose answer goes to `cursor`. Positional parameters are padded with NULL to
 * `n_positional_min`. Forgets what was in progress in `fetch`. Negative: the request could not be sent, and nothing is in
 * progress. */
int source_rows_open(Fetch *fetch, sqlipc_cursor *cursor, const char *sql, const Parameter *parameters, size_t n_parameters,
              size_t n_positional_min);

/* Reads bytes of the frames that row-frames.h makes of the replies, like read(). -EAGAIN; -ECONNRESET: `failure` has the
 * reason, or is NULL if the run was cancelled; other negative: the service sent invalid data, or could not be asked. */
ssize_t source_rows_read(Fetch *fetch, uint8_t *room, size_t size);

/* Stops reading: drops everything that has come or still comes. */
void source_rows_stop(Fetch *fetch);

#endif
