/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the configuration says becomes what is published. Supervisor.
 *
 *      at rest --asked--> files are read --names to look up--> a child asks NSS (resolve.h) --> in force, callers are told
 *         ^                         \--none------------------------------------------------------/          |
 *         \-----------------nobody asked meanwhile; else their files are read-------------------------------/
 *
 * Who asks while a child is out waits for a load of its own, since the files may have changed after they were read; all who
 * wait share that one. Nothing that runs is touched: what ends with a database ends after its run. A reload for which we
 * lack descriptors, memory or a process changes nothing.
 */
#ifndef SQLIPC_MANAGER_RELOAD_H
#define SQLIPC_MANAGER_RELOAD_H

#include <glib.h>
#include <stdbool.h>

#include "configuration.h"
#include "resolve.h"

typedef struct Manager Manager;

/* `r`: 0: what was read after the call holds now. -ESHUTDOWN: we stop. -EMFILE, -ENFILE, -ENOMEM, -EAGAIN: for lack of it
 * not all could be read, and what held before still does. */
typedef void (*ReloadHandler)(Manager *m, int r, void *userdata);

typedef struct Reload {
        Config *config;       /* of the load under way; NULL: none is */
        Resolve *resolve;
        GQueue callers;       /* of Caller: of that load */
        GQueue next;          /* of the one after it */
        bool loaded;          /* manager_load() is over: the service manager hears of what follows */
        bool stays_when_idle; /* unless IdleExitSec= is given */
} Reload;

/* The first load, which returns when it is in force, or when we stop meanwhile. Where nothing starts the service on demand
 * (`started_on_demand` false) it exits when idle only if IdleExitSec= is given. */
int manager_load(Manager *m, bool started_on_demand);

/* Reads the configuration again; databases that did not change keep their object. The handler (NULL: none) is called once,
 * maybe before this returns. */
void manager_reload(Manager *m, ReloadHandler handler, void *userdata);

bool manager_is_reloading(const Manager *m);

/* We stop: tells all who wait. */
void manager_reload_stop(Manager *m);

/* Empties and frees a table of published databases. */
void manager_release_databases(GHashTable *databases);

#endif
