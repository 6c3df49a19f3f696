/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The boundary between jobs and the engine that runs their SQL. An *engine* is one constant struct of
 * functions; the program's main() chooses it. SQLite is the first one (sqlite/sqlite-engine.h). Another engine is another
 * folder: nothing in this one names SQLite's types or functions.
 *
 * The core owns jobs, time, pages and descriptors. The engine owns connections, compiled statements and their rows:
 *
 *      pool --connect---> connection --compile--> statement --bind, step, columns, fill, fill, ...--> no more rows
 *           <-disconnect-     |      <--release--   |  |                          |
 *                             +--hold, let_go       |  +--reset: a lock is        +--measure, value: a row that
 *                                                   |     in the way                 fits into no page
 *                                                   +--describe
 *
 * 1. A job has one connection and one statement at a time. Several jobs can be in the middle of their rows, each on a
 *    connection of its own.
 * 2. fill() is called once for each page, not for each row or value: the engine steps, and encodes rows into the job's page,
 *    until the page must be sent (row-sink.h). Only rows that fit into no page are read value by value.
 * 3. No function blocks for long without calling the EngineProgress that start() was given. If its result is not 0, the
 *    engine interrupts the statement, and step() or fill() fails. The SqlError then has the reason already, and the engine
 *    leaves it there. If a compile cannot call it, the engine sets an alarm instead (compile-limit.h). An engine that waits
 *    for a network waits for its socket and the progress, never for long for the socket alone; or it lets the worker wait,
 *    which has other jobs (ENGINE_AWAITS).
 * 4. A function that can fail because of the SQL or the database returns false, or ENGINE_FAILED, with an SqlError.
 *
 * 5. With setup->writes a statement may write. It compiles on any connection, but is stepped only on the one that begin()
 *    returned, between save() and keep() or undo(). commit() makes the changes of all of them durable:
 *
 *      begin --> save, bind, step, fill, ..., changes, reset, keep --> save, ... --> commit, disconnect
 *
 *    An engine whose server carries out a transaction as one request only notes the statements until then (outcome()).
 */
#ifndef SQLIPC_DAEMON_WORKER_CORE_ENGINE_H
#define SQLIPC_DAEMON_WORKER_CORE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/protocol/protocol.h"
#include "daemon/worker/core/sql-error.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

/* Each engine has its own idea of these. */
typedef struct EnginePool EnginePool;             /* all connections of the worker to one database, with one set of rights */
typedef struct EngineConnection EngineConnection;
typedef struct EngineStatement EngineStatement;

typedef struct RowSink RowSink;     /* row-sink.h */
typedef struct RowSource RowSource; /* row-source.h */

/* Called again and again while the engine computes. Non-zero: interrupt. */
typedef int (*EngineProgress)(void *userdata);

/* Called before a statement that commits by itself does that. False: it must not, and the job has the error. */
typedef bool (*EngineCommitting)(void *userdata);

/* Remembers the place of a compiled statement, so that a statement that runs again and again is found without comparing
 * its SQL. Only the engine reads that. The core remembers if the statement writes; compile() may clear it. */
typedef struct EngineHint {
        uint64_t id;          /* 0: not known */
        unsigned slot;
        bool writes;
} EngineHint;

/* The strings of a statement: name and declared type of each column in turn (an expression has no type), then the name of
 * each parameter (some have none). A string that is absent has no data. */
typedef struct EngineDescription {
        unsigned n_columns, n_parameters;
        Bytes *strings;       /* owned, one allocation; the text is the statement's, and valid until its next step */
} EngineDescription;

/* Names of tables, each once. */
typedef struct EngineTables {
        char **names;         /* owned, and so is each name */
        size_t n;
} EngineTables;

/* The tables whose changes matter to a client. */
typedef struct EngineWatched {
        EngineTables tables;  /* of the file; none: any change may matter */
        EngineTables names;   /* the client may see these */
} EngineWatched;

