/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Splits lines into units, by the rules of the open database. A unit is a statement up to its ";" (a line may hold several,
 * and one may span many lines), or a command: text that begins with "." if no statement has begun, or with a backslash
 * anywhere outside of strings, up to the end of its line. A statement without ";" at the end of a file is a unit, too.
 * Blanks, comments and empty statements are not units, and those before a statement do not belong to it. A byte order mark,
 * a first line "#!..." and a CR at the end of a line of a file are skipped.
 */
#ifndef SQLIPC_TOOLS_CLI_SHELL_SCRIPT_H
#define SQLIPC_TOOLS_CLI_SHELL_SCRIPT_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/cli/sql/sql-scan.h"

typedef struct Script Script;

typedef enum UnitType {
        UNIT_SQL,     /* without its ";" */
        UNIT_COMMAND, /* a line, with its "." or "\" */
} UnitType;

typedef struct Unit {
        UnitType type;
        const char *text;    /* borrowed until the next script_next() */
        const char *pending; /* UNIT_COMMAND: unfinished SQL before it (\g, \e), "" if none; dropped unless it is put back */
        const char *file;    /* borrowed from the script; NULL: typed, or from the command line */
        unsigned line;       /* the line on which it begins, from 1 */
        SqlDialect dialect;  /* .text or .pending was found by its rules */
} Unit;

/* The earlier lines of the statement that is being typed. */
typedef struct TypedLines {
        const char *text; /* "": there are none */
        const char *open; /* in .text: the start of the string, name or comment that is still open at its end; NULL: none */
        bool started;     /* .text holds more than blanks and comments */
} TypedLines;

/* The prompt at which the user types. */
typedef struct Prompt {
        void *userdata;
        /** The text before the first line of a statement. It is safe to show. The script frees it. */
        char *(*text)(void *userdata);
        /** Lets the user type a line; pasted text may be several lines. Returns 1: `*ret`, which the script frees, is the
         * line without newline; 0: Ctrl-D, end of file, SIGTERM or SIGHUP; -EINTR: Ctrl-C, `*ret_typed` is true if the line
         * had text; else the error of waiting. */
        int (*read_line)(void *userdata, const char *text, const TypedLines *before, char **ret, bool *ret_typed);
        /** Adds a whole statement or command, with all its lines, to the history. */
        void (*add_history)(void *userdata, const char *text);
} Prompt;

/** The text of -c or of an argument: one line or more. Copied. `name`: its name in error messages, NULL for none. */
Script *script_new_text(const char *text, const char *name);
/** A stream of which nothing was read yet; owned if `close` is set. `name` as above. */
Script *script_new_file(FILE *file, int close, const char *name);
/** The lines that the user types. Copies `prompt`. */
Script *script_new_prompt(const Prompt *prompt);
/** Has the script ask, before each statement, whose rules it is split by. Without this they are SQLite's. `again`: the
 * answer matters for this statement, so an earlier one is not enough: the database may have been moved to a server. */
void script_set_dialect(Script *script, SqlDialect (*dialect)(void *userdata, bool again), void *userdata);
/** NULL is allowed. Returns NULL. */
Script *script_free(Script *script);

/** Returns 1: a unit; 0: the end; -EINTR: Ctrl-C at the prompt (the unfinished statement is dropped; the caller goes on);
 * -EILSEQ: a unit that is not UTF-8 or contains a NUL was skipped; -ECANCELED: Ctrl-C while a file was read; else the error
 * of reading. In each case `ret` holds the position. */
int script_next(Script *script, Unit *ret);

/** Returns true if a statement was being typed when -EINTR came; otherwise the prompt was empty. */
int script_was_typing(const Script *script);

/** Puts the unfinished statement back, because the last command did not use its `pending`: the statement continues after the
 * command. */
void script_put_back(Script *script);

/** Asks the user a question at the prompt, and returns true if the answer is not yes; the script then goes on after its end.
 * The answer is yes, too, if there is no prompt, after another Ctrl-D, and if the program must exit. */
bool script_stays(Script *script, const char *question);

/** Drops the rest of the lines that were read after the last unit: after Ctrl-C it must not run either. */
void script_drop(Script *script);

#endif
