/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages between supervisor and worker: the only thing that both include. Pure except for message_send/receive, which make
 * one sendmsg/recvmsg on a SOCK_SEQPACKET socket and never block.
 *
 * Two sockets lead to a worker:
 *   - its own *control* socket: the supervisor sends SETUP (first), CHANNEL, CHANNEL_CLOSE, CANCEL, LEASE, LEASE_ASKED,
 *     LEASE_TAKEN, CONNECTION, CONNECTION_ASKED, PING, RETIRE, GIVE_WAY, EXIT; the worker sends all its messages over it. So
 *     the supervisor knows the sender of each message, and end-of-file there means that this worker has ended.
 *   - the *job* socket, shared by all workers of a group: PREPARE, TABLES, RUN, EXECUTE, EXECUTE_BATCH, LOAD, BEGIN, taken
 *     by any worker that is free. If a worker has nothing to do, its jobs are sent over its control socket instead: that
 *     worker has the job then, and sends no TAKEN.
 *
 *   supervisor                               worker
 *      PREPARE job  ----(job socket)---->
 *                   <---(control)--------    TAKEN
 *                   <--------------------    STARTED (columns, parameters)   or ENDED with an error
 *      RUN job + pipe ------------------>
 *                   <--------------------    TAKEN
 *                   <--------------------    STARTED (described if asked for) or ENDED with an error: nothing was written
 *                   <--------------------      PARKED on/off, FILLING,         to the pipe
 *                                              PROGRESS now and then
 *                   <--------------------    ENDED: SQLite is reset, the end is known
 *                   <--------------------    DRAINED: the last byte is about to be written, the pipe is free for the next
 *                                            run. ENDED with `drained` set says both at once. DRAINED with `unread`:
 *                                            the reader is slow, and the supervisor writes the last bytes itself.
 *
 *      CHANNEL + socket  --(control)---->            a client's private socket (sqlipc-channel.h), new or taken up again
 *                   <--------------------    CHANNEL_PROGRESS now and then, CHANNEL_RESTED: the worker closed its
 *      CHANNEL_CLOSE, CANCEL ----------->    descriptor and gives the channel's state back: nothing came for a while, or
 *                   <--------------------    a request came and the worker is stuck in another's step; CHANNEL_CLOSED:
 *                                            the client left, broke the protocol, or CHANNEL_CLOSE came
 *      PING         --------------------->   asks if a worker with channels still reads its sockets
 *                   <--------------------    PONG, also from inside a step
 *      RETIRE       --------------------->   a reload made it outdated: it takes nothing more from the job socket
 *      GIVE_WAY     --------------------->   EXIT for a worker with channels, once nothing is under way on them; if
 *                                            requests follow each other, after `number` usec of its life; 0: at once
 *                   <--------------------    end-of-file; or STAY, after seconds: what is under way takes long
 *
 *      TABLES job   --------------------->   finds the tables that a statement reads: ENDED is the answer
 *      EXECUTE job  --------------------->   a RUN without a pipe, for a statement without rows: ENDED is its whole answer,
 *                                            there is no STARTED
 *      EXECUTE_BATCH job  --------------->   the same with several statements: all are carried out, or none
 *      LOAD job + pipe ----------------->   runs a statement once for each row that the client writes into the pipe
 *                   <--------------------    STARTED: it can be written to; FILLING, PROGRESS
 *                   <--------------------    ENDED: all rows are committed, or none
 *      BEGIN        ----(job socket)---->    a transaction
 *                   <---(control)--------    TAKEN
 *                   <--------------------    STARTED: it is open          or ENDED with an error
 *      RUN, EXECUTE, EXECUTE_BATCH, LOAD>    over the control socket, with `transaction`: one of its statements
 *      BEGIN with `is_pin`  ------------>   a pin: a connection of its client's own. RUN, ... with `pin` and BEGIN with
 *                                            `pin` run on it; they come over the control socket. ENDED: it is gone
 *      COMMIT       --------------------->   ends it after these. CANCEL takes it back
 *                   <--------------------    ENDED: `wrote`, or an error: nothing was written
 *                   <--------------------    LEASE_WANTED: a statement waits that writes (docs/design/writing.md)
 *      LEASE        --------------------->   no other worker writes to this database until LEASE_RETURNED
 *      LEASE_ASKED  --------------------->   another worker waits for the lease: return it after LEASE_TURN_USEC
 *                   <--------------------    LEASE_KEPT: not yet, because a transaction is open. At most once for each LEASE
 *      LEASE_TAKEN  --------------------->   to a worker that waits for LEASE: the holder has sent LEASE_KEPT. At most once
 *                                            for each LEASE_WANTED
 *                   <--------------------    LEASE_RETURNED: nothing is being written
 *                   <--------------------    CONNECTION_WANTED: all connections to the server that the worker may have are
 *                                            in use. It is sent once until CONNECTION
 *      CONNECTION   --------------------->   the worker may have one more
 *      CONNECTION_ASKED  ---------------->   one fewer, as soon as one is not in use
 *                   <--------------------    CONNECTION_RETURNED: it has one fewer now
 *      WATCH        --------------------->   clients watch the database of the lease, or do not any more (`number` 1, 0), as
 *                                            LEASE says, too
 *                   <--------------------    COMMITTED: answers WATCH, and follows each commit while clients watch
 *                   <--------------------    COMMITTING: the transaction of these runs is about to be committed. If the
 *                                            worker dies now, no process knows if it was
 *
 *                   <--------------------    ATTACH_WANTED: a statement on this pin attaches a database by its name. It is
 *                                            sent again and again until ATTACH
 *      ATTACH       --------------------->   where its file is, or why the client may not attach it
 *
 *      OBSERVE      --------------------->   look for commits of other programs (observing.h)
 *                   <--------------------    OBSERVED
 *      NOTIFIER + inotify  -------------->   the descriptor by which the supervisor learns of changes; the observer adds the
 *                                            file to it
 *
 * The supervisor keeps its own descriptor of the worker's end, and watches it while no worker has the channel.
 *
 * A message of more than MESSAGE_SIZE_MAX is sent as a sealed memfd (at most MESSAGE_JOB_SIZE_MAX) with a short message
 * that announces it. SQL and parameters that the client sent in a file of its own (wire/call-arguments.h) stay there: the
 * worker gets its descriptor, and is the first to read it. Neither side trusts a length: decoding is bounded, each kind of
 * message has its own limit, and -EBADMSG means that the other side is broken (the supervisor then kills the worker; the
 * worker exits). The limits of STARTED and ENDED also bound the replies that are made from them.
 */
