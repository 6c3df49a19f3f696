/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Dot-commands: tables of them (commands/command-*.c). A command is found by its name, by an unambiguous prefix as in
 * sqlite3, or by psql's alias.
 */
#ifndef SQLIPC_TOOLS_CLI_SHELL_COMMAND_H
#define SQLIPC_TOOLS_CLI_SHELL_COMMAND_H

#include "tools/cli/shell/shell.h"

/* The candidates that completion offers for an argument. */
typedef enum ArgumentKind {
        ARGUMENT_NONE,
        ARGUMENT_FILE,
        ARGUMENT_TABLE,
        ARGUMENT_DATABASE,
        ARGUMENT_SETTING, /* the values of the setting that has the command's name */
        ARGUMENT_SQL,
        ARGUMENT_TABLE_OR_SQL,
        ARGUMENT_WORDS,   /* Command.words */
        ARGUMENT_QUERY,   /* a saved query */
        ARGUMENT_COMMAND,
} ArgumentKind;

typedef struct Command Command;

struct Command {
        const char *name;           /* without its dot: "tables" */
        const char *aliases;        /* psql's, without backslash, separated by blanks: "dt d"; NULL: none */
        const char *arguments;      /* as .help shows them: "[LIKE]" */
        const char *summary;        /* one line */
        const char *details;        /* more text for `.help NAME`; NULL: none */
        bool preferred;             /* wins if a prefix is ambiguous */
        int n_min, n_max;           /* number of arguments, without the name; n_max -1: no limit */
        bool takes_pending;         /* the command uses up the unfinished statement; else that continues after it */
        bool takes_rest;            /* not split: arguments[1] is the rest of the line verbatim, "" if there is none */
        ArgumentKind kinds[3];      /* of the first arguments; the last one also applies to all that follow */
        const char *const *words;   /* ARGUMENT_WORDS */
        /** `arguments[0]` is the name as typed (with "." or "\"); NULL-terminated. Returns 0, or a negative code that has
         * been reported. */
        int (*run)(Shell *shell, const Command *command, char **arguments);
};

typedef struct CommandGroup {
        const char *title;
        const Command *commands; /* ends with a command without a name */
} CommandGroup;

/** Sets the tables, in the order of .help; the last one has no title. Borrowed. Call this before the functions below. */
void command_set_groups(const CommandGroup *groups);
/** Returns the tables. */
const CommandGroup *command_groups(void);
/** All commands, sorted by name; `*ret_n` is their number. */
const Command *const *command_list(size_t *ret_n);
/** Finds a command by name, with its "." or "\". NULL: the name is unknown or ambiguous; `ret_message`, which the caller
 * frees, then says so and names the nearest commands. */
const Command *command_find(const char *name, char **ret_message);
/** Takes the first word off a line, by the rules of command_split(); `*line` then points after it. Returns 1; 0: no word is
 * left; -EINVAL: a quote is open. */
int command_take_word(const char **line, char **ret);
/** Splits a line as sqlite3 does: by blanks, with '...' and "..." (the latter with C's escapes). -EINVAL: a quote is open.
 * The caller frees the array. */
int command_split(const char *line, char ***ret_arguments);
/** Reads the rest of the line of .read, .output and similar commands: a file, optionally in quotes, or "|command" with or
 * without quotes. The caller frees `*ret`; NULL: the line was empty. -EINVAL: a quote is open, or there is more than one
 * word. */
int command_target(const char *rest, char **ret);
/** Runs a command line. Returns -EINVAL, after a message, if the command is unknown or its arguments are wrong. */
int command_run(Shell *shell, const Unit *unit);
/** Reports a usage error, after which the program's exit code is EXIT_USAGE. Returns -EINVAL. */
int command_misuse(Shell *shell, const Command *command);
/** Reports why a command failed, if nothing else has reported it. -EINVAL (a wrong argument) counts as a usage error; all
 * other codes set EXIT_QUERY. Returns `r`. */
int command_fail(Shell *shell, int r, const char *format, ...) G_GNUC_PRINTF(3, 4);

#endif
