/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state of the shell, which main.c makes from the options, and its messages.
 *
 *      loop.c ──> script.c: units (a statement, a dot-command) of -c, -f, words, stdin, prompt (editor.c)
 *        ├──> command.c: dot-commands, a table of each commands/command-*.c
 *        └──> query-print.c: SQL ──> libsqlipc ──> render.c ──> output.c
 *
 * stdout carries data, stderr messages. The shell uses only sqlipc.h and, over the library's bus, the calls of service.h.
 */
#ifndef SQLIPC_TOOLS_CLI_SHELL_SHELL_H
#define SQLIPC_TOOLS_CLI_SHELL_SHELL_H

#include <glib.h>
#include <stdbool.h>

#include "tools/cli/output/output.h"
#include "tools/cli/shell/script.h"
#include "tools/cli/shell/session.h"
#include "tools/cli/shell/settings.h"
#include "tools/cli/sql/parameter.h"

typedef struct Catalog Catalog;
typedef struct Editor Editor;

typedef struct Shell {
        Session session;
        Settings settings;
        Output *output;
        ParameterList *parameters; /* .parameter, --param */
        Catalog *catalog;          /* names of the open database, for completion */
        Editor *editor;            /* borrowed; NULL: not interactive */
        bool interactive;          /* a user at a prompt */
        bool stdin_is_script;      /* standard input holds statements and commands */
        Unit unit;                 /* the unit that is running: file and line for messages. Borrowed */
        char *statement;           /* owned; the last SQL, without its ";": \g, .edit, .watch, .save */
        unsigned depth;            /* nesting depth of .read and .run */
        bool took_pending;         /* the last command used Unit.pending */
        char *refusal_name, *refusal_message; /* owned; the D-Bus error of the last service_*() call; NULL: none */
        bool quit;
        int quit_code;             /* of .quit CODE */
        int exit_code;             /* of the first failure; options.h */
} Shell;

/* The maximum nesting of .read and .run. */
enum { SHELL_DEPTH_MAX = 32 };

/** Everything off, nothing open. */
int shell_init(Shell *shell);
void shell_done(Shell *shell);

/** Writes "ipcq-cli: ", file and line unless the unit was typed, and the sentence, escaped, to stderr. */
void shell_complain(const Shell *shell, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** Returns true if messages include the D-Bus names of errors. */
bool shell_is_verbose(const Shell *shell);

/** Writes a message (not data) to stderr, but only in an interactive shell. */
void shell_say(const Shell *shell, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** Remembers the exit code of the first failure. */
void shell_note_failure(Shell *shell, int exit_code);

#endif
