/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much of a terminal's screen a text takes, as it is written piece by piece. Pure. */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Screen {
        size_t rows, columns; /* of the terminal */
        size_t n_lines;       /* taken so far, lines that wrap counted as often as they do */
        size_t column;        /* of the line that is not ended */
        bool in_escape;       /* within the sequence of a colour */
} Screen;

/** Takes text that may be shown, colours included; wide characters count as one column. False once it fills the screen,
 * where the next prompt needs a line. */
bool screen_take(Screen *screen, const char *bytes, size_t size);

#endif