#ifndef SQLIPC_DAEMON_PROTOCOL_PROTOCOL_H
#define SQLIPC_DAEMON_PROTOCOL_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/protocol/engine-kind.h"
#include "daemon/protocol/file-state.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

#define MESSAGE_SIZE_MAX ((size_t) 65536)
#define MESSAGE_MEMFD_SIZE_MAX ((size_t) 8 * 1024 * 1024)

/* The same of a job: SQL that came in a D-Bus message has 32 MiB at most, because a bus takes no larger one. */
#define MESSAGE_JOB_SIZE_MAX ((size_t) 40 * 1024 * 1024)

/* Parameters of a statement. This is SQLite's own limit (SQLITE_MAX_VARIABLE_NUMBER). */
#define PARAMETERS_MAX ((uint32_t) 32766)

/* The state of a resting channel. A channel with a larger state stays with its worker until its input is whole. */
#define CHANNEL_STATE_SIZE_MAX ((size_t) 4 * 1024 * 1024)

/* File descriptors that a worker is started with. */
#define WORKER_JOB_FD 3
#define WORKER_CONTROL_FD 4
#define WORKER_CHANGES_FD 5 /* the change sequences of all databases (change-numbers.h) */
#define WORKER_COUNTS_FD 6  /* the counts of the user's clients (core/client-counts.h); not of an engine process */

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
        MESSAGE_EXECUTE,
        MESSAGE_LEASE_WANTED,
        MESSAGE_LEASE,
        MESSAGE_LEASE_ASKED,
        MESSAGE_LEASE_RETURNED,
        MESSAGE_COMMITTING,
        MESSAGE_BEGIN,
        MESSAGE_COMMIT,
        MESSAGE_LOAD,
        MESSAGE_EXECUTE_BATCH,
        MESSAGE_TABLES,
        MESSAGE_WATCH,
        MESSAGE_COMMITTED,
        MESSAGE_OBSERVE,
        MESSAGE_OBSERVED,
        MESSAGE_NOTIFIER,
        MESSAGE_CONNECTION_WANTED,
        MESSAGE_CONNECTION,
        MESSAGE_CONNECTION_ASKED,
        MESSAGE_CONNECTION_RETURNED,
        MESSAGE_LEASE_KEPT,
        MESSAGE_LEASE_TAKEN,
        MESSAGE_TRY_COMMIT,
        MESSAGE_COMMIT_REFUSED,
        MESSAGE_ATTACH_WANTED,
        MESSAGE_ATTACH,
} MessageKind;

