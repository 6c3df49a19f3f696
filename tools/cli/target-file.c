/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file that is there whole or not at all, see target-file.h. */
#include "target-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file itself where `path` is a link to one: the link is to stay. */
static int find(const char *path, bool replace, char **ret) {
        struct stat found;
        char *real;

        if (stat(path, &found) < 0) {
                *ret = g_strdup(path);
                return errno == ENOENT ? 0 : -errno;
        }
        if (!S_ISREG(found.st_mode))
                return -EINVAL;
        if (!replace)
                return -EEXIST;
        real = realpath(path, NULL);
        if (!real)
                return -errno;
        *ret = g_strdup(real);
        free(real);
        return 0;
}

/* As open() would have made it. */
static int give_rights(int fd) {
        mode_t mask = umask(0);

        (void) umask(mask);
        return fchmod(fd, 0666 & ~mask) < 0 ? -errno : 0;
}

int target_file_begin(TargetFile *target, const char *path, bool replace) {
        g_autofree char *real = NULL, *temporary = NULL;
        int r, fd;

        *target = (TargetFile) { .fd = -1, .replace = replace };
        r = find(path, replace, &real);
        if (r < 0)
                return r;
        temporary = g_strconcat(real, ".XXXXXX", NULL);
        fd = mkostemp(temporary, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        target->path = g_steal_pointer(&real);
        target->temporary = g_steal_pointer(&temporary);
        target->fd = fd;
        r = give_rights(fd);
        if (r < 0)
                target_file_drop(target);
        return r;
}

static void forget(TargetFile *target) {
        if (target->fd >= 0)
                (void) close(target->fd);
        target->fd = -1;
        g_clear_pointer(&target->path, g_free);
        g_clear_pointer(&target->temporary, g_free);
}

void target_file_drop(TargetFile *target) {
        if (target->temporary)
                (void) unlink(target->temporary);
        forget(target);
}

/* A name in a folder is on the disk once the folder is. */
static int sync_folder(const char *path) {
        g_autofree char *folder = g_path_get_dirname(path);
        int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

        if (fd < 0)
                return -errno;
        if (fsync(fd) < 0 && errno != EINVAL) /* a file system that has no such thing */
                r = -errno;
        (void) close(fd);
        return r;
}

/* Never over a file that came meanwhile, unless that is wanted. */
static int put_in_place(const TargetFile *target) {
        if (target->replace)
                return rename(target->temporary, target->path) < 0 ? -errno : 0;
        if (renameat2(AT_FDCWD, target->temporary, AT_FDCWD, target->path, RENAME_NOREPLACE) == 0)
                return 0;
        if (errno != EINVAL && errno != ENOSYS)
                return -errno;
        if (link(target->temporary, target->path) < 0) /* a file system without that flag */
                return -errno;
        (void) unlink(target->temporary);
        return 0;
}

int target_file_keep(TargetFile *target) {
        int r = fsync(target->fd) < 0 ? -errno : 0;

        if (r >= 0)
                r = put_in_place(target);
        if (r < 0) {
                target_file_drop(target);
                return r;
        }
        r = sync_folder(target->path);
        forget(target);
        return r;
}
