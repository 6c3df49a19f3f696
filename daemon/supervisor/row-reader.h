/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The reading end of a run whose rows travel as D-Bus values (QueryRows, OpenRows + NextRows): pages out of our own pipe,
 * rows into replies. Supervisor.
 *
 * 1. It reads only while a call waits for rows; between calls they stay in the pipe and the run parks, as for any reader.
 * 2. A reply goes out when it is full, at the end, or (NextRows) when it holds rows and none is there to be read.
 * 3. What comes down the pipe is a worker's word: hostile.
 */
#ifndef SQLIPC_ROW_READER_H
#define SQLIPC_ROW_READER_H

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "page-decoder.h"
#include "refusal.h"
#include "reply.h"

typedef struct Run Run;

/* Page size of such a run, and its largest row. */
#define ROW_READER_PAGE_SIZE ((uint32_t) 65536)
#define ROW_READER_ROW_SIZE_MAX ((uint64_t) 16 * 1024 * 1024)

typedef struct RowReader {
        Run *run;               /* not owned; run->reader is this */
        int fd;                 /* read end, non-blocking */
        bool one_shot;          /* QueryRows: one reply with the columns, then over */
        bool columns_told;      /* NextRows: by the first reply */
        PageDecoder decoder;
        sd_event_source *io;
        sd_bus_message *call;   /* waits for rows; NULL: none */
        Reply reply;            /* to `call`, under construction; empty: not begun */
        size_t max_bytes, used; /* of rows in the reply */
        uint64_t n_rows;        /* in the reply */
        size_t joined_size;     /* of the decoder's memory, as counted for the user */
        int pending;            /* PAGE_ROW or PAGE_ERROR that the last reply had no room for; else PAGE_MORE */
} RowReader;

/* Takes `fd`, the read end, and hangs itself on the run. */
int row_reader_new(Run *run, int fd, bool one_shot, RowReader **ret);

/* `call` wants rows, of a run that was not submitted yet. Negative: it could not wait, and nothing happened. */
int row_reader_wait(RowReader *r, sd_bus_message *call, size_t max_bytes);

/* The same of a run under way: answers now or later. May free the reader, and the run. */
int row_reader_serve(RowReader *r, sd_bus_message *call, size_t max_bytes);

/* The run failed: tells a waiting call, then frees. */
void row_reader_fail(RowReader *r, const Failure *failure);

/* Closes the read end and forgets it. A waiting call must have been answered. */
void row_reader_free(RowReader *r);

#endif
