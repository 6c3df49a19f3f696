/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parses the command line of ipcq-cli: tasks, bus, settings. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_OPTIONS_H
#define SQLIPC_TOOLS_CLI_SHELL_OPTIONS_H

#include <glib.h>

#include "tools/cli/shell/session.h"
#include "tools/cli/shell/settings.h"
#include "tools/cli/sql/parameter.h"

/* Exit codes, besides EXIT_INTERRUPTED. After several failures, the code of the first one counts. */
enum {
        EXIT_OK = 0,
        EXIT_QUERY = 1,       /* the service refused: SQL, database, rights, limits; or a command failed */
        EXIT_USAGE = 2,       /* wrong usage of the command line, or of a command in a script */
        EXIT_UNREACHABLE = 3, /* no bus, or no service on it */
        EXIT_LOST = 4,        /* the stream broke off */
        EXIT_OUTPUT = 5,      /* cannot write */
        EXIT_UNCHANGED = 6,   /* --wait: nothing has changed within --timeout */
};

typedef struct Task {
        char *text;       /* owned: statements and commands, or the name of a file that holds them; "-": standard input */
        bool is_file;
} Task;

typedef struct Options {
        BusChoice bus;
        gboolean list, single_transaction, no_ask_password, no_init, version;
        gboolean wait;
        char **wait_tables;    /* owned; of --wait, NULL: all */
        gint64 since;          /* of --wait, 0: from now on */
        char *output;          /* owned; NULL: stdout */
        char *database;        /* owned; NULL: no database is opened */
        GArray *tasks;         /* of Task, in the order of the command line: -c, -f, words */
        GPtrArray *settings;   /* name, value, name, ... for settings_set() */
        ParameterList *parameters;
} Options;

/** Parses the command line; reports errors on stderr. Returns 0, or -EINVAL. */
int options_parse(int argc, char **argv, Options *ret);
void options_done(Options *options);

/** Applies the settings of the command line, whose values options_parse() has checked. */
void options_apply(const Options *options, Settings *settings);

#endif
