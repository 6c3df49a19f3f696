/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where results go (output.h). */
#include "output.h"

#include <errno.h>
#include <glib.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct Output {
        char *target;
};

Output *output_new(void) {
        return g_new0(Output, 1);
}

Output *output_free(Output *output) {
        if (output)
                g_free(output->target);
        g_free(output);
        return NULL;
}

int output_redirect(Output *output, const char *target, bool once, char **ret_message) {
        (void) output, (void) target, (void) once;
        *ret_message = g_strdup("Not yet.");
        return -EOPNOTSUPP;
}

const char *output_target(const Output *output) {
        return output->target ?: "stdout";
}

int output_begin(Output *output, const OutputOptions *options, FILE **ret) {
        (void) output, (void) options;
        *ret = stdout;
        return 0;
}

size_t output_width(const Output *output) {
        struct winsize size;

        (void) output;
        return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool output_is_terminal(const Output *output) {
        (void) output;
        return isatty(STDOUT_FILENO);
}

struct pollfd output_pollfd(Output *output, int *timeout_msec) {
        (void) output, (void) timeout_msec;
        return (struct pollfd) { .fd = -1 };
}

int output_pump(Output *output) {
        (void) output;
        return 0;
}

int output_end(Output *output) {
        (void) output;
        return fflush(stdout) == 0 ? 0 : -errno;
}