/* Numbers in a row of a change sequence that the writer of a database may give to its commits before the supervisor has read
 * them. The supervisor numbers the commits of other programs with a larger step (docs/design/watching.md). */
#define CHANGE_STEP UINT64_C(256)

/* How long a worker may keep the lease after LEASE while another one waits for it. */
#define LEASE_TURN_USEC UINT64_C(20000)

/* How long after its start a worker keeps its place if its channels are in constant use and another group needs it. */
#define WORKER_TURN_USEC UINT64_C(1000000)

/* A string that may contain NULs, or is absent (NULL). */
typedef struct Bytes {
        const char *data;
        size_t size;
} Bytes;

/* The purpose of a worker: its own database, and the rights and limits for that and for the databases of its guests
 * (ChannelSetup). Times in usec, sizes in bytes. */
typedef struct Setup {
        const char *path;            /* of the database file; a server has none: "" */
        uint32_t engine;             /* EngineKind. Of SQLite the next five are unused */
        const char *connection;      /* Connection= or Service=: the address of the server; NULL: unused */
        const char *replica_connection; /* ReplicaConnection=; NULL: none */
        const char *password;        /* the first line of PasswordFile=; NULL: none */
        uint32_t connections_max;    /* to the server, of this worker until CONNECTION; at least 1 */
        uint32_t consistency;        /* Consistency, of rqlite */
        bool immutable;              /* Immutable=: the file never changes, so no locks, -wal or -shm are used */
        uint32_t change_slot;        /* of its change sequence; 0: it has none */
        bool observes;               /* the worker has no user: it only looks for commits of other programs (observing.h) */
        uint64_t heap_size_max;      /* SQLite's (heap.h); RLIMIT_AS is 512 MiB more */
        uint64_t temp_size_max;      /* bytes in temporary files, all runs of this worker together */
        uint64_t park_usec;          /* ParkTimeoutSec=, in WAL mode */
        uint64_t park_rollback_usec; /* the same in rollback mode; and how long a run may keep too large a log */
        uint64_t wal_size_max;       /* WalSizeMax=: the log is truncated when it is larger */
        uint64_t busy_usec;          /* how long a run is tried again after SQLITE_BUSY */
        uint64_t drain_usec;         /* how long an ended run waits for its reader before the supervisor takes over */
        uint32_t sql_size_max;       /* SQLITE_LIMIT_SQL_LENGTH, EXPR_DEPTH, COMPOUND_SELECT, VDBE_OP, VARIABLE_NUMBER */
        uint32_t expression_depth_max;
        uint32_t compound_selects_max;
        uint32_t vdbe_ops_max;
        uint32_t variables_max;
        bool security_barrier;       /* SecurityBarrier=: nothing is searched below an exposed view */
        uint32_t n_exposed;          /* Expose=: the objects that clients can see; 0: the whole schema */
        Bytes *exposed;              /* their names, never NULL, without NULs */
        bool sync_full;              /* Synchronous=full; false: normal */
        bool foreign_keys;           /* ForeignKeys= */
        bool writes;                 /* Mode=read-write, and the user of this worker may write. False: the rest is unused */
        bool write_schema;           /* WriteSchema=: CREATE, ALTER, DROP and the like */
        uint64_t database_size_max;  /* DatabaseSizeMax=; UINT64_MAX: none */
        uint32_t n_write_tables;     /* WriteTables=: the tables that may be written; 0: all */
        Bytes *write_tables;         /* their names, never NULL, without NULs */
} Setup;

