/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. One job under way: bind, then step -> encode -> flush. It can be resumed wherever the pipe was full.
 *
 *      READY ---slice: a page is out---> READY
 *        |  |                 pipe full
 *        |  +--------------------------> PARKED --pipe drains--> READY          SQLite holds its row and its transaction
 *        |  +--SQLITE_BUSY at the start-> RETRY --some ms later--> READY
 *        |                 end, error, cancel, deadline: SQLite is reset at once
 *        +-----------------------------> ENDING --pipe full--> DRAINING --pipe drains--> OVER
 *                                                                 \--drain_usec later, the supervisor has the rest--> OVER
 *
 * 1. SQLite is stepped only while nothing waits to be written: a row is encoded after the page before it is written.
 * 2. ENDED is sent once, when SQLite is reset. DRAINED is sent once, before the last byte is written or together with the
 *    last bytes. Both are sent at once if the pipe has room.
 * 3. A run always ends through run_end(), whatever the reason.
 *
 * A run has a job, a page and a descriptor. A run of a job from the supervisor owns all three, and is reported to the
 * supervisor (run-report.h). A channel (channel.h) has one Run for all of its requests, which share one page that the
 * channel sends. Such a run is over as soon as its end is in that page, and is not reported separately. Its errors go into
 * the page, in place of rows, and a PREPARE gives its connection back before its description is sent. Code that depends on
 * this tests run->channel.
 */
#ifndef SQLIPC_DAEMON_WORKER_RUN_H
#define SQLIPC_DAEMON_WORKER_RUN_H

#include "daemon/protocol/protocol.h"
#include "daemon/worker/page-writer.h"
#include "daemon/worker/sqlite/pool.h"
#include "dbus-interfaces/wire/page-encoder.h"

typedef enum RunState {
        RUN_READY,
        RUN_PARKED,
        RUN_RETRY,
        RUN_DRAINING,
        RUN_OVER,
        RUN_IDLE, /* of a channel: there is nothing to do until its client sends more */
} RunState;

/* State that all runs of a worker share. Outlives them. */
typedef struct RunContext {
        const Setup *setup;
        Pool *pool;
        int control_fd;      /* borrowed; reports go there */
        bool leaving;        /* EXIT or GIVE_WAY came: channels begin no more requests */
        int report_error;    /* -errno: a report failed, so the supervisor would wait for it for ever; the worker must end */
        uint8_t *spare_page; /* a page buffer of the default size that is kept for the next run; owned */
} RunContext;

/* Frees what is kept for the next run. */
void run_context_trim(RunContext *context);

typedef struct Channel Channel;
typedef struct Run Run;
struct Run {
        Run *next;                /* in the worker's queue (job.h) */
        Channel *channel;         /* the channel of the request; NULL: the run is a job from the supervisor */
        RunContext *context;
        ReceivedMessage received; /* owned; has SQL, parameters and the pipe */
        const Job *job;
        StatementHint *hint;      /* borrowed; NULL: none */
        bool is_prepare;
        bool refused;             /* the request is not run: its answer is an error */
        bool reader_left;         /* of a channel: set by events of its epoll */
        bool watched;             /* the pipe is in the worker's epoll (job.c) */
        RunState state;

        Connection *connection;   /* owned while the run uses it */
        Connection *kept;         /* owned: the connection of the request before, for this one and the next */
        bool keeps;               /* the next request will use the same connection */
        sqlite3_stmt *stmt;
        bool started;             /* STARTED was sent */

        uint8_t *page;            /* owned */
        PageEncoder encoder;
        PageWriter writer;
        uint64_t start_bytes;     /* where the run begins in the bytes that the writer writes */
        unsigned n_columns;       /* 0 until the first step */
        bool row_waits;           /* SQLite has a row that is not in a page yet */
        size_t row_size;          /* of the last row that was encoded */
        bool rows_ended;          /* SQLITE_DONE came, but COLUMNS has not been sent yet */

