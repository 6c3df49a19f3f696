/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pager, see stdout-pager.h. */
#include "tools/ctl/stdout-pager.h"

#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static FILE *pager; /* its standard input; NULL: none is open */

size_t stdout_pager_width(void) {
        static size_t width;
        struct winsize size;

        if (isatty(STDOUT_FILENO))
                width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
        return width;
}

/* NULL: no pager is wanted, or none is installed. */
static const char *find_pager(void) {
        const char *command = g_getenv("SYSTEMD_PAGER") ?: g_getenv("PAGER"), *term = g_getenv("TERM");

        if (!term || g_str_equal(term, "dumb"))
                return NULL;
        if (command)
                return *command && !g_str_equal(command, "cat") ? command : NULL;
        return g_find_program_in_path("less") ? "less" : NULL;
}

void stdout_pager_open(bool wanted) {
        const char *command = !wanted || pager || !isatty(STDOUT_FILENO) ? NULL : find_pager();

        if (!command)
                return;
        (void) stdout_pager_width();                            /* the function remembers it */
        (void) g_setenv("LESS", "FRSXMK", FALSE);           /* F: end if everything fits on the screen */
        (void) g_setenv("LESSSECURE", "1", FALSE);          /* root's pager starts no shell */
        pager = popen(command, "we");
        if (!pager)
                return;
        (void) signal(SIGINT, SIG_IGN); /* Ctrl-C is for the pager */
        (void) fflush(stdout);
        if (dup2(fileno(pager), STDOUT_FILENO) < 0)
                stdout_pager_close();
}

void stdout_pager_close(void) {
        if (!pager)
                return;
        (void) fflush(stdout);
        clearerr(stdout); /* a user who leaves the pager early has read enough */
        (void) dup2(STDERR_FILENO, STDOUT_FILENO); /* the pager reads until all write ends of the pipe are closed */
        (void) pclose(pager);
        pager = NULL;
}
