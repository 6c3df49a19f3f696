/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Database servers that ours is compared with, behind one interface: each asked through the C library of its own project,
 * over a UNIX socket, values decoded by their types and copied through copy.h. Which are there is decided at build time
 * (libpq, libmariadb), and whether they are asked by the command line.
 *
 * What is asked there is our own dataset: a table of the name database_server_table(), made before and dropped behind.
 */
#ifndef BENCH_DATABASE_SERVER_H
#define BENCH_DATABASE_SERVER_H

#include <sys/types.h>

#include "copy.h"
#include "options.h"

/* A connection to a server: the driver's own. */
typedef struct ServerConnection ServerConnection;

/* How to talk to one kind of server. All say on stderr what fails, and are negative then. */
typedef struct DatabaseServer {
        const char *name;
        const char *placeholder;   /* the first parameter in its SQL */
        const char *table_options; /* behind CREATE TABLE (...), may be "" */
        const char *settle;        /* what a table wants after many rows came in, its name to follow */
        /** `where` is what the command line says. */
        int (*connect)(const char *where, ServerConnection **ret);
        ServerConnection *(*close)(ServerConnection *connection);
        /** The process whose children, or itself, serve connections; 0: not on this machine, or hidden. */
        pid_t (*get_pid)(ServerConnection *connection);
        /** Runs one statement, and forgets its rows. */
        int (*execute)(ServerConnection *connection, const char *sql);
        /** Runs one statement that was not prepared, and adds its rows. */
        int (*copy)(ServerConnection *connection, const char *sql, Copy *copy);
        /** Prepares the statement of the connection, which has one parameter, a BIGINT. */
        int (*prepare)(ServerConnection *connection, const char *sql);
        /** Runs it, and adds its rows. */
        int (*copy_prepared)(ServerConnection *connection, int64_t key, Copy *copy);
} DatabaseServer;

extern const DatabaseServer database_server_postgres, database_server_mariadb;

/* One that the command line names. */
typedef struct DatabaseServerChoice {
        const DatabaseServer *server;
        const char *where; /* borrowed from the options */
} DatabaseServerChoice;

enum { DATABASE_SERVERS_MAX = 2 };

/** Those that the options name; returns how many. -EOPNOTSUPP: one is named that this program was built without. */
int database_servers_get(const BenchOptions *options, DatabaseServerChoice ret[static DATABASE_SERVERS_MAX]);

/** The name there of the dataset's table `table`. The caller frees it. */
char *database_server_table(const char *table);
/** Makes it, in place of what has that name, with the rows of `table` in the SQLite file `file`. */
int database_server_load(const DatabaseServerChoice *choice, const char *file, const char *table);
/** Drops it. Tells on stderr where that fails. */
void database_server_drop(const DatabaseServerChoice *choice, const char *table);

#endif
