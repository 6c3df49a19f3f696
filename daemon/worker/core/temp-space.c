/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Side: worker. See temp-space.h.
 */
#include "daemon/worker/core/temp-space.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define N_ATTEMPTS 8

static uint64_t used;

bool temp_space_take(uint64_t size, uint64_t max) {
        if (used > max || size > max - used)
                return false;
        used += size;
        return true;
}

void temp_space_give(uint64_t size) {
        used -= size;
}

/* For file systems without O_TMPFILE: the file has a name for a moment. */
static int open_named(const char *folder) {
        for (unsigned i = 0; i < N_ATTEMPTS; i++) {
                char path[4096];
                uint64_t random;
                int fd;

                if (getrandom(&random, sizeof random, 0) != (ssize_t) sizeof random)
                        return -errno;
                if ((size_t) snprintf(path, sizeof path, "%s/sqlipc-%016llx", folder, (unsigned long long) random) >=
                    sizeof path)
                        return -ENAMETOOLONG;
                fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
                if (fd < 0 && errno != EEXIST)
                        return -errno;
                if (fd >= 0) {
                        (void) unlink(path);
                        return fd;
                }
        }
        return -EEXIST;
}

static int open_in(const char *folder) {
        int fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);

        if (fd >= 0)
                return fd;
        return errno == EOPNOTSUPP || errno == EISDIR ? open_named(folder) : -errno;
}

int temp_space_open(void) {
        const char *const folders[] = {
                secure_getenv("SQLITE_TMPDIR"), secure_getenv("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp",
        };
        int first = 0;

        for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
                int fd = folders[i] && folders[i][0] == '/' ? open_in(folders[i]) : -ENOENT;

                if (fd >= 0)
                        return fd;
                if (first == 0 && fd != -ENOENT)
                        first = fd;
        }
        return first < 0 ? first : -ENOENT;
}
