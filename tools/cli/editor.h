/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The prompt: GNU readline, with a history file (0600, no duplicates), bracketed paste, completion and coloured input. On
 * a terminal that can do nothing (TERM=dumb) a line is read as it is. Waits for keys and signals at once, so Ctrl-C never
 * lands in the middle of anything.
 */
#ifndef CLI_EDITOR_H
#define CLI_EDITOR_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Editor Editor;
typedef struct Shell Shell;

typedef struct EditorOptions {
        const char *history_path; /* NULL: none is kept */
        size_t history_max;       /* statements */
        bool colors;
        Shell *shell;             /* for completion; borrowed */
} EditorOptions;

/* The lines of a statement before the one that is typed. */
typedef struct EditorLines {
        const char *text; /* "": none */
        const char *open; /* in .text: the string, name or comment that it ends within; NULL: none */
        bool started;     /* more than blanks and comments */
} EditorLines;

/** Reads the history; one that cannot be read is said and not written. 0, -ENOMEM. There can be one at a time. */
int editor_new(const EditorOptions *options, Editor **ret);
/** NULL is allowed. Returns NULL. */
Editor *editor_free(Editor *editor);

/** What stands before the first line of a statement: which database it is about. Safe to show. To be freed. */
char *editor_prompt(const Editor *editor);

/** Lets the user type a line; what was pasted may be several. 1: `*ret`, to be freed, without newline; 0: Ctrl-D or end
 * of file, SIGTERM, SIGHUP; -EINTR: Ctrl-C, `*ret_typed` whether the line had text; else what waiting gave. */
int editor_read_line(Editor *editor, const char *prompt, const EditorLines *before, char **ret, bool *ret_typed);

/** Takes a whole statement or command into the history, lines and all; again what was there moves to its end. Not what a
 * blank begins. */
void editor_add_history(Editor *editor, const char *text);

/** Colours from now on or not (NO_COLOR, .color). */
void editor_set_colors(Editor *editor, bool colors);

#endif
