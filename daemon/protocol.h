/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages between supervisor and worker: the only thing that both include. Pure but for message_send/receive, which do
 * one sendmsg/recvmsg on a SOCK_SEQPACKET socket and never block.
 *
 * Two sockets lead to a worker:
 *   - its own *control* socket: down SETUP (first), CANCEL, RETIRE, GIVE_WAY, EXIT; up everything a worker says. So the
 *     supervisor knows who speaks, and end-of-file there is the end of that worker.
 *   - the *job* socket, shared by all workers of a group: PREPARE and RUN, taken by whoever is free. Where one has nothing
 *     to do they go down its control socket instead: that one has the job then, and says no TAKEN.
 *
 *   supervisor                               worker
 *      PREPARE job  ----(job socket)---->
 *                   <---(control)--------    TAKEN
 *                   <--------------------    STARTED (columns, parameters)   or ENDED with an error
 *      RUN job + pipe ------------------>
 *                   <--------------------    TAKEN
 *                   <--------------------    STARTED (described where asked)  or ENDED with an error: nothing went
 *                   <--------------------      PARKED on/off, FILLING,         down the pipe
 *                                              PROGRESS now and then
 *                   <--------------------    ENDED: SQLite is reset, the end is known
 *                   <--------------------    DRAINED: the last byte is about to be written, the pipe is free for the next
 *                                            run. ENDED with `drained` set says both at once. DRAINED with `unread`:
 *                                            the reader is slow, and the supervisor writes the last bytes itself.
 *
 *      CHANNEL + socket  --(control)---->            a client's private socket (sqlipc-channel.h), new or taken up again
 *                   <--------------------    CHANNEL_PROGRESS now and then, CHANNEL_RESTED: the worker closed its
 *      CHANNEL_CLOSE, CANCEL ----------->    descriptor and gives the channel's state back: nothing came for a while, or
 *                   <--------------------    something came and the worker is stuck in another's step; CHANNEL_CLOSED:
 *                                            the client left, spoke nonsense, or was told to go
 *      PING         --------------------->   whether a worker with channels still looks at its sockets
 *                   <--------------------    PONG, also from inside a step
 *      RETIRE       --------------------->   it takes nothing more out of the job socket; another has what holds now
 *      GIVE_WAY     --------------------->   EXIT for one that has channels, once nothing is under way on them; if
 *                                            requests follow each other, after `number` usec of its life; 0: at once
 *                   <--------------------    end-of-file; or STAY, after seconds: what is under way lasts
 *
 * The supervisor keeps a descriptor of its own of the worker's end, and watches it while no worker has the channel.
 *
 * A message of more than MESSAGE_SIZE_MAX goes as a sealed memfd (at most MESSAGE_MEMFD_SIZE_MAX) behind a stub. Neither
 * side trusts a length: decoding is bounded, each kind of message has a limit of its own, and -EBADMSG means that the other
 * side is broken (the supervisor then kills the worker; the worker exits). The limits of STARTED and ENDED also bound the
 * replies that are made from them.
 */
#ifndef SQLIPC_PROTOCOL_H
#define SQLIPC_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sqlipc-page.h"

#define MESSAGE_SIZE_MAX ((size_t) 65536)
#define MESSAGE_MEMFD_SIZE_MAX ((size_t) 8 * 1024 * 1024)

/* Parameters of a statement: SQLite's own limit (SQLITE_MAX_VARIABLE_NUMBER). */
#define PARAMETERS_MAX ((uint32_t) 32766)

/* The state of a channel that rests. A channel with more stays with its worker until its input is whole. */
#define CHANNEL_STATE_SIZE_MAX ((size_t) 4 * 1024 * 1024)

/* File descriptors that a worker is started with. */
#define WORKER_JOB_FD 3
#define WORKER_CONTROL_FD 4

typedef enum MessageKind {
        MESSAGE_SETUP = 1,
        MESSAGE_PREPARE,
        MESSAGE_RUN,
        MESSAGE_CANCEL,
        MESSAGE_EXIT,
        MESSAGE_TAKEN,
        MESSAGE_STARTED,
        MESSAGE_PARKED,
        MESSAGE_FILLING,
        MESSAGE_ENDED,
        MESSAGE_DRAINED,
        MESSAGE_PROGRESS,
        MESSAGE_CHANNEL,
        MESSAGE_CHANNEL_CLOSE,
        MESSAGE_CHANNEL_PROGRESS,
        MESSAGE_CHANNEL_RESTED,
        MESSAGE_CHANNEL_CLOSED,
        MESSAGE_PING,
        MESSAGE_PONG,
        MESSAGE_RETIRE,
        MESSAGE_GIVE_WAY,
        MESSAGE_STAY,
} MessageKind;

/* How long a worker whose channels are in use all the time keeps its place, though another worker needs it. */
#define WORKER_TURN_USEC UINT64_C(1000000)

