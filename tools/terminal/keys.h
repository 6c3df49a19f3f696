/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keys as they are pressed, for what draws on a terminal over and over. Display. */
#ifndef TERMINAL_KEYS_H
#define TERMINAL_KEYS_H

#include <stdbool.h>
#include <termios.h>

/** From now on keys of stdin come as they are pressed, and are not shown; `*before` is how it was, for keys_give_back().
 * False: stdin is no terminal, or does not let us, and is as it was. */
bool keys_take(struct termios *before);

/** After keys_take() was true: the terminal is as it was. */
void keys_give_back(const struct termios *before);

#endif
