/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The destination of results: the terminal, a pager, a file, a command, or a pipe to another program.
 *
 *      output_begin ──> write to the FILE, output_pump() in between ──> output_end
 *
 * On a terminal the first screen is held back for a moment. A taller result goes to the pager, through an unlinked temporary
 * file: the result is read to its end (or OUTPUT_SPOOL_MAX) even if the pager stays open for long, and the service can
 * release it. For other destinations the stream is the file itself.
 */
#ifndef SQLIPC_TOOLS_CLI_OUTPUT_OUTPUT_H
#define SQLIPC_TOOLS_CLI_OUTPUT_OUTPUT_H

#include <glib.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>

/* The limit of the data that waits for a pager. Beyond it the query is ended, and the last line says so. */
#define OUTPUT_SPOOL_MAX ((uint64_t) 1024 * 1024 * 1024)

typedef struct Output Output;

typedef struct OutputOptions {
        bool interactive; /* a user at a terminal: use a pager, hold the first screen back */
        const char *pager; /* borrowed for each output_begin(); NULL: $PAGER, else less -SR; "": no pager */
} OutputOptions;

/** Writes to `stdout` until it is redirected. */
Output *output_new(void);
/** Closes files and waits for commands. NULL is allowed. Returns NULL. */
Output *output_free(Output *output);

/** Redirects all further answers (`once`: only the next one) to `target`: a file, "|command", or "" or "stdout" for the
 * standard output. Returns -errno of opening it, with a sentence in `ret_message`, which the caller frees. */
int output_redirect(Output *output, const char *target, bool once, char **ret_message);
/** The current target, in the form that output_redirect() takes; borrowed. */
const char *output_target(const Output *output);

/** Begins an answer. The stream in `ret` is borrowed until output_end(). The caller must escape text that a terminal must
 * not get. */
int output_begin(Output *output, const OutputOptions *options, FILE **ret);
/** The columns of the terminal that shows the output; 0 if it goes to a file or a command. */
size_t output_width(const Output *output);
/** Returns true if the output is shown on a terminal, directly or through the pager, so that colours and footers make
 * sense. */
bool output_is_terminal(const Output *output);
/** The descriptor to poll while nothing is written; .fd is -1 if there is none. Lowers `*timeout_msec` to the time at which
 * the first screen must be shown. */
struct pollfd output_pollfd(Output *output, int *timeout_msec);
/** Moves the data that is due. Returns 0; -EPIPE: the reader left, or OUTPUT_SPOOL_MAX waits for the pager, so the caller
 * must end the query, without an error message; else the write error. */
int output_pump(Output *output);
/** Calls `function` once, at `usec` (of g_get_monotonic_time()), if a write to the output waits for its reader then; the
 * write goes on waiting. Lasts until output_clear_alarm(). */
void output_set_alarm(Output *output, gint64 usec, void (*function)(void *userdata), void *userdata);
void output_clear_alarm(Output *output);
/** Stops waiting for slow readers, because the answer was cancelled: the rest is written as long as the reader takes it
 * within a second; otherwise calls return -ECANCELED. */
void output_hurry(Output *output);
/** Ends the answer: writes the rest, and waits for the pager or command, to which SIGINT belongs meanwhile. Returns the
 * first error, as output_pump() does; -ECHILD if the command failed, which has been reported. */
int output_end(Output *output);

#endif