/* A string that may hold NULs, or is absent (NULL). */
typedef struct Bytes {
        const char *data;
        size_t size;
} Bytes;

/* What a worker is: one database, one set of rights and limits. Times in usec, sizes in bytes. */
typedef struct Setup {
        const char *path;            /* of the database file */
        bool immutable;              /* Immutable=: nobody writes, no locks, no -wal or -shm is looked for */
        uint64_t heap_size_max;      /* SQLite's (heap.h); RLIMIT_AS is 512 MiB more */
        uint64_t temp_size_max;      /* bytes in temporary files, all runs of this worker together */
        uint64_t park_usec;          /* ParkTimeoutSec=, in WAL mode */
        uint64_t park_rollback_usec; /* the same in rollback mode */
        uint64_t busy_usec;          /* how long SQLITE_BUSY is tried again */
        uint64_t drain_usec;         /* how long a run that has ended waits for its reader, then the supervisor does */
        uint32_t sql_size_max;       /* SQLITE_LIMIT_SQL_LENGTH, EXPR_DEPTH, COMPOUND_SELECT, VDBE_OP, VARIABLE_NUMBER */
        uint32_t expression_depth_max;
        uint32_t compound_selects_max;
        uint32_t vdbe_ops_max;
        uint32_t variables_max;
        bool security_barrier;       /* SecurityBarrier=: nothing is searched below an exposed view */
        uint32_t n_exposed;          /* Expose=: what there is on its connections; 0: the whole schema */
        Bytes *exposed;              /* their names, never NULL, without NULs */
} Setup;

/* PREPARE or RUN. */
typedef struct Job {
        uint64_t number;             /* never used before in this daemon */
        const char *sql;             /* sql_size bytes, any; once decoded a NUL stands behind them */
        size_t sql_size;

        /* RUN only */
        bool describe;               /* STARTED shall carry columns and parameters */
        uint32_t page_size;
        uint64_t deadline_usec;      /* CLOCK_MONOTONIC */
        uint64_t row_size_max;
        uint64_t result_rows_max;
        uint64_t result_size_max;    /* bytes down the pipe */
        /* The parameters as one row (sqlipc-page.h) of n_positional + 2*n_named values: the positional ones, then name
         * (TEXT) and value in turn. Checked by page_check_row() on decode. */
        uint32_t n_positional, n_named;
        const uint8_t *parameters;
        size_t parameters_size;
} Job;

typedef struct Cancel {
        uint64_t number;
        uint32_t error;              /* ErrorNumber that the run shall end with; PIPE_CLOSED: nobody reads its pipe any more,
                                      * so one that ended gives up what it has not written */
        const char *message;         /* its sentence */
} Cancel;

typedef struct Started {
        uint64_t number;
        bool described;
        bool read_only;              /* always true today; kept for statements that write */
        uint32_t n_columns;          /* at most SQLIPC_N_COLUMNS_MAX */
        Bytes *columns;              /* 2 x n_columns: name, declared type (data NULL where none) */
        uint32_t n_parameters;       /* the largest index, as sqlite3_bind_parameter_count(); at most PARAMETERS_MAX */
        Bytes *parameters;           /* n_parameters names with their prefix; data NULL where nameless */
} Started;

/* How a job failed: what the ERROR frame and the D-Bus error are made of. */
typedef struct Failure {
        uint32_t error;              /* ErrorNumber; ERROR_NONE: it did not */
        int32_t extended_code;       /* SQLite's, 0: none */
        int32_t sql_offset;          /* -1: none */
        const char *message;         /* UTF-8 as far as SQLite's is; never NULL where error is set; in a message at most
                                      * SQLIPC_MESSAGE_SIZE_MAX bytes */
} Failure;

typedef struct Ended {
        uint64_t number;
        Failure failure;
        uint64_t n_rows, n_bytes, usec;
        bool drained;
} Ended;

typedef struct Drained {
        uint64_t number;
        Bytes unread;                /* the end of the stream, which the worker has not written; size 0: none */
} Drained;

/* The most that a worker leaves unwritten: what its page holds, and the END or ERROR frame after it. */
#define UNREAD_END_SIZE_MAX ((size_t) 4096)
#define UNREAD_SIZE_MAX ((size_t) 1048576 + UNREAD_END_SIZE_MAX) /* with the largest page */
static inline size_t unread_size_max(uint32_t page_size) {
        return (size_t) page_size + UNREAD_END_SIZE_MAX;
}

/* How far a run has come; sent at most twice a second, while it is stepped or written. */
typedef struct Progress {
        uint64_t number;
        uint64_t n_rows, n_bytes;
} Progress;

/* A channel, and what holds for its runs. Its number is one of the daemon's, as a run's, and stands for whatever run is
 * under way on it: CANCEL names it. */
typedef struct ChannelSetup {
        uint64_t number;
        uint32_t page_size;
        uint32_t statements_max;
        uint64_t run_timeout_usec, prepare_timeout_usec;
        uint64_t row_size_max, result_rows_max, result_size_max;
        Bytes state;                 /* as CHANNEL_RESTED brought it; size 0: a new channel */
} ChannelSetup;

