/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Restricts what SQL may do: SQLite's authorizer, and limits. It keeps the statements of a user who may not
 * write from doing anything except reading. It does not separate tables from each other for readers (see I11 in
 * docs/ARCHITECTURE.md). For writers it does: a statement writes to one table, which SQLite names. Triggers, foreign
 * keys and views then write with the rights of the database.
 *
 * The authorizer must know whose SQL it is asked about, and SQLite compiles at three times:
 *
 *   - when it is told to: a client's SQL in sqlite_compile() (Access.of_client), or the worker's;
 *   - in sqlite3_step(), a statement again, if a schema was loaded since its last compile. It is still the SQL of the
 *     client, or of the worker;
 *   - in sqlite3_step() and sqlite3_reset(), while a statement runs: a module of SQLite compiles its own SQL, as FTS and
 *     R-Tree do for their tables, and VACUUM for its copy of the database. It may do what the worker's SQL may do. A client
 *     can put no SQL of its own there: the names in it are quoted, and in PRAGMA functions, as "SELECT * FROM
 *     pragma_optimize", the rules for PRAGMAs hold.
 */
#ifndef SQLIPC_DAEMON_WORKER_SQLITE_ACCESS_H
#define SQLIPC_DAEMON_WORKER_SQLITE_ACCESS_H

#include <stdbool.h>

#include "daemon/worker/core/engine.h"

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

/* A virtual table of the connection (sqlite-counts.h), which clients may not name. */
#define ACCESS_COUNTS_TABLE "sqlipc-service-counts"

/* The tables that the authorizer was asked about. */
typedef struct AccessTables {
        EngineTables read, written;
        bool failed;             /* there was no memory for a name */
} AccessTables;

/* A PRAGMA that SQLite compiles to nothing, because something else is done in its place (pragma.h). */
typedef struct AccessPragma {
        bool replaced;
        bool argument;           /* it has one */
        char answer[128];        /* SQL that is run in its place; empty: nothing is */
        ForeignKeys foreign_keys; /* what it sets for its client */
} AccessPragma;

/* A virtual table that a statement creates. */
typedef struct AccessCreated {
        const char *name;        /* borrowed: whose module is asked for; NULL: none */
        char module[64];         /* of the table of that name; cut off if it is longer; empty: no such table is created */
} AccessCreated;

/* The authorizer's state since access_forget(): SQLite's requests, and the last refusal, for the error's sentence. */
typedef struct Access {
        bool asked;              /* SQLite asked for at least one permission */
        bool reads_journal_mode; /* the only request was for "PRAGMA journal_mode" without a value */
        bool changes;            /* SQLite asked to change rows, the schema or a setting */
        bool changes_schema;     /* SQLite asked for CREATE, ALTER, DROP and the like */
        bool changes_system;     /* SQLite asked to change rows of a table of its own, sqlite_schema or sqlite_sequence */
        bool has_target;         /* SQLite asked to change rows of a table */
        char target[128];        /* the name of the first such table, which may be empty, and is cut off if it is longer */
        bool target_is_listed;   /* setup->write_tables has it, or is empty */
        bool of_client;          /* a client's SQL is compiled; set by the caller */
        sqlite3_stmt *running;   /* borrowed: the client's statement in access_step() or access_reset(); NULL: none */
        bool is_shadow;          /* statements are only compiled here: a server runs them as they are, so none is replaced or
                                  * left out; set by the caller */
        bool no_modules;         /* no virtual table of this connection compiles SQL; set by the caller */
        bool savepoints;         /* SAVEPOINT, RELEASE, ROLLBACK TO and deferred foreign keys are allowed; set by caller */
        bool asks_savepoint;     /* SQLite asked for one of them */
        bool keeps_names;        /* ALTER TABLE is refused: tables are checked by their names later; set by the caller */
        bool asks_changes;       /* SQLite asked to call changes() */
        ForeignKeys foreign_keys; /* the client's; set by caller, as the next two */
        bool keeps_settings;     /* the client keeps a setting, and sends it along */
        bool in_transaction;     /* the client is in one, where SQLite ignores PRAGMA foreign_keys */
        bool is_pin;             /* the connection belongs to one client, which may have TEMP tables; set by caller, as the
                                  * next */
        bool only_temp;          /* of the pin: only TEMP tables may be changed now */
        bool needs_pin;          /* the refused statement is possible on a pin */
        bool changes_temp;       /* SQLite asked to change something in the schema "temp" */
        bool changes_temp_schema; /* the same, and not only rows */
        bool creates_trigger;    /* SQLite asked to do that in another schema, perhaps for one of "temp" */
        bool changes_main;       /* SQLite asked to change something else than that */
        bool attaches;           /* SQLite asked for ATTACH or DETACH */
        bool may_attach;         /* VACUUM is about to run: SQLite may attach its temporary database, once; set by caller */
        AccessPragma pragma;
        AccessCreated created;   /* set by the caller */
        sqlite3 *db;             /* borrowed */
        const Setup *setup;      /* borrowed */
        const Setup *rights;     /* borrowed: what a user who may write may do; NULL: the user may only read */
        AccessTables *tables;    /* borrowed: the authorizer adds to it; NULL: nothing asks for them */
        char refused[256];       /* empty: nothing was refused */
        const char *reason;      /* why it was */
} Access;

/* Installs authorizer, limits and safe settings on a new connection. `access` must outlive it. Returns an SQLite result
 * code. */
int access_install(sqlite3 *db, const Setup *setup, Access *access);

/* Has the authorizer not be asked from now on, or again. */
void access_pause(sqlite3 *db, Access *access, bool pause);

/* Must be called before a client's statement is compiled. */
void access_forget(Access *access);

/* Steps or resets a client's statement. Each statement of a client must be stepped and reset by these. They return an SQLite
 * result code. */
int access_step(Access *access, sqlite3_stmt *stmt);
int access_reset(Access *access, sqlite3_stmt *stmt);

/* True if the statement changes something in the schema "temp", and nothing else. The same holds as for the next. */
bool access_only_changes_temp(const Access *access);

/* True if the statement writes nothing. It must be the only statement that was compiled since access_forget(). SQLite
 * counts every "PRAGMA journal_mode" as writing, although without a value it only reads. */
bool access_only_reads(const Access *access, sqlite3_stmt *stmt);

/* True if a statement that writes must be compiled again, after access_forget(), for access_may_change(): when a virtual
 * table connects in the middle of a compile, it changes tables, too, even that of the schema. */
bool access_is_unsure(const Access *access);

/* True if the schema may be changed, or the target of a statement that writes may be written; otherwise access->refused is
 * set. For all else that a statement may not do, its compile has failed. */
bool access_may_change(Access *access);

/* access_narrow() sets the limits of `setup` while a client's statement is compiled; access_widen() restores SQLite's own.
 * SQLite applies the limits to everything that it parses, so with small limits in force all the time, a database whose
 * schema exceeds one (a long CREATE VIEW) could not be read at all. Therefore the schema must have been read before
 * access_narrow(). SQLITE_LIMIT_SQL_LENGTH is not set; engine_check_sql_size() measures the client's SQL instead. */
void access_narrow(sqlite3 *db, const Setup *setup);
void access_widen(sqlite3 *db);

#endif
