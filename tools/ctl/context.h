/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What all verbs of sqlipcctl have: the options, and the bus once it is needed.
 *
 *      main ──> context_parse ──> Verb.run(context, words) ──> exit code
 *
 * A verb makes a document (a GVariant), which is its JSON and what its table shows; failures are a sentence on stderr each.
 */
#ifndef CTL_CONTEXT_H
#define CTL_CONTEXT_H

#include <glib.h>
#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "complain.h"

typedef enum Json { JSON_OFF, JSON_SHORT, JSON_PRETTY } Json;

typedef struct Context {
        gboolean system, user, no_legend, no_pager;
        Json json;
        char *address, *host, *machine; /* owned; NULL: this machine's bus */
        char **config_directories; /* owned; NULL: the usual ones */
        sd_bus *bus;               /* owned; NULL until bus_open() */
        GHashTable *processes;     /* owned; process-name.h; NULL: none was asked for */
} Context;

typedef struct Verb {
        const char *name;
        const char *words;           /* what comes behind it, for the help */
        const char *summary;
        guint n_min, n_max;          /* words */
        bool needs_files;            /* of the configuration: not for another machine */
        const GOptionEntry *options; /* its own; NULL */
        const char *description;     /* more for its help; NULL */
        int (*run)(Context *c, char **words); /* exit code */
} Verb;

extern const Verb verb_add, verb_cancel, verb_cat, verb_channels, verb_check, verb_clients, verb_edit, verb_list,
        verb_reload, verb_remove, verb_runs, verb_security, verb_statements, verb_status, verb_top;

/** Runs the verb that the command line names. Returns the exit code. */
int context_run(int argc, char **argv);

/** The service of the system, not of a user; by --system, --user, and who asks. An address is told by them, too. */
bool context_is_system(const Context *c);
/** That service is a unit of the system, by what the options say: behind an address anything may be. */
bool context_is_unit(const Context *c);

/** That service is on another host, or in a container: neither files nor ids of processes and users are those of here. */
bool context_is_remote(const Context *c);

/** Where the configuration is looked for, the first one wins; caller frees with g_strfreev(). */
char **context_directories(const Context *c);

#endif
