/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where output leads to (output-target.h). */
#include "output-target.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format.h"

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

/* Standard output is others' as well, and not to be made non-blocking for them: a pipe and a terminal are opened again,
 * where that goes. What cannot be written at once then never keeps us from seeing Ctrl-C. */
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

/* A command starts with the first answer: a pager of the user's own would take the terminal before. */
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
