/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl: start and end. stdout is data, stderr is talk. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "context.h"

/* Where a standard stream is closed, the next file that is opened would get its number: the bus's socket, say. Read-only, so
 * that writing there fails as it should. */
static void occupy_standard_streams(void) {
        for (int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0; fd = open("/dev/null", O_RDONLY | O_CLOEXEC))
                if (fd > STDERR_FILENO) {
                        close(fd);
                        return;
                }
}

int main(int argc, char **argv) {
        int r;

        occupy_standard_streams();

        /* Text is UTF-8 whatever the user's locale says, and so are its widths. */
        if (!setlocale(LC_CTYPE, "C.UTF-8"))
                (void) setlocale(LC_CTYPE, "");
        (void) signal(SIGPIPE, SIG_IGN);

        r = context_run(argc, argv);
        if (fflush(stdout) != 0 || ferror(stdout)) {
                if (errno != EPIPE) /* a reader that had enough, `| head`, is nothing to tell */
                        complain("The output cannot be written: %s", g_strerror(errno));
                return CTL_FAILED;
        }
        return r;
}