/* SQLite's last_insert_rowid(), changes() and total_changes() of a client. */
typedef struct ClientCounts {
        int64_t last_rowid, n_changes, n_total;
} ClientCounts;

/* The workers of a user share memory with these, one for each client and database (WORKER_COUNTS_FD). */
typedef struct CountsSlot {
        uint64_t client;             /* a slot is used again for another client, while a run of the last one may still end */
        ClientCounts counts;
} CountsSlot;

#define COUNTS_N_SLOTS UINT32_C(16384)

typedef struct CountsPlace {
        uint32_t slot;               /* 0: none, and the counts begin with 0 */
        uint64_t client;             /* as the slot must have it */
} CountsPlace;

/* EXECUTE_BATCH: the largest list of statements (statement-list.h). Supervisor and worker keep it in memory until it has
 * ended. */
#define STATEMENT_LIST_N_MAX ((uint32_t) 4096)
#define STATEMENT_LIST_SIZE_MAX ((size_t) 4 * 1024 * 1024)

/* ENDED and COMMITTED: the largest list of names of tables. A longer one is left out. */
#define TABLES_SIZE_MAX ((size_t) 8 * 1024)

/* PREPARE, TABLES, RUN, EXECUTE, EXECUTE_BATCH or LOAD. */
typedef struct JobSpec {
        uint64_t number;             /* never used before by this daemon */
        const char *sql;             /* sql_size bytes of any kind; after decoding a NUL follows them */
        size_t sql_size;
        bool names;                  /* TABLES: `sql` is no SQL, but names of tables and views, each with a NUL after it */

        /* RUN, EXECUTE and LOAD; all from counts to lock_wait, and deadline, also of EXECUTE_BATCH */
        CountsPlace counts;          /* of the client and the database */
        uint64_t transaction;        /* the number of the worker's transaction that it belongs to; 0: none */
        uint64_t pin;                /* and not `transaction`: of the worker's pin that it runs on; 0: none. Of PREPARE and
                                      * TABLES, too */
        uint32_t foreign_keys;       /* ForeignKeys: the client's setting; in a transaction, that of BEGIN holds */
        const char *time_zone;       /* the client's (time-zone.h); "" and NULL: the service's own */
        uint64_t lock_wait_usec;     /* as in Begin, for a run outside of transactions */
        bool describe;               /* STARTED must carry columns and parameters */
        uint32_t page_size;
        uint64_t deadline_usec;      /* CLOCK_MONOTONIC */
        uint64_t idle_usec;          /* LOAD without a transaction: it ends after so long without rows while others wait to
                                      * write */
        uint64_t row_size_max;
        uint64_t result_rows_max;
        uint64_t result_size_max;    /* bytes written to the pipe */
        /* The parameters as one row (sqlipc-page.h) of n_positional + 2*n_named values: first the positional ones, then
         * name (TEXT) and value alternately. message_decode() checks it with page_check_row(). */
        uint32_t n_positional, n_named;
        const uint8_t *parameters;
        size_t parameters_size;

        /* EXECUTE_BATCH, which has no SQL and no parameters of its own: a valid list of statements */
        uint32_t n_statements;
        const uint8_t *statements;
        size_t statements_size;

        /* RUN, EXECUTE, EXECUTE_BATCH and LOAD: parameters, statements, and SQL unless it is above, are in a file that comes
         * with the message. When the worker has read it, this is as if they had been in the message */
        bool in_file;
        uint64_t parameters_size_max; /* RowSizeMax=: of each row there */
} JobSpec;

