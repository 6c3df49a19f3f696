/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs that the shell runs and waits for: an editor, gnuplot, what .shell names. They get the signals that we
 * watch or ignore as any program does; a Ctrl-C while we wait is theirs alone.
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <sys/types.h>

/* Its descriptors, borrowed; -1: ours. */
typedef struct ChildFiles {
        int input, output;
        int third; /* its descriptor 3; -1: none */
} ChildFiles;

#define CHILD_FILES_OURS ((ChildFiles) { .input = -1, .output = -1, .third = -1 })

/** Starts argv[0], found by PATH. 0, or -errno: -ENOENT where there is no such program. */
int child_start(const char *const *argv, const ChildFiles *files, pid_t *ret);

/** Waits until it ended, so many milliseconds, -1: any. A Ctrl-C meanwhile is its alone; what ends us ends it. Its exit
 * status, or 128 and the signal that killed it; -ETIMEDOUT; else -errno. */
int child_wait(pid_t pid, int timeout_msec);

/** The two of them, for "sh -c command sh argument", on our own terminal. `argument` may be NULL. -ECANCELED: we are to
 * end ourselves. */
int child_run_shell(const char *command, const char *argument);

#endif
