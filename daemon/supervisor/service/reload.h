/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the configuration, at the start and when a client or the administrator asks for it. Supervisor.
 *
 *      at rest --asked--> files are read --names to look up--> a child asks NSS (resolve.h) --> in force, callers are told
 *         ^                         \--none------------------------------------------------------/          |
 *         \-----------------no caller asked meanwhile; else the files are read again------------------------/
 *
 * A caller that asks while a child runs waits for another load, since the files may have changed after they were read; all
 * such callers share that one load. A reload that fails because the service lacks descriptors, memory or a process changes
 * nothing, and a reload that finds an error in sqlipcd.conf changes databases only: the limits in force may be stricter than
 * the defaults. publication.h says what a new configuration changes.
 */
#ifndef SQLIPC_DAEMON_SUPERVISOR_SERVICE_RELOAD_H
#define SQLIPC_DAEMON_SUPERVISOR_SERVICE_RELOAD_H

#include <glib.h>
#include <stdbool.h>

#include "daemon/configuration/configuration.h"
#include "daemon/supervisor/base/context.h"
#include "daemon/supervisor/service/resolve.h"

typedef struct Reload {
        Context *context;     /* not owned */
        char **directories;   /* NULL-terminated, in order of precedence; owned */
        void (*put_in_force)(Context *context, Config *config); /* takes `config` */
        Config *config;       /* of the load under way; NULL: no load is under way */
        Resolve *resolve;
        GQueue callers;       /* of Caller that waits for this load */
        GQueue next;          /* of Caller that waits for the load after it */
        bool loaded;          /* reload_first() is over: the service manager is told about later loads */
        bool stays_when_idle; /* the service does not exit when idle, unless IdleExitSec= is given */
} Reload;

/* The first load. Returns when the configuration is in force, or when the service stops meanwhile. If nothing starts the
 * service on demand (`started_on_demand` false), it exits when idle only if IdleExitSec= is given. -errno of the loop. */
int reload_first(Reload *l, bool started_on_demand);

/* Reads the configuration again. The handler (NULL: none) is called once, possibly before this returns. */
void reload_start(Reload *l, ReloadHandler handler, void *userdata);

bool reload_is_busy(const Reload *l);

/* The service stops: tells all callers that wait. */
void reload_stop(Reload *l);

#endif
