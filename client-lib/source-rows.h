/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The source that asks for rows as D-Bus values, by NextRows: for buses that pass no descriptors. Library.
 *
 *      OPENING --OpenRows was answered--> MORE --last reply, error, cancelled--> OVER
 *
 * One NextRows is in progress at a time. It is sent as soon as the decoder has taken the previous block, so that the next
 * block is on its way while the program reads; at most one block waits in `backlog`. Blocks grow with the result.
 */
#ifndef SQLIPC_CLIENT_LIB_SOURCE_ROWS_H
#define SQLIPC_CLIENT_LIB_SOURCE_ROWS_H

#include "client-lib/buffer.h"
#include "client-lib/source.h"

typedef enum SourceRowsState {
        SOURCE_ROWS_OPENING,
        SOURCE_ROWS_MORE,
        SOURCE_ROWS_OVER,
} SourceRowsState;

typedef struct SourceRows {
        Source source;
        SourceRowsState state;
        Call *ask;                /* NextRows */
        unsigned n_columns;       /* 0: the first reply is still to come */
        uint32_t block_size;      /* bytes of rows that the next reply may have */
        uint64_t bus_generation;  /* of the bus connection on which OpenRows was answered */
        Buffer backlog;           /* frames that row-frames.c made of the replies */
        int error;                /* a reply was invalid: negative errno, after the bytes in `backlog` */
} SourceRows;

extern const SourceOperations source_rows_operations;

/* OpenRows is about to be sent. */
void source_rows_open(SourceRows *rows);

/* OpenRows was answered, and the source has number and owner: asks for the first block, unless the run was cancelled. */
void source_rows_begin(SourceRows *rows);

#endif
