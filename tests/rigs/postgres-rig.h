/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A PostgreSQL server of the test's own: a new cluster in a folder of its own, reached by a Unix socket there. If the test
 * is root, the server runs as the user postgres, because it refuses to run as root. Tests only.
 */
#ifndef SQLIPC_TESTS_RIGS_POSTGRES_RIG_H
#define SQLIPC_TESTS_RIGS_POSTGRES_RIG_H

#include <glib.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct PostgresRig {
        char *folder;         /* of socket and data; owned */
        char *programs;       /* the folder of the server's programs; owned */
        unsigned port;        /* part of the socket's name */
        GPid pid;             /* of the server; 0: it does not run */
        PGconn *connection;   /* the test's own, as the superuser "postgres" */
} PostgresRig;

/* Makes a cluster and starts its server. False: PostgreSQL is not installed, or there is no user for it; the test is
 * skipped. */
bool postgres_rig_init(PostgresRig *rig);

/* Stops the server and removes the folder. */
void postgres_rig_done(PostgresRig *rig);

/* Starts the server, and waits until it answers; stops it at once, as a crash would. */
void postgres_rig_start(PostgresRig *rig);
void postgres_rig_kill(PostgresRig *rig);

/* libpq's keywords for the database of a user. The caller frees it. */
char *postgres_rig_connection(const PostgresRig *rig, const char *user);

/* Makes a role that must log in with this password, by SCRAM, and starts the server again. */
void postgres_rig_lock(PostgresRig *rig, const char *role, const char *password);

/* Runs SQL as the superuser, which must succeed. */
void postgres_rig_exec(PostgresRig *rig, const char *sql);

/* The same, and returns the first value of the first row, which the caller frees; NULL if it is NULL or there is no row. */
char *postgres_rig_value(PostgresRig *rig, const char *sql);

#endif