/* A transaction. Its number is from the same series as those of runs. */
typedef struct Begin {
        uint64_t number;
        bool writes;                 /* it has the lease until it ends; false: it reads one snapshot */
        bool deferred;               /* and not `writes`: its first statement that writes makes it write, if nothing was
                                      * committed since it has begun to read */
        uint64_t deadline_usec;      /* CLOCK_MONOTONIC; also for its beginning */
        uint64_t idle_usec;          /* it ends after so long without a statement while others wait to write */
        uint64_t lock_wait_usec;     /* how long it waits for the lock of another transaction, except for its commit;
                                      * UINT64_MAX: only its deadline and BusyTimeoutSec= hold */
        uint32_t foreign_keys;       /* ForeignKeys: the client's setting */
        bool is_pin;                 /* it is no transaction, but a connection of the client's own, on which statements and
                                      * transactions of this client run. CANCEL ends it. The two above and `writes` are
                                      * unused */
        uint64_t transaction;        /* of a pin: the transaction of the worker that goes on there; 0: none */
        uint64_t pin;                /* of a transaction: the pin of the worker on which it is; 0: none */
} Begin;

typedef struct Cancel {
        uint64_t number;
        uint32_t error;              /* ErrorNumber with which the run must end. PIPE_CLOSED: its pipe has no reader any
                                      * more, so a run that has ended drops what it has not written */
        const char *message;         /* its sentence */
} Cancel;

typedef struct Started {
        uint64_t number;
        bool described;
        bool read_only;              /* false: the statement writes */
        uint32_t n_columns;          /* at most SQLIPC_N_COLUMNS_MAX */
        Bytes *columns;              /* 2 x n_columns: name, declared type (data NULL if there is none) */
        uint32_t n_parameters;       /* the largest index, as sqlite3_bind_parameter_count(); at most PARAMETERS_MAX */
        Bytes *parameters;           /* n_parameters names with their prefix; data NULL if a parameter has no name */
} Started;

/* How a job failed. The ERROR frame and the D-Bus error are made of this. */
typedef struct Failure {
        uint32_t error;              /* ErrorNumber; ERROR_NONE: it did not fail */
        int32_t extended_code;       /* SQLite's, 0: none */
        int32_t sql_offset;          /* -1: none */
        const char *message;         /* UTF-8 as far as SQLite's is; never NULL if `error` is set; in a message at most
                                      * SQLIPC_MESSAGE_SIZE_MAX bytes */
} Failure;

typedef struct Ended {
        uint64_t number;
        Failure failure;
        uint64_t n_rows, n_bytes, usec;
        bool drained;
        bool wrote;                  /* it was committed, or is a part of an open transaction; the next two are valid */
        int64_t n_changes;           /* sqlite3_changes64() */
        int64_t last_rowid;          /* sqlite3_last_insert_rowid() */
        uint64_t sequence;           /* of changes, as in END; 0: not known */
        uint32_t foreign_keys;       /* as in END */
        Bytes changes;               /* EXECUTE_BATCH: that of each statement; i64 each, little-endian. Otherwise size 0 */
        Bytes tables;                /* TABLES: names, each with a NUL after it; size 0: any table of the file may matter */
        Bytes names;                 /* TABLES: those of them that clients may see */
} Ended;

/* COMMITTED. Without a commit since the last one its numbers are those of the last one, or 0. */
typedef struct Committed {
        uint64_t sequence;           /* of the last commit, as END has it; 0: none since the lease came */
        bool answers;                /* it is the answer to WATCH */
        bool any;                    /* there were commits since the last COMMITTED */
        bool schema;                 /* the schema may have changed */
        FileState before, after;     /* before the first and after the last of these commits */
        Bytes tables;                /* that were written: names, each with a NUL after it; size 0: any may have been */
} Committed;

/* COMMITTING. */
#define COMMITTING_SIZE_MAX ((size_t) 32 * 1024)
typedef struct Committing {
        Bytes numbers;               /* of its runs and channels: u64 each, little-endian */
} Committing;

typedef struct Drained {
        uint64_t number;
        Bytes unread;                /* the end of the stream that the worker has not written; size 0: none */
} Drained;

/* The most that a worker leaves unwritten: the contents of its page, and the END or ERROR frame after it. */
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

