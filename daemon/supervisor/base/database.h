/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One published database: its name and the configuration that it was published with. Supervisor.
 *
 * A reload that changes the configuration makes a new Database of the same name. The old one is unpublished and is freed
 * when nothing runs on it any more.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_BASE_DATABASE_H
#define SQLIPC_DAEMON_SUPERVISOR_BASE_DATABASE_H

#include "daemon/supervisor/base/context.h"

typedef struct Database {
        Context *context;       /* not owned */
        unsigned n_ref;
        DatabaseConfig *config; /* owned */
        char *object_path;      /* owned */
        bool published;
        uint64_t n_statements, n_runs, n_channels, n_watches, n_workers; /* over all uids; quota.h */
        uint64_t moved_usec;    /* when a group that waited last got a worker for it; 0: none did */
} Database;

/* Takes ownership of `config` if it succeeds. -ENOMEM. */
int database_new(Context *context, DatabaseConfig *config, Database **ret);
/* Returns the published database of this name, or NULL. */
Database *database_find(const Context *context, const char *name);

Database *database_ref(Database *d);
Database *database_unref(Database *d);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Database, database_unref)

static inline const char *database_name(const Database *d) {
        return d->config->name;
}

#endif
