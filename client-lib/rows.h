/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A run whose rows come as D-Bus values, by OpenRows and NextRows: for buses that pass no descriptors. Library.
 *
 *      OpenRows --its number--> NextRows --rows, more--> NextRows ... --rows, no more, or an error--> over
 *
 * One NextRows is under way at a time. It is sent as soon as what the last one brought goes into the decoder, so that the
 * next block is on its way while the program reads; at most one block waits in `backlog`. Blocks grow with the result.
 */
#ifndef SQLIPC_CLIENT_ROWS_H
#define SQLIPC_CLIENT_ROWS_H

#include "call.h"
#include "parameters.h"

typedef struct Run Run;

typedef struct Rows {
        bool more;                /* the number is known, and NextRows was not told that it is over */
        Call *next;               /* NextRows */
        unsigned n_columns;       /* 0: the first reply is still to come */
        uint32_t block_size;      /* bytes of rows that the next reply may have */
        uint64_t bus_generation;  /* of the bus connection that the run lives on */
        sd_bus_message *failure;  /* what ended it, behind what is in `backlog`: an error reply, owned */
        int error;                /* the same: negative, a reply that cannot be */
} Rows;

/* Asks for a run of `sql`, whose answer goes to `cursor`; positional parameters are padded with NULL to
 * `n_positional_min`. What was under way in `run` is forgotten. Negative: it could not be asked, and nothing is under
 * way. */
int rows_open(Run *run, sqlipc_cursor *cursor, const char *sql, const Parameter *parameters, size_t n_parameters,
              size_t n_positional_min);

/* Reads bytes of the frames that row-frames.h makes of the replies, as read() does. -EAGAIN; -ECONNRESET: `failure` says
 * why, or without one it was cancelled; other negative: the service spoke nonsense, or could not be asked. */
ssize_t rows_read(Run *run, uint8_t *room, size_t size);

/* Nobody reads on: what comes is of no use. */
void rows_stop(Run *run);

#endif
