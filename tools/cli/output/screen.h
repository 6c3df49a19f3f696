/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts the lines of a terminal's screen that a text takes, as it is written piece by piece. Pure. */
#ifndef SQLIPC_TOOLS_CLI_OUTPUT_SCREEN_H
#define SQLIPC_TOOLS_CLI_OUTPUT_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Screen {
        size_t rows, columns; /* of the terminal */
        size_t n_lines;       /* used so far; a line that wraps counts once for each row */
        size_t column;        /* of the unfinished line */
        bool in_escape;       /* within a colour sequence */
} Screen;

/** Takes text that is safe to show, colours included; wide characters count as one column. Returns false once the text fills
 * the screen, of which the next prompt needs a line. */
bool screen_take(Screen *screen, const char *bytes, size_t size);

#endif
