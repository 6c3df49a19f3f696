/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts lines of text on a screen (screen.h). Pure. */
#include "tools/cli/output/screen.h"

/* Returns true for a later byte of a character, whose first byte was counted. */
static bool is_continuation(char byte) {
        return ((unsigned char) byte & 0xc0) == 0x80;
}

static void take(Screen *screen, char byte) {
        if (screen->in_escape) { /* "\033[", digits and ";", "m" */
                screen->in_escape = byte != 'm';
                return;
        }
        if (byte == '\n') {
                screen->n_lines++;
                screen->column = 0;
        } else if (byte == '\033')
                screen->in_escape = true;
        else if (byte == '\t')
                screen->column = (screen->column | 7) + 1;
        else if (!is_continuation(byte))
                screen->column++;
        if (screen->column > screen->columns) {
                screen->n_lines++;
                screen->column = 1;
        }
}

bool screen_take(Screen *screen, const char *bytes, size_t size) {
        for (size_t i = 0; i < size && screen->n_lines < screen->rows; i++)
                take(screen, bytes[i]);
        return screen->n_lines < screen->rows;
}
