/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines to units. A unit is a statement up to its ";" (several may stand on a line, one may take many lines) or a
 * command: what begins with "." where no statement is under way, or with a backslash anywhere outside of strings, up to
 * the end of its line. A statement without ";" at the end of a file is a unit too. Blanks, comments and empty statements
 * are none; those before a statement do not belong to it. A byte order mark, a first line "#!..." and a CR at the end of a
 * line of a file are passed over.
 */
#ifndef CLI_SCRIPT_H
#define CLI_SCRIPT_H

#include <stdio.h>

typedef struct Editor Editor;
typedef struct Script Script;

typedef enum UnitType {
        UNIT_SQL,     /* without its ";" */
        UNIT_COMMAND, /* a line, with its "." or "\" */
} UnitType;

typedef struct Unit {
        UnitType type;
        const char *text;    /* borrowed until the next script_next() */
        const char *pending; /* UNIT_COMMAND: the unfinished SQL before it (\g, \e), "" if none; is
                              * forgotten with it, if it is not put back */
        const char *file;    /* borrowed from the script; NULL: typed, or on the command line */
        unsigned line;       /* where it begins, from 1 */
} Unit;

/** The text of -c or of a word: one line or more. Copied. `name`: what complaints call it, NULL for nothing. */
Script *script_new_text(const char *text, const char *name);
/** A stream of which nothing was read yet, owned where `close` is set. `name` as above. */
Script *script_new_file(FILE *file, int close, const char *name);
/** What the user types; the editor is borrowed. */
Script *script_new_prompt(Editor *editor);
/** NULL is allowed. Returns NULL. */
Script *script_free(Script *script);

/** 1: a unit; 0: no more; -EINTR: Ctrl-C at the prompt (what was typed of a statement is dropped; the caller goes on);
 * -EILSEQ: a unit that is not UTF-8 or holds a NUL, and is passed over; -ECANCELED: Ctrl-C while a file was read; else what
 * reading gave. In each case `ret` says where. */
int script_next(Script *script, Unit *ret);

/** Whether a statement was under way when -EINTR came: else the prompt was empty. */
int script_was_typing(const Script *script);

/** The last unit was a command that had no use for its `pending`: that statement goes on behind it. */
void script_put_back(Script *script);

/** Drops what stands behind the last unit on the lines that were read: after Ctrl-C it is not meant to run either. */
void script_drop(Script *script);

#endif