/* A channel, and the limits for its runs. Its number is from the same series as those of runs, and means whichever run is
 * under way on it: CANCEL uses it. */
typedef struct ChannelSetup {
        uint64_t number;
        uint64_t client;             /* the same number for all channels of one connection; 0: unknown */
        uint32_t page_size;
        uint32_t statements_max;
        uint64_t run_timeout_usec, prepare_timeout_usec;
        uint64_t row_size_max, result_rows_max, result_size_max;
        bool reads;                  /* from CHANNEL_RESTED */
        const char *path;            /* of a guest's database (guest-database.h); NULL: it is the one of SETUP */
        bool immutable;              /* of that database */
        uint32_t change_slot;        /* of that database */
        CountsPlace counts;          /* of the client and that database */
        Bytes state;                 /* from CHANNEL_RESTED; size 0: a new channel */
        bool memory;                 /* its memory comes with the socket (channel-memory.h) */
} ChannelSetup;

/* Progress of a channel since the last message about it, and its present state. */
typedef struct ChannelProgress {
        uint64_t number;
        uint64_t n_runs, n_rows, n_bytes; /* runs that ended; what was delivered */
        bool running, parked;             /* a run is under way; its reader does not read */
        bool draining;                    /* the run has ended, and waits until its end is read */
        uint64_t usec;                    /* running: its duration so far; else that of the longest run that ended */
        uint32_t n_statements;            /* open on the channel */
        Bytes sql;                        /* of the run under way: the first bytes of its SQL */
} ChannelProgress;

/* OBSERVED: what the observer of a database has found. */
typedef struct Observed {
        FileState state;             /* UNKNOWN: it cannot be read */
        bool busy;                   /* a writer is at work: look again soon */
        bool polls;                  /* inotify does not tell of changes: look again from time to time */
        uint64_t device, inode;      /* of the file; 0: there is none */
        uint32_t schema;             /* PRAGMA schema_version */
        const char *name;            /* of the file in its folder */
} Observed;

/* The worker must close a channel, and answers CHANNEL_CLOSED. */
typedef struct ChannelClose {
        uint64_t number;
        bool drain;                       /* take no more requests; first end and answer the one under way. Answers that do
                                           * not fit the socket wait for their reader for ParkTimeoutSec= */
} ChannelClose;

/* CHANNEL_RESTED, CHANNEL_CLOSED: the worker has closed its descriptor. */
typedef struct ChannelEnd {
        ChannelProgress progress;         /* since the last CHANNEL_PROGRESS */
        bool waiting;                     /* RESTED: a request waits, and this worker cannot serve it soon */
        bool reads;                       /* RESTED: its requests only read, and should not wait for commits of others */
        Bytes state;                      /* RESTED: for the next worker; opaque to the supervisor, decoded as hostile; at
                                           * most CHANNEL_STATE_SIZE_MAX */
        Bytes unread;                     /* answers that did not fit the socket: the supervisor writes them; size 0: none */
} ChannelEnd;

/* ATTACH_WANTED, ATTACH: a published database that a statement on a pin attaches. */
#define ATTACH_NAME_SIZE_MAX ((size_t) 255)
typedef struct Attach {
        uint64_t number;             /* of the pin */
        const char *name;            /* as the statement has it; not longer than the above */
        const char *path;            /* ATTACH: of its file; NULL: the client may not attach it */
        bool immutable;              /* of that database */
        uint32_t error;              /* ErrorNumber; ERROR_NONE if there is a path */
        const char *message;         /* the sentence of the error; NULL if there is none */
} Attach;

typedef struct Parked {
        uint64_t number;
        bool parked;
} Parked;

/* One message of any kind. Its pointers borrow from the bytes from which it was decoded, or from the caller that encodes
 * it. */
typedef struct Message {
        MessageKind kind;
        union {
                Setup setup;
                JobSpec job;     /* PREPARE, TABLES, RUN, EXECUTE, EXECUTE_BATCH, LOAD */
                Begin begin;
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
                Committing committing;
                Committed committed;
                Observed observed;
                Attach attach;   /* ATTACH_WANTED, ATTACH */
                uint64_t number; /* TAKEN, FILLING, COMMIT, LEASE, WATCH; PING, PONG: of the PING; GIVE_WAY: usec */
        };
} Message;

