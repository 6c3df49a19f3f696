/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The line on stderr that a fetch shows while it takes long: "12,345 rows, 3.4 MB, 12.1 MB/s, 0:03". On a terminal only. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Progress {
        bool wanted;
        bool shown;     /* the line stands on the terminal */
        uint64_t begin; /* microseconds, CLOCK_MONOTONIC, as all here */
        uint64_t due;   /* when it is drawn next; UINT64_MAX: never */
} Progress;

/** `wanted`: by settings, and because the rows go elsewhere. */
void progress_begin(Progress *progress, bool wanted, uint64_t now);
/** Draws it if it is due. */
void progress_update(Progress *progress, uint64_t now, uint64_t n_rows, uint64_t n_bytes);
/** Before anything else is written to the terminal. */
void progress_erase(Progress *progress);

#endif
