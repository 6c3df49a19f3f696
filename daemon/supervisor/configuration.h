/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the configuration says. Pure: text in, structure and messages out; configuration-directory.h reads the files.
 * (Named in full because config.h is the build's.)
 *
 *      DIR/sqlipcd.conf            [Limits]    sqlipcd.conf(5)
 *      DIR/databases.d/NAME.conf   [Database]  sqlipc.databases(5)
 *
 * A message names file, line and key. GKeyFile knows no lines, so they are looked up in the text again.
 */
#ifndef SQLIPC_CONFIGURATION_H
#define SQLIPC_CONFIGURATION_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define DATABASE_NAME_SIZE_MAX ((size_t) 64)

/* [Limits]. Per uid unless said. Times in usec, sizes in bytes. */
typedef struct Limits {
        uint64_t statements_max;
        uint64_t runs_max;
        uint64_t workers_max;
        uint64_t workers_total_max;    /* in all; no uid holds more than half */
        uint64_t pipe_pages_max;
        uint64_t result_size_max;      /* of one run */
        uint64_t row_size_max;
        uint64_t run_timeout_usec;
        uint64_t prepare_timeout_usec;
        uint64_t queue_timeout_usec;
        uint64_t park_timeout_usec;
        uint64_t park_timeout_rollback_usec;
        uint64_t busy_timeout_usec;
        uint64_t temp_size_max;        /* each worker gets an equal share: this / workers_max */
        uint64_t heap_max;             /* of one worker */
        uint64_t worker_idle_usec;
} Limits;

/* [Database] of one file. */
typedef struct DatabaseConfig {
        char *name;
        char *path;
        char *description;
        bool immutable;
} DatabaseConfig;

typedef struct Config {
        Limits limits;
        GHashTable *databases; /* name -> DatabaseConfig */
        GHashTable *broken;    /* name (or file name of sqlipcd.conf) -> what is wrong with it */
        GPtrArray *warnings;   /* sentences about what is odd, but was taken */
} Config;

Config *config_new(void);
Config *config_free(Config *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Config, config_free)

DatabaseConfig *database_config_free(DatabaseConfig *d);

/* Both describe the same database in the same way: its object and workers may stay. */
bool database_config_equal(const DatabaseConfig *a, const DatabaseConfig *b);

/* [A-Za-z0-9_-]{1,64} */
bool database_name_is_valid(const char *name);

/* The text of sqlipcd.conf, called `file` in messages. What is wrong goes to c->broken and keeps its default; what is
 * unknown to c->warnings. */
void config_add_limits(Config *c, const char *file, const char *text, size_t size);

/* The text of databases.d/NAME.conf: a database, or an entry in c->broken. */
void config_add_database(Config *c, const char *file, const char *name, const char *text, size_t size);

/* `name` cannot be published, or is not taken as it is written; reasons add up. Name and reason are kept as D-Bus strings
 * can carry them. */
void config_add_broken(Config *c, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* "600", "0.5" -> usec; "64M" -> bytes. -EINVAL; -ERANGE past 64 bit. */
int parse_seconds(const char *text, uint64_t *ret_usec);
int parse_size(const char *text, uint64_t *ret_size);

#endif
