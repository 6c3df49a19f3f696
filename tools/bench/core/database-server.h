/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One interface to the database servers that sqlipc is compared with. Each server is asked through its project's C library,
 * over a UNIX socket; values are decoded by their types and copied with copy.h. The build decides which servers are
 * supported (libpq, libmariadb), and the command line decides which of them are measured.
 *
 * One is PostgreSQL by the service that is measured, which publishes the same server with Engine=postgresql. It uses the
 * tables of that server.
 *
 * The servers hold a copy of our dataset, in the table named by database_server_table(). The benchmark creates that table
 * before it measures and drops it afterwards, also if it fails or a signal ends it.
 */
#ifndef SQLIPC_TOOLS_BENCH_CORE_DATABASE_SERVER_H
#define SQLIPC_TOOLS_BENCH_CORE_DATABASE_SERVER_H

#include <sys/types.h>

#include "tools/bench/core/bench-options.h"
#include "tools/bench/core/copy.h"

/* A connection to a server. Each driver defines its own. */
typedef struct ServerConnection ServerConnection;

typedef struct DatabaseServerChoice DatabaseServerChoice;

/* The driver for one kind of server. On error, all functions report on stderr and return a negative value. */
typedef struct DatabaseServer {
        const char *name;
        const char *placeholder;   /* how its SQL writes the first parameter */
        const char *table_options; /* appended to CREATE TABLE (...), may be "" */
        const char *numbered;      /* type of a primary key that the server counts */
        const char *durability;    /* query for the settings that decide when a commit is durable: one TEXT */
        const char *settle;        /* statement to run after a bulk load; the table's name is appended */
        bool by_service;           /* the service serves it; the server before it has the tables */
        int (*connect)(const DatabaseServerChoice *choice, ServerConnection **ret);
        ServerConnection *(*close)(ServerConnection *connection);
        /** Returns the process that serves connections, itself or by its children; 0: on another machine, or hidden, or
         * by_service, whose processes are those of the service and of the server with the tables. */
        pid_t (*get_pid)(ServerConnection *connection);
        /** Runs one statement and discards its rows. */
        int (*execute)(ServerConnection *connection, const char *sql);
        /** Runs one unprepared statement and adds its rows to `copy`. */
        int (*copy)(ServerConnection *connection, const char *sql, Copy *copy);
        /** Adds all rows of a table, in their order, in the way that is fastest for many rows. */
        int (*copy_table)(ServerConnection *connection, const char *table, Copy *copy);
        const char *table_way; /* describes that way, for a note of the report */
        /** Prepares the connection's one statement, which has one parameter, a BIGINT. */
        int (*prepare)(ServerConnection *connection, const char *sql);
        /** Runs the prepared statement and adds its rows, if it has any, to `copy`. */
        int (*copy_prepared)(ServerConnection *connection, int64_t key, Copy *copy);
        /** From now on each INSERT into the table sends a notice when it is committed. The three functions for notices are
         * NULL if the server has none. */
        int (*notify)(ServerConnection *connection, const char *table);
        /** Makes the connection receive these notices. Returns its descriptor, which is readable when one may have come. */
        int (*listen)(ServerConnection *connection, const char *table);
        /** Reads what has come, without waiting. Returns the number of notices. */
        int (*take_notices)(ServerConnection *connection);
} DatabaseServer;

extern const DatabaseServer database_server_postgres, database_server_mariadb, database_server_by_service;

/* A server that the command line names. */
struct DatabaseServerChoice {
        const DatabaseServer *server;
        const char *where; /* of the command line; borrowed from the options */
        const BenchOptions *options; /* borrowed */
};

enum { DATABASE_SERVERS_MAX = 3 };

/** Stores the servers that the options name and returns their number. If there is one, signals end the measurement in an
 * orderly way from then on (measure_catch_signals()). -EOPNOTSUPP: this build does not support one. */
int database_servers_get(const BenchOptions *options, DatabaseServerChoice ret[static DATABASE_SERVERS_MAX]);

/** Returns the name that the dataset's table `table` has on a server. The caller frees it. */
char *database_server_table(const char *table);
/** Creates that table with the rows of `table` in the SQLite file `file`; it replaces a table of the same name. Does
 * nothing if the server is by_service. */
int database_server_load(const DatabaseServerChoice *choice, const char *file, const char *table);
/** Drops that table, likewise. Reports errors on stderr. */
void database_server_drop(const DatabaseServerChoice *choice, const char *table);

#endif
