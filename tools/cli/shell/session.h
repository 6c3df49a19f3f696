/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The shell's connection: one bus, and the database that is open on it. It connects when first needed, and again after a
 * loss.
 */
#ifndef SQLIPC_TOOLS_CLI_SHELL_SESSION_H
#define SQLIPC_TOOLS_CLI_SHELL_SESSION_H

#include <glib.h>
#include <stdbool.h>

#include "client-lib/sqlipc.h"
#include "tools/cli/sql/sql-scan.h"

/* The library's own time limit, which is restored after a list of databases was read in less. */
#define SESSION_ANSWER_USEC ((uint64_t) 25 * 1000 * 1000)

typedef enum BusKind {
        BUS_FOUND, /* the one that has the database: the rule of sqlipc_open(3) */
        BUS_SYSTEM,
        BUS_USER,
        BUS_ADDRESS,
} BusKind;

/* The bus to use. A host is reached over ssh: its system bus or the bus of its user. */
typedef struct BusChoice {
        BusKind kind;
        char *address; /* owned; BUS_ADDRESS */
        char *host;    /* owned; NULL: this machine. Never with BUS_ADDRESS */
} BusChoice;

/* The transaction that the user has begun (transaction.h). */
typedef struct SessionTransaction {
        sqlipc_transaction *object; /* owned; NULL: there is none */
        GPtrArray *savepoints;      /* owned; names, in small letters, the first one at the beginning */
        bool writes;                /* its changes are lost unless it is committed */
        bool of_savepoint;          /* the first savepoint has begun it */
        bool of_script;             /* --single-transaction, or a command such as .import, has begun it and ends it */
} SessionTransaction;

typedef struct Session {
        BusChoice bus;
        char *database;                /* owned; NULL: none is open */
        sqlipc_connection *connection; /* owned; NULL: not connected */
        SessionTransaction transaction;
        sqlipc_transport transport;
        sqlipc_transport last_transport; /* of the last run; AUTO: there was none */
        int64_t n_changes;             /* rows that the last statement has changed which may write */
        int64_t n_total_changes;       /* the sum of all statements */
        bool interactive_authorization;
        bool unreachable;              /* the last session_connect() failed */
        bool not_found;                /* BUS_FOUND: no service has the database; the connection has the details */
        char *untold_loss;             /* owned; the error PIN_LOST that the user has not seen; NULL: there is none */
        bool may_have_pin;             /* a statement ran that may have needed a pin: TEMP tables, a PRAGMA */
        bool lost;                     /* the service went away during a query, and no query has worked since */
        unsigned generation;           /* changes with bus and database: everything learnt before is void */
        SqlDialect dialect;            /* of the database; valid if .dialect_generation is .generation (dialect.h) */
        unsigned dialect_generation;
} Session;

void session_init(Session *session);
void session_done(Session *session);

/** Returns the connection, and opens it if there is none; borrowed until the next session_*(). A caller may make it
 * non-blocking, and must undo that. Returns 0, or the error of opening (query_complain() has the message): -EOPNOTSUPP if
 * the bus passes no descriptors, which the transport needs; -ESTALE: .untold_loss, until query_complain() has shown it. */
int session_connect(Session *session, sqlipc_connection **ret);

/** Closes the connection, which ends everything on the service that came over it, and rolls back the transaction; the next
 * session_connect() opens a new one. */
void session_disconnect(Session *session);

/** Frees the transaction, and rolls it back if it is still open. */
void session_forget_transaction(Session *session);

/** Changes the bus; takes ownership of the choice. The name of the database is kept, and is looked up on the new bus on
 * first use. */
void session_change_bus(Session *session, BusChoice *choice);

/** Opens `name`, which must exist; with BUS_FOUND, it may be on another bus than the database before. Returns 0; -ENOENT; or
 * an error of the service, with details in the connection. */
int session_open(Session *session, const char *name);

/** Sets the transport of this and later connections. Errors as of session_connect(). */
int session_set_transport(Session *session, sqlipc_transport transport);

/** The dialect of the open database as far as it is known; SQLite's otherwise. dialect.h finds it out. */
static inline SqlDialect session_dialect(const Session *session) {
        return session->dialect_generation == session->generation ? session->dialect : SQL_DIALECT_SQLITE;
}

/** "the system bus", "the user's bus", "the system bus of HOST", ...; the caller frees it. */
char *session_describe_bus(const Session *session);

#endif
