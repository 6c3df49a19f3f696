/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. Finds the tables of a statement, for watches. The server is asked which locks it took when it parsed the
 * statement: they name each table, each view, and the tables below the view, as the server itself found them. Tables that a
 * function reads are not among them.
 *
 * A table includes its partitions and children. Names are "schema.table", because each user may have another search
 * path; clients see the name without the schema if they would find the table by it.
 */
#ifndef SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_TABLES_H
#define SQLIPC_DAEMON_WORKER_POSTGRESQL_PG_TABLES_H

#include "daemon/worker/postgresql/pg-statement.h"

/* tables() and watched() of engine.h. */
bool pg_tables_of(PgStatement *s, EngineTables *ret_read, EngineTables *ret_written, SqlError *error);
bool pg_tables_watched(PgConnection *c, const char *sql, size_t sql_size, bool names, EngineWatched *ret, SqlError *error);

/* written() of engine.h: tables that the transaction has locked to write, those that foreign keys change with them, and any
 * table if there are triggers. */
void pg_tables_written(PgStatement *s, EngineWritten *written);

#endif