/* The tables that the statements of a transaction may have changed. */
typedef struct EngineWritten {
        EngineTables tables;
        bool any;             /* any table, not only these */
        bool schema;          /* tables, views and the like */
} EngineWritten;

/* The connections of a pool to its server. The worker changes n_max, and forgets that one was lacking. */
typedef struct EngineConnections {
        unsigned n;           /* that are open, or being opened; never more than n_max */
        unsigned n_max;       /* at first setup->connections_max */
        bool lacks;           /* connect() or begin() failed with ERROR_BUSY because all n_max of them are in use */
} EngineConnections;

typedef enum EngineResult {
        ENGINE_FAILED,        /* with an error */
        ENGINE_BUSY,          /* step() only: another program is in the way for a moment. With an error, for give_up() */
        ENGINE_AWAITS,        /* with sink->may_await only: the server has not answered. Call the same function again when
                               * awaited_fd() is readable */
        ENGINE_ROW,           /* there is a row */
        ENGINE_DONE,          /* there are no more rows */
        ENGINE_PAGE_FULL,     /* fill() only: the page must be sent */
        ENGINE_NO_ROOM,       /* the same, but the row that waits does not fit beside the others */
        ENGINE_ROW_TOO_LARGE, /* the row that waits, of sink->row_size bytes, is over the limit */
        ENGINE_TOO_MANY_ROWS, /* a row waits, and the result has as many as are allowed */
} EngineResult;

/* How a transaction of a pin begins. */
typedef enum PinBegin {
        PIN_BEGIN_TEMP,       /* it changes only TEMP tables, as yet */
        PIN_BEGIN_WRITE,      /* as begin() */
        PIN_BEGIN_UPGRADE,    /* it has begun with PIN_BEGIN_TEMP or snapshot(), and is as one of begin() from now on */
} PinBegin;

