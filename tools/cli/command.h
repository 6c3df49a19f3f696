/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Dot-commands: tables of them (command-*.c), found by name, by unambiguous beginning as in sqlite3, or by psql's alias.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "shell.h"

/* What completion offers for an argument. */
typedef enum ArgumentKind {
        ARGUMENT_NONE,
        ARGUMENT_FILE,
        ARGUMENT_TABLE,
        ARGUMENT_DATABASE,
        ARGUMENT_SETTING, /* the values of the setting of the command's name */
        ARGUMENT_SQL,
        ARGUMENT_TABLE_OR_SQL,
        ARGUMENT_WORDS,   /* Command.words */
        ARGUMENT_QUERY,   /* a saved one */
        ARGUMENT_COMMAND,
} ArgumentKind;

typedef struct Command Command;

struct Command {
        const char *name;           /* ".tables" without its dot */
        const char *aliases;        /* psql's, separated by blanks, without backslash: "dt d"; NULL: none */
        const char *arguments;      /* as .help shows them: "[LIKE]" */
        const char *summary;        /* a line */
        const char *details;        /* what `.help NAME` adds; NULL: nothing */
        bool preferred;             /* what is meant by a beginning that others have, too */
        int n_min, n_max;           /* arguments, the name not counted; n_max -1: any */
        bool takes_pending;         /* the statement under way is its own; else that goes on behind it */
        bool takes_rest;            /* not split: arguments[1] is the rest of the line as it stands, "" if there is none */
        ArgumentKind kinds[3];      /* of the first arguments; the last holds for those that follow */
        const char *const *words;   /* ARGUMENT_WORDS */
        /** `arguments[0]` is the name as it was typed (with "." or "\"), NULL-terminated. 0, or a negative code that was
         * told. */
        int (*run)(Shell *shell, const Command *command, char **arguments);
};

/* NULL-terminated by a command without name. */
extern const Command commands_data[], commands_export[], commands_session[], commands_shell[], commands_output[],
        commands_query[];

typedef struct CommandGroup {
        const char *title;
        const Command *commands; /* ends with one that has no name */
} CommandGroup;

/** In the order of .help; `*ret_n` many. */
const CommandGroup *command_groups(size_t *ret_n);
/** All of them, sorted by name; `*ret_n` many. */
const Command *const *command_list(size_t *ret_n);
/** By name with its "." or "\". NULL: none, or not one alone; then `ret_message`, to be freed, says so and what is
 * nearest. */
const Command *command_find(const char *name, char **ret_message);
/** Takes the first word off a line, as command_split() does it; `*line` is then what follows. 1; 0: none is left;
 * -EINVAL. */
int command_take_word(const char **line, char **ret);
/** Splits a line as sqlite3 does: blanks, '...' and "..." (with C's escapes in the latter). -EINVAL: a quote is open. To
 * be freed. */
int command_split(const char *line, char ***ret_arguments);
/** What .read, .output and their like take as the rest of their line: a file, maybe in quotes, or "|command" with or
 * without them. To be freed; NULL: nothing was said. -EINVAL: a quote is open, or there is more than one word. */
int command_target(const char *rest, char **ret);
/** Runs a line. -EINVAL with a complaint where it is none of ours or has the wrong arguments. */
int command_run(Shell *shell, const Unit *unit);
/** A complaint about how it was used, for which the program ends with EXIT_USAGE. Returns -EINVAL. */
int command_misuse(Shell *shell, const Command *command);
/** A complaint about why it failed, which was nobody else's to tell. -EINVAL, what it was given is wrong, counts as
 * misuse, the rest as a failure: EXIT_QUERY. Returns `r`. */
int command_fail(Shell *shell, int r, const char *format, ...) G_GNUC_PRINTF(3, 4);

#endif
