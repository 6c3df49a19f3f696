/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Moves descriptors away from the numbers that workers are started with. Supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/supervisor/base/high-descriptor.h"

#define FD_MIN 10

int high_descriptor(int fd) {
        int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_MIN);
        int r = high >= 0 ? high : errno == EINVAL ? -EMFILE : -errno; /* EINVAL: the limit allows no number that high */

        close(fd);
        return r;
}