typedef struct Engine {
        /* ---- the process ---- */

        /* Sets up the process by the limits of `setup`. Called once, before anything else, outside the sandbox. -errno. */
        int (*init)(const Setup *setup);

        /* ---- the pool ---- */

        /* Creates a pool without connections. `setup` is borrowed until stop(). -ENOMEM. */
        int (*start)(const Setup *setup, EngineProgress progress, void *userdata, EnginePool **ret);

        /* Closes all connections, none of which may be in use. NULL is allowed. */
        void (*stop)(EnginePool *pool);

        /* Closes connections that have been idle for long, and goes on with those whose statement is being cancelled.
         * Called after each turn of the worker. Returns when to call it again if there is no turn (CLOCK_MONOTONIC),
         * UINT64_MAX: only after the next disconnect(). */
        uint64_t (*expire)(EnginePool *pool, uint64_t now_usec);

        /* Tells a statement that is run soon: the next one to be bound, or the next after those that were told before it.
         * An engine that asks a server can send all of them at once. It must compare each with the one that is bound then,
         * because another statement may come instead. `spec` is borrowed until the return. False: it is no use to tell those
         * after it. NULL: the engine need not know. */
        bool (*foresee)(EnginePool *pool, const JobSpec *spec, const EngineHint *hint);

        /* NULL: the database is a file. Returns the connections of the pool, which are valid until stop(). */
        EngineConnections *(*connections)(EnginePool *pool);

        /* Closes a connection that is not in use; n decreases. False: there is none. It may be called inside a step. NULL:
         * as before. */
        bool (*close_idle)(EnginePool *pool);

        /* ---- a connection ---- */

        /* Provides a connection for one job: preferably one that has `sql` compiled. With a `hint` (NULL: none) the job may
         * be one of very many, so the engine may check less often if the database is still the same. ERROR_BUSY: worth
         * another try in a moment. */
        bool (*connect)(EnginePool *pool, const char *sql, size_t sql_size, const EngineHint *hint, EngineConnection **ret,
                        SqlError *error);

        /* Takes a connection back, ends its transaction, and keeps it for the next job or closes it. Its statement must be
         * released. */
        void (*disconnect)(EnginePool *pool, EngineConnection *connection);

        /* Keeps one read transaction from hold() to let_go() or disconnect(), for all statements in between. If none can
         * begin now, each statement has its own. A statement that has been stepped keeps the transaction after let_go(). */
        void (*hold)(EngineConnection *connection);
        void (*let_go)(EngineConnection *connection);

        /* Begins one read transaction for all statements until disconnect(), whatever is compiled meanwhile.
         * is_in_transaction() tells if it still is there. ERROR_BUSY: worth another try in a moment. */
        bool (*snapshot)(EngineConnection *connection, SqlError *error);

        /* True if no program has committed since snapshot(). It stays so until the disconnect() of a transaction from
         * begin() that is under way. False: ERROR_BUSY with SQLITE_BUSY_SNAPSHOT, also if that is not known. NULL: the
         * engine does not know it, so a transaction that may write must do so from its beginning. */
        bool (*is_current)(EngineConnection *connection, SqlError *error);

        /* True if this connection now keeps writers of other programs out; or if it reads a snapshot, and the log of all
         * changes since then is kept for it (NULL: this engine has none). writer_waits() also finds out if one of the
         * writers waits, or if the log has grown too large, which costs more. */
        bool (*keeps_writers_out)(const EngineConnection *connection);
        bool (*keeps_log)(const EngineConnection *connection);
        bool (*writer_waits)(const EngineConnection *connection);

        /* Frees memory that is easily filled again: the connection waits for a slow reader. */
        void (*trim)(EngineConnection *connection);

        /* The setting of the client whose statements are compiled next. In its transaction it cannot change. `keeps`: the
         * client keeps a new one, and sends it with its later requests. NULL: this engine has no settings of clients. */
        void (*set_client)(EngineConnection *connection, ForeignKeys foreign_keys, bool keeps, bool in_transaction);

        /* Sets the time zone of the client whose statements are stepped next (time-zone.h); NULL: the service's own. False:
         * memory or descriptors are short. Called often, mostly with the same zone. NULL: the engine computes no local time
         * in this process. */
        bool (*set_time_zone)(const char *zone);

        /* ---- a statement ---- */

        /* Compiles `sql`, which must have a NUL after its sql_size bytes, or finds it compiled. `hint` (NULL: none) is
         * updated. With `describe` the columns are those of the database as it is now. Accepts exactly one statement, which
         * must only read unless setup->writes: EmptyStatement, SeveralStatements, ReadOnly, NotAllowed, and the engine's own
         * errors. ERROR_BUSY: worth another try in a moment. */
        bool (*compile)(EngineConnection *connection, const char *sql, size_t sql_size, bool describe, EngineHint *hint,
                        EngineStatement **ret, SqlError *error);

        /* Resets the statement and takes it back, which the engine may keep compiled. */
        void (*release)(EngineStatement *statement);

        /* The caller frees ret->strings. OutOfMemory. */
        bool (*describe)(EngineStatement *statement, EngineDescription *ret, SqlError *error);

        /* Names the tables that the statement reads and writes: a result may change if one of those that it
         * reads does. A view is named beside the tables below it. This costs as much as a compile. The caller calls
         * engine_tables_done() for both. OutOfMemory. */
        bool (*tables)(EngineStatement *statement, EngineTables *ret_read, EngineTables *ret_written, SqlError *error);

        /* Finds the tables whose changes may change the result of a statement, or the rows of tables and views; `sql` is as
         * in JobSpec. The caller calls engine_tables_done() for each list. The errors of compile(). */
        bool (*watched)(EngineConnection *connection, const char *sql, size_t sql_size, bool names, EngineWatched *ret,
                        SqlError *error);

        /* Provides the payload of the COLUMNS frame of a statement that was stepped (statement-frames.h makes one), borrowed
         * until release(). LimitsExceeded, OutOfMemory. */
        bool (*columns)(EngineStatement *statement, uint32_t page_size, const uint8_t **ret_payload, size_t *ret_size,
                        SqlError *error);

        /* Binds all parameters of `spec`, which must live until release(). Each parameter must get exactly one value;
         * otherwise the error is ParameterCount or UnknownParameter. */
        bool (*bind)(EngineStatement *statement, const JobSpec *spec, SqlError *error);

        /* Makes the first step. Sets sink->n_columns and sink->row_waits. ENGINE_ROW, DONE, BUSY, AWAITS or FAILED. */
        EngineResult (*step)(EngineStatement *statement, RowSink *sink, SqlError *error);

        /* Encodes the row that waits, then steps and encodes more. Any result except BUSY and ROW. */
        EngineResult (*fill)(EngineStatement *statement, RowSink *sink, SqlError *error);

        /* The socket on which the answer will come after ENGINE_AWAITS. NULL: the engine awaits nothing. */
        int (*awaited_fd)(const EngineConnection *connection);

        /* Tells the type of value `i` of the row that waits, and its size in a row, without reading more of it than needed.
         * OutOfMemory. */
        bool (*measure)(EngineStatement *statement, unsigned i, ValueType *ret_type, uint64_t *ret_size, SqlError *error);

        /* Returns the bytes of value `i`, which must have some, as a row has them: TEXT with a NUL after it, and numbers
         * in `number`. Valid until the next step or reset. NULL: an error, OutOfMemory. */
        const uint8_t *(*value)(EngineStatement *statement, unsigned i, uint8_t number[static 8], SqlError *error);

        /* ---- writing, with setup->writes only ---- */

        /* True if the statement writes, so that it needs a transaction from begin(). */
        bool (*writes)(const EngineStatement *statement);

        /* True if the statement has nothing to do now, and may have at another time: DROP ... IF EXISTS without the object,
         * for example. It has no rows and needs no right. NULL: the engine has no such statements. */
        bool (*does_nothing)(const EngineStatement *statement);

        /* Takes the pool's connection that writes, of which there is one, and begins a transaction on it that no other
         * writer can be beside. Between begin() and disconnect() there is no second begin(). `enforces`: foreign keys hold
         * in it; a server decides that by itself. ERROR_BUSY: another program writes, or writers pause for readers, which
         * has no code; worth another try in a moment, for less than setup->busy_usec in the latter case. Other errors are
         * those of connect(). */
        bool (*begin)(EnginePool *pool, bool enforces, EngineConnection **ret, SqlError *error);

        /* True if begin() met the lock of another program, and since the time before another program has committed: the lock
         * is free again and again, each time for a moment. NULL: no other program can have the lock. */
        bool (*others_commit)(const EnginePool *pool);

        /* Makes everything that was kept durable. ERROR_BUSY while is_in_transaction() holds: readers of another program are
         * in the way; the transaction goes on, and commit() may be called again. CommitRefused: nothing was written,
         * because rows break a rule until the client repairs them; the transaction goes on, too. OutcomeUnknown: the changes
         * may exist, because a server was lost before it answered, or the commit failed when they existed already. The
         * transaction has ended, and none of its statements may run again. Any other error: it was rolled back. */
        bool (*commit)(EngineConnection *connection, SqlError *error);

        /* Takes back everything since begin(). */
        void (*rollback)(EngineConnection *connection);

        /* From now to disconnect() all statements are those of one client, so it may use savepoints of its own. NULL: the
         * engine has no transactions of clients that write. */
        void (*allow_savepoints)(EngineConnection *connection);

        /* True if the statement makes, releases or goes back to a savepoint of the client. It must not be stepped between
         * save() and keep(), which would release that savepoint, too. */
        bool (*is_savepoint)(const EngineStatement *statement);

        /* True if the statement can be in no transaction, and commits by itself: VACUUM. In a transaction compile() fails.
         * NULL: none is such. */
        bool (*runs_alone)(const EngineStatement *statement);

        /* Ends the transaction of begin(), in which nothing was done yet, for one such statement, which is compiled and
         * stepped then, without save(). `committing` is called once, at the last moment before its changes exist. When
         * step() is DONE, they exist, and commit() must follow; BUSY: as begin(); with any other result there are none. */
        bool (*leave_transaction)(EngineConnection *connection, EngineCommitting committing, void *userdata,
                                  SqlError *error);

        /* False: a statement's failure has rolled back the transaction, with all that was kept. */
        bool (*is_in_transaction)(const EngineConnection *connection);

        /* Begins a savepoint; keeps what was done since then; or takes it back. Statements must be reset. */
        bool (*save)(EngineConnection *connection, SqlError *error);
        bool (*keep)(EngineConnection *connection, SqlError *error);
        void (*undo)(EngineConnection *connection);

        /* True if a statement since begin() may have left something in the session, as a setting, that no other client's
         * statement may meet. The engine removes it after the commit. NULL: never. */
        bool (*must_commit)(const EngineConnection *connection);

        /* True if the statement, which has failed, may have kept the rows that it had changed before: INSERT OR FAIL,
         * raise(FAIL). NULL: none does. */
        bool (*keeps_rows)(EngineStatement *statement, const SqlError *error);

        /* Tells what the statement that was stepped last has changed: sqlite3_changes64(), sqlite3_last_insert_rowid(). A
         * statement that cannot change rows (CREATE, PRAGMA) has changed 0. */
        void (*changes)(EngineStatement *statement, int64_t *ret_n_changes, int64_t *ret_last_rowid);

        /* From enter() to leave() the statements of the connection are those of one client, whose last_insert_rowid(),
         * changes() and total_changes() have these values, and then those that leave() returns. A statement that only reads
         * leaves them as they are, and needs no leave(). NULL: the engine does not keep them. */
        void (*enter)(EngineConnection *connection, const ClientCounts *counts);
        void (*leave)(EngineConnection *connection, ClientCounts *ret);

        /* NULL, except for an engine that carries out statements when they are committed. There a step() only notes the
         * statement, which has no row and no changes yet. After commit() this function returns the statements that were
         * kept, one after the other, in their order: the caller fills each that has columns, asks for its
         * changes(), and releases it. An error that commit() has for one of several statements of a job names it. */
        EngineStatement *(*outcome)(EngineConnection *connection);

        /* Adds the tables that the statement, which was stepped, may have changed, by triggers and foreign keys, too. */
        void (*written)(EngineStatement *statement, EngineWritten *written);

        /* Reads the state of the file, between begin() and disconnect(). It stays UNKNOWN if it cannot be read, and after
         * commit() if another program has committed since the first call. */
        void (*state)(EngineConnection *connection, FileState *ret);
        bool state_is_remote; /* a server is asked for it, so it is read only while clients watch */

        /* Checks that the statement can be run for the rows of a load: it is an INSERT, UPDATE or DELETE without RETURNING,
         * and has parameters. NotAllowed, ParameterCount. */
        bool (*takes_rows)(EngineStatement *statement, SqlError *error);

        /* Runs the statement once for each row of `source`, from the one that waits, until the source has no more or its
         * time is over. The values of a row are the parameters, of which there must be as many. An error may be that of any
         * row: source->n_rows have succeeded. */
        bool (*load)(EngineStatement *statement, RowSource *source, SqlError *error);

        /* Adds the engine's counts since the last call, and sets what the statement has set for its client. */
        void (*counters)(EngineStatement *statement, EndCounters *counters);

        /* Takes the statement back to before its first step; it keeps no lock. Its parameters stay bound. */
        void (*reset)(EngineStatement *statement);

        /* ---- pins ---- */

        /* Opens a connection for one client alone, with TEMP tables of its own; or, if *connection is one of begin(), takes
         * that out of the pool with its transaction. disconnect() ends its transaction, and unpin() closes it. The errors of
         * connect(). NULL: the engine has no pins. */
        bool (*pin)(EnginePool *pool, EngineConnection **connection, SqlError *error);
        void (*unpin)(EngineConnection *connection);

        /* PinLost: it reads a file that was replaced, or must be closed; other errors: the file cannot be looked at now.
         * It must not be in a transaction. */
        bool (*check_pin)(EnginePool *pool, EngineConnection *connection, SqlError *error);

        /* Begins a transaction on a pin that is allowed savepoints. `only_temp`: only TEMP tables may be changed in
         * it. ERROR_BUSY as of begin(); after UPGRADE, is_current() tells if it can ever succeed. */
        bool (*begin_pin)(EngineConnection *connection, PinBegin how, bool enforces, bool only_temp, SqlError *error);

        /* Commits a transaction that has changed only TEMP tables; commit() does that with others. COMMIT_REFUSED: it
         * is open. On other failures it is rolled back. */
        bool (*commit_temp)(EngineConnection *connection, SqlError *error);

        /* True if the statement, which writes, changes only TEMP tables. */
        bool (*only_temp)(const EngineStatement *statement);

        /* True if the statement attaches a database to its pin, or detaches one. It neither reads nor writes, and has no
         * rows. */
        bool (*attaches)(const EngineStatement *statement);

        /* The name of the database that such a statement wants, whose step() was BUSY for that, borrowed until the next
         * step; NULL: it wants none. answer() tells its file; then the statement may be stepped again. */
        const char *(*wants)(const EngineConnection *connection);
        void (*answer)(EngineConnection *connection, const Attach *answer);

        /* ---- observers ---- */

        /* Describes the state of the file now, and has inotify (`notifier_fd`, -1: there is none) tell of changes.
         * Nothing else is done with the pool of an observer. `ret->name` is borrowed until the next call. A server's engine
         * does not use `notifier_fd`. */
        void (*observe)(EnginePool *pool, int notifier_fd, Observed *ret);

        /* NULL: inotify tells of changes. Otherwise the descriptor that is readable when a server may have told of one, -1:
         * there is none now; borrowed until the next call. heard() reads it: true if there was a change. */
        int (*listening_fd)(EnginePool *pool);
        bool (*heard)(EnginePool *pool);

        /* ---- errors ---- */

        /* Turns the error of connect(), compile() or step() that was worth another try into the one for a client, after all
         * tries have failed. */
        void (*give_up)(SqlError *error);
} Engine;

