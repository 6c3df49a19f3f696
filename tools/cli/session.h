/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whom the shell talks to: one bus, and the database that is open on it. Connects when first needed, and again after a loss.
 */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include <stdbool.h>

#include "sqlipc.h"

typedef enum BusKind {
        BUS_SYSTEM,
        BUS_USER,
        BUS_ADDRESS,
} BusKind;

/* Which bus. A host is reached over ssh, its system bus or its user's. */
typedef struct BusChoice {
        BusKind kind;
        bool chosen;   /* false: by who runs us; the other one is worth a hint */
        char *address; /* owned; BUS_ADDRESS */
        char *host;    /* owned; NULL: this machine. Never with BUS_ADDRESS */
} BusChoice;

typedef struct Session {
        BusChoice bus;
        char *database;                /* owned; NULL: none is open */
        sqlipc_connection *connection; /* owned; NULL: not connected */
        sqlipc_transport transport;
        sqlipc_transport last_transport; /* of the last run; AUTO: there was none */
        bool interactive_authorization;
        bool unreachable;              /* the last session_connect() failed */
        bool lost;                     /* the service went away under a query, and no other one has worked since */
        unsigned generation;           /* changes with bus and database: what was learnt of the old one is void */
} Session;

void session_init(Session *session);
void session_done(Session *session);

/** The connection, which is opened where there is none; borrowed until the next session_*(). Non-blocking is the caller's
 * business, and is set back. 0, or what opening gave (query_complain() has the sentence for it): -EOPNOTSUPP where the bus
 * passes no descriptors, which the transport needs. */
int session_connect(Session *session, sqlipc_connection **ret);

/** Closes the connection, and so ends on the service all that came over it; the next session_connect() opens another one. */
void session_disconnect(Session *session);

/** Takes another bus; the choice is taken over (stolen), the database stays named and is looked up there when first used. */
void session_change_bus(Session *session, BusChoice *choice);

/** Opens `name`, which must exist: 0; -ENOENT and whatever else the service says, with the connection's details. */
int session_open(Session *session, const char *name);

/** Takes a transport for this and later connections. Errors: those of session_connect(). */
int session_set_transport(Session *session, sqlipc_transport transport);

/** "the system bus", "your own bus", "the system bus of HOST", ...: to be freed. */
char *session_describe_bus(const Session *session);

#endif
