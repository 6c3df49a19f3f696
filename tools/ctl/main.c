/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlipcctl: start and end. Data goes to stdout, messages go to stderr. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/ctl/context.h"

/* If a standard stream is closed, the next file that is opened would get its number, for example the bus's socket. Opens
 * /dev/null instead, read-only, so that writing to it fails as it would to a closed stream. */
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

        /* Text and its widths are UTF-8, even if the user's locale is not. */
        if (!setlocale(LC_CTYPE, "C.UTF-8"))
                (void) setlocale(LC_CTYPE, "");
        (void) signal(SIGPIPE, SIG_IGN);

        r = context_run(argc, argv);
        if (fflush(stdout) != 0 || ferror(stdout)) {
                if (errno != EPIPE) /* a reader that ends early, as `| head` does, is not an error */
                        complain("The output cannot be written: %s", g_strerror(errno));
                return CTL_FAILED;
        }
        return r;
}