/* Adds a name unless it is there already. -ENOMEM. */
int engine_tables_add(EngineTables *tables, const char *name);

/* Frees the names. */
void engine_tables_done(EngineTables *tables);

/* Forgets everything. */
void engine_written_done(EngineWritten *written);

/* The pause after begin() failed with ERROR_BUSY, in microseconds; `last`: the one before it, 0 at first. */
uint64_t engine_begin_pause(const Engine *engine, const EnginePool *pool, uint64_t last);

/* True if foreign keys hold for a client with this setting. */
bool engine_enforces(const Setup *setup, ForeignKeys foreign_keys);

/* True if foreign keys may be enforced, or not, for a client of this worker. The reason if not is the sentence. */
#define ENGINE_NO_FOREIGN_KEYS                                                                                       \
        "ForeignKeys= of this database has the other value, and WriteSchema= does not let you change the schema"
bool engine_may_enforce(const Setup *setup, bool on);

/* Checks that a client with this setting may write: NotAllowed. */
bool engine_check_foreign_keys(const Engine *engine, const Setup *setup, ForeignKeys foreign_keys, SqlError *error);

/* True if the error says that another program has a lock: not for a pause of the engine, nor for a journal that was rolled
 * back meanwhile, which have no code, nor for a server whose connections are all in use. */
bool engine_met_lock(const Engine *engine, const SqlError *error);

/* Sets the error of a job or transaction that has waited for a lock for as long as its client wants: Busy, with the engine's
 * code for a lock. */
#define ENGINE_LOCKED "another transaction keeps the database locked: try again later"
void engine_set_locked(const Engine *engine, SqlError *error, const char *message);

/* Checks that SQL of this size may be compiled: LimitsExceeded. */
bool engine_check_sql_size(const Setup *setup, size_t sql_size, SqlError *error);

#endif
