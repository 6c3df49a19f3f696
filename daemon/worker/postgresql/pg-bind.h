/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Binds a job's parameters to a prepared statement. The server has chosen a type for each of them:
 *
 *      value     to a type of the server
 *      INTEGER   to numbers if it fits without rounding; to boolean if it is 0 or 1; elsewhere its digits
 *      REAL      to double precision, real, numeric; to integers if it is one; elsewhere its digits
 *      TEXT      by the input function of the type
 *      BLOB      to bytea only
 *
 * A number is no date, and no value is rounded or cut: that is an error, which names the parameter.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_BIND_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_BIND_H

#include "daemon/worker/postgresql/pg-statement.h"

typedef struct PageDecoder PageDecoder;

/* Each parameter must get exactly one value: ParameterCount, UnknownParameter; ParameterType, OutOfMemory. `spec` must
 * live until the statement has run. */
bool pg_bind(PgStatement *s, const JobSpec *spec, SqlError *error);

/* Binds the `n` values of the row under page_decoder_next() to the first parameters, of which there must be as many. */
bool pg_bind_row(PgStatement *s, const PageDecoder *row, unsigned n, SqlError *error);

#endif
