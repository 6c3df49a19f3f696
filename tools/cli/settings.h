/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the user can turn on the shell: by option, in the configuration file, by dot-command. One table of names and
 * values (settings.c) serves all three, `.show` and completion. "auto" is what holds where nobody said
 * anything, of texts, too. Pure.
 */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "render.h"
#include "sqlipc.h"

typedef enum Toggle {
        TOGGLE_OFF,
        TOGGLE_ON,
        TOGGLE_AUTO,
} Toggle;

typedef struct Settings {
        RenderMode mode;
        bool mode_chosen;           /* by the user; else it is the default */
        Toggle headers;             /* AUTO: as the mode has it */
        Toggle vertical;            /* AUTO: if a grid cannot be shrunk to the screen */
        char *null;                 /* owned; NULL: the mode's own */
        char *separator;            /* owned; NULL: the mode's own. Of list */
        char *insert_table;         /* owned; NULL: "table". Of insert */
        int *widths;                /* owned; .width */
        size_t n_widths;
        bool timer;                 /* the footer has times */
        bool footer;                /* rows, and times with `timer`, after each result; on a terminal, and at the prompt */
        bool stats;
        bool echo, bail;
        Toggle verbose;             /* errors have their D-Bus names; AUTO: in scripts */
        bool explain;               /* .eqp: the plan before each result */
        bool colors;                /* terminal, and neither NO_COLOR nor TERM=dumb */
        bool progress;              /* a line on a terminal while a fetch takes long */
        char *pager;                /* owned; NULL: $PAGER, else less -SR; "": none */
        uint64_t timeout_usec;      /* a run is cancelled after so long; 0: never */
        uint64_t rows_max;          /* of a result; the rest is cancelled, and that said; 0: all */
        sqlipc_transport transport;
} Settings;

/** What holds without any configuration. */
void settings_init(Settings *settings);
void settings_done(Settings *settings);

/** Sets `name` ("mode", "headers", "nullvalue", ...; `.help` lists them) from its text. -ENOENT: no such name,
 * -EINVAL: not a value for it, nothing changed; both with a sentence in `ret_message`, to be freed. */
int settings_set(Settings *settings, const char *name, const char *value, char **ret_message);

/** The text that settings_set() would take for what holds now, to be freed. NULL: no such name. */
char *settings_get(const Settings *settings, const char *name);

/** The names, in the order of `.show`; NULL-terminated, static. */
const char *const *settings_names(void);

/** The values that `name` takes where these are few, NULL-terminated, static; NULL: any. Those of "mode" and "transport" by
 * RenderMode and sqlipc_transport. */
const char *const *settings_values(const char *name);

#endif
