/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. One job under way: bind, step -> encode -> flush, resumable wherever the pipe is full.
 *
 *      READY ---slice: a page is out---> READY
 *        |  |                 pipe full
 *        |  +--------------------------> PARKED --pipe drains--> READY          SQLite holds its row and its transaction
 *        |  +--SQLITE_BUSY at the start-> RETRY --some ms later--> READY
 *        |                 end, error, cancel, deadline: SQLite is reset at once
 *        +-----------------------------> ENDING --pipe full--> DRAINING --pipe drains--> OVER
 *                                                                 \--drain_usec later, the supervisor has the rest--> OVER
 *
 * 1. SQLite is stepped only while nothing waits to be written: a row is encoded after the page before it is out.
 * 2. ENDED is sent once, when SQLite is reset; DRAINED once, before the last byte or with the last bytes; both at once if
 *    the pipe has room.
 * 3. Whatever ends a run takes the one way through run_end().
 *
 * A run has a job, a page and a descriptor. Those of a job from the supervisor are its own, and what becomes of it is
 * reported (run-report.h). A channel (channel.h) has one Run for all of its requests: they follow each other through one
 * page, which the channel sends; a run of it is over as soon as its end is in that page, is never reported by itself, and an
 * error goes where rows would; a PREPARE of it gives its connection back before its description is sent. What differs asks
 * for run->channel.
 */
#ifndef RUN_H
#define RUN_H

#include "page-encoder.h"
#include "page-writer.h"
#include "pool.h"
#include "protocol.h"

typedef enum RunState {
        RUN_READY,
        RUN_PARKED,
        RUN_RETRY,
        RUN_DRAINING,
        RUN_OVER,
        RUN_IDLE, /* of a channel: nothing to do before its client sends more */
} RunState;

/* What all runs of a worker share; outlives them. */
typedef struct RunContext {
        const Setup *setup;
        Pool *pool;
        int control_fd;      /* borrowed: where reports go */
        bool leaving;        /* EXIT came: channels begin no request any more */
        int report_error;    /* -errno: something was not reported, so the supervisor waits for it; the worker must end */
        uint8_t *spare_page; /* a page buffer of the default size that is kept for the next run; owned */
} RunContext;

/* Gives back what is kept for the next run. */
void run_context_trim(RunContext *context);

typedef struct Channel Channel;
typedef struct Run Run;
struct Run {
        Run *next;                /* in the worker's queue (job.h) */
        Channel *channel;         /* whose request it is; NULL: a job of the supervisor's */
        RunContext *context;
        ReceivedMessage received; /* owned; holds SQL, parameters and the pipe */
        const Job *job;
        StatementHint *hint;      /* borrowed; NULL: none */
        bool is_prepare;
        bool refused;             /* it is not run: its answer is an error */
        bool reader_left;         /* of a channel: seen by its epoll */
        bool watched;             /* the pipe is in the worker's epoll (job.c) */
        RunState state;

        Connection *connection;   /* owned while it runs */
        Connection *kept;         /* owned: of the request before, for this one and the next */
        bool keeps;               /* the next will want it */
        sqlite3_stmt *stmt;
        bool started;             /* STARTED was sent */

        uint8_t *page;            /* owned */
        PageEncoder encoder;
        PageWriter writer;
        uint64_t start_bytes;     /* where it begins in what goes through the writer */
        unsigned n_columns;       /* 0 until the first step */
        bool row_waits;           /* SQLite holds a row that is in no page yet */
        size_t row_size;          /* of the last row that was encoded */
        bool rows_ended;          /* SQLITE_DONE came, but COLUMNS is still to go out */

        /* a payload that goes out in parts: COLUMNS, or the head of a big row */
        uint8_t *payload;         /* owned */
        FrameKind payload_kind;
        size_t payload_size, payload_done;
        bool big_row;             /* payload is types and ends of the waiting row, its data follows */
        size_t big_size;          /* of the row as a whole; payload_done counts on to it */
        unsigned big_column;      /* where payload_done is */

        uint64_t n_rows;
        uint64_t progress_usec;   /* when it last said how far it is */
        uint64_t taken_usec, first_row_usec, /* the page's, by the coarse clock */ retry_usec, retry_delay_usec;
        uint64_t asked_usec, writer_usec; /* when it was last asked for writers that wait; since when one does, 0: none */
        uint64_t parked_usec, park_until_usec; /* since when, and until when once it settled */
        uint64_t drain_until_usec; /* DRAINING: when the supervisor takes over; 0: not set */
        uint64_t lacking_usec, again_usec; /* since when the kernel has no memory for its pipe, next try; 0: it has */
        unsigned n_full;          /* how often the pipe was full */
        bool filling_said, parked_said;

        EndCounters counters;
        SqlError error;           /* why it ends, ERROR_NONE: at its end */
        bool ending, end_encoded, ended_said, drained_said;
};

/* Takes `received` over (PREPARE or RUN). -ENOMEM. */
int run_new(RunContext *context, ReceivedMessage *received, Run **ret);

/* Drops it wherever it is. Returns NULL. */
Run *run_free(Run *run);

/* The Run of a channel, which writes to `fd` (borrowed). -ENOMEM. */
int run_init_channel(Run *run, RunContext *context, Channel *channel, int fd, uint32_t page_size);
void run_done_channel(Run *run);

/* The next request of a channel, whose last run is over. `job` and `hint` (NULL: none) live as long as it runs. */
void run_begin(Run *run, const Job *job, bool is_prepare, StatementHint *hint);

/* The same for a request that will not be run: its answer is the error that the caller puts where this says. */
SqlError *run_refuse(Run *run, const Job *job);

/* The requests to come have a connection of their own. */
void run_let_go(Run *run);

/* How much of this run is written or in the page. */
uint64_t run_bytes(const Run *run);

/* DRAINING from now on, at the latest until drain_usec have passed. */
RunState run_drain(Run *run);

/* The bytes that are still to be written, END or ERROR included, in memory that the caller frees. The run writes no more. */
int run_take_unread(Run *run, uint8_t **ret, size_t *ret_size);

/* Goes on until a page is out, the pipe is full, or it is over. */
RunState run_slice(Run *run);

/* Ends it from outside its own step, with `error` and a sentence, and goes on to write that: run->state says how far it
 * came. */
void run_cancel(Run *run, ErrorNumber error, const char *message);

/* The progress handler's part: sends a page that has waited, sees whether the reader left or time is up. Non-zero:
 * interrupt. With `look` also system calls are made. */
int run_on_progress(Run *run, uint64_t now_usec, bool look);

/* When to look at it again if nothing happens, and what for; UINT64_MAX: never. */
uint64_t run_next_usec(const Run *run);
void run_on_time(Run *run, uint64_t now_usec);

/* Whether a writer has waited for this run's lock for as long as ParkTimeoutRollbackSec= allows; then run->error says so.
 * Asks the kernel a few times a second at most. */
bool run_is_in_writers_way(Run *run, uint64_t now_usec);

/* The error of a run that met a lock, or a log that nobody can read (`code`, SQLite's), and has tried for long enough. */
void run_set_busy(Run *run, int code);

#endif
