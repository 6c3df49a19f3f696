/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A terminal screen that is redrawn, see terminal-screen.h. */
#include "tools/ctl/terminal-screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tools/terminal/keys.h"

/* The cursor goes home. The rest of each old line is erased with the new line, and the lines below at the end; so the screen
 * does not flicker. */
#define GO_HOME "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"

static void measure(Screen *screen) {
        struct winsize size;
        bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;

        screen->height = known ? size.ws_row : 0;
        screen->width = known ? size.ws_col : 0;
}

int screen_init(Screen *screen, bool draws) {
        sigset_t signals;

        *screen = (Screen) { .draws = draws && isatty(STDOUT_FILENO) };
        sigemptyset(&signals);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGHUP);
        sigaddset(&signals, SIGWINCH);
        if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
                return -errno;
        screen->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
        if (screen->signal_fd < 0)
                return -errno;
        if (screen->draws) {
                measure(screen);
                screen->reads = keys_take(&screen->before);
                fputs(GO_HOME CLEAR_BELOW, stdout);
        }
        return 0;
}

void screen_done(Screen *screen) {
        if (screen->reads)
                keys_give_back(&screen->before);
        if (screen->signal_fd >= 0)
                (void) close(screen->signal_fd);
        *screen = (Screen) { .signal_fd = -1 };
}

void screen_draw(const Screen *screen, const char *text) {
        g_auto(GStrv) lines = NULL;

        if (!screen->draws) {
                fputs(text, stdout);
                (void) fflush(stdout);
                return;
        }
        lines = g_strsplit(text, "\n", -1);
        fputs(GO_HOME, stdout);
        for (size_t i = 0; lines[i] && (screen->height == 0 || i < screen->height - 1); i++)
                printf("%s" CLEAR_LINE "\n", lines[i]);
        fputs(CLEAR_BELOW, stdout);
        (void) fflush(stdout);
}

static ScreenEvent on_signal(Screen *screen) {
        struct signalfd_siginfo info;

        if (read(screen->signal_fd, &info, sizeof info) != sizeof info)
                return SCREEN_TIME;
        if (info.ssi_signo != SIGWINCH)
                return SCREEN_END;
        measure(screen);
        return SCREEN_RESIZE;
}

ScreenEvent screen_wait(Screen *screen, gint64 until_usec, char *ret_key) {
        gint64 left = until_usec - g_get_monotonic_time();
        struct pollfd fds[] = {
                { .fd = screen->signal_fd, .events = POLLIN },
                { .fd = screen->reads ? STDIN_FILENO : -1, .events = POLLIN },
        };
        int n = poll(fds, G_N_ELEMENTS(fds), left <= 0 ? 0 : (int) MIN((left + 999) / 1000, G_MAXINT));

        if (n <= 0)
                return n < 0 && errno != EINTR ? SCREEN_END : SCREEN_TIME;
        if (fds[0].revents)
                return on_signal(screen);
        return read(STDIN_FILENO, ret_key, 1) == 1 ? SCREEN_KEY : SCREEN_END;
}
