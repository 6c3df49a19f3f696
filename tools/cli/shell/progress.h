/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A progress line on stderr during a long fetch: "12,345 rows, 3.4 MB, 12.1 MB/s, 0:03". Only on a terminal. */
#ifndef SQLIPC_TOOLS_CLI_SHELL_PROGRESS_H
#define SQLIPC_TOOLS_CLI_SHELL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Progress {
        bool wanted;
        bool shown;     /* the line is on the terminal */
        uint64_t begin; /* microseconds of CLOCK_MONOTONIC, like all times here */
        uint64_t due;   /* when to draw it next; UINT64_MAX: never */
} Progress;

/** `wanted`: the settings enable the line. It is never drawn if stderr is not a terminal. */
void progress_begin(Progress *progress, bool wanted, uint64_t now);
/** Draws the line if it is due. */
void progress_update(Progress *progress, uint64_t now, uint64_t n_rows, uint64_t n_bytes);
/** Must be called before anything else is written to the terminal. */
void progress_erase(Progress *progress);

#endif
