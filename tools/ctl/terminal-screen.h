/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A terminal screen that is redrawn, and the keys and signals that arrive meanwhile.
 *
 * Signals are blocked and read from a descriptor, so that no code runs in a handler and the terminal is always restored.
 */
#ifndef SQLIPC_TOOLS_CTL_TERMINAL_SCREEN_H
#define SQLIPC_TOOLS_CTL_TERMINAL_SCREEN_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

typedef enum ScreenEvent {
        SCREEN_TIME,   /* the time has passed */
        SCREEN_RESIZE,
        SCREEN_KEY,
        SCREEN_END,    /* a signal that ends programs, or the terminal is gone */
} ScreenEvent;

typedef struct Screen {
        int signal_fd;
        bool draws, reads;     /* stdout is a terminal, stdin is a terminal */
        struct termios before; /* of stdin */
        size_t height, width;  /* 0: unknown */
} Screen;

/** Takes over signals and, if `draws` and they are terminals, stdin and stdout. Negative on failure. */
int screen_init(Screen *screen, bool draws);
/** Restores the terminal. */
void screen_done(Screen *screen);

/** Shows `text` from the upper left corner, as much as fits. Without a terminal it only prints the text. */
void screen_draw(const Screen *screen, const char *text);

/** Waits until `until_usec` of g_get_monotonic_time(). With SCREEN_KEY, `*ret_key` is the key. */
ScreenEvent screen_wait(Screen *screen, gint64 until_usec, char *ret_key);

#endif
