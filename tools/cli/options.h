/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command line of ipcq-cli: what to run, on which bus, and settings for it. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <glib.h>

#include "parameter.h"
#include "session.h"
#include "settings.h"

/* What the program ends with, beside EXIT_INTERRUPTED: of the first failure, where there were several. */
enum {
        EXIT_OK = 0,
        EXIT_QUERY = 1,       /* the service said no: SQL, database, rights, limits; or a command failed */
        EXIT_USAGE = 2,       /* the command line is wrong, or a command in a script */
        EXIT_UNREACHABLE = 3, /* no bus, or nobody on it answers */
        EXIT_LOST = 4,        /* the stream broke off */
        EXIT_OUTPUT = 5,      /* cannot write */
};

typedef struct Task {
        char *text;       /* owned: statements and commands, or the name of a file of them, "-" for standard input */
        bool is_file;
} Task;

typedef struct Options {
        BusChoice bus;
        gboolean list, no_ask_password, no_init, version;
        char *output;          /* owned; NULL: stdout */
        char *database;        /* owned; NULL: none is opened */
        GArray *tasks;         /* of Task, in the order they were given: -c, -f, words */
        GPtrArray *settings;   /* name, value, name, ... as settings_set() takes them */
        ParameterList *parameters;
} Options;

/** Reads the command line; says on stderr what is wrong with it. 0, or -EINVAL. */
int options_parse(int argc, char **argv, Options *ret);
void options_done(Options *options);

/** Sets what the command line has of settings; their values were checked. */
void options_apply(const Options *options, Settings *settings);

#endif
