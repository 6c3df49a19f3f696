/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs that the shell runs and waits for: an editor, gnuplot, commands of .shell. They get default dispositions for the
 * signals that the shell handles or ignores. A Ctrl-C during the wait affects only the child.
 */
#ifndef SQLIPC_TOOLS_CLI_OUTPUT_PROGRAM_H
#define SQLIPC_TOOLS_CLI_OUTPUT_PROGRAM_H

#include <sys/types.h>

/* The child's descriptors, borrowed; -1: inherited from us. */
typedef struct ProgramFiles {
        int input, output;
        int third; /* descriptor 3 of the child; -1: none */
} ProgramFiles;

#define PROGRAM_FILES_OURS ((ProgramFiles) { .input = -1, .output = -1, .third = -1 })

/** Starts argv[0], searched in PATH. Returns 0, or -errno: -ENOENT if there is no such program. */
int program_start(const char *const *argv, const ProgramFiles *files, pid_t *ret);

/** Waits until the child exits, at most `timeout_msec` (-1: without limit). A Ctrl-C during the wait affects only the child;
 * a SIGTERM or SIGHUP to us terminates the child, too. Returns its exit status, or 128 plus the signal that killed it;
 * -ETIMEDOUT; else -errno. */
int program_wait(pid_t pid, int timeout_msec);

/** Starts "sh -c command sh argument" on our own terminal and waits for it. `argument` may be NULL. Returns as
 * program_wait(), or -ECANCELED if a signal has told us to exit. */
int program_run_shell(const char *command, const char *argument);

#endif
