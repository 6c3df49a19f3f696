/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. One execution of SQL, for a job of the supervisor or a request of a channel: bind, then step -> encode ->
 * flush. It can be resumed wherever the pipe was full.
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
 * 3. A job always ends through job_end(), whatever the reason.
 *
 * A job has a specification, a page and a descriptor. A job from the supervisor owns all three, and is reported to the
 * supervisor (job-report.h). A channel (served-channel.h) has one Job for all of its requests, which share one page that the
 * channel sends. Such a job is over as soon as its end is in that page, and is not reported separately. Its errors go into
 * the page, in place of rows, and a PREPARE gives its connection back before its description is sent. Code that depends on
 * this tests job->channel.
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_JOB_H
#define SQLIPC_DAEMON_WORKER_CORE_JOB_H

#include "daemon/protocol/protocol.h"
#include "daemon/worker/core/page-writer.h"
#include "daemon/worker/sqlite/pool.h"
#include "dbus-interfaces/wire/page-encoder.h"

typedef enum JobState {
        JOB_READY,
        JOB_PARKED,
        JOB_RETRY,
        JOB_DRAINING,
        JOB_OVER,
        JOB_IDLE, /* of a channel: there is nothing to do until its client sends more */
} JobState;

/* State that all jobs of a worker share. Outlives them. */
typedef struct JobContext {
        const Setup *setup;
        Pool *pool;
        int control_fd;      /* borrowed; reports go there */
        bool leaving;        /* EXIT or GIVE_WAY came: channels begin no more requests */
        int report_error;    /* -errno: a report failed, so the supervisor would wait for it for ever; the worker must end */
        uint8_t *spare_page; /* a page buffer of the default size that is kept for the next job; owned */
} JobContext;

/* Frees what is kept for the next job. */
void job_context_trim(JobContext *context);

typedef struct ServedChannel ServedChannel;
typedef struct Job Job;
struct Job {
        Job *next;                /* in the worker's queue (job-queue.h) */
        ServedChannel *channel;   /* the channel of the request; NULL: the job is from the supervisor */
        JobContext *context;
        ReceivedMessage received; /* owned; has SQL, parameters and the pipe */
        const JobSpec *spec;
        StatementHint *hint;      /* borrowed; NULL: none */
        bool is_prepare;
        bool refused;             /* the request is not run: its answer is an error */
        bool reader_left;         /* of a channel: set by events of its epoll */
        bool watched;             /* the pipe is in the worker's epoll (job-queue.c) */
        JobState state;

        Connection *connection;   /* owned while the job uses it */
        Connection *kept;         /* owned: the connection of the request before, for this one and the next */
        bool keeps;               /* the next request will use the same connection */
        sqlite3_stmt *stmt;
        bool started;             /* STARTED was sent */

        uint8_t *page;            /* owned */
        PageEncoder encoder;
        PageWriter writer;
        uint64_t start_bytes;     /* where the job begins in the bytes that the writer writes */
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
        SqlError error;           /* why the job ends; ERROR_NONE: it is complete */
        bool ending, end_encoded, ended_said, drained_said;
};

/* Takes over `received` (PREPARE or RUN). -ENOMEM. */
int job_new(JobContext *context, ReceivedMessage *received, Job **ret);

/* Frees a job in any state. Returns NULL. */
Job *job_free(Job *job);

/* Initialises the Job of a channel, which writes to `fd` (borrowed). -ENOMEM. */
int job_init_channel(Job *job, JobContext *context, ServedChannel *channel, int fd, uint32_t page_size);
void job_done_channel(Job *job);

/* Begins the next request of a channel, whose last job is over. `spec` and `hint` (NULL: none) must live as long as it
 * runs. */
void job_begin(Job *job, const JobSpec *spec, bool is_prepare, StatementHint *hint);

/* Does the same for a request that is not run. Its answer is the error that the caller stores where the result points. */
SqlError *job_refuse(Job *job, const JobSpec *spec);

/* Gives back the connection that was kept for the next request. */
void job_let_go(Job *job);

/* How many bytes of this job have been written or are in the page. */
uint64_t job_bytes(const Job *job);

/* Sets the state DRAINING. If the reader takes nothing for drain_usec, the supervisor takes over. */
JobState job_drain(Job *job);

/* Takes the bytes that are still to be written, including END or ERROR, in memory that the caller frees. The job writes no
 * more. -ENOMEM. */
int job_take_unread(Job *job, uint8_t **ret, size_t *ret_size);

/* Continues until a page is written, the pipe is full, or the job is over. */
JobState job_slice(Job *job);

/* Ends the job with `error` and a sentence, and goes on to write that; job->state is the result. Must not be called from
 * inside the job's own step. */
void job_cancel(Job *job, ErrorNumber error, const char *message);

/* Called by the progress handler: sends a page that has waited, and checks if the reader left or time is up. Non-zero:
 * interrupt the statement. With `look` it also makes system calls. */
int job_on_progress(Job *job, uint64_t now_usec, bool look);

/* job_next_usec() says when job_on_time() must be called if nothing else happens; UINT64_MAX: never. */
uint64_t job_next_usec(const Job *job);
void job_on_time(Job *job, uint64_t now_usec);

/* True if a writer has waited for this job's lock for as long as ParkTimeoutRollbackSec= allows; then job->error says so.
 * Asks the kernel a few times a second at most. */
bool job_is_in_writers_way(Job *job, uint64_t now_usec);

/* Sets the error of a job that has tried for long enough to get past a lock, or a log that cannot be read (`code` is
 * SQLite's). */
void job_set_busy(Job *job, int code);

#endif
