/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. One connection to a database: opened by the file rules (I12), limited, guarded.
 *
 * Only SQLite opens the file: a second open() and close() in this process would drop SQLite's POSIX locks (F_SETLK works per
 * process and inode), and a foreign write could then land under an open cursor. Facts that are needed before it is opened
 * come from fstat() of an O_PATH descriptor (path.h), and SQLite opens that file and no other (file-names.h).
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_CONNECTION_H
#define SQLIPC_DAEMON_WORKER_SQLITE_SQLITE_CONNECTION_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/worker/core/engine.h"
#include "daemon/worker/exposed/exposed.h"
#include "daemon/worker/sqlite/access.h"
#include "daemon/worker/sqlite/attached.h"
#include "daemon/worker/sqlite/dumped-table.h"
#include "daemon/worker/sqlite/file-names.h"
#include "daemon/worker/sqlite/reader-lock.h"
#include "daemon/worker/sqlite/sqlite-counts.h"

typedef struct sqlite3_stmt sqlite3_stmt;

/* Identifies the file that a connection reads. A file that is put in its place is a different one. */
typedef struct FileIdentity {
        dev_t device;
        ino_t inode;
} FileIdentity;

static inline bool file_identity_equal(const FileIdentity *a, const FileIdentity *b) {
        return a->device == b->device && a->inode == b->inode;
}

/* The worker's own statements for transactions (sqlite-write.h). */
typedef enum WriteCommand {
        WRITE_SNAPSHOT,
        WRITE_BEGIN,
        WRITE_COMMIT,
        WRITE_ROLLBACK,
        WRITE_SAVE,
        WRITE_SAVE_AGAIN,
        WRITE_KEEP,
        WRITE_UNDO,
        WRITE_COMMAND_N,
} WriteCommand;

typedef struct SqliteConnection {
        const Setup *setup;  /* borrowed */
        EngineProgress progress;
        void *userdata;      /* of `progress` */
        bool writes;         /* it was opened to write */
        bool is_pin;         /* it belongs to one client (pool.h) */
        bool begun;          /* of a pin: it should be in a transaction */
        bool outpaced;       /* of a pin: it could not begin to write, because its transaction has read an old state */
        sqlite3 *db;         /* on which clients' SQL is compiled: `file`, or the connection in memory (exposed.h) */
        sqlite3 *file;       /* the connection to the file */
        bool opened;         /* SQLite opened the database file itself; files beside it may have failed */
        Exposed *exposed;    /* NULL: clients see all that the file has */
        sqlite3_stmt *probe; /* reads the schema's first row, and so notices a changed schema */
        sqlite3_stmt *commands[WRITE_COMMAND_N]; /* NULL: not compiled yet */
        bool doubtful;       /* impossible data was read, and some of it may be in SQLite's cache */
        bool is_alone;       /* it writes, and is outside of a transaction for one statement (sqlite_write_leave()) */
        EngineCommitting committing; /* of that statement */
        void *committing_userdata;   /* borrowed */
        int late_rc;         /* that statement has failed with this result when its changes may exist; 0: it has not */
        bool is_stuck;       /* ROLLBACK failed: the transaction is over when the connection is closed */
        bool held;           /* the probe is at its row, and so keeps the read transaction */
        FileState snapshot;  /* the state of the file that its transaction reads, if sqlite_write_snapshot() has begun it */
        bool unseen;         /* a lock kept the last look from seeing the schema */
        unsigned n_schemas;  /* so often a look has found that the schema was read again */
        int probe_rc;        /* the result of the last look, an SQLite result code */
        uint64_t log_size_borne; /* the log may be so large: readers stayed too long for the pause; 0: WalSizeMax= */
        uint64_t log_until_usec; /* the end of the pause for readers of the log; 0: none is under way */
        FilePlace place;     /* where SQLite finds the file and those beside it */
        const ReaderLock *lock; /* of the file */
        FileIdentity identity;
        DumpedTable *dumped; /* owned: those of the transaction (dumped-table.h) */
        SqliteCounts counts; /* last_insert_rowid() and the like of the client whose statements it runs */
        Access access;       /* for clients' SQL */
        Access file_access;  /* for the worker's own SQL, if clients' SQL does not reach the file */
        AttachedSet attached; /* of a pin */
        const FilePlace *about; /* borrowed: the attached file that an error is about; NULL: it is about `place` */
} SqliteConnection;

