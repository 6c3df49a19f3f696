/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Draws the progress line (progress.h). */
#include "tools/terminal/progress.h"

#include <glib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define FIRST_USEC ((uint64_t) 500 * 1000)
#define NEXT_USEC ((uint64_t) 200 * 1000)

/* Returns false if another program, such as a pager that reads our rows, has switched the terminal out of line mode: that
 * program then draws on it. */
static bool terminal_is_ours(void) {
        struct termios terminal;

        return tcgetattr(STDERR_FILENO, &terminal) >= 0 && terminal.c_lflag & ICANON;
}

void progress_begin(Progress *progress, bool wanted, uint64_t now) {
        const char *term = g_getenv("TERM");

        wanted = wanted && isatty(STDERR_FILENO) && term && !g_str_equal(term, "dumb");
        *progress = (Progress) { .wanted = wanted, .begin = now, .due = wanted ? now + FIRST_USEC : UINT64_MAX };
}

bool progress_is_due(Progress *progress, uint64_t now) {
        if (!progress->wanted || now < progress->due)
                return false;
        progress->due = now + NEXT_USEC;
        if (!terminal_is_ours()) {
                progress->shown = false;
                return false;
        }
        return true;
}

size_t progress_width(void) {
        struct winsize size;

        return (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) >= 0 && size.ws_col > 0 ? size.ws_col : 80) - 1;
}

void progress_draw(Progress *progress, const char *line) {
        g_autofree char *text = g_strdup_printf("\r%s\033[K", line);

        (void) !write(STDERR_FILENO, text, strlen(text));
        progress->shown = true;
}

void progress_erase(Progress *progress) {
        static const char erase[] = "\r\033[K";

        if (progress->shown)
                (void) !write(STDERR_FILENO, erase, strlen(erase));
        progress->shown = false;
}
