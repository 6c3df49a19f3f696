/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens and closes the targets of output (output-target.h). */
#include "tools/cli/output/output-target.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/terminal/format.h"

void output_say(const char *format, ...) {
        g_autoptr(GString) shown = g_string_new("ipcq-cli: ");
        g_autofree char *message = NULL;
        va_list arguments;

        va_start(arguments, format);
        message = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        format_shown_text(shown, message, strlen(message), SIZE_MAX);
        g_string_append_c(shown, '\n');
        fputs(shown->str, stderr);
}

/* Opens the standard output again, if it is a pipe or a terminal and that is possible, to make only our descriptor
 * non-blocking: other processes share the original one. Then a write never keeps us from seeing Ctrl-C. */
static int open_again(int fd) {
        char path[32];

        g_snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

void target_open_stdout(Target *target) {
        struct stat st;
        bool is_pipe = fstat(STDOUT_FILENO, &st) >= 0 && S_ISFIFO(st.st_mode);

        *target = (Target) { .name = g_strdup("stdout"), .fd = -1, .feed = FEED_NONE,
                             .is_terminal = isatty(STDOUT_FILENO), .tells_end = is_pipe };
        if (is_pipe || target->is_terminal)
                target->fd = open_again(STDOUT_FILENO);
        if (target->fd < 0)
                target->fd = STDOUT_FILENO;
}

int target_close(Target *target) {
        int r = 0, status;

        if (target->fd > STDERR_FILENO && close(target->fd) < 0)
                r = -errno;
        if (target->feed.pid > 0) {
                target->feed.fd = -1;
                status = feed_wait(&target->feed, -1);
                if (status == 128 + SIGINT)
                        r = -ECANCELED;
                else if (status > 0 && status != 128 + SIGPIPE) {
                        output_say("The command that results went to ended with status %d: %s", status, target->name + 1);
                        r = -ECHILD;
                }
        }
        g_free(target->name);
        *target = TARGET_NONE;
        return r;
}

int target_open(Target *target, const char *name) {
        struct stat st;

        *target = TARGET_NONE;
        if (*name != '|') {
                target->fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
                if (target->fd < 0)
                        return -errno;
                target->is_terminal = isatty(target->fd);
                target->tells_end = fstat(target->fd, &st) >= 0 && S_ISFIFO(st.st_mode);
        }
        target->name = g_strdup(name);
        return 0;
}

/* Starts a command, not before the first answer: a pager that the user set as target would otherwise take the terminal at
 * once. */
int target_start(Target *target) {
        int r;

        if (target->fd >= 0)
                return 0;
        r = feed_start(target->name + 1, &target->feed);
        if (r < 0)
                return r;
        target->fd = target->feed.fd;
        target->tells_end = true;
        return 0;
}
