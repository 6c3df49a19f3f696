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
#ifndef SQLIPC_DAEMON_SUPERVISOR_RUNS_ROW_READER_H
#define SQLIPC_DAEMON_SUPERVISOR_RUNS_ROW_READER_H

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "daemon/supervisor/base/refusal.h"
#include "daemon/supervisor/calls/reply.h"
#include "dbus-interfaces/wire/page-decoder.h"

typedef struct User User;

/* The page size of such a run, and the size of its largest row. */
#define ROW_READER_PAGE_SIZE ((uint32_t) 65536)
#define ROW_READER_ROW_SIZE_MAX ((uint64_t) 16 * 1024 * 1024)

typedef enum RowReaderEnd {
        ROW_READER_ENDED,  /* it has read END or ERROR, or the run's own error was the answer */
        ROW_READER_LEFT,   /* it wants no more rows */
        ROW_READER_BROKEN, /* the bytes in the pipe break the page format */
} RowReaderEnd;

/* Functions of the run. */
typedef struct RowReaderEvents {
        void (*over)(void *run, RowReaderEnd end);   /* the reader was freed */
        const Refusal *(*error)(const void *run);    /* the error that the run was told to end with; borrowed */
        bool (*writes)(const void *run);             /* its rows are sent after the commit */
} RowReaderEvents;

/* The properties of a new reader. */
typedef struct RowReaderSpec {
        sd_event *event;
        int fd;                 /* read end; taken */
        User *user;             /* not owned: exists as long as the reader */
        bool one_shot;          /* QueryRows: one reply that includes the columns, then the run is over */
        bool error_details;
        const RowReaderEvents *events;
        void *run;
} RowReaderSpec;

typedef struct RowReader {
        RowReaderSpec spec;
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

/* Makes a reader, which takes `spec->fd` even if this fails. -errno. */
int row_reader_new(const RowReaderSpec *spec, RowReader **ret);

/* Has `call` (borrowed) wait for rows of a run that was not submitted yet. `max_bytes`: of rows in the reply. Negative: it
 * cannot wait, and nothing was changed. */
int row_reader_wait(RowReader *r, sd_bus_message *call, size_t max_bytes);

/* Has `call` wait for rows of a run under way: answers now or later. May free the reader, and its run. */
int row_reader_serve(RowReader *r, sd_bus_message *call, size_t max_bytes);

/* The run failed: answers a waiting call with the failure, then frees the reader. */
void row_reader_fail(RowReader *r, const Failure *failure);

/* Closes the read end and frees the reader. A waiting call must have been answered before. NULL is allowed. Returns NULL. */
RowReader *row_reader_free(RowReader *r);

#endif
