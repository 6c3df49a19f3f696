/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers for files (files.h). */
#include "tools/cli/output/files.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdlib.h>
#include <unistd.h>

int write_all(int fd, const char *bytes, size_t size) {
        while (size > 0) {
                ssize_t n = write(fd, bytes, size);

                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n > 0) {
                        bytes += n;
                        size -= (size_t) n;
                }
        }
        return 0;
}

/* Opens a file for file systems without O_TMPFILE; it has a name for a moment. */
static int open_named(const char *folder) {
        g_autofree char *path = g_build_filename(folder, "ipcq-cli-XXXXXX", NULL);
        int fd = mkostemp(path, O_CLOEXEC);

        if (fd < 0)
                return -errno;
        (void) unlink(path);
        return fd;
}

int open_scratch(void) {
        const char *folder = g_get_tmp_dir(); /* $TMPDIR */
        int fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);

        return fd < 0 ? open_named(folder) : fd;
}
