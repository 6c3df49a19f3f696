/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keys as they are pressed, see keys.h. Display. */
#include "tools/terminal/keys.h"

#include <unistd.h>

bool keys_take(struct termios *before) {
        struct termios keys;

        if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, before) < 0)
                return false;
        keys = *before;
        keys.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
        keys.c_cc[VMIN] = 1;
        keys.c_cc[VTIME] = 0;
        return tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
}

void keys_give_back(const struct termios *before) {
        (void) tcsetattr(STDIN_FILENO, TCSANOW, before);
}