/* What a channel has done since the message about it before, and does now. */
typedef struct ChannelProgress {
        uint64_t number;
        uint64_t n_runs, n_rows, n_bytes; /* runs that ended; what was delivered */
        bool running, parked;             /* a run is under way; its reader does not read */
        bool draining;                    /* it has ended, and waits for its end to be read */
        uint64_t usec;                    /* running: its duration so far; else that of the longest run that ended */
        uint32_t n_statements;            /* open on the channel */
        Bytes sql;                        /* of the run under way: its first bytes */
} ChannelProgress;

/* The worker shall close a channel, and says CHANNEL_CLOSED. */
typedef struct ChannelClose {
        uint64_t number;
        bool drain;                       /* it takes no more requests; the one under way ends, and is answered, first: what
                                           * does not fit the socket waits for its reader as long as ParkTimeoutSec= */
} ChannelClose;

/* CHANNEL_RESTED, CHANNEL_CLOSED: the worker has closed its descriptor. */
typedef struct ChannelEnd {
        ChannelProgress progress;         /* the last */
        bool waiting;                     /* RESTED: a request waits, and this worker cannot serve it soon */
        Bytes state;                      /* RESTED: what another worker goes on with; opaque, decoded as hostile; at most
                                           * CHANNEL_STATE_SIZE_MAX */
        Bytes unread;                     /* answers that do not fit the socket: the supervisor writes them; size 0: none */
} ChannelEnd;

typedef struct Parked {
        uint64_t number;
        bool parked;
} Parked;

/* One message, any kind. Pointers in it borrow from the bytes it was decoded from, or from the caller who encodes it. */
typedef struct Message {
        MessageKind kind;
        union {
                Setup setup;
                Job job;         /* PREPARE, RUN */
                Cancel cancel;
                Started started;
                Parked parked;
                Ended ended;
                Drained drained;
                Progress progress;
                ChannelSetup channel;
                ChannelProgress channel_progress;
                ChannelClose channel_close;
                ChannelEnd channel_end; /* CHANNEL_RESTED, CHANNEL_CLOSED */
                uint64_t number; /* TAKEN, FILLING; PING, PONG: of the question; GIVE_WAY: usec */
        };
} Message;

/* A message as it arrived, with what its pointers borrow from. */
typedef struct ReceivedMessage {
        Message message;
        size_t size;             /* of its bytes: what it cost to read */
        int pipe_fd;             /* RUN: write end, CHANNEL: socket; owned; -1 otherwise */
        uint8_t *bytes;          /* owned */
        void *arrays;            /* owned: what the arrays of Started and Setup point to */
} ReceivedMessage;

#define RECEIVED_MESSAGE_INIT ((ReceivedMessage) { .pipe_fd = -1 })

/* It comes with a descriptor. */
static inline bool message_has_fd(MessageKind kind) {
        return kind == MESSAGE_RUN || kind == MESSAGE_CHANNEL;
}

/* The parameters are one row of the announced number of values, and the names TEXT. A request of a channel is held to the
 * same. */
bool job_parameters_are_valid(const Job *j);

/* Bytes of the names, types and parameters of a statement, as its description counts them: at most
 * SQLIPC_COLUMNS_SIZE_MAX. */
size_t started_size(const Started *s);

/* Encodes `m` into a fresh buffer that the caller frees. -ENOMEM, -E2BIG over MESSAGE_MEMFD_SIZE_MAX. */
int message_encode(const Message *m, uint8_t **ret_bytes, size_t *ret_size);

/* Decodes `bytes`, which `ret` takes over on success. -EBADMSG for anything that message_encode() does not make, -ENOMEM. */
int message_decode(uint8_t *bytes, size_t size, ReceivedMessage *ret);

/* Sends `m`, with `pipe_fd` (borrowed, -1: none) for RUN and CHANNEL. -EAGAIN when the socket is full, -EPIPE/-ECONNRESET
 * when the other side is gone, -ENOMEM, -E2BIG, -ETOOMANYREFS. Never raises SIGPIPE. */
int message_send(int fd, const Message *m, int pipe_fd);

/* Receives one message. 1: `ret` holds it, to be freed with received_message_done(); 0: end of file; -EAGAIN: none waits;
 * -EBADMSG. */
int message_receive(int fd, ReceivedMessage *ret);

/* Takes a PREPARE or RUN out of the socket unread and closes its descriptors, for which it needs none of ours. 1: its number
 * is in `ret_number`; 0: end of file; -EAGAIN: none waits; -EBADMSG. */
int message_withdraw_job(int fd, uint64_t *ret_number);

/* Frees what is owned, closes an fd that was not taken (set pipe_fd to -1 to take it). Accepts RECEIVED_MESSAGE_INIT. */
void received_message_done(ReceivedMessage *m);

#endif