/* Identifies the file at setup->path now. This is cheap and follows links, so it can only tell that a connection no longer
 * reads the published file. path_resolve() finds the file that is opened. False: FileMissing, CannotOpen. */
bool sqlite_connection_identify(const Setup *setup, FileIdentity *ret, SqlError *error);

/* Opens the database and reads the schema once, so that problems with its files are found and named here: NeedsOwner,
 * NeedsRecovery, Corrupt, CannotOpen, FileMissing, Busy. From then on `progress` is called every 1,000 opcodes. `setup` must
 * outlive the connection. */
bool sqlite_connection_open(SqliteConnection *c, const Setup *setup, EngineProgress progress, void *userdata,
                            SqlError *error);

/* The same for the connection that writes; ReadOnly, if the service may not write the file. A hot journal is rolled back. */
bool sqlite_connection_open_to_write(SqliteConnection *c, const Setup *setup, EngineProgress progress, void *userdata,
                                     SqlError *error);

/* If `error` is that a writer died and left a hot journal, and this worker may write, opens the database once to write,
 * which rolls the journal back. True: it did, so another try succeeds. False: `error` is as it was, or Busy. */
bool sqlite_connection_recover(const Setup *setup, SqlError *error);

/* Opens the file by the same rules, and reads nothing: no lock is taken. sqlite_connection_complete() does the rest, for a
 * database in WAL mode. */
bool sqlite_connection_open_unread(SqliteConnection *c, const Setup *setup, SqlError *error);
bool sqlite_connection_complete(SqliteConnection *c, SqlError *error);

/* Switches the calls of `progress` on or off. They are on after the connection was opened. */
void sqlite_connection_set_progress(SqliteConnection *c, bool on);

/* Closes the connection; accepts one that failed to open. Its statements must be finalized. */
void sqlite_connection_close(SqliteConnection *c);

/* Called before and after all that is done for one job. If Expose= restricts the database, one transaction spans the job.
 * In it the schema is the one that this connection was opened with; otherwise the result is SQLITE_CONNECTION_STALE, and the
 * connection is of no more use. */
typedef enum SqliteBegin {
        SQLITE_CONNECTION_BEGUN,
        SQLITE_CONNECTION_STALE,
        SQLITE_CONNECTION_FAILED, /* with an error, for example Busy */
} SqliteBegin;
SqliteBegin sqlite_connection_begin(SqliteConnection *c, SqlError *error);
void sqlite_connection_end(SqliteConnection *c);

/* Keeps one read transaction from hold() to let_go() or end(), for the statements in between. If none can begin now, each
 * statement has its own. A statement that has been stepped keeps the transaction after let_go(). */
void sqlite_connection_hold(SqliteConnection *c);
void sqlite_connection_let_go(SqliteConnection *c);

/* True for a pin in a transaction that has not read the file yet, and may never do so: no look at the schema must fix what
 * it will read. SQLite itself looks at the schema again before it refuses a statement by an old one. */
bool sqlite_connection_is_untouched(const SqliteConnection *c);

/* Has SQLite read the schema again if another program has changed it, and counts that in n_schemas, as hold() does. SQLite
 * notices such a change when it steps a statement, but compiles and describes by the schema that it knows. */
void sqlite_connection_look(SqliteConnection *c);

/* False if the connection writes, and its transaction was rolled back because a statement or a look at the schema failed.
 * `error` is that failure. A statement that is stepped then would be committed by itself. */
bool sqlite_connection_may_step(SqliteConnection *c, SqlError *error);

/* Reads the state of the file (database-state.h). */
void sqlite_connection_state(const SqliteConnection *c, FileState *ret);

/* True if this connection now holds a lock that keeps writers out: it reads, and the database is in rollback mode. */
bool sqlite_connection_keeps_writers_out(const SqliteConnection *c);

/* True if this connection does not write, and reads a snapshot of a log now. */
bool sqlite_connection_keeps_log(const SqliteConnection *c);

/* True if a writer waits for that lock, which takes a system call; or if that snapshot keeps more than WalSizeMax= of the
 * log from being written back. */
bool sqlite_connection_writer_waits(const SqliteConnection *c);

/* Turns SQLite's failure `rc` on this database into an error, with the worker's knowledge beyond the code: what the
 * authorizer refused, why a file could not be opened, if temporary space ran out. For `offset_base` see
 * sqlite_error_take(). Always returns false. */
bool sqlite_connection_fail(SqliteConnection *c, int rc, size_t offset_base, SqlError *error);

#endif
