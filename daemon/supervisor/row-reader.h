/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The reading end of a run whose rows are sent as D-Bus values (QueryRows, OpenRows + NextRows): it reads pages from the
 * supervisor's own pipe and puts their rows into replies. Supervisor.
 *
 * 1. It reads only while a call waits for rows. Between calls the rows stay in the pipe and the run parks, as with any
 *    reader.
 * 2. A reply is sent when it is full, at the end, or (NextRows) if it holds rows and no more rows can be read at the moment.
 * 3. The bytes in the pipe are from a worker: hostile.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_ROW_READER_H
#define SQLIPC_DAEMON_SUPERVISOR_ROW_READER_H

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "daemon/supervisor/refusal.h"
#include "daemon/supervisor/reply.h"
#include "dbus-interfaces/wire/page-decoder.h"

typedef struct Run Run;

/* The page size of such a run, and the size of its largest row. */
#define ROW_READER_PAGE_SIZE ((uint32_t) 65536)
#define ROW_READER_ROW_SIZE_MAX ((uint64_t) 16 * 1024 * 1024)

typedef struct RowReader {
        Run *run;               /* not owned; run->reader is this */
        int fd;                 /* read end, non-blocking */
        bool one_shot;          /* QueryRows: one reply that includes the columns, then the run is over */
        bool columns_told;      /* NextRows: the first reply had the columns */
        PageDecoder decoder;
        sd_event_source *io;
        sd_bus_message *call;   /* waits for rows; NULL: no call does */
        Reply reply;            /* to `call`, being built; empty: not begun */
        size_t max_bytes, used; /* bytes of rows: allowed in the reply, and in it so far */
        uint64_t n_rows;        /* in the reply */
        size_t joined_size;     /* bytes of the decoder's memory that were counted for the user */
        int pending;            /* PAGE_ROW or PAGE_ERROR that did not fit the last reply; else PAGE_MORE */
} RowReader;

/* Makes the reader of `run` and sets run->reader. Takes `fd`, the read end. */
int row_reader_new(Run *run, int fd, bool one_shot, RowReader **ret);

/* Has `call` wait for rows of a run that was not submitted yet. Negative: it cannot wait, and nothing was changed. */
int row_reader_wait(RowReader *r, sd_bus_message *call, size_t max_bytes);

/* Has `call` wait for rows of a run under way: answers now or later. May free the reader and the run. */
int row_reader_serve(RowReader *r, sd_bus_message *call, size_t max_bytes);

/* The run failed: answers a waiting call with the failure, then frees the reader. */
void row_reader_fail(RowReader *r, const Failure *failure);

/* Closes the read end and frees the reader. A waiting call must have been answered before. */
void row_reader_free(RowReader *r);

#endif
