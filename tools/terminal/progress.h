/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A progress line on stderr during long work. Only on a terminal. */
#ifndef SQLIPC_TOOLS_TERMINAL_PROGRESS_H
#define SQLIPC_TOOLS_TERMINAL_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Progress {
        bool wanted;
        bool shown;     /* the line is on the terminal */
        uint64_t begin; /* microseconds of CLOCK_MONOTONIC, like all times here */
        uint64_t due;   /* when to draw it next; UINT64_MAX: never */
} Progress;

/** `wanted`: the settings enable the line. It is never drawn if stderr is not a terminal. */
void progress_begin(Progress *progress, bool wanted, uint64_t now);
/** True if the line is due. The caller then calls progress_draw(). */
bool progress_is_due(Progress *progress, uint64_t now);
/** The columns that the line may have. */
size_t progress_width(void);
/** Draws the line, which is safe to show. */
void progress_draw(Progress *progress, const char *line);
/** Must be called before anything else is written to the terminal. */
void progress_erase(Progress *progress);

#endif
