/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command line of ipcq-cli. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <glib.h>

#include "parameter.h"
#include "render.h"

/* What the program ends with, beside EXIT_INTERRUPTED. */
enum {
        EXIT_OK = 0,
        EXIT_QUERY = 1,       /* the service said no: SQL, database, rights, limits */
        EXIT_USAGE = 2,       /* the command line is wrong */
        EXIT_UNREACHABLE = 3, /* no bus, or nobody on it answers */
        EXIT_LOST = 4,        /* the stream broke off */
        EXIT_OUTPUT = 5,      /* cannot write */
};

typedef struct Options {
        gboolean system, user, list, no_ask_password, version;
        char *address;         /* owned */
        RenderMode mode;
        char *null;            /* owned; NULL: the mode's own */
        ParameterList *parameters;
        char *database, *sql;  /* owned; NULL with --list and --version */
} Options;

/** Reads the command line; says on stderr what is wrong with it. 0, or -EINVAL. */
int options_parse(int argc, char **argv, Options *ret);
void options_done(Options *options);

#endif
