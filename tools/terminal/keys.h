/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keys as they are pressed, for code that redraws a terminal. Display. */
#ifndef SQLIPC_TOOLS_TERMINAL_KEYS_H
#define SQLIPC_TOOLS_TERMINAL_KEYS_H

#include <stdbool.h>
#include <termios.h>

/** From now on keys can be read from stdin as they are pressed, and are not echoed. `*before` gets the old settings, for
 * keys_give_back(). False: stdin is not a terminal, or refuses; it is unchanged. */
bool keys_take(struct termios *before);

/** Restores the terminal after keys_take() returned true. */
void keys_give_back(const struct termios *before);

#endif
