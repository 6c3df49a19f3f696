/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A terminal that is drawn over and over, and the keys and signals that come meanwhile.
 *
 * Signals are blocked and come by a descriptor, so that nothing runs in a handler and the terminal is always put back.
 */
#ifndef CTL_TERMINAL_SCREEN_H
#define CTL_TERMINAL_SCREEN_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

typedef enum ScreenEvent {
        SCREEN_TIME,   /* the time is over */
        SCREEN_RESIZE,
        SCREEN_KEY,
        SCREEN_END,    /* a signal that ends programs, or the terminal went */
} ScreenEvent;

typedef struct Screen {
        int signal_fd;
        bool draws, reads;     /* stdout, stdin are terminals */
        struct termios before; /* of stdin */
        size_t height, width;  /* 0: unknown */
} Screen;

/** Takes signals and, where `draws` is wanted and they are terminals, stdin and stdout. Negative: it cannot. */
int screen_init(Screen *screen, bool draws);
/** Puts the terminal back. */
void screen_done(Screen *screen);

/** Shows `text` from the upper left corner on, as much as fits. Without a terminal just prints it. */
void screen_draw(const Screen *screen, const char *text);

/** Waits until `until_usec` of g_get_monotonic_time(). SCREEN_KEY: `*ret_key` is it. */
ScreenEvent screen_wait(Screen *screen, gint64 until_usec, char *ret_key);

#endif
