/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parsed configuration. Pure: text in, structure and messages out; configuration-files.h reads the files, and
 * configuration-names.h resolves names of users and groups to ids. (The file has its long name because config.h is the
 * build's.)
 *
 *      configuration-main.h      sqlipcd.conf    ──┐
 *      configuration-database.h  [Database]      ──┴──> configuration-limits.h ──> configuration-source.h ──> this file
 *          configuration-writing.h, its Mode=read-write     [Limits], [Service]        one text, messages
 *          configuration-server.h, its Engine=
 *                                                                                  (configuration-text.h: lines, values)
 *
 *      sqlipcd.conf            [Service] [Limits]     sqlipcd.conf(5)
 *      databases.d/NAME.conf   [Database] [Limits]    sqlipc.databases(5)
 *
 * Each may come as several texts: the file, then its drop-ins in their order; a later text overrides what it sets. Each
 * message names the file and line that it is about. An error in a database's texts leaves that database unpublished, since
 * half of a configuration could let in too many. An error in sqlipcd.conf leaves the value of its key unchanged, and at a
 * reload all values of that file (reload.h).
 */
#ifndef SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_H
#define SQLIPC_DAEMON_CONFIGURATION_CONFIGURATION_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/protocol/engine-kind.h"

#define DATABASE_NAME_SIZE_MAX ((size_t) 64)

/* [Service]. Times in usec; UINT64_MAX: never. */
typedef struct ServiceConfig {
        uint64_t idle_exit_usec;       /* IdleExitSec=, a minute if it is not given */
        bool idle_exit_given;          /* an idle service exits only if this is true, on a bus that does not start it */
        uint64_t slow_query_usec;      /* SlowQuerySec=: a run that took longer is logged */
} ServiceConfig;

/* [Limits] of sqlipcd.conf: for one uid, unless the line says otherwise. Times in usec, sizes in bytes. A value that is
 * absent has its default from sqlipcd.conf(5). */
typedef struct Limits {
        uint64_t statements_max;
        uint64_t runs_max;
        uint64_t channels_max;
        uint64_t watches_max;
        uint64_t workers_max;
        uint64_t workers_total_max;    /* for all uids together; 0: by memory */
        uint64_t pipe_pages_max;
        uint64_t result_rows_max;      /* of one run */
        uint64_t result_size_max;      /* of one run */
        uint64_t row_size_max;
        uint64_t run_timeout_usec;
        uint64_t prepare_timeout_usec;
        uint64_t queue_timeout_usec;
        uint64_t park_timeout_usec;
        uint64_t park_timeout_rollback_usec;
        uint64_t transactions_max;
        uint64_t pins_max;             /* connections of clients' own */
        uint64_t transaction_timeout_usec;
        uint64_t transaction_idle_usec;
        uint64_t busy_timeout_usec;
        uint64_t statement_idle_usec;  /* a statement that has not run for so long is finalized */
        uint64_t temp_size_max;        /* each worker gets an equal share: this / workers_max */
        uint64_t heap_max;             /* of one worker */
        uint64_t worker_idle_usec;
        uint64_t sql_size_max;         /* SQLITE_LIMIT_SQL_LENGTH and so on, of a worker's connections */
        uint64_t expression_depth_max;
        uint64_t compound_selects_max;
        uint64_t vdbe_ops_max;
        uint64_t variables_max;
        uint64_t exempt_root;          /* 0 or 1: the counts, sizes and times above do not apply to uid 0 */
} Limits;

/* [Limits] of one database. A count limits what all uids together have on it; any other value replaces the one of
 * sqlipcd.conf for this database. WorkersTotalMax=, PipePagesMax=, WorkerIdleSec= and ExemptRoot= are allowed in
 * sqlipcd.conf only. */
typedef struct DatabaseLimits {
        uint64_t statements_max, runs_max, channels_max, watches_max, workers_max; /* UINT64_MAX: none */
        Limits values;                 /* valid for the rows in `given`; the rest is undefined */
        uint64_t given;                /* bit i: row i of the table of limits */
} DatabaseLimits;

/* [Database] of one file. */
typedef struct DatabaseConfig {
        char *name;
        EngineKind engine;             /* Engine= */
        char *path;                    /* of a file (SQLite); a server has none: "" */
        char *description;
        char *mode;                    /* Mode=: "read-only" or "read-write" */
        bool immutable;
        char **allow_users;            /* AllowUsers=: names, ids, or "*"; NULL-terminated, never NULL */
        char **allow_groups;           /* AllowGroups= */
        char **allow_users_at;         /* "FILE:LINE" of each entry, for messages about it */
        char **allow_groups_at;
        bool polkit;                   /* Polkit=: polkit is asked about users that neither list names */
        char **expose;                 /* Expose=: tables and views; empty: all */
        bool security_barrier;         /* SecurityBarrier=: constraints of clients are not passed to an exposed view */
        DatabaseLimits limits;

        /* Of a server (configuration-server.h); otherwise unused. */
        char *connection;              /* Connection=, or the same made from Service=; never has a password */
        char *replica_connection;      /* ReplicaConnection=; NULL: none */
        char *password_file;           /* PasswordFile=: a path, or the name of a credential of the service; NULL: none */
        uint64_t connections_max;      /* ConnectionsMax=: of one uid */
        Consistency consistency;       /* Consistency= */
        char *server;                  /* engine and connection: databases with the same have the same data */
        char *file_key_at, *server_key_at; /* "FILE:LINE: key KEY=" of the first key that files, or servers, have alone */

        /* With Mode=read-write; otherwise unused. Sizes in bytes. */
        char **write_users;            /* WriteUsers=, as allow_users */
        char **write_groups;           /* WriteGroups= */
        char **write_users_at, **write_groups_at;
        bool write_polkit;             /* WritePolkit=: polkit is asked if users that neither list names may write */
        char **write_tables;           /* WriteTables=: the tables that may be written; empty: all */
        bool write_schema;             /* WriteSchema=: CREATE, ALTER, DROP and the like are allowed */
        bool sync_full;                /* Synchronous=full (the default), or normal */
        bool foreign_keys;             /* ForeignKeys=: they are enforced (the default) */
        uint64_t database_size_max;    /* DatabaseSizeMax=; UINT64_MAX: none */
        uint64_t wal_size_max;         /* WalSizeMax= */
        char *write_key_at;            /* "FILE:LINE: key KEY=" of the first of these keys, for messages; NULL: none */
        bool write_everybody;          /* "*" in WriteUsers= */
        uid_t *write_uids;             /* the ids that the lists resolved to, as below */
        size_t n_write_uids;
        gid_t *write_gids;
        size_t n_write_gids;

        /* The ids that the lists resolved to, by configuration-names.h; sorted, so that they can be compared. */
        bool allow_everybody;          /* "*" */
        uid_t *uids;
        size_t n_uids;
        gid_t *gids;
        size_t n_gids;
} DatabaseConfig;

typedef struct Config {
        ServiceConfig service;
        Limits limits;
        GHashTable *databases; /* name -> DatabaseConfig */
        GHashTable *broken;    /* name (or "sqlipcd.conf") -> its errors */
        GPtrArray *warnings;   /* of char *: problems that are no errors; valid as D-Bus strings */
        int lack;              /* -EMFILE, -ENFILE, -ENOMEM: not all files could be read for lack of it; 0: all were read */
} Config;

Config *config_free(Config *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Config, config_free)

DatabaseConfig *database_config_free(DatabaseConfig *d);

/* True if Mode=read-write. */
bool database_config_is_writable(const DatabaseConfig *d);

/* True if the data is a server's, not a file's. */
bool database_config_is_server(const DatabaseConfig *d);

/* Identifies the data: the path of the file, or the engine and its connection. Two databases with the same change
 * together. */
const char *database_config_data(const DatabaseConfig *d);

/* One file of a configuration. Arrays of these are in the order in which they apply. */
typedef struct ConfigText {
        const char *file;      /* for messages */
        const char *text;      /* NUL-terminated */
        size_t size;
} ConfigText;

/* config_add_broken(): `name` cannot be published, or is not used as it is written; several reasons are joined. Name and
 * reason are stored so that they are valid D-Bus strings; so are warnings. */
void config_add_broken(Config *c, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
void config_add_warning(Config *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
