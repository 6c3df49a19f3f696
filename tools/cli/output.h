/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where results go: the terminal, a pager, a file, a command, a pipe that somebody else reads.
 *
 *      output_begin ──> write to the FILE, output_pump() in between ──> output_end
 *
 * On a terminal the first screen is held back for a moment; what is taller goes to the pager, through an unlinked temporary
 * file: so the result is read to its end (or OUTPUT_SPOOL_MAX) however long the pager stays open, and the service is done
 * with it. Elsewhere the stream is the file itself.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>

/* So much is read ahead of a pager; then the query is ended, and the last line says so. */
#define OUTPUT_SPOOL_MAX ((uint64_t) 1024 * 1024 * 1024)

typedef struct Output Output;

typedef struct OutputOptions {
        bool interactive; /* a user before a terminal: pager, held back first screen */
        const char *pager; /* borrowed for each begin; NULL: $PAGER, else less -SR; "": none */
} OutputOptions;

/** `stdout` at first. */
Output *output_new(void);
/** Closes files, waits for commands. NULL is allowed. Returns NULL. */
Output *output_free(Output *output);

/** From now on (`once`: for the next answer) to `target`: a file, "|command", "" or "stdout" for where it went at first.
 * -errno of opening it, with a sentence in `ret_message` to be freed. */
int output_redirect(Output *output, const char *target, bool once, char **ret_message);
/** What it goes to, as output_redirect() takes it; borrowed. */
const char *output_target(const Output *output);

/** An answer begins: `ret` takes it, borrowed until output_end(). Who writes sees to it that a terminal may show it. */
int output_begin(Output *output, const OutputOptions *options, FILE **ret);
/** A terminal shows what is written now (not a file, not a command): columns, else 0. */
size_t output_width(const Output *output);
/** Colours and footers make sense there: a terminal, or the pager of one. */
bool output_is_terminal(const Output *output);
/** To be polled while nothing is written; .fd is -1 where there is nothing to wait for. `*timeout_msec` is lowered to when
 * the held back first screen is due. */
struct pollfd output_pollfd(Output *output, int *timeout_msec);
/** Moves what is due. 0; -EPIPE: the reader left, or the pager has OUTPUT_SPOOL_MAX to read: end the query, no error; else
 * what writing gave. */
int output_pump(Output *output);
/** The answer was broken off: what is left of it is written as long as somebody takes it; -ECANCELED where nobody does. */
void output_hurry(Output *output);
/** The answer is over: writes the rest, waits for pager or command (while SIGINT is theirs). The first error, as
 * output_pump(); -ECHILD where the command failed, which was said. */
int output_end(Output *output);

#endif
