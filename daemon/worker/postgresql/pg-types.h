/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. The names of types as format_type() of the server writes them, such as "character varying(20)", and the
 * types that domains are based on. The usual types are known here; the server is asked once for each of the others.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_TYPES_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/worker/core/sql-error.h"
#include "daemon/worker/postgresql/pg-value.h"

typedef struct PgConnection PgConnection;

typedef struct PgTypeName {
        uint32_t type;
        int32_t modifier;       /* of this use of the type, as the 20 above; -1: none */
        char *name;             /* owned */
        PgKind kind;            /* of a domain: that of the type that it is based on */
} PgTypeName;

/* Types of one database. All zeros: none is known yet. */
typedef struct PgTypes {
        PgTypeName *names;      /* owned */
        size_t n;
} PgTypes;

void pg_types_done(PgTypes *types);

/* Finds the name of a type without asking. Borrowed until pg_types_done(). NULL: it must be learned. */
const char *pg_types_find(PgTypes *types, uint32_t type, int32_t modifier);

/* Asks for it on this connection, on which no rows are on their way. The errors of the connection. */
bool pg_types_learn(PgTypes *types, PgConnection *c, uint32_t type, int32_t modifier, const char **ret, SqlError *error);

/* Returns how parameters of this type are sent. May ask, as pg_types_learn() does. */
bool pg_types_kind(PgTypes *types, PgConnection *c, uint32_t type, PgKind *ret, SqlError *error);

#endif
