/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQL and parameters in a file of the client. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <unistd.h>

#include "daemon/supervisor/calls/argument-file.h"
#include "dbus-interfaces/wire/call-arguments.h"
#include "dbus-interfaces/wire/sqlipc-page.h"

#define FD_MIN 10 /* workers are started with those below */

int argument_file_take(int fd, ArgumentFile *ret, Refusal *refusal) {
        ArgumentFile file = ARGUMENT_FILE_INIT;
        int r = 0;

        if (fd >= 0)
                r = call_arguments_check(fd, &file.size);
        if (r == -E2BIG)
                return refuse(refusal, ERROR_LIMITS_EXCEEDED, "SQL and parameters have at most %" PRIu64 " bytes together.",
                              CALL_ARGUMENTS_SIZE_MAX);
        if (r < 0)
                return refuse(refusal, ERROR_INVALID_OPTION,
                              "Option \"arguments\": give a memfd that has all seals and no holes.");
        if (fd >= 0)
                file.fd = fcntl(fd, F_DUPFD_CLOEXEC, FD_MIN);
        if (fd >= 0 && file.fd < 0)
                return -errno;
        *ret = file;
        return 0;
}

size_t argument_file_read_sql(const ArgumentFile *file, char *buffer, size_t size) {
        uint8_t head[CALL_ARGUMENTS_HEAD_SIZE];
        size_t sql_size;
        ssize_t n;

        if (pread(file->fd, head, sizeof head, 0) != sizeof head)
                return 0;
        sql_size = load_le32(head);
        n = pread(file->fd, buffer, MIN(size, sql_size), sizeof head);
        return n > 0 ? (size_t) n : 0;
}

void argument_file_done(ArgumentFile *file) {
        if (file->fd >= 0)
                close(file->fd);
        *file = ARGUMENT_FILE_INIT;
}
