/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The context of all verbs of sqlipcctl: the options, and the bus, which is opened when it is needed.
 *
 *      main ──> context_parse ──> Verb.run(context, words) ──> exit code
 *
 * A verb makes a document (a GVariant), which is printed as JSON or as a table. Each failure is a message on stderr.
 */
#ifndef SQLIPC_TOOLS_CTL_CONTEXT_H
#define SQLIPC_TOOLS_CTL_CONTEXT_H

#include <glib.h>
#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "tools/ctl/complain.h"

typedef enum Json { JSON_OFF, JSON_SHORT, JSON_PRETTY } Json;

typedef struct Context {
        gboolean system, user, no_legend, no_pager;
        Json json;
        char *address, *host, *machine; /* owned; NULL: this machine's bus */
        char **config_directories; /* owned; NULL: the usual ones */
        sd_bus *bus;               /* owned; NULL until bus_open() */
        GHashTable *processes;     /* owned; for process-name.h; NULL: no client was looked up yet */
} Context;

typedef struct Verb {
        const char *name;
        const char *words;           /* the arguments after the verb, for the help */
        const char *summary;
        guint n_min, n_max;          /* words */
        bool needs_files;            /* it reads the configuration files, so it does not work for another machine */
        const GOptionEntry *options; /* its own; NULL */
        const char *description;     /* more for its help; NULL */
        int (*run)(Context *c, char **words); /* exit code */
} Verb;

extern const Verb verb_add, verb_backup, verb_cancel, verb_cat, verb_channels, verb_check, verb_clients, verb_create,
        verb_edit, verb_integrity, verb_list, verb_migrate, verb_reload, verb_remove, verb_runs, verb_security,
        verb_statements, verb_status, verb_top, verb_transactions, verb_vacuum, verb_watches;

/** Runs the verb that the command line names. Returns the exit code. */
int context_run(int argc, char **argv);

/** True for the system's service, false for that of a user; decided by --system, --user, the caller's uid and whether it
 * is remote; the same with an address. */
bool context_is_system(const Context *c);
/** True if the options mean the system's unit; false with an address, which can lead to any service. */
bool context_is_unit(const Context *c);

/** True if the service is on another host or in a container: files and ids of processes and users differ from those here. */
bool context_is_remote(const Context *c);

/** The directories of the configuration; the first has priority. The caller frees it with g_strfreev(). */
char **context_directories(const Context *c);

#endif
