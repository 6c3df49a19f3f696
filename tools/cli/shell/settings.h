/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The user's settings: options, keys of the configuration file, and dot-commands. One table of names and values (settings.c)
 * serves all three, `.show` and completion. The value "auto" is the default, also for texts. Pure.
 */
#ifndef SQLIPC_TOOLS_CLI_SHELL_SETTINGS_H
#define SQLIPC_TOOLS_CLI_SHELL_SETTINGS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "client-lib/sqlipc.h"
#include "tools/cli/render/render.h"

typedef enum Toggle {
        TOGGLE_OFF,
        TOGGLE_ON,
        TOGGLE_AUTO,
} Toggle;

typedef struct Settings {
        RenderMode mode;
        bool mode_chosen;           /* by the user; else it is the default */
        Toggle headers;             /* AUTO: the mode's default */
        Toggle vertical;            /* AUTO: if a grid cannot be shrunk to the screen */
        char *null;                 /* owned; NULL: the mode's own */
        char *separator;            /* owned; NULL: the mode's own. Of list */
        char *insert_table;         /* owned; NULL: "table". Of insert */
        int *widths;                /* owned; .width */
        size_t n_widths;
        bool timer;                 /* show times in the footer */
        bool footer;                /* show rows, and times with `timer`, after each result; on a terminal, and at the
                                     * prompt */
        bool stats;
        bool changes;               /* show the number of changed rows after each statement, as sqlite3 */
        bool echo, bail;
        Toggle verbose;             /* show the D-Bus names of errors; AUTO: in scripts */
        bool explain;               /* .eqp: show the plan before each result */
        bool colors;                /* default: on a terminal, without NO_COLOR and TERM=dumb */
        bool progress;              /* show a line on a terminal during a long fetch */
        char *pager;                /* owned; NULL: $PAGER, else less -SR; "": none */
        uint64_t timeout_usec;      /* time limit of a run, which is then cancelled; 0: none */
        uint64_t rows_max;          /* of a result; the rest is cancelled, which is reported; 0: all */
        sqlipc_transport transport;
} Settings;

/** The settings without any configuration. */
void settings_init(Settings *settings);
void settings_done(Settings *settings);

/** Sets `name` ("mode", "headers", "nullvalue", ...; `.help` lists them) from a text. Returns -ENOENT: unknown name,
 * -EINVAL: wrong value, nothing changed; both with a sentence in `ret_message`, which the caller frees. */
int settings_set(Settings *settings, const char *name, const char *value, char **ret_message);

/** The current value as text, in the form that settings_set() takes. The caller frees it. NULL: unknown name. */
char *settings_get(const Settings *settings, const char *name);

/** The names, in the order of `.show`; NULL-terminated, static. */
const char *const *settings_names(void);

/** The values that `name` takes if they are few, NULL-terminated, static; NULL: any. Those of "mode" and "transport" are
 * indexed by RenderMode and sqlipc_transport. */
const char *const *settings_values(const char *name);

#endif