/* A received message, with the memory that its pointers borrow from. */
typedef struct ReceivedMessage {
        Message message;
        size_t size;             /* of its bytes: the supervisor limits how much it reads at a time */
        int pipe_fd;             /* RUN: write end; LOAD: read end; CHANNEL: socket; NOTIFIER; owned; -1 otherwise */
        int memory_fd;           /* CHANNEL with memory, a job that is in a file; owned; -1 otherwise */
        uint8_t *bytes;          /* owned */
        void *arrays[2];         /* owned: the arrays of Started and Setup; NULL: none */
} ReceivedMessage;

#define RECEIVED_MESSAGE_INIT ((ReceivedMessage) { .pipe_fd = -1, .memory_fd = -1 })

/* True if the message comes with a descriptor. */
static inline bool message_has_fd(MessageKind kind) {
        return kind == MESSAGE_RUN || kind == MESSAGE_LOAD || kind == MESSAGE_CHANNEL || kind == MESSAGE_NOTIFIER;
}

/* True if another one comes with it: the memory of a channel, or the file of a job. */
static inline bool message_has_memory(const Message *m) {
        switch (m->kind) {
        case MESSAGE_CHANNEL:
                return m->channel.memory;
        case MESSAGE_RUN:
        case MESSAGE_EXECUTE:
        case MESSAGE_EXECUTE_BATCH:
        case MESSAGE_LOAD:
                return m->job.in_file;
        default:
                return false;
        }
}

/* True if the parameters are one row with the announced number of values, and the names are TEXT. Requests of a channel are
 * checked with it, too. */
bool job_parameters_are_valid(const JobSpec *j);

/* True if the list has the announced number of statements, at least one, and their parameters are valid. In
 * statement-list.c. */
bool job_statements_are_valid(const JobSpec *j);

/* Total size of the names, types and parameters of a statement, as its description counts them: at most
 * SQLIPC_COLUMNS_SIZE_MAX. */
size_t started_size(const Started *s);

/* Encodes `m` into a new buffer, which the caller frees. -ENOMEM, -E2BIG: more than a memfd of this kind
 * may have. */
int message_encode(const Message *m, uint8_t **ret_bytes, size_t *ret_size);

/* Decodes `bytes`, which `ret` takes over on success. -EBADMSG for anything that message_encode() does not produce,
 * -ENOMEM. */
int message_decode(uint8_t *bytes, size_t size, ReceivedMessage *ret);

/* Sends `m`, with `pipe_fd` (borrowed, -1: none) for RUN, LOAD, CHANNEL and NOTIFIER. -EAGAIN when the socket is full,
 * -EPIPE/-ECONNRESET when the other side is gone, -ENOMEM, -E2BIG, -ETOOMANYREFS. Never raises SIGPIPE. */
int message_send(int fd, const Message *m, int pipe_fd);

/* The same for a message that may have memory (-1: it has none). Both descriptors are borrowed. */
int message_send_with(int fd, const Message *m, int pipe_fd, int memory_fd);

/* Receives one message. 1: `ret` has it, and must be freed with received_message_done(); 0: end of file; -EAGAIN: no
 * message waits; -EBADMSG; -ENOMEM; other -errno. */
int message_receive(int fd, ReceivedMessage *ret);

/* Removes a PREPARE, RUN, EXECUTE, EXECUTE_BATCH, LOAD or BEGIN from the socket without decoding it, and closes its
 * descriptors. This uses no descriptor of ours. 1: its number is in `ret_number`; 0: end of file; -EAGAIN: no message waits;
 * -EBADMSG. */
int message_withdraw_job(int fd, uint64_t *ret_number);

/* Frees what is owned, and closes descriptors that were not taken (set them to -1 to take them). Accepts
 * RECEIVED_MESSAGE_INIT. */
void received_message_done(ReceivedMessage *m);

#endif