        /* a payload that is sent in parts: COLUMNS, or the head of a big row */
        uint8_t *payload;         /* owned */
        FrameKind payload_kind;
        size_t payload_size, payload_done;
        bool big_row;             /* the payload is the types and ends of the waiting row, whose data follows */
        size_t big_size;          /* of the whole row; payload_done counts up to it */
        unsigned big_column;      /* the column at payload_done */

        uint64_t n_rows;
        uint64_t progress_usec;   /* when progress was last reported */
        uint64_t taken_usec, first_row_usec, /* the page's, by the coarse clock */ retry_usec, retry_delay_usec;
        uint64_t asked_usec, writer_usec; /* when it last checked for waiting writers; since when one waits, 0: none */
        uint64_t parked_usec, park_until_usec; /* since when it is parked, and until when, once it has settled */
        uint64_t drain_until_usec; /* DRAINING: when the supervisor takes over; 0: not set */
        uint64_t lacking_usec, again_usec; /* since when the kernel has no memory for the pipe, 0: it has; next attempt */
        unsigned n_full;          /* how often the pipe was full */
        bool filling_said, parked_said;

        EndCounters counters;
        SqlError error;           /* why the run ends; ERROR_NONE: it is complete */
        bool ending, end_encoded, ended_said, drained_said;
};

/* Takes over `received` (PREPARE or RUN). -ENOMEM. */
int run_new(RunContext *context, ReceivedMessage *received, Run **ret);

/* Frees a run in any state. Returns NULL. */
Run *run_free(Run *run);

/* Initialises the Run of a channel, which writes to `fd` (borrowed). -ENOMEM. */
int run_init_channel(Run *run, RunContext *context, Channel *channel, int fd, uint32_t page_size);
void run_done_channel(Run *run);

/* Begins the next request of a channel, whose last run is over. `job` and `hint` (NULL: none) must live as long as it
 * runs. */
void run_begin(Run *run, const Job *job, bool is_prepare, StatementHint *hint);

/* Does the same for a request that is not run. Its answer is the error that the caller stores where the result points. */
SqlError *run_refuse(Run *run, const Job *job);

/* Gives back the connection that was kept for the next request. */
void run_let_go(Run *run);

/* How many bytes of this run have been written or are in the page. */
uint64_t run_bytes(const Run *run);

/* Sets the state DRAINING. If the reader takes nothing for drain_usec, the supervisor takes over. */
RunState run_drain(Run *run);

/* Takes the bytes that are still to be written, including END or ERROR, in memory that the caller frees. The run writes no
 * more. -ENOMEM. */
int run_take_unread(Run *run, uint8_t **ret, size_t *ret_size);

/* Continues until a page is written, the pipe is full, or the run is over. */
RunState run_slice(Run *run);

/* Ends the run with `error` and a sentence, and goes on to write that; run->state is the result. Must not be called from
 * inside the run's own step. */
void run_cancel(Run *run, ErrorNumber error, const char *message);

/* Called by the progress handler: sends a page that has waited, and checks if the reader left or time is up. Non-zero:
 * interrupt the statement. With `look` it also makes system calls. */
int run_on_progress(Run *run, uint64_t now_usec, bool look);

/* run_next_usec() says when run_on_time() must be called if nothing else happens; UINT64_MAX: never. */
uint64_t run_next_usec(const Run *run);
void run_on_time(Run *run, uint64_t now_usec);

/* True if a writer has waited for this run's lock for as long as ParkTimeoutRollbackSec= allows; then run->error says so.
 * Asks the kernel a few times a second at most. */
bool run_is_in_writers_way(Run *run, uint64_t now_usec);

/* Sets the error of a run that has tried for long enough to get past a lock, or a log that cannot be read (`code` is
 * SQLite's). */
void run_set_busy(Run *run, int code);

#endif
